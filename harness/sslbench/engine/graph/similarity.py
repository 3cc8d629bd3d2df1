"""Similarities of n-gram types: the interface of plugins, and similarity of contexts.

A similarity is registered by a plugin under a name (`sslbench.SimilarityInfo`); methods and saved
taggers refer to it by that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import msgspec
import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.graph.contexts import context_vectors, excluded_tokens
from sslbench.engine.graph.neighbors import NeighborLists, nearest
from sslbench.engine.graph.options import GraphOptions, Progress, silent
from sslbench.engine.graph.templates import TemplateSet
from sslbench.engine.graph.vertices import Vertices
from sslbench.engine.types import Bool
from sslbench.plugins import registry


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
        """bool[N]: tokens without a vertex, by default none.

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
        """The `options.k` most similar vertices of every vertex, of similarity above 0.

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
        """All parameters that `excluded` and `neighbors` depend on, JSON-able."""
        ...

    def neighbor_digest(self, text: Corpus, vertices: Vertices) -> str | None:
        """Hash of what `neighbors` reads of the text; None, the default: all of it.

        Texts with the same hash share one cached search.
        """
        return None


def registered_similarity(name: str, suffixes: Iterable[str] | None = None) -> Similarity:
    """The similarity registered under a name.

    suffixes: the list that its templates read; None = its own.
    UserError if there is none, it cannot be imported, it is not a `Similarity`, or it reads no list
    of suffixes and one is given.
    """
    similarity = registry().similarity(name).load()()
    if not isinstance(similarity, Similarity):
        raise UserError(
            f"similarity {name}: {type(similarity).__name__} is not a Similarity",
            hint="see sslbench.engine.graph.similarity.Similarity",
        )
    if suffixes is None:
        return similarity
    if not isinstance(similarity, ContextSimilarity) or not similarity.templates.reads("suffix"):
        raise UserError(f"similarity {name} reads no list of suffixes", hint="leave out suffixes")
    return replace(similarity, suffixes=frozenset(suffixes))


@dataclass(frozen=True)
class ContextSimilarity(Similarity):
    """Cosine of the context vectors of vertices, see `contexts`.

    templates: which features a context has.
    suffixes: the list for templates with suffixes; None = learned from the text
        (`forms.learned_suffixes`).
    clip_negative: leave out features that a vertex has less often than by chance.
    """

    templates: TemplateSet
    suffixes: frozenset[str] | None = None
    clip_negative: bool = False

    @property
    def vertex_form(self) -> str | None:
        """That of the templates."""
        return self.templates.vertex_form

    def excluded(self, text: Corpus, column: str) -> Bool:
        """The tokens that the templates exclude, such as punctuation."""
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
        """The neighbors by cosine, exact or approximate as the options say."""
        X = context_vectors(
            text,
            vertices,
            self.templates,
            counting_text=counting_text,
            suffixes=self.suffixes,
            clip_negative=self.clip_negative,
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
        """Templates, suffixes and `clip_negative`."""
        return {
            "templates": msgspec.to_builtins(self.templates),
            "suffixes": None if self.suffixes is None else sorted(set(self.suffixes)),
            "clip_negative": self.clip_negative,
        }
