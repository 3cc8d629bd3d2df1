"""From text to a similarity graph, once: the result is kept under the hash of text and options.

No label is looked at, so one graph serves every labeled sample, seed, grid point and method.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from scipy import sparse

from sslbench.corpus import Corpus
from sslbench.errors import UserError
from sslbench.graph.cache import Arrays, cached
from sslbench.graph.contexts import context_vectors, excluded_tokens
from sslbench.graph.edges import symmetrize
from sslbench.graph.neighbors import Neighbors, nearest
from sslbench.graph.templates import LETTERS, TEMPLATE_SETS, GraphTemplates
from sslbench.graph.vertices import Vertices, ngram_vertices
from sslbench.graph.words import Words
from sslbench.types import AnyArray
from sslbench_datasets.letters.similarity import NEIGHBOR_WEIGHT, letters_of, nearest_letters

VERSION = 1
"""Of what is kept; to be raised whenever the same text and options give other numbers."""

Progress = Callable[[str], None]


class GraphOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a graph is made; the defaults are those of SUBRAMANYA2010.

    templates: the template set of SUBRAMANYA2010, HE2013 or ZENG2013; "letters" compares images
    (HE2013).
    k: nearest neighbors of a vertex (SUBRAMANYA2010 and ZENG2013: 5, HE2013: 60, for letters 20).
    symmetry: an edge if one of two is a neighbor of the other, or if both are (HE2013).
    max_df: features of more vertices than that match nothing; None: all match.
    method: of the search for neighbors.
    clip_negative: leave out features that a vertex has less often than by chance.
    suffixes: the list for templates that ask for one; empty: learned from the text.
    min_count: n-grams with fewer occurrences are no vertices.
    neighbor_weight: of each letter beside one, see `letters`; other templates take no notice.
    """

    templates: Literal["subramanya2010", "he2013", "zeng2013", "letters"] = "subramanya2010"
    k: Annotated[int, msgspec.Meta(ge=1)] = 5
    symmetry: Literal["union", "mutual"] = "union"
    max_df: Annotated[int, msgspec.Meta(ge=2)] | None = None
    method: Literal["exact", "approximate"] = "exact"
    clip_negative: bool = False
    suffixes: tuple[str, ...] = ()
    min_count: Annotated[int, msgspec.Meta(ge=1)] = 1
    neighbor_weight: Annotated[float, msgspec.Meta(ge=0)] = NEIGHBOR_WEIGHT


@dataclass(frozen=True, eq=False)
class Graph:
    """A similarity graph over the n-gram types of a text.

    vertices: V of them, and the vertex of every token.
    W: csr float64[V, V], symmetric, diagonal zero, entries > 0.
    facts: sizes, JSON-able.
    """

    vertices: Vertices
    W: sparse.csr_array
    options: GraphOptions
    facts: dict[str, int] = field(default_factory=dict)


def build_graph(
    text: Corpus,
    options: GraphOptions,
    *,
    column: str = "word",
    counting_text: Corpus | None = None,
    cache: Path | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Graph:
    """The graph of a text; the number of threads changes nothing.

    Parameters
    ----------
    text: all text whose tokens want a vertex, end to end.
    counting_text: more text, counted for the weights of features only (SUBRAMANYA2010: all
    questions, of
        which a sample is the text); shares the vocabulary.
    cache: folder for what takes long; None: make it anew.
    progress: told what is being done.

    Raises
    ------
    UserError: no such column, no token that could be a vertex, or options that letters do not have.
    """
    job = _Job(text, options, column, counting_text, threads, progress or _silent)
    key = job.key()
    arrays = cached(cache, "graphs", key, lambda: job.graph(cache, key))
    vertices = job.vertices(arrays)
    n = len(vertices)
    W = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(n, n))
    return Graph(vertices, W, options, json.loads(arrays["facts"].item()))


