"""The similarity graph over all text of a problem, and what the labeled sample says of it.

Vertices are the n-gram types of all text of the problem, labeled and unlabeled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Protocol

import msgspec
import numpy as np
from scipy import sparse

from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.graph.build import Graph, build_graph
from sslbench.engine.graph.diagnostics import diagnostics
from sslbench.engine.graph.lookup import NgramLookup
from sslbench.engine.graph.options import GraphOptions
from sslbench.engine.graph.similarity import ContextSimilarity, Similarity
from sslbench.engine.graph.tokens import empirical
from sslbench.engine.graph.vertices import Vertices
from sslbench.engine.parameters import doc
from sslbench.engine.types import F64, I32, Bool
from sslbench.experiment.context.context import RunContext
from sslbench.plugins import registry

GraphColumn = Annotated[str, doc("column whose n-grams are the vertices")]
GraphSimilarity = Annotated[str, doc("similarity of vertices, see sslbench list similarities")]
Neighbors = Annotated[int, doc("nearest neighbors per vertex (k)", ge=1, le=10_000)]
Symmetry = Annotated[
    Literal["union", "mutual"],
    doc("an edge needs one of its ends to be the other's neighbor, or both"),
]
MaxDf = Annotated[
    Annotated[int, msgspec.Meta(ge=2, le=10**9)] | None,
    doc("context features of more vertices are not compared; None = all are"),
]
Suffixes = Annotated[
    tuple[str, ...] | None,
    doc(
        "endings of words that features read, as a JSON list or as @FILE with one per"
        " line; None = learned from the text"
    ),
]


#: share of the unlabeled tokens below which a graph is said to reach few of them
LEAST_REACHED = 0.1


class HasGraphParams(Protocol):
    """Parameters that say how the graph of a problem is built."""

    @property
    def column(self) -> str: ...
    @property
    def similarity(self) -> str: ...
    @property
    def neighbors(self) -> int: ...
    @property
    def symmetry(self) -> Literal["union", "mutual"]: ...
    @property
    def max_df(self) -> int | None: ...
    @property
    def suffixes(self) -> tuple[str, ...] | None: ...


def check_similarity(params: HasGraphParams) -> None:
    """UserError for a similarity that is not registered, or that reads no suffixes if given any."""
    registry().similarity(params.similarity)
    if params.suffixes is not None:
        registered_similarity(params.similarity, params.suffixes)


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
    def build(cls, vertices: Vertices, label_codes: I32, n_labels: int) -> TextVertices:
        """Make it for a text that begins with the labeled tokens; label_codes: int32[N_l]."""
        n, V = len(label_codes), len(vertices)
        distribution, labeled = empirical(vertices.vertex_of[:n], label_codes, V, n_labels)
        return cls(vertices.vertex_of, V, n, distribution, labeled)

    @property
    def unlabeled(self) -> I32:
        """int32[N_u]: the vertex of every unlabeled token."""
        return self.vertex_of[self.n_labeled :]

    def with_edges(self, W: sparse.csr_array) -> float:
        """Share of the unlabeled tokens whose vertex has an edge; 0 without tokens.

        W: float64[V, V], weights of edges.
        """
        has_edge = np.append(np.diff(W.indptr) > 0, False)[self.unlabeled]
        return float(has_edge.mean()) if len(has_edge) else 0.0

    def metadata(self) -> dict[str, float | int]:
        """Sizes for the record."""
        labeled = np.append(self.labeled, False)[self.unlabeled]
        return {
            "vertices": self.n_vertices,
            "labeled_vertices": int(self.labeled.sum()),
            "known_tokens": float(labeled.mean()) if len(labeled) else 0.0,
        }


@dataclass(frozen=True)
class ProblemGraph:
    """graph: symmetric weights over V vertices.  text: the vertex of each token of the problem."""

    graph: Graph
    text: TextVertices

    @property
    def W(self) -> sparse.csr_array:  # noqa: N802
        """float64[V, V] edge weights, symmetric, zero diagonal."""
        return self.graph.W

    @property
    def lookup(self) -> NgramLookup:
        """Finds the vertices of new text."""
        return self.graph.lookup


def problem_graph(
    corpus: Corpus,
    label_codes: I32,
    n_labels: int,
    params: HasGraphParams,
    run: RunContext,
    *,
    min_count: int = 1,
    counting_text: Corpus | None = None,
) -> ProblemGraph:
    """See `Problem.graph`; the sizes of the graph go to the trace.

    corpus: all text, the labeled sentences first.  label_codes: int32[N_l], their gold labels.
    """
    options = GraphOptions(
        k=params.neighbors,
        symmetry=params.symmetry,
        max_df=params.max_df,
        min_count=min_count,
    )
    with run.phase("graph"):
        graph = build_graph(
            corpus,
            registered_similarity(params.similarity, params.suffixes),
            options,
            column=params.column,
            counting_text=counting_text,
            cache=run.cache,
            threads=run.threads,
            progress=run.progress,
        )
        text = TextVertices.build(graph.vertices, label_codes, n_labels)
        sizes = {**text.metadata(), **graph.sizes}
        run.trace["graph"] = {**sizes, **diagnostics(graph.W, text.labeled)}
        reached = text.with_edges(graph.W)
        if len(text.unlabeled) and reached < LEAST_REACHED:
            run.warn(
                f"the graph reaches {reached:.0%} of the unlabeled tokens: the others have no"
                " neighbors, and learn nothing from it; try another similarity or column"
            )
    return ProblemGraph(graph, text)


def registered_similarity(name: str, suffixes: Iterable[str] | None = None) -> Similarity:
    """Return the similarity registered under a name.

    suffixes: the list that its templates read; None: the similarity's own list.
    Raises UserError if there is none, it cannot be imported, it is not a `Similarity`, or it reads
    no list of suffixes and one is given.
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
