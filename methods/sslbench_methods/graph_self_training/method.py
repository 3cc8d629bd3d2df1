"""Graph-based self-training, and the same without a graph (types averaged, not smoothed).

Subramanya, Petrov & Pereira (2010), algorithm 1, with equation 3 corrected (mu before the sum over
neighbors) and every edge counted once. A type is an n-gram, a vertex of the graph. Each round
averages the posteriors of the tokens of a type, smooths them (propagation on a graph, or nothing
for the paper's self-trained CRF), mixes them back into the tokens, decodes, and retrains on the
labels. Ten propagation steps are part of the method: the optimum ignores the posteriors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np

from sslbench import CRFMethod, Problem, RunContext, SearchAxis, TrainingParams
from sslbench.crf import (
    BatchPotentials,
    ChainCRF,
    EncodedCorpus,
    EncodedProblem,
    TrainingResult,
    split_tokens,
)
from sslbench.graph.propagation.quadratic import propagate, propagate_optimum
from sslbench.graph.tokens import type_means
from sslbench.graph.vertices import ngram_vertices
from sslbench.method import (
    GraphColumn,
    GraphSimilarity,
    MaxDf,
    Neighbors,
    Suffixes,
    Symmetry,
    TextVertices,
    check_similarity,
)
from sslbench.types import F64, I32
from sslbench_methods import shared

#: mixed posteriors are raised to this before the logarithm of the Viterbi step
FLOOR = 1e-12
_SHARED_AXES = (
    SearchAxis("eta", low=1e-4, high=10, log=True),
    SearchAxis("alpha", low=0, high=1),
    SearchAxis("omega", low=0, high=2),
    SearchAxis("rounds", low=1, high=30, log=True, integer=True),
    shared.KEEP_AXIS,
)


class TypeParams(TrainingParams, frozen=True, kw_only=True):
    """Parameters of self-training through types; the paper's gamma is 1 / (2 sigma2)."""

    sigma2: Annotated[
        float,
        msgspec.Meta(
            ge=1e-10, le=1e12, description="variance of the Gaussian prior (gamma = 0.01)"
        ),
    ] = 50.0
    alpha: Annotated[
        float, msgspec.Meta(ge=0, le=1, description="share of the CRF in the mixed posteriors")
    ] = 0.6
    eta: Annotated[
        float,
        msgspec.Meta(ge=0, le=1e9, description="weight of a self-labeled sentence (labeled: 1)"),
    ] = 0.001
    rounds: Annotated[
        int, msgspec.Meta(ge=1, le=100_000, description="most rounds of relabeling")
    ] = 10
    retraining: Annotated[
        int, msgspec.Meta(ge=1, le=1_000_000, description="most iterations of L-BFGS in one round")
    ] = 50
    tolerance: Annotated[
        float, msgspec.Meta(ge=0, lt=1, description="stop when a smaller share of labels changes")
    ] = 1e-3
    omega: Annotated[
        float, msgspec.Meta(ge=0, le=1e9, description="weight of the CRF's transitions in decoding")
    ] = 1.0
    transitions: Annotated[
        Literal["raw", "centered"],
        msgspec.Meta(description="in decoding: as trained, or less row and column means"),
    ] = "raw"
    column: GraphColumn = "word"
    feature_pruning: shared.FeaturePruning = "posterior"
    keep: shared.Keep = "last"


class GraphSelfTraining(CRFMethod):
    """Self-training whose type posteriors are smoothed on a similarity graph."""

    order_invariant = True

    class Params(TypeParams, frozen=True, kw_only=True):
        """Parameters of graph-based self-training (the paper's values)."""

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
        vertices = graph.text

        def smooth(q: F64) -> F64:
            known = vertices.distribution, vertices.labeled, params.mu, params.nu
            if params.propagation == "optimum":
                return propagate_optimum(graph.W, *known, edge_count=params.edge_count)
            return propagate(graph.W, q, *known, steps=params.steps, edge_count=params.edge_count)

        crf, text = shared.encoded(problem, params, run)
        return TypeTrainer(crf, text, vertices, smooth, params, run).train()


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
        crf, text = shared.encoded(problem, params, run)
        return TypeTrainer(crf, text, vertices, lambda q: q, params, run).train()


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


@dataclass
class TypeTrainer:
    """The alternation of algorithm 1.

    smooth: float64[V, L] -> float64[V, L], from means of the posteriors to the type posteriors that
    are mixed in.
    """

    crf: ChainCRF
    text: EncodedProblem
    vertices: TextVertices
    smooth: Callable[[F64], F64]
    params: TypeParams
    run: RunContext
    guesses: list[I32] = field(default_factory=list)

    def train(self) -> ChainCRF:
        """The supervised CRF, then rounds until the labels settle."""
        params, run = self.params, self.run
        last = params.keep == "last"
        accuracy = shared.train_supervised(self.crf, self.text, params, run, decides=not last)
        rounds = run.rounds(params.rounds)
        if not self.text.unlabeled:
            rounds.stop("nothing_to_do")
        elif params.feature_pruning == "posterior":
            marginals = zip(self.text.corpora, self.marginals(), strict=True)
            self.crf, self.text = self.text.pruned(self.crf, marginals)
            run.trace["pruned_weights"] = self.crf.layout.size
        rounds.candidate(accuracy.get("dev_accuracy"), self.crf)
        for _ in rounds:
            changed = self.relabel()
            result = self.fit()
            entry = {**result.record(), **self.text.dev_accuracy(self.crf, record_only=last)}
            labels = np.bincount(np.concatenate(self.guesses), minlength=len(self.crf.labels))
            message = f"{changed:.2%} of the labels changed, {result.status}"
            rounds.record(message, changed=changed, labels=labels.tolist(), **entry)
            rounds.candidate(entry.get("dev_accuracy"), self.crf)
            if changed < params.tolerance:
                rounds.stop("converged")
        if params.keep == "best":
            rounds.restore_best(self.crf)
        return self.crf

    def relabel(self) -> float:
        """Lines 4 to 9: new labels of the unlabeled text; share that changed (1 at first)."""
        params, parts, vertex_of = self.params, self.marginals(), self.vertices.vertex_of
        with self.run.phase("types"):
            means, _ = type_means(vertex_of, np.concatenate(parts), self.vertices.n_vertices)
            types = self.smooth(means)
        vertices = split_tokens(vertex_of, self.text.corpora)
        old, centered = self.guesses, params.transitions == "centered"
        with self.run.phase("decode"):
            self.guesses = [
                decode(self.crf, data, mix(p, types, at, params.alpha), params.omega, centered)
                for data, p, at in zip(self.text.unlabeled, parts[1:], vertices[1:], strict=True)
            ]
        return shared.changed_share(old, self.guesses)

    def marginals(self) -> list[F64]:
        """Of the labeled corpus and of each unlabeled one, float64[N, L] each."""
        with self.run.phase("marginals"):
            return [self.crf.marginals(data) for data in self.text.corpora]

    def fit(self) -> TrainingResult:
        """Equation 5, from the current weights."""
        targets = [
            (data, shared.hard_targets(guess, data.lengths, self.params.eta))
            for data, guess in zip(self.text.unlabeled, self.guesses, strict=True)
        ]
        # a warm start, and the next round changes the labels: need not converge
        most = min(self.params.options().max_iterations, self.params.retraining)
        options = self.params.options(max_iterations=most)
        with self.run.phase("train"):
            return self.crf.train([self.text.labeled, *targets], self.params, options=options)