@dataclass(frozen=True, eq=False)
class _Job:
    """What was asked of `build_graph`."""

    text: Corpus
    options: GraphOptions
    column: str
    counting_text: Corpus | None
    threads: int
    progress: Progress

    @property
    def templates(self) -> GraphTemplates:
        return TEMPLATE_SETS[self.options.templates]

    def key(self) -> dict[str, Any]:
        texts = [self.text] if self.counting_text is None else [self.text, self.counting_text]
        digests = [Words.of(text.column(self.column)).digest(text.offsets) for text in texts]
        options = msgspec.to_builtins(self.options)
        # a list of suffixes is a set
        options["suffixes"] = sorted(set(self.options.suffixes))
        if self.templates is not LETTERS:
            del options["neighbor_weight"]
        return {"version": VERSION, "texts": digests, "options": options}

    def vertices(self, arrays: Arrays) -> Vertices:
        of, count, first = (arrays[name] for name in ("of", "count", "first"))
        return Vertices(of, count, first, self.column, derive=self.templates.vertex_form)

    def graph(self, cache: Path | None, key: dict[str, Any]) -> Arrays:
        """The arrays of vertices and edges, and the facts as JSON."""
        excluded = excluded_tokens(self.text, self.column, self.templates)
        form = self.templates.vertex_form
        vertices = ngram_vertices(self.text, self.column, excluded=excluded, derive=form)
        if self.options.min_count > 1:
            excluded |= vertices.count[vertices.of] < self.options.min_count  # -1: excluded already
            vertices = ngram_vertices(self.text, self.column, excluded=excluded, derive=form)
        if not len(vertices):
            raise UserError(
                f"no vertices: {self.text.n_tokens} tokens, of which {int(excluded.sum())} are left"
                " out",
                hint="give the graph some text",
            )
        lists = self._neighbors(vertices, cache, key)
        self.progress(f"graph: joining the {self.options.k} nearest of {len(vertices):,} vertices")
        W = symmetrize(
            Neighbors(lists["index"], lists["similarity"]), self.options.k, self.options.symmetry
        )
        facts = {
            "tokens": self.text.n_tokens,
            "excluded": int(excluded.sum()),
            "vertices": len(vertices),
            "edges": W.nnz // 2,
        }
        parts: dict[str, AnyArray] = {
            "of": vertices.of,
            "count": vertices.count,
            "first": vertices.first,
        }
        edges = {"data": W.data, "indices": W.indices, "indptr": W.indptr}
        return {**parts, **edges, "facts": np.array(json.dumps(facts))}

    def _neighbors(self, vertices: Vertices, cache: Path | None, key: dict[str, Any]) -> Arrays:
        """The lists, which take longest and are the same for both symmetries.

        Those of letters depend on the images alone, and not on where in the text they are: one
        search does for all labeled samples of a corpus.
        """
        same = {name: value for name, value in key["options"].items() if name != "symmetry"}
        key, search = {**key, "options": same}, self._by_contexts
        if self.templates is LETTERS:
            key = {**key, "texts": letters_of(self.text, vertices).digest()}
            search = self._by_images

        def arrays() -> Arrays:
            found = search(vertices)
            return {"index": found.index, "similarity": found.similarity}

        return cached(cache, "neighbors", key, arrays)

    def _by_images(self, vertices: Vertices) -> Neighbors:
        options = self.options
        if self.counting_text is not None or (options.max_df, options.method) != (None, "exact"):
            raise UserError(
                "letters are compared image by image",
                hint="leave out max_df, the approximate search and text for counts",
            )
        return nearest_letters(
            letters_of(self.text, vertices),
            options.k,
            neighbor_weight=options.neighbor_weight,
            threads=self.threads,
            progress=self.progress,
        )

    def _by_contexts(self, vertices: Vertices) -> Neighbors:
        options = self.options
        X = context_vectors(
            self.text,
            vertices,
            self.templates,
            counting_text=self.counting_text,
            suffixes=options.suffixes or None,
            clip_negative=options.clip_negative,
        )
        self.progress(f"graph: neighbors of {len(vertices):,} vertices, {X.nnz:,} features")
        return nearest(
            X,
            options.k,
            max_df=options.max_df,
            method=options.method,
            threads=self.threads,
            progress=self.progress,
        )


def _silent(_: str) -> None:
    """Say nothing."""
