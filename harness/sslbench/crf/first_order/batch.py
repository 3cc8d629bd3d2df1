"""Inference on a batch of sentences: potentials in, posteriors out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sslbench.crf.data import Batch
from sslbench.crf.first_order import scaled
from sslbench.crf.first_order.chain import InfeasibleSentenceError
from sslbench.crf.weights import scores
from sslbench.types import F64, I8, I32, Bool


class LabelTriples(NamedTuple):
    """Of a second-order chain: log-potentials, or sums over a batch of what belongs to them.

    begin: float64[L, L] of the first two labels of a sentence; inner: float64[L, L, L] of any three
    in a row; end: float64[L, L] of the last two.
    """

    begin: F64
    inner: F64
    end: F64

    def pairs(self) -> F64:
        """Sums over all positions of two labels in a row: float64[1, L, L]."""
        total: F64 = self.begin + self.inner.sum(axis=0)
        return total[None]

    def times(self, factor: float) -> LabelTriples:
        return LabelTriples(*(factor * part for part in self))

    def plus(self, other: LabelTriples, factor: float = 1.0) -> LabelTriples:
        """self + factor other."""
        return LabelTriples(*(a + factor * b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class BatchPotentials:
    """node: float64[n, L] (START and stop folded in); edge: float64[1 or n, L, L]."""

    batch: Batch
    node: F64
    edge: F64

    @property
    def varying(self) -> bool:
        """Does every position have its own transition scores?"""
        return self.edge.shape[0] != 1 or self.batch.n_tokens == 1

    def path_scores(self, labels: I32) -> F64:
        """Potential of each clique along the labels int32[n]: float64[n]."""
        out = np.empty(self.batch.n_tokens)
        scores.path_scores(self.node, self.edge, self.batch.offsets, labels, out)
        return out

    def restrict(self, allowed: Bool) -> BatchPotentials:
        """Copies with the labels outside allowed (bool[n, L]) impossible."""
        return self.with_node(np.where(allowed, self.node, -np.inf))

    def with_node(self, node: F64) -> BatchPotentials:
        """With other scores of labels; shares nothing that inference consumes."""
        edge = self.edge if self.edge.shape[0] == 1 else self.edge.copy()
        return replace(self, node=node, edge=edge)

    def posterior(self, weights: F64 | None = None) -> BatchPosterior:
        """Log-partitions, and marginals times the weights float64[s] of the sentences (None = 1).

        Per-position edge scores are consumed (they become xi).
        """
        if weights is not None:
            if (weights != weights[0]).any():  # sentences of one weight can share their sum of arcs
                return self.per_position().posterior().weighted(weights)
            return self.posterior().weighted(weights)
        batch = self.batch
        n, L = self.node.shape
        log_scale, mu = np.empty(n), np.empty((n, L))
        status = np.empty(len(batch.offsets) - 1, np.int8)
        groups = batch.groups()
        if self.edge.shape[0] == 1:
            pair = np.empty((len(groups) - 1, L, L))
            scaled.shared(self.node, self.edge, batch.offsets, groups, mu, log_scale, pair, status)
            edge = pair.sum(axis=0, keepdims=True)
        else:
            edge = self.edge
            scaled.varying(self.node, edge, batch.offsets, groups, mu, log_scale, status)
        check_feasible(batch, status)
        return BatchPosterior(batch, log_scale, mu, edge)

    def per_position(self) -> BatchPotentials:
        """The same with a transition matrix of its own at every position."""
        n = self.batch.n_tokens
        if self.edge.shape[0] == n:
            return self
        edge = np.broadcast_to(self.edge, (n, *self.edge.shape[1:])).copy()
        return replace(self, edge=edge)

    def viterbi(self) -> I32:
        """Best labels int32[n]."""
        path = np.empty(self.batch.n_tokens, np.int32)
        status = np.empty(len(self.batch.offsets) - 1, np.int8)
        scaled.viterbi(self.node, self.edge, self.batch.offsets, path, status)
        check_feasible(self.batch, status)
        return path


@dataclass(frozen=True)
class BatchPosterior:
    """log_scale: float64[n], sums to log Z over each sentence; node: mu float64[n, L];
    edge: xi float64[n, L, L] (zero at first tokens) or its sum over positions float64[1, L, L];
    triples: of a second-order chain, sums over the batch.  All but log_scale times the weights.
    """

    batch: Batch
    log_scale: F64
    node: F64
    edge: F64
    triples: LabelTriples | None = None

    def log_z(self) -> F64:
        """float64[s]."""
        return per_sentence(self.log_scale, self.batch)

    def weighted(self, weights: F64) -> BatchPosterior:
        """A first-order posterior times the weights of the sentences, in place; edges that all
        positions share: of equal weights."""
        factor = np.repeat(weights, np.diff(self.batch.offsets))
        self.node[:] *= factor[:, None]
        if self.edge.shape[0] == len(self.node):
            self.edge[:] *= factor[:, None, None]
        else:
            self.edge[:] *= weights[0]
        return self


def per_sentence(values: F64, batch: Batch) -> F64:
    """Sums of float64[n] over each sentence: float64[s]."""
    return np.add.reduceat(values, batch.offsets[:-1])


def check_feasible(batch: Batch, status: I8) -> None:
    """Raise for the first sentence that has no possible labeling."""
    if (status == scaled.INFEASIBLE).any():
        i = batch.sentence_lo + int(np.argmax(status == scaled.INFEASIBLE))
        raise InfeasibleSentenceError(f"sentence {i}: no label sequence is possible")
