"""Training with virtual evidence: equation 5 of Zeng et al. (2013), by EM.

With q the propagated distributions, u(t) the vertex of token t and Z the partition function of the
plain CRF (docs/specs/virtual_evidence.md, section 4), maximize

    F(Lambda) = sum_labeled log p(y | x) - |Lambda|^2 / (2 delta^2)
              + omega sum_unlabeled [ log Z(x; Lambda with alpha q_u(t) added) - log Z(x; Lambda) ]

The bracket is the log-likelihood of the evidence.  The E-step takes expected features under the
clamped model p(y | x, v), which has alpha q on the scores of labels (equation 6); the M-step
maximizes the expected log-likelihood under them.  F is a difference of concave functions: the
optimum that is reached depends on the start, the supervised optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from sslbench import RunContext
from sslbench.engine.crf import (
    BatchPotentials,
    EncodedProblem,
    EncodedText,
    FrozenChain,
    LogLinear,
    LogPartition,
    Observed,
    Parts,
    PotentialGradient,
    SequenceModel,
    TrainingResult,
    VirtualEvidence,
)
from sslbench.engine.types import F64, I64
from sslbench_methods.shared import train_supervised
from sslbench_methods.virtual_evidence.params import VirtualEvidenceParams


@dataclass
class EvidenceTrainer:
    """Ascent on F from the supervised optimum.  terms: the evidence of each unlabeled corpus."""

    crf: SequenceModel
    text: EncodedProblem
    terms: list[VirtualEvidence]
    params: VirtualEvidenceParams
    run: RunContext

    @property
    def parts(self) -> list[tuple[EncodedText, VirtualEvidence]]:
        """The unlabeled corpora with their evidence."""
        return list(zip(self.text.unlabeled, self.terms, strict=True))

    def train(self) -> SequenceModel:
        """Start at the supervised optimum; run the solver that the parameters name."""
        params, run = self.params, self.run
        train_supervised(self.crf, self.text, params, run)
        em = params.solver == "em"
        rounds = run.rounds(params.rounds if em else 1)
        tokens = sum(len(term.vertex_of) for term in self.terms)
        informed = sum(term.informed() for term in self.terms)
        run.trace["evidence_tokens"] = informed / max(1, tokens)
        if params.omega == 0 or not informed:  # F is the supervised objective: this is its optimum
            rounds.stop("nothing_to_do")
            return self.crf
        if params.feature_pruning == "posterior":
            self.prune()
        expected = self.expect()
        run.trace["start"] = before = self.report(expected)
        rounds.candidate(before.get("dev_accuracy"), self.crf)
        for _ in rounds:
            result = self.m_step(expected) if em else self.direct()
            expected = self.expect()
            entry = {**result.record(), **self.report(expected)}
            rounds.record(f"F {entry['F']:.3f}, {result.status}", **entry)
            rounds.candidate(entry.get("dev_accuracy"), self.crf)
            gain, before = entry["F"] - before["F"], entry
            if (not em and result.converged) or gain < params.tolerance * abs(entry["F"]):
                rounds.stop("converged")
        if params.keep == "best":
            rounds.restore_best(self.crf)
        return self.crf

    def prune(self) -> None:
        """Keep the weights of plausible (attribute, label) pairs: labeled sentences under the CRF,
        unlabeled ones under the clamped model.
        """
        crf, gold = self.crf, self.text.labeled[0]
        clamped = (
            (data, np.concatenate([term.clamp(p).posterior().node for p in crf.potentials(data)]))
            for data, term in self.parts
        )
        marginals = chain([(gold, crf.marginals(gold))], clamped)
        self.crf, self.text = self.text.pruned(crf, marginals)
        self.run.trace["pruned_weights"] = len(self.crf.parameters)

    def expect(self) -> EStep:
        """Run the E-step under the current weights."""
        with self.run.phase("e_step"):
            return EStep.under(self.crf, self.parts)

    def m_step(self, expected: EStep) -> TrainingResult:
        """Maximize the expected log-likelihood under fixed posteriors, from the current weights."""
        text, given = expected.frozen, dict[str, Any]()
        if expected.counts is not None:
            text = [(data, LogPartition(term.weight)) for data, term in self.parts]
            given = {"expected_counts": expected.counts}
        # No ftol: each round changes the objective little, so that a relative test ends at once.
        options = self.params.options(max_iterations=self.params.m_iterations, ftol=0.0)
        with self.run.phase("train"):
            parts = [self.text.labeled, *text]
            return self.run.train(self.crf, parts, self.params, options=options, **given)

    def direct(self) -> TrainingResult:
        """Run L-BFGS on F itself, from the current weights."""
        with self.run.phase("train"):
            return self.run.train(self.crf, [self.text.labeled, *self.parts], self.params)

    def report(self, expected: EStep) -> dict[str, Any]:
        """Return F and what the free and the clamped model say of the unlabeled text."""
        value = self.crf.objective([self.text.labeled], self.params) + expected.value
        accuracy = self.text.dev_accuracy(self.crf, record_only=self.params.keep == "last")
        return {"F": value, **expected.record(), **accuracy}


@dataclass(frozen=True)
class EStep:
    """Expectations under one model, summed over the unlabeled text.

    counts: float64 per weight, expected features under the clamped model, times the terms' weight;
    None for a model that is not log-linear, which has `frozen`: the text with the clamped chains.
    value: sum of the evidence terms; entropy: float64[2] of the node marginals, free and clamped,
    nats per token; labels: int64[L], how often each label is the likeliest of the free model.
    """

    counts: F64 | None
    frozen: Parts
    value: float
    entropy: F64
    labels: I64

    @classmethod
    def under(
        cls, crf: SequenceModel, parts: Sequence[tuple[EncodedText, VirtualEvidence]]
    ) -> EStep:
        """Forward-backward over every part, with the evidence and without."""
        terms = [Observed(term, partial(clamped, term)) for _, term in parts]
        texts = [data for data, _ in parts]
        observed = list(zip(texts, terms, strict=True))
        counts, frozen = None, list[tuple[EncodedText, FrozenChain]]()
        if isinstance(crf, LogLinear):
            counts = crf.expect(observed).counts
        else:
            crf.evaluate(observed)
            frozen = [(data, _frozen(term, crf, data)) for data, term in parts]
        tokens = max(1, sum(int(data.offsets[-1]) for data in texts))
        return cls(
            counts,
            frozen,
            Observed.total(terms, "value"),
            (np.zeros(2) + Observed.total(terms, "entropy")) / tokens,
            np.zeros(len(crf.labels), np.int64) + Observed.total(terms, "labels"),
        )

    def record(self) -> dict[str, Any]:
        """For the run record; entropies in nats per token."""
        free, clamped = self.entropy.tolist()
        return {"free_entropy": free, "clamped_entropy": clamped, "labels": self.labels.tolist()}


def clamped(
    term: VirtualEvidence, potentials: BatchPotentials
) -> tuple[PotentialGradient, dict[str, Any]]:
    """Evaluate the weighted log-partition with the evidence on a batch, with the sums of `EStep`
    over its tokens.
    """
    bound, free = term.posteriors(potentials)
    statistics = {
        "value": term.weight * float((bound.log_z() - free.log_z()).sum()),
        "entropy": np.array([_entropy(free.node), _entropy(bound.node)]),
        "labels": np.bincount(free.node.argmax(axis=1), minlength=free.node.shape[1]),
    }
    return PotentialGradient.of_log_z(bound, term.weight), statistics


def _frozen(term: VirtualEvidence, crf: SequenceModel, data: EncodedText) -> FrozenChain:
    """Return the clamped chain of a text, as a term of the M-step."""
    clamped = map(term.clamp, crf.potentials(data))
    return FrozenChain.of(clamped, len(crf.labels), weight=term.weight)


def _entropy(p: F64) -> float:
    return -float((p * np.log(np.maximum(p, np.finfo(float).tiny))).sum())
