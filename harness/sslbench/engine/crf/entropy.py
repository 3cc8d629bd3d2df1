"""Conditional entropy as a term of an objective.

Source: Jiao et al. (2006); docs/specs/entropy_regularization.md, sections 3 to 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sslbench.engine.crf.data import LabelTriples, SentenceGroups
from sslbench.engine.crf.first_order import entropy as kernels
from sslbench.engine.crf.first_order.batch import BatchPotentials, check_feasible, sentence_weights
from sslbench.engine.crf.second_order.batch import SecondOrderPotentials
from sslbench.engine.crf.terms import PotentialGradient, weights_of
from sslbench.engine.types import F64


@dataclass(frozen=True)
class BatchEntropy:
    """Entropies of the sentences of a batch, and the derivatives of -sum weights H.

    entropy: float64[s] H of the label sequences of each sentence, in nats (0 where the weight is
    0); weights: float64[s].
    node: float64[n, L], edge: float64[1 or n, L, L] and, of second-order chains, triples:
    derivatives by the potentials.
    labels: float64[L] expected number of tokens of each label, over the sentences of weight > 0.
    """

    entropy: F64
    weights: F64
    node: F64
    edge: F64
    labels: F64
    triples: LabelTriples | None = None

    @classmethod
    def build(cls, potentials: BatchPotentials, weights: F64) -> BatchEntropy:
        """Compute the entropies of a batch; weights: float64[s] >= 0 of its sentences.

        First order: one forward-backward pass on dual numbers, O(T L^2), which overwrites edge
        potentials that depend on the position with their derivatives.  Second order: two passes
        over local conditionals, O(T L^3).
        Raises InfeasibleSentenceError for a sentence of weight > 0 without a possible labeling.
        """
        weights = sentence_weights(weights, potentials.batch)
        if isinstance(potentials, SecondOrderPotentials):
            entropy, node, edge, labels, triples = potentials.entropy(weights)
            return cls(entropy, weights, node, edge, labels, triples)
        batch, (n, L) = potentials.batch, potentials.node.shape
        s, groups, edge = len(weights), batch.groups(), potentials.edge
        sentences, G = SentenceGroups(batch.offsets, groups, weights), len(groups) - 1
        shared = edge.shape[0] == 1
        slopes = np.empty((G, L, L)) if shared else edge
        labels, status = np.empty((G, L)), np.empty(s, np.int8)
        out = kernels.Slopes(np.empty(s), np.empty((n, L)), slopes, labels, status)
        if shared:
            kernels.shared(potentials.node, edge, sentences, out)
            slopes = slopes.sum(axis=0, keepdims=True)
        else:
            kernels.varying(potentials.node, sentences, out)
        check_feasible(batch, status)
        return cls(out.entropy, weights, out.node, slopes, labels.sum(axis=0))

    @property
    def gradient(self) -> PotentialGradient:
        """The value -weights H of each sentence and its derivatives, as an objective adds them."""
        return PotentialGradient(-self.weights * self.entropy, self.node, self.edge, self.triples)


@dataclass(frozen=True)
class Entropy:
    """The term - weight w_i H(p(. | x_i)), whose maximum makes the model confident on the text.

    H is the entropy of whole label sequences in nats, as in the paper: divided neither by the
    length of the sentence nor by the number of sentences.  Such scales belong into the weights.
    weights: float64[S] >= 0 per sentence of the corpus, None = 1; a sentence of weight 0 is
    skipped.
    """

    stateless: ClassVar[bool] = True

    weight: float = 1.0
    weights: F64 | None = None

    def batch_entropy(self, potentials: BatchPotentials) -> BatchEntropy:
        """Return entropies and derivatives of a batch; may overwrite potentials.edge."""
        batch = potentials.batch
        return BatchEntropy.build(potentials, self.weight * weights_of(self.weights, batch))

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        """Return values and potential gradient; may overwrite potentials.edge."""
        return self.batch_entropy(potentials).gradient

    def n_tokens(self, lengths: F64) -> float:
        """Return the number of tokens that the optimizer counts; lengths: float64[S]."""
        total = lengths.sum() if self.weights is None else (lengths * self.weights).sum()
        return self.weight * float(total)
