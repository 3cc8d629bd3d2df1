"""Inference on one chain by the log-space kernels of the engine, with which the fast ones compare.

Source: J. Lafferty, A. McCallum, F. Pereira: Conditional random fields: probabilistic models for
segmenting and labeling sequence data, ICML 2001 (docs/specs/crf_engine.md, sections 3 to 7).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sslbench.engine.crf import InfeasibleSentenceError
from sslbench.engine.crf.first_order import log_space
from sslbench.engine.crf.first_order.log_space import AdditiveScore
from sslbench.engine.types import F64, I32, Bool


@dataclass(frozen=True)
class Potentials:
    """Log-potentials of one chain of length T over L labels; -inf = impossible.

    node: float64[T, L], START transition in row 0 and stop score in row T-1 included.
    edge: float64[1, L, L] (the same at every position) or float64[T, L, L] (slice 0 unused), by
    previous label and label.
    """

    node: F64
    edge: F64

    @classmethod
    def build(
        cls,
        unary: F64,
        transitions: F64,
        stop: F64 | None = None,
        edge: F64 | None = None,
        transition_mask: Bool | None = None,
    ) -> Potentials:
        """From the parts of the model (docs/specs/crf_engine.md, section 3).

        unary: float64[T, L] node scores u.
        transitions: float64[L+1, L] transition scores w, row L = START.
        stop: float64[L] stop scores e, None = 0.
        edge: float64[T, L+1, L] edge scores v that depend on the observation, None = 0.
        transition_mask: bool[L+1, L], True = allowed; None = all are.
        """
        w, L = transitions, transitions.shape[1]
        if transition_mask is not None:
            w = np.where(transition_mask, w, -np.inf)
        node = np.array(unary, dtype=np.float64, order="C")
        node[0] += w[L] if edge is None else w[L] + edge[0, L]
        if stop is not None:
            node[-1] += stop
        own = w[None, :L] if edge is None else w[None, :L] + edge[:, :L]
        return cls(node, np.ascontiguousarray(own))

    def restrict(self, allowed: Bool) -> Potentials:
        """The same chain, in which label b is impossible where not allowed[t, b] (bool[T, L])."""
        return replace(self, node=np.where(allowed, self.node, -np.inf))

    def score(self, labels: I32) -> float:
        """S(y): sum of the potentials along a label sequence (int[T])."""
        t = np.arange(len(self.node))
        edge = np.broadcast_to(self.edge, (len(self.node), *self.edge.shape[1:]))
        edges = edge[t[1:], labels[:-1], labels[1:]]
        return float(self.node[t, labels].sum() + edges.sum())


@dataclass(frozen=True)
class Posterior:
    """Posterior of one chain.

    Attributes
    ----------
    log_z: log-partition.
    node: float64[T, L], mu_t(b) = p(y_t = b | x).
    beta, z: float64[T, L], the messages of `log_space.backward`.
    """

    potentials: Potentials
    log_z: float
    node: F64
    beta: F64
    z: F64

    def edges(self) -> F64:
        """float64[T, L, L]: xi_t(a, b) = p(y_{t-1} = a, y_t = b | x); slice 0 is zero."""
        p = self.potentials
        T, L = p.node.shape
        xi = np.zeros((T, L, L))
        log_space.marginals(p.node, p.edge, self.beta, self.z, np.empty((T, L)), xi)
        return xi

    def log_probability(self, labels: I32) -> float:
        """log p(y | x) of a label sequence (int[T]), as a sum of local conditionals."""
        node, edge = self.potentials.node, self.potentials.edge
        T, a = len(node), labels[0]
        total = float(node[0, a] + self.beta[0, a] - self.z[0, 0])
        for t in range(1, T):
            if total == -np.inf:  # no continuation: the next conditional would be -inf - (-inf)
                break
            a, b = labels[t - 1], labels[t]
            score = edge[t if len(edge) > 1 else 0, a, b] + node[t, b] + self.beta[t, b]
            total += float(score - self.z[t, a])
        return total


def infer(potentials: Potentials) -> Posterior:
    """Log-partition and node marginals.

    InfeasibleSentenceError if no label sequence is possible.
    """
    node, edge = potentials.node, potentials.edge
    beta, z, log_z = _backward(potentials)
    mu = np.empty_like(node)
    log_space.marginals(node, edge, beta, z, mu, np.empty((0, *edge.shape[1:])))
    return Posterior(potentials, log_z, mu, beta, z)


def _backward(potentials: Potentials) -> tuple[F64, F64, float]:
    """Messages beta, z and log Z."""
    beta, z = np.empty_like(potentials.node), np.empty_like(potentials.node)
    log_z = log_space.backward(potentials.node, potentials.edge, beta, z)
    if log_z == -np.inf:
        raise InfeasibleSentenceError("no label sequence is possible under the constraints")
    return beta, z, float(log_z)


def viterbi(potentials: Potentials) -> tuple[float, I32]:
    """Score and labels (int32[T]) of the best sequence; ties go to the smallest labels.

    InfeasibleSentenceError if no label sequence is possible.
    """
    path = np.empty(len(potentials.node), np.int32)
    score = log_space.viterbi(potentials.node, potentials.edge, path)
    if score == -np.inf:
        raise InfeasibleSentenceError("no label sequence is possible under the constraints")
    return float(score), path


def posterior_decode(potentials: Potentials) -> I32:
    """argmax_b mu_t(b) at each position (int32[T]).

    The sequence as a whole may be impossible (docs/specs/crf_engine.md, section 7.5).
    """
    return np.asarray(infer(potentials).node.argmax(axis=1), dtype=np.int32)


def constrained_log_z(potentials: Potentials, allowed: Bool) -> float:
    """log Z over the sequences whose labels are all allowed (bool[T, L])."""
    return infer(potentials.restrict(allowed)).log_z


@dataclass(frozen=True)
class Covariance:
    """Of an additive score R(y): the sum of r over the factors of y.

    mean: E[R]; node: float64[T, L] Cov(1[y_t = b], R); edge: Cov(1[y_{t-1} = a, y_t = b], R),
    float64[T, L, L] (slice 0 is zero) or, summed over positions, float64[1, L, L].
    """

    mean: float
    node: F64
    edge: F64


def additive_covariance(
    potentials: Potentials, r_node: F64, r_edge: F64 | None = None, *, per_position: bool = True
) -> Covariance:
    """Expectation of an additive score and its covariance with every factor, in two passes.

    r_node: float64[T, L], START and stop parts included; r_edge: float64[1 or T, L, L], None = 0.
    per_position: False sums the edge covariances over positions, which needs memory O(T L).
    InfeasibleSentenceError if no label sequence is possible.
    """
    if r_edge is None:
        r_edge = np.zeros((1, *potentials.edge.shape[1:]))
    return _covariance(potentials, AdditiveScore(r_node, r_edge, False), per_position)


def negative_entropy(potentials: Potentials, *, per_position: bool = True) -> Covariance:
    """-H(p) in nats as `mean`, and its gradient with respect to every log-potential.

    per_position and errors: as in `additive_covariance`.
    """
    empty = np.zeros((1, 1, 1))
    return _covariance(potentials, AdditiveScore(empty[0], empty, True), per_position)


def _covariance(potentials: Potentials, score: AdditiveScore, per_position: bool) -> Covariance:
    T, L = potentials.node.shape
    beta, z, _ = _backward(potentials)
    node, edge = np.zeros((T, L)), np.zeros((T if per_position else 1, L, L))
    mean = log_space.additive_covariance(
        potentials.node, potentials.edge, beta, z, score, node, edge
    )
    return Covariance(float(mean), node, edge)
