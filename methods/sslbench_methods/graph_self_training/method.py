"""Graph-based self-training, and the same without a graph (types averaged, not smoothed).

Subramanya, Petrov & Pereira (2010), algorithm 1, with equation 3 corrected (mu before the sum over
neighbors) and every edge counted once. A type is an n-gram, a vertex of the graph. Each round
averages the posteriors of the tokens of a type, smooths them (propagation on a graph, or nothing
for the paper's self-trained CRF), mixes them back into the tokens, decodes, and retrains on the
labels. Ten propagation steps are part of the method: the optimum ignores the posteriors
(docs/specs/graph_self_training.md, sections 3 and 4).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np

from sslbench import CRFMethod, Problem, RunContext, SearchAxis
from sslbench.engine.crf import BatchPotentials, ChainCRF, EncodedCorpus, EncodedProblem
from sslbench.engine.graph.propagation.quadratic import propagate, propagate_optimum
from sslbench.engine.graph.vertices import ngram_vertices
from sslbench.engine.types import F64, I32
from sslbench.method import (
    GraphSimilarity,
    MaxDf,
    Neighbors,
    ProblemGraph,
    Suffixes,
    Symmetry,
    TextVertices,
    check_similarity,
)
from sslbench_methods import shared
from sslbench_methods.relabeling import AXES, RelabelingParams, TypeTrainer

#: mixed posteriors are raised to this before the logarithm of the Viterbi step
FLOOR = 1e-12
#: the values that the paper prints, the transitions in its Viterbi step among them
_PAPER = {"sigma2": 50.0, "alpha": 0.6, "eta": 0.001, "eta_scale": "sentence", "omega": 1.0}
_SHARED_AXES = (
    *AXES,
    SearchAxis("alpha", low=0, high=1),
    SearchAxis("omega", low=0, high=2),
)


class TypeParams(RelabelingParams, frozen=True, kw_only=True):
    """Parameters of self-training through types; the paper's gamma is 1 / (2 sigma2)."""

    alpha: Annotated[
        float, msgspec.Meta(ge=0, le=1, description="share of the CRF in the mixed posteriors")
    ] = 0.6
    omega: Annotated[
        float, msgspec.Meta(ge=0, le=1e9, description="weight of the CRF's transitions in decoding")
    ] = 0.0
    transitions: Annotated[
        Literal["raw", "centered"],
        msgspec.Meta(description="in decoding: as trained, or less row and column means"),
    ] = "raw"

    def label(self, crf: ChainCRF, data: EncodedCorpus, p: F64, types: F64, at: I32) -> I32:
        """Lines 7 and 8 of docs/specs/graph_self_training.md, section 4: see `relabeling.Label`."""
        mixed = mix(p, types, at, self.alpha)
        return decode(crf, data, mixed, self.omega, self.transitions == "centered")


