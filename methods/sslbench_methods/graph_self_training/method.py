"""Graph-based self-training, and the same without a graph (types averaged, not smoothed).

Subramanya et al. (2010), algorithm 1, with equation 3 corrected (mu before the sum over neighbors)
and every edge counted once.  Ten propagation steps from the posteriors are part of the method: at
the optimum of equation 2 nothing would be left of them.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from sslbench.crf import ChainCRF
from sslbench.experiment.context import RunContext
from sslbench.experiment.problem import Problem
from sslbench.experiment.tune import SearchAxis
from sslbench.graph.propagation.quadratic import propagate, propagate_optimum
from sslbench.graph.vertices import ngram_vertices
from sslbench.types import F64
from sslbench_methods.graph_self_training.rounds import TypeParams, TypeTrainer
from sslbench_methods.graph_text import (
    GraphText,
    MaxDf,
    Neighbors,
    Symmetry,
    Templates,
    graph_text,
    problem_graph,
)
from sslbench_methods.supervised import prepare

#: 1 / (2 gamma) for the paper's gamma = 1, 0.1, 0.01, 0.001; chosen with the supervised CRF
GAMMA_GRID = (0.5, 5.0, 50.0, 500.0)
_SHARED_AXES = (
    SearchAxis("sigma2", GAMMA_GRID, via="supervised"),
    SearchAxis("eta", (0.001, 0.01, 0.1, 1.0)),
    SearchAxis("alpha", (0.8, 0.6, 0.4, 0.2)),
    SearchAxis("omega", (0.0, 0.5, 1.0)),
)


class GraphSelfTraining:
    """Self-training whose type posteriors are smoothed on a similarity graph."""

    class Params(TypeParams, frozen=True, kw_only=True):
        """Parameters of graph-based self-training (the paper's values)."""

        templates: Templates = "subramanya2010"
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
            msgspec.Meta(description="optimum: solve equation 2, forgetting the posteriors"),
        ] = "steps"
        edge_count: Annotated[
            Literal["once", "twice"], msgspec.Meta(description="how often an edge counts")
        ] = "once"
        search: ClassVar[tuple[SearchAxis, ...]] = (
            *_SHARED_AXES,
            SearchAxis("mu", (0.1, 0.5, 1.0)),
            SearchAxis("nu", (0.001, 0.01, 0.1)),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Build the graph, then train, smooth, relabel and retrain until the labels settle."""
        graph, known = problem_graph(
            problem,
            run,
            params.column,
            templates=params.templates,
            k=params.neighbors,
            symmetry=params.symmetry,
            max_df=params.max_df,
        )

        def smooth(q: F64) -> F64:
            shared = known.r, known.labeled, params.mu, params.nu
            if params.propagation == "optimum":
                return propagate_optimum(graph.W, *shared, edge_count=params.edge_count)
            return propagate(graph.W, q, *shared, steps=params.steps, edge_count=params.edge_count)

        trainer = _trainer(problem, params, run, known)
        trainer.smooth = smooth
        trainer.train("graph_self_training")
        return trainer.crf

    @staticmethod
    def restore(arrays: dict[str, Any], facts: dict[str, Any]) -> ChainCRF:
        """A saved tagger."""
        return ChainCRF.from_arrays(arrays, facts)


class TypeSelfTraining:
    """Self-training on posteriors averaged by trigram type: the paper's self-trained CRF."""

    class Params(TypeParams, frozen=True, kw_only=True):
        """Parameters of type-level self-training."""

        search: ClassVar[tuple[SearchAxis, ...]] = _SHARED_AXES

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Train, average, relabel and retrain until the labels settle."""
        with run.phase("graph"):
            vertices = ngram_vertices(graph_text(problem, params.column), params.column)
            known = GraphText.of(problem, vertices.of, len(vertices.count))
        run.trace["graph"] = known.facts()
        trainer = _trainer(problem, params, run, known)
        trainer.train("type_self_training")
        return trainer.crf

    @staticmethod
    def restore(arrays: dict[str, Any], facts: dict[str, Any]) -> ChainCRF:
        """A saved tagger."""
        return ChainCRF.from_arrays(arrays, facts)


def _trainer(
    problem: Problem, params: TypeParams, run: RunContext, known: GraphText
) -> TypeTrainer:
    """Text encoded, weights zero, types not smoothed."""
    with run.phase("features"):
        crf = prepare(problem, params, text=problem.unlabeled)
        gold = crf.encode(problem.labeled)
        unlabeled = [crf.encode(shard) for shard in problem.unlabeled]
    dev = None
    if problem.dev is not None:
        dev = crf.encode(problem.dev), problem.label_codes(problem.dev)
    return TypeTrainer(
        crf,
        gold,
        problem.label_codes(problem.labeled),
        unlabeled,
        known.vertex_of,
        known.n_vertices,
        lambda q: q,
        params,
        run,
        dev=dev,
    )
