"""Self-training whose labels are decoded with a graph as lift over base rates.

The rounds are those of graph-based self-training (Subramanya, Petrov & Pereira 2010). What the
graph says enters the CRF's own Viterbi as a likelihood ratio (docs/specs/graph_lift.md):

    y* = argmax_y  score(y | x) + beta sum_t log( max(q_t(y_t), F) / max(pi(y_t), F) )

with q_t the smoothed posterior of the n-gram around token t, pi the mean of q, and F = 0.001. A
graph that only knows base rates (q = pi) then changes nothing, whereas mixing with it pulls to the
frequent labels.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from sslbench import Positive, Problem, Rounds, RunContext, SearchAxis, Weight, doc
from sslbench.engine.crf import EncodedText, SequenceModel
from sslbench.engine.types import F64, I32, Bool
from sslbench.method import (
    GraphSimilarity,
    MaxDf,
    Neighbors,
    Suffixes,
    Symmetry,
    TextVertices,
    check_similarity,
)
from sslbench_methods.graph_self_training.algorithm import (
    AXES,
    RelabelingParams,
    Smooth,
    propagate,
)
from sslbench_methods.graph_self_training.method import TypeMethod
from sslbench_methods.shared import WIDEST, TaskDefaults, by_task

#: less probable labels count as this probable
FLOOR = 1e-3


class GraphLift(TypeMethod):
    """Self-training that decodes with the lift of a similarity graph."""

    class Params(RelabelingParams, frozen=True, kw_only=True):
        """Parameters of self-training with lift; those of the graph are of Subramanya et al."""

        beta: Annotated[Weight, doc("weight of the lift; 0 = self-training")] = 1.0
        eta: Annotated[Weight, doc("weight of self-labeled sentences")] = 1.0
        rounds: Annotated[Rounds, doc("most rounds of relabeling")] = 2
        similarity: GraphSimilarity = "subramanya2010"
        neighbors: Neighbors = 5
        symmetry: Symmetry = "union"
        max_df: MaxDf = None
        suffixes: Suffixes = None
        mu: Annotated[Weight, doc("weight of the edges")] = 0.5
        nu: Annotated[Positive, doc("weight of the pull to the uniform distribution")] = 0.01
        steps: Annotated[int, doc("propagation steps; 0 = no edges", ge=0, le=10_000)] = 10
        task_defaults: ClassVar[TaskDefaults] = by_task(
            tagging={"eta": 0.3}, spans={}, segmentation={"eta": 0.3}, joint=WIDEST
        )
        search: ClassVar[tuple[SearchAxis, ...]] = (
            *AXES,
            SearchAxis("beta", low=0.1, high=3, log=True),
            SearchAxis("mu", low=0.05, high=5, log=True),
        )

        def __post_init__(self) -> None:
            check_similarity(self)

        def label(self, crf: SequenceModel, data: EncodedText, p: F64, scores: F64, at: I32) -> I32:
            """Decode with the scores of the graph, see `algorithm.Label`."""
            return decode(crf, data, p, scores, at)

    def types(
        self, problem: Problem, params: Params, run: RunContext
    ) -> tuple[TextVertices, Smooth]:
        """Build the graph; what `decode` reads of it is its lift."""
        graph = problem.graph(params, run)
        text = graph.text
        informed = text.labeled | (np.diff(graph.W.indptr) > 0)

        def smooth(means: F64) -> F64:
            rest = text.distribution, text.labeled, params.mu, params.nu
            q = propagate(graph.W, means, *rest, steps=params.steps)
            return params.beta * lift(q, informed, text.unlabeled)

        return text, smooth


def lift(q: F64, informed: Bool, vertex_of: I32) -> F64:
    """Return log(q / pi), both at least FLOOR; 0 where a vertex is not informed: float64[V, L].

    pi is the mean of q over the tokens of informed vertices, so that frequent types count more.

    q: float64[V, L], distributions.  informed: bool[V], has an edge or a label.
    vertex_of: int32[N], of the unlabeled tokens; -1 = none.
    """
    at = vertex_of[vertex_of >= 0]
    counts = np.bincount(at, minlength=len(q)) * informed
    pi = counts @ q / max(1, counts.sum())
    scores: F64 = np.log(np.maximum(q, FLOOR)) - np.log(np.maximum(pi, FLOOR))
    scores[~informed] = 0.0
    return scores


def decode(crf: SequenceModel, data: EncodedText, _p: F64, scores: F64, at: I32) -> I32:
    """Return Viterbi labels of the CRF with scores added to those of the labels: int32[N].

    scores: float64[V, L], of vertices.  at: int32[N], the vertex of each token; -1 = none.
    """
    paths = [np.empty(0, np.int32)]
    for potentials in crf.potentials(data):
        vertices = at[potentials.batch.tokens]
        node = potentials.node + np.where((vertices >= 0)[:, None], scores[vertices], 0.0)
        paths.append(potentials.with_node(node).viterbi())
    return np.concatenate(paths)
