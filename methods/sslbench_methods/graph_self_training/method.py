"""Graph-based self-training, and the same without a graph (types averaged, not smoothed).

Subramanya et al. (2010): algorithm 1 (`rounds`), with equation 3 corrected (mu before the sum over
neighbors) and every edge counted once. Ten propagation steps from the posteriors are part of the
method: at the optimum of equation 2 the posteriors have no influence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import msgspec

from sslbench import CRFMethod, Problem, RunContext, SearchAxis, registry
from sslbench.crf import ChainCRF
from sslbench.graph.propagation.quadratic import propagate, propagate_optimum
from sslbench.graph.vertices import ngram_vertices
from sslbench.method import GraphSimilarity, MaxDf, Neighbors, Symmetry, TextVertices
from sslbench.types import F64
from sslbench_methods.shared import KEEP_AXIS

from .rounds import TypeParams, TypeTrainer

_SHARED_AXES = (
    SearchAxis("eta", low=1e-4, high=10, log=True),
    SearchAxis("alpha", low=0, high=1),
    SearchAxis("omega", low=0, high=2),
    SearchAxis("rounds", low=1, high=30, log=True, integer=True),
    KEEP_AXIS,
)


class GraphSelfTraining(CRFMethod):
    """Self-training whose type posteriors are smoothed on a similarity graph."""

    order_invariant = True

    class Params(TypeParams, frozen=True, kw_only=True):
        """Parameters of graph-based self-training (the paper's values)."""

        similarity: GraphSimilarity = "subramanya2010"
        neighbors: Neighbors = 5
        symmetry: Symmetry = "union"
        max_df: MaxDf = None
        mu: Annotated[float, msgspec.Meta(ge=0, description="weight of the edges")] = 0.5
        nu: Annotated[
            float, msgspec.Meta(gt=0, description="weight of the pull to the uniform distribution")
        ] = 0.01
        steps: Annotated[
            int, msgspec.Meta(ge=0, description="propagation steps; 0 = type_self_training")
        ] = 10
        propagation: Annotated[
            Literal["steps", "optimum"],
            msgspec.Meta(description="optimum: solve equation 2; the posteriors have no influence"),
        ] = "steps"
        edge_count: Annotated[
            Literal["once", "twice"], msgspec.Meta(description="how often an edge counts")
        ] = "once"
        search: ClassVar[tuple[SearchAxis, ...]] = (
            *_SHARED_AXES,
            SearchAxis("mu", low=0.05, high=5, log=True),
            SearchAxis("nu", low=1e-3, high=0.1, log=True),
        )

        def __post_init__(self) -> None:
            registry().similarity(self.similarity)

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Build the graph, then train, smooth, relabel and retrain until the labels settle."""
        graph = problem.graph(params, run)
        vertices = graph.text

        def smooth(q: F64) -> F64:
            shared = vertices.distribution, vertices.labeled, params.mu, params.nu
            if params.propagation == "optimum":
                return propagate_optimum(graph.W, *shared, edge_count=params.edge_count)
            return propagate(graph.W, q, *shared, steps=params.steps, edge_count=params.edge_count)

        return _trainer(problem, params, run, vertices, smooth).train()


class TypeSelfTraining(CRFMethod):
    """Self-training on posteriors averaged by trigram type: the paper's self-trained CRF."""

    order_invariant = True

    class Params(TypeParams, frozen=True, kw_only=True):
        """Parameters of type-level self-training."""

        search: ClassVar[tuple[SearchAxis, ...]] = _SHARED_AXES

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Train, average, relabel and retrain until the labels settle."""
        with run.phase("graph"):
            types = ngram_vertices(problem.text(params.column), params.column)
            codes = problem.label_codes(problem.labeled)
            vertices = TextVertices.build(types, codes, len(problem.labels))
        run.trace["graph"] = vertices.metadata()
        return _trainer(problem, params, run, vertices, lambda q: q).train()


def _trainer(
    problem: Problem,
    params: TypeParams,
    run: RunContext,
    vertices: TextVertices,
    smooth: Callable[[F64], F64],
) -> TypeTrainer:
    with run.phase("features"):
        crf = problem.crf(params, features_from="labeled+unlabeled")
        text = problem.encode(crf)
    V = vertices.n_vertices
    return TypeTrainer(crf, text, vertices.vertex_of, V, smooth, params, run)
