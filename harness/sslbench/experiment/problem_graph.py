"""The similarity graph over all text of a problem, and what the labeled sample says of it.

Vertices are the n-gram types of all text of the problem, labeled and unlabeled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Protocol

import msgspec
import numpy as np
from scipy import sparse

from sslbench.experiment.context import RunContext
from sslbench.experiment.problem import Problem
from sslbench.graph.build import Graph, GraphOptions, build_graph
from sslbench.graph.diagnostics import diagnostics
from sslbench.graph.lookup import NgramLookup
from sslbench.graph.tokens import empirical
from sslbench.graph.vertices import Vertices
from sslbench.types import F64, I32, Bool

GraphColumn = Annotated[str, msgspec.Meta(description="column whose n-grams are the vertices")]
GraphTemplates = Annotated[
    Literal["subramanya2010", "he2013", "zeng2013", "letters"],
    msgspec.Meta(
        description="context features of the graph: those of the paper of that name;"
        " or images of handwritten letters (He et al. 2013)"
    ),
]
Neighbors = Annotated[int, msgspec.Meta(ge=1, description="nearest neighbors per vertex (k)")]
Symmetry = Annotated[
    Literal["union", "mutual"],
    msgspec.Meta(description="an edge needs one of its ends to be the other's neighbor, or both"),
]
MaxDf = Annotated[
    Annotated[int, msgspec.Meta(ge=2)] | None,
    msgspec.Meta(description="context features of more vertices are not compared; None = all are"),
]


class HasGraphParams(Protocol):
    """Parameters that say how the graph of a problem is built."""

    @property
    def column(self) -> str: ...
    @property
    def templates(self) -> Literal["subramanya2010", "he2013", "zeng2013", "letters"]: ...
    @property
    def neighbors(self) -> int: ...
    @property
    def symmetry(self) -> Literal["union", "mutual"]: ...
    @property
    def max_df(self) -> int | None: ...


@dataclass(frozen=True)
class TextVertices:
    """The vertex of every token of a problem, and the gold labels of vertices.

    vertex_of: int32[N_l + N_u], the labeled tokens first, -1 = outside the graph.
    n_vertices: V.  n_labeled: N_l.
    distribution: float64[V, L], label distribution of the labeled tokens of each vertex.
    labeled: bool[V], whether the vertex has any.
    """

    vertex_of: I32
    n_vertices: int
    n_labeled: int
    distribution: F64
    labeled: Bool

    @classmethod
    def of(cls, problem: Problem, vertices: Vertices) -> TextVertices:
        """For vertices made from `problem.text(column)`."""
        n, codes = problem.labeled.n_tokens, problem.label_codes(problem.labeled)
        V = len(vertices)
        distribution, labeled = empirical(vertices.of[:n], codes, V, len(problem.labels))
        return cls(vertices.of, V, n, distribution, labeled)

    @property
    def unlabeled(self) -> I32:
        """int32[N_u]: the vertex of every unlabeled token."""
        return self.vertex_of[self.n_labeled :]

    def metadata(self) -> dict[str, float | int]:
        """Sizes for the record."""
        known = np.append(self.labeled, False)[self.unlabeled]
        return {
            "vertices": self.n_vertices,
            "labeled_vertices": int(self.labeled.sum()),
            "known_tokens": float(known.mean()) if len(known) else 0.0,
        }


@dataclass(frozen=True)
class ProblemGraph:
    """graph: symmetric weights over V vertices.  text: where each token of the problem lies.

    corpus: the text that the graph was made of.
    """

    graph: Graph
    text: TextVertices
    _corpus: Any

    @property
    def W(self) -> sparse.csr_array:  # noqa: N802
        """float64[V, V] edge weights, symmetric, zero diagonal."""
        return self.graph.W

    @cached_property
    def lookup(self) -> NgramLookup:
        """Finds the vertices of new text."""
        return NgramLookup.of(self._corpus, self.graph.vertices)


def problem_graph(
    problem: Problem, run: RunContext, params: HasGraphParams, *, min_count: int = 1
) -> ProblemGraph:
    """Build (or find in the cache) the graph of all text of a problem; its sizes go to the trace.

    min_count: n-grams with fewer occurrences are no vertices.
    """
    options = GraphOptions(
        templates=params.templates,
        k=params.neighbors,
        symmetry=params.symmetry,
        max_df=params.max_df,
        min_count=min_count,
    )
    with run.phase("graph"):
        corpus = problem.text(params.column)
        graph = build_graph(
            corpus,
            options,
            column=params.column,
            cache=run.cache,
            threads=run.threads,
            progress=run.progress,
        )
        text = TextVertices.of(problem, graph.vertices)
        sizes = {**text.metadata(), **graph.facts}
        run.trace["graph"] = {**sizes, **diagnostics(graph.W, text.labeled)}
    return ProblemGraph(graph, text, corpus)
