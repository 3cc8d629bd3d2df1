"""Algorithm 1 of Subramanya, Petrov & Pereira (2010): self-training through types.

A type is an n-gram, a vertex of the graph. Each round averages the posteriors of the tokens of a
type, smooths them (`smooth`: propagation on a graph, or nothing for the paper's self-trained CRF),
mixes them back into the tokens, decodes, and retrains on the labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Literal

import msgspec
import numpy as np

from sslbench import RunContext, TrainingParams
from sslbench.crf import (
    BatchPotentials,
    ChainCRF,
    EncodedCorpus,
    EncodedProblem,
    Term,
    TrainingResult,
)
from sslbench.graph.tokens import type_means
from sslbench.method import GraphColumn
from sslbench.types import F64, I32
from sslbench_methods.shared import FeaturePruning, Keep, changed_share, hard_targets

#: mixed posteriors are raised to this before the logarithm of the Viterbi step
FLOOR = 1e-12


class TypeParams(TrainingParams, frozen=True, kw_only=True):
    """Parameters of self-training through types; the paper's gamma is 1 / (2 sigma2)."""

    sigma2: Annotated[
        float, msgspec.Meta(gt=0, description="variance of the Gaussian prior (gamma = 0.01)")
    ] = 50.0
    alpha: Annotated[
        float, msgspec.Meta(ge=0, le=1, description="share of the CRF in the mixed posteriors")
    ] = 0.6
    eta: Annotated[
        float, msgspec.Meta(ge=0, description="weight of a self-labeled sentence (labeled: 1)")
    ] = 0.001
    rounds: Annotated[int, msgspec.Meta(ge=1, description="most rounds of relabeling")] = 10
    retraining: Annotated[
        int, msgspec.Meta(ge=1, description="most iterations of L-BFGS in one round")
    ] = 50
    tolerance: Annotated[
        float,
        msgspec.Meta(ge=0, lt=1, description="stop when a smaller share of the labels changes"),
    ] = 1e-3
    omega: Annotated[
        float, msgspec.Meta(ge=0, description="weight of the CRF's transitions in decoding")
    ] = 1.0
    transitions: Annotated[
        Literal["raw", "centered"],
        msgspec.Meta(description="in decoding: as trained, or less row and column means"),
    ] = "raw"
    column: GraphColumn = "word"
    feature_pruning: FeaturePruning = "posterior"
    keep: Keep = "last"


def mix(marginals: F64, types: F64, vertex_of: I32, alpha: float) -> F64:
    """Equation 4, alpha p + (1 - alpha) q[vertex], float64[N, L]; p itself outside the graph."""
    inside = (vertex_of >= 0)[:, None]
    return np.where(inside, alpha * marginals + (1 - alpha) * types[vertex_of], marginals)


def decode(
    crf: ChainCRF, data: EncodedCorpus, mixed: F64, omega: float = 1.0, *, centered: bool = False
) -> I32:
    """argmax of sum_t log mixed_t(y_t) + omega (transition scores of the CRF): int32[N].

    mixed: float64[N, L]. As printed, the result depends on how the CRF divides its scores between
    labels and transitions (docs/specs/graph_self_training.md, erratum 10); with `centered` it does
    not.
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

    vertex_of: int32[N_l + N_u], the labeled tokens first, then those of each unlabeled corpus; -1
    outside the graph.  smooth: float64[V, L] -> float64[V, L], from means of the posteriors to the
    type posteriors that are mixed in.
    """

    crf: ChainCRF
    text: EncodedProblem
    vertex_of: I32
    n_vertices: int
    smooth: Callable[[F64], F64]
    params: TypeParams
    run: RunContext
    guesses: list[I32] = field(default_factory=list)

    def train(self) -> ChainCRF:
        """The supervised CRF, then rounds until the labels settle."""
        params, run = self.params, self.run
        last = params.keep == "last"
        run.record(self.fit(), "supervised")
        run.trace["supervised"] |= self.text.dev_accuracy(self.crf, record_only=last)
        rounds = run.rounds(params.rounds)
        if not self.text.unlabeled:
            rounds.stop("nothing_to_do")
        elif params.feature_pruning == "posterior":
            marginals = zip(self.text.corpora, self.marginals(), strict=True)
            self.crf, self.text = self.text.pruned(self.crf, marginals)
            run.trace["pruned_weights"] = self.crf.layout.size
        rounds.candidate(run.trace["supervised"].get("dev_accuracy"), self.crf)
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
        params, parts = self.params, self.marginals()
        with self.run.phase("types"):
            means, _ = type_means(self.vertex_of, np.concatenate(parts), self.n_vertices)
            types = self.smooth(means)
        old, self.guesses = self.guesses, []
        borders = np.cumsum([len(p) for p in parts])
        with self.run.phase("decode"):
            for data, p, (lo, hi) in zip(
                self.text.unlabeled, parts[1:], pairwise(borders), strict=True
            ):
                mixed = mix(p, types, self.vertex_of[lo:hi], params.alpha)
                centered = params.transitions == "centered"
                self.guesses.append(decode(self.crf, data, mixed, params.omega, centered=centered))
        return changed_share(old, self.guesses)

    def marginals(self) -> list[F64]:
        """Node marginals of the labeled corpus and of each unlabeled one, float64[N, L] each."""
        with self.run.phase("marginals"):
            return [self.crf.marginals(data) for data in self.text.corpora]

    def fit(self) -> TrainingResult:
        """Equation 5 (equation 1 while nothing is labeled yet) from the current weights."""
        parts: list[tuple[EncodedCorpus, Term]] = [self.text.labeled]
        for data, guess in zip(self.text.unlabeled, self.guesses, strict=False):
            parts.append((data, hard_targets(guess, data.lengths, self.params.eta)))
        options = self.params.options()
        if self.guesses:  # a warm start, and the next round changes the labels: need not converge
            most = min(options.max_iterations, self.params.retraining)
            options = self.params.options(max_iterations=most)
        with self.run.phase("train"):
            return self.crf.train(parts, self.params, options=options)
