"""Conditional entropy as a term of an objective.

Source: Jiao et al. (2006); docs/specs/entropy_regularization.md, sections 3 to 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sslbench.crf.first_order import entropy as kernels
from sslbench.crf.first_order.batch import BatchPotentials, LabelTriples, check_feasible
from sslbench.crf.second_order.batch import SecondOrderPotentials
from sslbench.crf.terms import PotentialGradient
from sslbench.types import F64


@dataclass(frozen=True)
class BatchEntropy:
    """Entropies of a batch's sentences and the derivatives of -sum weights H.

    entropy: float64[s] H of a sentence's label sequences, in nats (0 where the weight is 0);
    weights: float64[s]; node: float64[n, L], edge: float64[1 or n, L, L]; labels: float64[L]
    expected numbers of tokens of each label, over the sentences whose weight is not 0; triples: of
    second-order chains.
    """

    entropy: F64
    weights: F64
    node: F64
    edge: F64
    labels: F64
    triples: LabelTriples | None = None

    @classmethod
    def of(cls, potentials: BatchPotentials, weights: F64, *, nested: bool = False) -> BatchEntropy:
        """By one forward-backward on dual numbers, O(T L^2), which consumes scores of arcs that
        depend on the position (they become `edge`); nested: by the paper's dynamic program,
        O(T^2 L^3), to compare with.  Second-order chains: by two sweeps over log-conditionals,
        O(T L^3); nested: on pairs of labels, O(T^2 L^6).

        weights: float64[s] >= 0.
        InfeasibleSentenceError for a sentence of weight > 0 that has no possible labeling.
        """
        if isinstance(potentials, SecondOrderPotentials):
            if not nested:
                entropy, node, edge, labels, triples = potentials.entropy(weights)
                return cls(entropy, weights, node, edge, labels, triples)
            pairs = cls.of(potentials.as_pairs(), weights, nested=True)
            node, edge, triples = potentials.from_pairs(pairs.node, pairs.edge)
            labels = pairs.labels.reshape(potentials.node.shape[1], -1).sum(axis=0)
            return cls(pairs.entropy, weights, node, edge, labels, triples)
        batch, (n, L) = potentials.batch, potentials.node.shape
        s, groups, shared = len(weights), batch.groups(), potentials.edge.shape[0] == 1
        entropy, node, status = np.empty(s), np.empty((n, L)), np.empty(s, np.int8)
        inputs = (potentials.node, potentials.edge, batch.offsets)
        labels, edge = np.empty((len(groups) - 1, L)), potentials.edge
        if nested:
            labels, edge = np.zeros((s, L)), np.zeros((s if shared else n, L, L))
            kernels.nested(*inputs, weights, entropy, node, edge, labels, status)
        elif shared:
            edge = np.empty((len(groups) - 1, L, L))
            kernels.shared(*inputs, groups, weights, entropy, node, edge, labels, status)
        else:
            kernels.varying(*inputs, groups, weights, entropy, node, labels, status)
        check_feasible(batch, status)
        if shared:
            edge = edge.sum(axis=0, keepdims=True)
        return cls(entropy, weights, node, edge, labels.sum(axis=0))

    @property
    def gradient(self) -> PotentialGradient:
        """The batch's part of an objective."""
        return PotentialGradient(-self.weights * self.entropy, self.node, self.edge, self.triples)


@dataclass(frozen=True)
class Entropy:
    """- weight w_i H(p(. | x_i)): maximizing it makes the model sure of the text.

    H is the entropy of whole label sequences in nats, as in the paper: not divided by the length of
    the sentence, nor averaged over sentences.  Any such scale is a matter of the weights:
    float64[S] >= 0 per sentence, None for 1; a sentence of weight 0 costs nothing.
    nested: by the paper's own dynamic program, which is much slower.
    """

    weight: float = 1.0
    weights: F64 | None = None
    nested: bool = False

    def of(self, potentials: BatchPotentials) -> BatchEntropy:
        """What `evaluate` finds, with more detail.  May consume potentials.edge."""
        batch = potentials.batch
        factors = np.full(batch.sentence_hi - batch.sentence_lo, self.weight)
        if self.weights is not None:
            factors *= self.weights[batch.sentences]
        return BatchEntropy.of(potentials, factors, nested=self.nested)

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        return self.of(potentials).gradient

    def n_tokens(self, lengths: F64) -> float:
        total = lengths.sum() if self.weights is None else (lengths * self.weights).sum()
        return self.weight * float(total)
