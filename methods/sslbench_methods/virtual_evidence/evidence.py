"""Virtual evidence in CRF training: the term and its E-step (Zeng et al. 2013, equations 5, 6).

A token whose n-gram has a propagated distribution q gets alpha q(y) added to its node scores: its
potentials are clamped. Unlabeled sentences contribute log Z(clamped) - log Z(free), the
log-probability of the evidence up to a constant. The normalizer sums over the evidence too, which
leaves p(y | x) the plain CRF; if it summed over labels alone, every model would be a fixed point of
EM (docs/specs/virtual_evidence.md, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sslbench.crf import (
    BatchPosterior,
    BatchPotentials,
    ChainCRF,
    EncodedCorpus,
    PotentialGradient,
)
from sslbench.types import F64, I32, I64


@dataclass(frozen=True)
class VirtualEvidence:
    """weight (log Z(phi + alpha q) - log Z(phi)) of each sentence.

    q: float64[V, L] >= 0, by vertex; vertex_of: int32[N], -1 = no evidence. Rows are gathered
    batch by batch, never for all tokens at once.
    """

    q: F64
    vertex_of: I32
    alpha: float
    weight: float = 1.0

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        clamped, free = self.posteriors(potentials)
        value = clamped.log_z() - free.log_z()
        return PotentialGradient.difference(value, clamped, free, self.weight)

    def n_tokens(self, lengths: F64) -> float:
        return self.weight * float(lengths.sum())

    def posteriors(self, potentials: BatchPotentials) -> tuple[BatchPosterior, BatchPosterior]:
        """Posteriors with the evidence (clamped) and without (free)."""
        return self.clamp(potentials).posterior(), potentials.posterior()

    def clamp(self, potentials: BatchPotentials) -> BatchPotentials:
        """Potentials with the evidence added; shares no array that inference overwrites."""
        vertex = self.vertex_of[potentials.batch.tokens]
        node = potentials.node + self.alpha * np.where(vertex[:, None] >= 0, self.q[vertex], 0.0)
        return potentials.with_node(node)

    def informed(self) -> int:
        """Tokens with evidence: whose vertex has a distribution that is not all zero."""
        has = np.append(self.q.any(axis=1), False)
        return int(np.count_nonzero(has[self.vertex_of]))


Part = tuple[EncodedCorpus, VirtualEvidence]


@dataclass
class EStep:
    """Expectations under one model, summed over the unlabeled text.

    counts: float64 per weight, expected features under the clamped model, times the terms' weight;
    value: sum of the evidence terms; entropy: of the node marginals, free and clamped, nats summed
    over the tokens; labels: int64[L], how often each label is the likeliest of the free model.
    """

    labels: I64
    value: float = 0.0
    tokens: int = 0
    entropy: F64 = field(default_factory=lambda: np.zeros(2))
    counts: F64 = field(default_factory=lambda: np.empty(0))

    @classmethod
    def under(cls, crf: ChainCRF, parts: Sequence[Part]) -> EStep:
        """Forward-backward over every part, with the evidence and without."""
        sums = cls(np.zeros(len(crf.labels), np.int64))
        sums.counts = crf.expect([(data, _Clamped(term, sums)) for data, term in parts]).counts
        return sums

    def record(self) -> dict[str, Any]:
        """For the run record; entropies in nats per token."""
        free, clamped = (self.entropy / max(1, self.tokens)).tolist()
        labels = self.labels.tolist()
        return {"free_entropy": free, "clamped_entropy": clamped, "labels": labels}


@dataclass(frozen=True)
class _Clamped:
    """The weighted log-partition with the evidence; adds up statistics on the way."""

    term: VirtualEvidence
    sums: EStep

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        clamped, free = self.term.posteriors(potentials)
        sums, weight = self.sums, self.term.weight
        sums.value += weight * float((clamped.log_z() - free.log_z()).sum())
        sums.entropy += _entropy(free.node), _entropy(clamped.node)
        sums.labels += np.bincount(free.node.argmax(axis=1), minlength=len(sums.labels))
        sums.tokens += potentials.batch.n_tokens
        return PotentialGradient.of_log_z(clamped, weight)

    def n_tokens(self, lengths: F64) -> float:
        return self.term.n_tokens(lengths)


def _entropy(p: F64) -> float:
    return -float((p * np.log(np.maximum(p, np.finfo(float).tiny))).sum())
