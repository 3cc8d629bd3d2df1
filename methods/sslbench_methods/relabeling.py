"""Rounds of relabeling the unlabeled text and retraining, which several methods over types share.

Each round averages the posteriors of the tokens of a type (an n-gram), smooths the means, labels
the text with their help, and retrains on the labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import numpy as np

from sslbench import RunContext, SearchAxis, TrainingParams
from sslbench.engine.crf import (
    ChainCRF,
    EncodedCorpus,
    EncodedProblem,
    TrainingResult,
    split_tokens,
)
from sslbench.engine.graph.tokens import type_means
from sslbench.engine.types import F64, I32
from sslbench.method import GraphColumn, TextVertices
from sslbench_methods import shared
from sslbench_methods.self_labeled import WeightScale, sentence_weight

AXES = (
    SearchAxis("eta", low=1e-4, high=10, log=True),
    SearchAxis("rounds", low=1, high=30, log=True, integer=True),
    shared.KEEP_AXIS,
)
#: labels of a text, int32[N]: from the CRF, the text, its posteriors float64[N, L], what `smooth`
#: gave float64[V, L], and the vertex of each token (-1 = none) int32[N]
Label = Callable[[ChainCRF, EncodedCorpus, F64, F64, I32], I32]


class RelabelingParams(TrainingParams, frozen=True, kw_only=True):
    """Parameters of the rounds."""

    eta: Annotated[
        float,
        msgspec.Meta(ge=0, le=1e9, description="weight of self-labeled sentences"),
    ] = 0.001
    eta_scale: WeightScale = "ratio"
    rounds: Annotated[
        int, msgspec.Meta(ge=1, le=100_000, description="most rounds of relabeling")
    ] = 10
    retraining: Annotated[
        int, msgspec.Meta(ge=1, le=1_000_000, description="most iterations of L-BFGS in one round")
    ] = 50
    tolerance: Annotated[
        float, msgspec.Meta(ge=0, lt=1, description="stop when a smaller share of labels changes")
    ] = 1e-3
    column: GraphColumn = "word"
    feature_pruning: shared.FeaturePruning = "posterior"
    keep: shared.Keep = "last"


@dataclass
class TypeTrainer:
    """The supervised CRF, then rounds.

    smooth: float64[V, L] -> float64[V, L], from means of the posteriors of the types to what
    `label` gets of them.
    """

    crf: ChainCRF
    text: EncodedProblem
    vertices: TextVertices
    smooth: Callable[[F64], F64]
    label: Label
    params: RelabelingParams
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

    def taught(self) -> F64:
        """float64[N, L]: the labels that the first round gives to the first unlabeled corpus."""
        self.relabel()
        return shared.certain(self.guesses[0], len(self.crf.labels))

    def relabel(self) -> float:
        """New labels of the unlabeled text; share that changed (1 at first)."""
        parts, vertex_of = self.marginals(), self.vertices.vertex_of
        with self.run.phase("types"):
            means, _ = type_means(vertex_of, np.concatenate(parts), self.vertices.n_vertices)
            types = self.smooth(means)
        vertices = split_tokens(vertex_of, self.text.corpora)
        old = self.guesses
        with self.run.phase("decode"):
            self.guesses = [
                self.label(self.crf, data, p, types, at)
                for data, p, at in zip(self.text.unlabeled, parts[1:], vertices[1:], strict=True)
            ]
        return shared.changed_share(old, self.guesses)

    def marginals(self) -> list[F64]:
        """Of the labeled corpus and of each unlabeled one, float64[N, L] each."""
        with self.run.phase("marginals"):
            return [self.crf.marginals(data) for data in self.text.corpora]

    def fit(self) -> TrainingResult:
        """Retrain on both texts, from the current weights."""
        weight = sentence_weight(self.params.eta, self.params.eta_scale, self.text)
        targets = [
            (data, shared.hard_targets(guess, data.lengths, weight))
            for data, guess in zip(self.text.unlabeled, self.guesses, strict=True)
        ]
        # a warm start, and the next round changes the labels: need not converge
        most = min(self.params.options().max_iterations, self.params.retraining)
        options = self.params.options(max_iterations=most)
        with self.run.phase("train"):
            parts = [self.text.labeled, *targets]
            return self.run.train(self.crf, parts, self.params, options=options)