class GraphSelfTraining(CRFMethod):
    """Self-training whose type posteriors are smoothed on a similarity graph."""

    order_invariant = True

    class Params(TypeParams, frozen=True, kw_only=True):
        """Parameters of graph-based self-training."""

        similarity: GraphSimilarity = "subramanya2010"
        neighbors: Neighbors = 5
        symmetry: Symmetry = "union"
        max_df: MaxDf = None
        suffixes: Suffixes = None
        mu: Annotated[float, msgspec.Meta(ge=0, le=1e9, description="weight of the edges")] = 0.5
        nu: Annotated[
            float,
            msgspec.Meta(
                gt=0, le=1e9, description="weight of the pull to the uniform distribution"
            ),
        ] = 0.01
        steps: Annotated[
            int,
            msgspec.Meta(ge=0, le=10_000, description="propagation steps; 0 = type_self_training"),
        ] = 10
        propagation: Annotated[
            Literal["steps", "optimum"],
            msgspec.Meta(description="optimum: solve equation 2; the posteriors have no influence"),
        ] = "steps"
        edge_count: shared.EdgeCounts = "once"
        sentences: Annotated[
            Annotated[int, msgspec.Meta(ge=0, le=10**9)] | None,
            msgspec.Meta(description="unlabeled sentences that are labeled, the first; None = all"),
        ] = None
        count: Annotated[
            Literal["all", "graph"],
            msgspec.Meta(
                description="sentences in whose text contexts are counted: the others too, or not"
            ),
        ] = "all"
        presets: ClassVar[shared.Presets] = {
            "paper": {**_PAPER, "neighbors": 5, "mu": 0.5, "nu": 0.01, "steps": 10}
        }
        search: ClassVar[tuple[SearchAxis, ...]] = (
            *_SHARED_AXES,
            SearchAxis("mu", low=0.05, high=5, log=True),
            SearchAxis("nu", low=1e-3, high=0.1, log=True),
        )

        def __post_init__(self) -> None:
            check_similarity(self)

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Build the graph, then train, smooth, relabel and retrain until the labels settle."""
        more = None
        if params.sentences is not None:
            problem, rest = problem.split_text(params.sentences, params.column)
            more = rest if params.count == "all" else None
        graph = problem.graph(params, run, counting_text=more)
        crf, text = shared.encoded(problem, params, run)
        return self.trainer(graph, crf, text, params, run).train()

    def evidence(
        self,
        problem: Problem,
        crf: ChainCRF,
        held_out: EncodedCorpus,
        params: Params,
        run: RunContext,
    ) -> F64 | None:
        """The labels of the first round."""
        if params.sentences is not None:  # the graph is over a part of the text
            return None
        graph = problem.graph(params, run)
        return self.trainer(graph, crf, problem.encode(crf), params, run).taught()

    def trainer(
        self,
        graph: ProblemGraph,
        crf: ChainCRF,
        text: EncodedProblem,
        params: Params,
        run: RunContext,
    ) -> TypeTrainer:
        """Rounds with propagation on a graph."""
        vertices = graph.text

        def smooth(q: F64) -> F64:
            known = vertices.distribution, vertices.labeled, params.mu, params.nu
            if params.propagation == "optimum":
                return propagate_optimum(graph.W, *known, edge_count=params.edge_count)
            return propagate(graph.W, q, *known, steps=params.steps, edge_count=params.edge_count)

        return TypeTrainer(crf, text, vertices, smooth, params.label, params, run)


class TypeSelfTraining(CRFMethod):
    """Self-training on posteriors averaged by trigram type: the paper's self-trained CRF."""

    order_invariant = True

    class Params(TypeParams, frozen=True, kw_only=True):
        """Parameters of type-level self-training."""

        presets: ClassVar[shared.Presets] = {"paper": _PAPER}
        search: ClassVar[tuple[SearchAxis, ...]] = _SHARED_AXES

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Train, average, relabel and retrain until the labels settle."""
        crf, text = shared.encoded(problem, params, run)
        return self.trainer(problem, crf, text, params, run).train()

    def evidence(
        self,
        problem: Problem,
        crf: ChainCRF,
        held_out: EncodedCorpus,
        params: Params,
        run: RunContext,
    ) -> F64:
        """The labels of the first round."""
        return self.trainer(problem, crf, problem.encode(crf), params, run).taught()

    def trainer(
        self, problem: Problem, crf: ChainCRF, text: EncodedProblem, params: Params, run: RunContext
    ) -> TypeTrainer:
        """Rounds with means over the types of a problem's text."""
        with run.phase("graph"):
            types = ngram_vertices(problem.text(params.column), params.column)
            codes = problem.label_codes(problem.labeled)
            vertices = TextVertices.build(types, codes, len(problem.labels))
        run.trace["graph"] = vertices.metadata()
        return TypeTrainer(crf, text, vertices, lambda q: q, params.label, params, run)


def mix(marginals: F64, types: F64, vertex_of: I32, alpha: float) -> F64:
    """Equation 4, alpha p + (1 - alpha) q[vertex], float64[N, L]; p itself outside the graph."""
    inside = (vertex_of >= 0)[:, None]
    return np.where(inside, alpha * marginals + (1 - alpha) * types[vertex_of], marginals)


def decode(
    crf: ChainCRF, data: EncodedCorpus, mixed: F64, omega: float = 1.0, centered: bool = False
) -> I32:
    """argmax of sum_t log mixed_t(y_t) + omega (transition scores of the CRF): int32[N].

    mixed: float64[N, L]. Unless `centered`, the result depends on how the CRF divides its scores
    between labels and transitions (docs/specs/graph_self_training.md, erratum 10).
    """
    paths = [np.empty(0, np.int32)]
    for potentials in crf.transitions_only(centered=centered).potentials(data):
        node = _times(omega, potentials.node)
        node += np.log(np.maximum(mixed[potentials.batch.tokens], FLOOR))
        edge = _times(omega, potentials.edge)
        paths.append(BatchPotentials(potentials.batch, node, edge).viterbi())
    return np.concatenate(paths)


def _times(omega: float, scores: F64) -> F64:
    """omega * scores; -inf stays -inf, also at omega = 0."""
    return np.multiply(omega, scores, out=scores.copy(), where=np.isfinite(scores))
