"""From text to a similarity graph, cached under the hash of everything that it depends on.

No label is read, so one graph serves every labeled sample, seed, parameter and method.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy import sparse

from sslbench.engine.checked import check_array
from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.graph.cache import CachedArrays, cached
from sslbench.engine.graph.edges import symmetrize
from sslbench.engine.graph.lookup import NgramLookup
from sslbench.engine.graph.neighbors import NeighborLists
from sslbench.engine.graph.options import GraphOptions, Progress, silent
from sslbench.engine.graph.similarity import Similarity
from sslbench.engine.graph.vertices import Vertices, ngram_vertices
from sslbench.engine.graph.words import CodedForms
from sslbench.engine.lazy import lazy

VERSION = 3
"""Part of every cache key; to be raised when the same text and options give other numbers."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A similarity graph over the trigram types of a text.

    vertices: V of them, and the vertex of every token.
    lookup: the vertices of the tokens of other text.
    W: csr float64[V, V], symmetric, diagonal zero, entries > 0.
    sizes: "tokens", "excluded" tokens, "vertices", "edges" (undirected).
    """

    vertices: Vertices
    lookup: NgramLookup
    W: sparse.csr_array
    sizes: dict[str, int]


def build_graph(
    text: Corpus,
    similarity: Similarity,
    options: GraphOptions,
    *,
    column: str = "word",
    counting_text: Corpus | None = None,
    cache: Path | None = None,
    threads: int = 1,
    progress: Progress = silent,
) -> Graph:
    """Return the similarity graph of a text, the same for any number of threads.

    Parameters
    ----------
    text: all text whose tokens get a vertex, end to end.
    similarity: of two vertices.
    column: whose trigrams are the vertices.
    counting_text: more text, used for the statistics of features only; shares the vocabulary
        (docs/specs/graph.md, section 4.1).
    cache: folder of cached graphs and neighbor lists; None = build everything.

    Raises
    ------
    UserError: no such column, no token with a vertex, or options that the similarity refuses.
    ValueError: the similarity gave arrays of other types or shapes, or numbers of no vertex.
    """
    job = _Job(text, similarity, options, column, counting_text, cache, threads, progress)
    arrays = cached(cache, "graphs", job.key, job.arrays)
    vertices = Vertices(
        arrays["vertex_of"], arrays["count"], arrays["first"], column, form=similarity.vertex_form
    )
    shape = len(vertices), len(vertices)
    check_array(vertices.vertex_of, "vertices", np.int32, (text.n_tokens,), (-1, len(vertices)))
    check_array(vertices.first, "first tokens", np.int64, shape[:1], (0, text.n_tokens))
    W = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
    W.check_format(full_check=True)
    lookup = NgramLookup.from_text(text, vertices)
    return Graph(vertices, lookup, W, json.loads(arrays["sizes"].item()))


@dataclass(frozen=True, eq=False)
class _Job:
    """The arguments of `build_graph`."""

    text: Corpus
    similarity: Similarity
    options: GraphOptions
    column: str
    counting_text: Corpus | None
    cache: Path | None
    threads: int
    progress: Progress

    @lazy
    def key(self) -> dict[str, Any]:
        """What the graph depends on, JSON-able."""
        texts = [self.text] if self.counting_text is None else [self.text, self.counting_text]
        forms = [CodedForms.from_column(text.column(self.column)) for text in texts]
        cls = type(self.similarity)
        return {
            "version": VERSION,
            "texts": [f.digest(text.offsets) for f, text in zip(forms, texts, strict=True)],
            "similarity": f"{cls.__module__}.{cls.__qualname__}",
            "vertex_form": self.similarity.vertex_form,
            "parameters": self.similarity.cache_key(),
            "options": msgspec.to_builtins(self.options),
        }

    def arrays(self) -> CachedArrays:
        """Return the arrays of vertices and edges, and the sizes as JSON."""
        vertices = self._vertices()
        excluded = int((vertices.vertex_of < 0).sum())
        if not len(vertices):
            raise UserError(
                f"no vertices: {self.text.n_tokens} tokens, {excluded} of them excluded",
                hint="give the graph some text",
            )
        lists, k = self._neighbors(vertices), self.options.k
        self.progress(f"graph: joining the {k} nearest of {len(vertices):,} vertices")
        W = symmetrize(lists, k, self.options.symmetry)
        sizes = {
            "tokens": self.text.n_tokens,
            "excluded": excluded,
            "vertices": len(vertices),
            "edges": W.nnz // 2,
        }
        return {
            "vertex_of": vertices.vertex_of,
            "count": vertices.count,
            "first": vertices.first,
            "data": W.data,
            "indices": W.indices,
            "indptr": W.indptr,
            "sizes": np.array(json.dumps(sizes)),
        }

    def _vertices(self) -> Vertices:
        form = self.similarity.vertex_form
        excluded = self.similarity.excluded(self.text, self.column)
        vertices = ngram_vertices(self.text, self.column, excluded=excluded, form=form)
        if self.options.min_count == 1:
            return vertices
        count = np.append(vertices.count, 0)  # a token without a vertex, -1, has count 0
        rare = count[vertices.vertex_of] < self.options.min_count
        return ngram_vertices(self.text, self.column, excluded=rare, form=form)

    def _neighbors(self, vertices: Vertices) -> NeighborLists:
        """Return the neighbor lists: the longest computation, the same for both symmetries."""
        options = {name: x for name, x in self.key["options"].items() if name != "symmetry"}
        key = {**self.key, "options": options}
        digest = self.similarity.neighbor_digest(self.text, vertices)
        if digest is not None:
            key["texts"] = [digest]

        def search() -> CachedArrays:
            lists = self.similarity.neighbors(
                self.text,
                vertices,
                self.options,
                counting_text=self.counting_text,
                threads=self.threads,
                progress=self.progress,
            )
            return {"index": lists.index, "similarity": lists.similarity}

        arrays = cached(self.cache, "neighbors", key, search)
        lists = NeighborLists(arrays["index"], arrays["similarity"])
        try:
            lists.check(len(vertices))
        except ValueError as error:
            name = type(self.similarity).__name__
            raise ValueError(f"the neighbors that {name} found: {error}") from error
        return lists
