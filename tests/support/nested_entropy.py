"""Oracle: the entropy of label sequences and its gradient by the nested dynamic program.

Source: Jiao et al. (2006), section 4; docs/specs/entropy_regularization.md, section 5.1.  It takes
O(T^2 L^3) where the engine takes O(T L^2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sslbench.engine.crf.data import LabelTriples
from sslbench.engine.crf.entropy import BatchEntropy
from sslbench.engine.crf.first_order import log_space
from sslbench.engine.crf.first_order.batch import BatchPotentials, check_feasible
from sslbench.engine.crf.first_order.scaled import INFEASIBLE, OK
from sslbench.engine.crf.second_order.batch import SecondOrderPotentials
from sslbench.engine.crf.terms import PotentialGradient
from sslbench.engine.types import F64, I8, I64


@dataclass(frozen=True)
class NestedEntropy:
    """The term `sslbench.engine.crf.entropy.Entropy`, by the nested program."""

    weight: float = 1.0
    weights: F64 | None = None

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        batch = potentials.batch
        factors = np.full(batch.sentence_hi - batch.sentence_lo, self.weight)
        if self.weights is not None:
            factors *= self.weights[batch.sentences]
        return nested_entropy(potentials, factors).gradient

    def n_tokens(self, lengths: F64) -> float:
        total = lengths.sum() if self.weights is None else (lengths * self.weights).sum()
        return self.weight * float(total)


def nested_entropy(potentials: BatchPotentials, weights: F64) -> BatchEntropy:
    """What `BatchEntropy.build` computes; leaves the potentials as they are.

    Second-order chains are done as first-order chains over pairs of labels, O(T^2 L^6).
    """
    if isinstance(potentials, SecondOrderPotentials):
        return _of_second_order(potentials, weights)
    batch, (n, L) = potentials.batch, potentials.node.shape
    s, shared = len(weights), potentials.edge.shape[0] == 1
    entropy, node, status = np.empty(s), np.empty((n, L)), np.empty(s, np.int8)
    labels, edge = np.zeros((s, L)), np.zeros((s if shared else n, L, L))
    inputs = (potentials.node, potentials.edge, batch.offsets, weights)
    _sentences(*inputs, entropy, node, edge, labels, status)
    check_feasible(batch, status)
    if shared:
        edge = edge.sum(axis=0, keepdims=True)
    return BatchEntropy(entropy, weights, node, edge, labels.sum(axis=0))


def _of_second_order(potentials: SecondOrderPotentials, weights: F64) -> BatchEntropy:
    pairs = nested_entropy(as_pairs(potentials), weights)
    batch, (n, L) = potentials.batch, potentials.node.shape
    node, edge = pairs.node.reshape(n, L, L), pairs.edge.reshape(n, L, L, L, L)
    second, third, last = _positions(batch.offsets)
    b = np.arange(L)
    inner = edge[third].sum(axis=0)[:, b, b, :]
    triples = LabelTriples(node[second].sum(axis=0), inner, node[last].sum(axis=0))
    own = np.where(batch.first[:, None, None], 0.0, node)
    if potentials.edge.shape[0] == 1:
        own = triples.pairs()
    labels = pairs.labels.reshape(L, L).sum(axis=0)
    return BatchEntropy(pairs.entropy, weights, node.sum(axis=1), own, labels, triples)


def as_pairs(potentials: SecondOrderPotentials) -> BatchPotentials:
    """The same chains as first-order ones over L^2 labels, the pairs (y_{t-1}, y_t).

    First tokens have the pairs (0, y).  Needs n L^4 cells.
    """
    batch, triples, (n, L) = potentials.batch, potentials.triples, potentials.node.shape
    second, third, last = _positions(batch.offsets)
    node = np.full((n, L, L), -np.inf)
    node[batch.first, 0] = potentials.node[batch.first]
    later = ~batch.first
    own = np.broadcast_to(potentials.edge, (n, L, L))
    node[later] = potentials.node[later, None, :] + own[later]
    node[second] += triples.begin
    node[last] += triples.end
    edge = np.full((n, L, L, L, L), -np.inf)
    b = np.arange(L)  # the second label of a pair is the first label of the next pair
    edge[:, :, b, b, :] = 0.0
    edge[third[:, None], :, b, b, :] = triples.inner.transpose(1, 0, 2)
    return BatchPotentials(batch, node.reshape(n, L * L), edge.reshape(n, L * L, L * L))


def _positions(offsets: I64) -> tuple[I64, I64, I64]:
    """Second tokens; third and later ones; last ones (of sentences of two tokens or more)."""
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
    last = (offsets[1:] - 1)[np.diff(offsets) > 1]
    return np.flatnonzero(place == 1), np.flatnonzero(place > 1), last


def _sentences(
    node: F64,
    edge: F64,
    offsets: I64,
    weights: F64,
    entropy: F64,
    node_slope: F64,
    edge_slope: F64,
    labels: F64,
    status: I8,
) -> None:
    """All sentences of a batch.

    edge_slope float64[s, L, L] or float64[n, L, L] and labels float64[s, L] come in as zeros.
    """
    for i in range(offsets.shape[0] - 1):
        lo, hi = offsets[i], offsets[i + 1]
        own = edge if edge.shape[0] == 1 else edge[lo:hi]
        out = edge_slope[i : i + 1] if edge.shape[0] == 1 else edge_slope[lo:hi]
        if weights[i] == 0.0:
            status[i], entropy[i], node_slope[lo:hi] = OK, 0.0, 0.0
        else:
            status[i], entropy[i] = _sentence(
                node[lo:hi], own, weights[i], node_slope[lo:hi], out, labels[i]
            )


def _sentence(
    node: F64, edge: F64, weight: float, node_slope: F64, edge_slope: F64, labels: F64
) -> tuple[int, float]:
    """Status and entropy log Z - E[S]; the slopes are weight Cov(1_c, S), as the sum over all pairs
    of positions p <= q of the joint probabilities

        P(edge (a, b) at p, edge (c, d) at q) = xi_p(a, b) [prod_{p < l < q} q_l](b, c) q_q(d | c),

    with their scores on either side, less xi_c E[S].
    """
    T, L = node.shape
    beta, z = np.empty((T, L)), np.empty((T, L))
    log_z = log_space.backward(node, edge, beta, z)
    if log_z == -np.inf:
        return INFEASIBLE, 0.0
    q, xi = _conditionals(node, edge, beta, z)
    score = _scores(node, edge, xi)
    joint = xi * score
    mean = joint.sum()
    for p in range(T):
        between, before = np.eye(L), (xi[p] * score[p]).sum(axis=0)
        for r in range(p + 1, T):
            joint[p] += xi[p] * (between @ (q[r] * score[r]).sum(axis=1))
            joint[r] += (before @ between)[:, None] * q[r]
            between = between @ q[r]
    joint -= xi * mean
    for t in range(T):
        node_slope[t] = weight * joint[t].sum(axis=0)
        labels += xi[t].sum(axis=0)
        if t > 0:
            edge_slope[t if edge_slope.shape[0] > 1 else 0] += weight * joint[t]
    return OK, log_z - mean


def _conditionals(node: F64, edge: F64, beta: F64, z: F64) -> tuple[F64, F64]:
    """q float64[T, L, L], the local conditionals, and xi, the edge marginals.

    At the first position all edges come from label 0, which stands for START.
    """
    T, L = node.shape
    q, xi, mu = np.empty((T, L, L)), np.zeros((T, L, L)), np.zeros(L)
    for t in range(T):
        log_space.log_conditional(node, edge, beta, z, t, q[t])
        q[t] = np.exp(q[t])
        if t == 0:
            xi[0, 0] = q[0, 0]
        else:
            xi[t] = mu[:, None] * q[t]
        mu = xi[t].sum(axis=0)
    return q, xi


def _scores(node: F64, edge: F64, xi: F64) -> F64:
    """Potentials of the edges float64[T, L, L], 0 where the edge is impossible."""
    own = np.broadcast_to(edge, xi.shape).copy()
    own[0] = 0.0
    return np.where(xi > 0.0, node[:, None, :] + own, 0.0)
