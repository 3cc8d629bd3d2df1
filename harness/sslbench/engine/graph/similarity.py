"""Similarities of n-gram types: the interface, and the similarity of contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import msgspec
import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.graph.contexts import context_vectors, excluded_tokens
from sslbench.engine.graph.neighbors import NeighborLists, nearest
from sslbench.engine.graph.options import GraphOptions, Progress, silent
from sslbench.engine.graph.templates import TemplateSet
from sslbench.engine.graph.vertices import Vertices
from sslbench.engine.types import Bool


@runtime_checkable
class Similarity(Protocol):
    """Which tokens of a text have a vertex, and how similar two vertices are.

    A class derived from this one has to define `neighbors` and `cache_key`.
    """

    @property
    def vertex_form(self) -> str | None:
        """Normal form of the words of a vertex, one of `forms.FORMS`; None, the default: none."""
        return None

    def excluded(self, text: Corpus, column: str) -> Bool:
        """Return bool[N]: tokens without a vertex, by default none.

        They are still in the contexts of other tokens. UserError if the text lacks the column.
        """
        text.column(column)
        return np.zeros(text.n_tokens, np.bool_)

    def neighbors(
        self,
        text: Corpus,
        vertices: Vertices,
        options: GraphOptions,
        *,
        counting_text: Corpus | None = None,
        threads: int = 1,
        progress: Progress = silent,
    ) -> NeighborLists:
        """Return the `options.k` most similar vertices of every vertex, of similarity above 0.

        The result must depend neither on the number of threads nor on the order of the sentences.

        Parameters
        ----------
        text: what the vertices were made from.
        counting_text: more text, used for the statistics of features only.

        Raises
        ------
        UserError: options or text that this similarity does not support.
        """
        ...

    def cache_key(self) -> Mapping[str, Any]:
        """Return all parameters that `excluded` and `neighbors` depend on, JSON-able."""
        ...

    def neighbor_digest(self, text: Corpus, vertices: Vertices) -> str | None:
        """Hash of what `neighbors` reads of the text; None, the default: all of it.

        Texts with the same hash share one cached search.
        """
        return None


@dataclass(frozen=True)
class ContextSimilarity(Similarity):
    """Cosine of the context vectors of vertices, see `contexts`.

    templates: which features a context has.
    suffixes: the list for templates with suffixes; None = learned from the text
        (`forms.learned_suffixes`).
    """

    templates: TemplateSet
    suffixes: frozenset[str] | None = None

    @property
    def vertex_form(self) -> str | None:
        """The form that the templates name."""
        return self.templates.vertex_form

    def excluded(self, text: Corpus, column: str) -> Bool:
        """Return the tokens that the templates exclude, such as punctuation."""
        return excluded_tokens(text, column, self.templates)

    def neighbors(
        self,
        text: Corpus,
        vertices: Vertices,
        options: GraphOptions,
        *,
        counting_text: Corpus | None = None,
        threads: int = 1,
        progress: Progress = silent,
    ) -> NeighborLists:
        """Return the neighbors by cosine, exact or approximate as the options say."""
        X = context_vectors(
            text, vertices, self.templates, counting_text=counting_text, suffixes=self.suffixes
        )
        progress(f"graph: neighbors of {len(vertices):,} vertices, {X.nnz:,} features")
        return nearest(
            X,
            options.k,
            max_df=options.max_df,
            search=options.search,
            threads=threads,
            progress=progress,
        )

    def cache_key(self) -> Mapping[str, Any]:
        """Templates and suffixes."""
        return {
            "templates": msgspec.to_builtins(self.templates),
            "suffixes": None if self.suffixes is None else sorted(set(self.suffixes)),
        }
