"""Virtual evidence in CRF training: the term, its expectations, and two ways to its optimum.

Zeng et al. (2013), equations 5 and 6.  A token whose n-gram has a propagated distribution q gets
alpha q(y) added to its label scores: its potentials are clamped.  Unlabeled sentences contribute
log Z(clamped) - log Z(free), the log-probability of the evidence up to a constant.  The normalizer
sums over the evidence too, which leaves p(y | x) the plain CRF; summing over labels alone would
make every model a fixed point of EM (docs/specs/virtual_evidence.md, section 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from sslbench.crf import ChainCRF, EncodedCorpus, HardLabels, LogPartition, Objective, Options
from sslbench.crf.first_order.batch import BatchPotentials
from sslbench.crf.model import TrainingResult
from sslbench.crf.objective import add_gradient, batch_potentials
from sslbench.crf.prune import prune
from sslbench.crf.terms import PotentialGradient
from sslbench.crf.weights.layout import Tables
from sslbench.experiment.context import RunContext
from sslbench.types import F64, I32, I64
from sslbench_methods.graph_text import with_dev


@dataclass(frozen=True)
class VirtualEvidence:
    """weight (log Z(phi + alpha q) - log Z(phi)) of each sentence.

    q: float64[V, L] >= 0, by vertex; vertex_of: int32[N], -1 = no evidence.  Rows are gathered
    batch by batch: the evidence of all tokens never stands in memory.
    """

    q: F64
    vertex_of: I32
    alpha: float
    weight: float = 1.0

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        clamped, free = self.clamp(potentials).posterior(), potentials.posterior()
        value = clamped.log_z() - free.log_z()
        return PotentialGradient.difference(value, clamped, free, self.weight)

    def n_tokens(self, lengths: F64) -> float:
        return self.weight * float(lengths.sum())

    def clamp(self, potentials: BatchPotentials) -> BatchPotentials:
        """The potentials with the evidence on top; shares nothing that inference consumes."""
        vertex = self.vertex_of[potentials.batch.tokens]
        node = potentials.node + self.alpha * np.where(vertex[:, None] >= 0, self.q[vertex], 0.0)
        return potentials.with_node(node)

    def informed(self) -> int:
        """Tokens with evidence, that is with a distribution that is not all zero."""
        has = np.append(self.q.any(axis=1), False)
        return int(np.count_nonzero(has[self.vertex_of]))


Part = tuple[EncodedCorpus, VirtualEvidence]


@dataclass(frozen=True)
class Expectations:
    """The E-step under one model, summed over the unlabeled text.

    counts: float64 per weight, expected features under the clamped model, times the terms' weight;
    value: sum of the terms; free, clamped: entropy of the node marginals, nats per token;
    labels: int64[L], how often each label is the likeliest of the free model.
    """

    counts: F64
    value: float
    free: float
    clamped: float
    labels: I64

    @classmethod
    def under(cls, crf: ChainCRF, parts: Sequence[Part]) -> Expectations:
        """Both passes of forward-backward over every part."""
        counts = np.empty(crf.layout.size)
        tables, sums = Tables.unpack(crf.layout, crf.weights), Tables.gradient(crf.layout, counts)
        value, tokens, entropies = 0.0, 0, np.zeros(2)
        labels = np.zeros(len(crf.labels), np.int64)
        for data, term in parts:
            for batch in data.batches:
                potentials = batch_potentials(tables, data, batch, crf.transition_mask)
                clamped, free = term.clamp(potentials).posterior(), potentials.posterior()
                triples = None if clamped.triples is None else clamped.triples.times(term.weight)
                omega = PotentialGradient(
                    clamped.log_z(), term.weight * clamped.node, term.weight * clamped.edge, triples
                )
                add_gradient(sums, data, batch, omega)
                value += term.weight * float((clamped.log_z() - free.log_z()).sum())
                entropies += _entropy(free.node), _entropy(clamped.node)
                labels += np.bincount(free.node.argmax(axis=1), minlength=len(labels))
                tokens += batch.n_tokens
        sums.pack(counts)
        entropies /= max(1, tokens)
        return cls(counts, value, float(entropies[0]), float(entropies[1]), labels)


def _entropy(p: F64) -> float:
    return -float((p * np.log(np.maximum(p, np.finfo(float).tiny))).sum())


@dataclass
class EvidenceTrainer:
    """Maximizes F = labeled log-likelihood - prior + sum of the evidence terms.

    F is a difference of convex functions: where it ends depends on the start, the supervised
    optimum.
    """

    crf: ChainCRF
    gold: EncodedCorpus
    labels: I32
    parts: list[Part]
    sigma2: float
    options: Options
    run: RunContext
    #: development text with its labels int32[N], to be scored after every round
    dev: tuple[EncodedCorpus, I32] | None = None
    #: weights by round, the first before any
    models: list[F64] = field(default_factory=list)

    def supervised(self) -> TrainingResult:
        """The optimum on the labeled sentences alone, from the current weights."""
        with self.run.phase("train"):
            return self.crf.train([self._labeled], self.sigma2, options=self.options)

    def prune(self) -> None:
        """Keep the weights of plausible (attribute, label) pairs alone, see `crf.support`: those of
        the clamped model on unlabeled text.
        """
        texts = [(self.gold, self.crf.marginals(self.gold))]
        crf = prune(self.crf, self.gold, self.labels, chain(texts, self._clamped()))
        self.crf, self.gold = crf, crf.reencode(self.gold)
        self.parts = [(crf.reencode(data), term) for data, term in self.parts]
        if self.dev is not None:
            self.dev = crf.reencode(self.dev[0]), self.dev[1]

    def _clamped(self) -> Iterator[tuple[EncodedCorpus, F64]]:
        """The unlabeled parts with their posteriors under the clamped model."""
        tables = Tables.unpack(self.crf.layout, self.crf.weights)
        for data, term in self.parts:
            free = (
                batch_potentials(tables, data, batch, self.crf.transition_mask)
                for batch in data.batches
            )
            rows = [term.clamp(potentials).posterior().node for potentials in free]
            yield data, np.concatenate(rows)

    def direct(self) -> dict[str, Any]:
        """L-BFGS on F itself; before and after, for the record."""
        before = self.report(self.expect())
        with self.run.phase("train"):
            result = self.crf.train([self._labeled, *self.parts], self.sigma2, options=self.options)
        after = self.report(self.expect())
        self.run.progress(f"F {before['F']:.3f} to {after['F']:.3f}, {result.status}")
        return {"rounds": [before, {**result.record(), **after}], "stopped": result.status}

    def em(self, rounds: int, iterations: int, tolerance: float) -> dict[str, Any]:
        """E-steps and partial M-steps, until F gains less than `tolerance` of itself."""
        expected = self.expect()
        trace: dict[str, Any] = {"rounds": [self.report(expected)], "stopped": "rounds"}
        for number in range(1, rounds + 1):
            result = self.m_step(expected, iterations)
            expected = self.expect()
            entry = {**result.record(), **self.report(expected)}
            gain = entry["F"] - trace["rounds"][-1]["F"]
            trace["rounds"].append(entry)
            self.run.progress(f"round {number}: F {entry['F']:.3f}, {result.status}")
            if gain < tolerance * abs(entry["F"]):
                trace["stopped"] = "converged"
                break
        return trace

    def expect(self) -> Expectations:
        """The E-step under the current weights."""
        with self.run.phase("e_step"):
            return Expectations.under(self.crf, self.parts)

    def m_step(self, expected: Expectations, iterations: int) -> TrainingResult:
        """Expected log-likelihood under fixed posteriors (Q), from the current weights."""
        free = [(data, LogPartition(term.weight)) for data, term in self.parts]
        # a relative decrease would end it at once: each round moves the objective a little
        options = replace(self.options, max_iterations=iterations, ftol=0.0)
        with self.run.phase("train"):
            return self.crf.train(
                [self._labeled, *free],
                self.sigma2,
                options=options,
                expected_counts=expected.counts,
            )

    def report(self, expected: Expectations) -> dict[str, Any]:
        """F and what the two models make of the unlabeled text."""
        self.models.append(self.crf.weights)
        objective = Objective(
            self.crf.layout, [self._labeled], self.sigma2, transition_mask=self.crf.transition_mask
        )
        labeled = objective.value_and_gradient(self.crf.weights, np.empty(self.crf.layout.size))
        entry = {
            "F": labeled + expected.value,
            "free_entropy": expected.free,
            "clamped_entropy": expected.clamped,
            "labels": expected.labels.tolist(),
        }
        return with_dev(entry, self.crf, self.dev)

    def keep_best(self, rounds: Sequence[dict[str, Any]]) -> int:
        """Go back to the round of best development accuracy (the first of equals); its number."""
        best = max(range(len(rounds)), key=lambda i: rounds[i]["dev_accuracy"])
        self.crf.weights = self.models[best]
        return best

    @property
    def _labeled(self) -> tuple[EncodedCorpus, HardLabels]:
        return self.gold, HardLabels(self.labels)
