"""Inference on one chain: the reference that everything faster is tested against.

`Potentials` is the hinge of the house: methods that reshape potentials (virtual evidence,
posterior regularization, interpolated Viterbi) compose them and call the functions here or their
batched twins in `sslbench.crf.first_order.batch`.
Source: Lafferty, McCallum & Pereira (2001); chain form and additive covariances as in
docs/specs/crf_engine.md, sections 3 to 7.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sslbench.crf.first_order import log_space as kernels
from sslbench.types import F64, I32, Bool


class InfeasibleSentenceError(ValueError):
    """No label sequence is possible under the masks: log Z = -inf."""


@dataclass(frozen=True)
class Potentials:
    """Log-potentials of one chain of length T over L labels.

    node: float64[T, L]; START arc folded into row 0, stop score into row T-1.
    edge: float64[1, L, L] (the same at every position) or float64[T, L, L] (slice 0 unused).
    """

    node: F64
    edge: F64

    @classmethod
    def build(
        cls,
        u: F64,
        w: F64,
        e: F64 | None = None,
        v: F64 | None = None,
        transition_mask: Bool | None = None,
    ) -> Potentials:
        """From the parts of the model.

        u: float64[T, L]; w: float64[L+1, L], row L = START; e: float64[L] stop scores;
        v: float64[T, L+1, L] observation-dependent arcs; transition_mask: bool[L+1, L] legal arcs.
        """
        L = w.shape[1]
        if transition_mask is not None:
            w = np.where(transition_mask, w, -np.inf)
        node = np.array(u, dtype=np.float64, order="C")
        node[0] += w[L] if v is None else w[L] + v[0, L]
        if e is not None:
            node[-1] += e
        edge = w[None, :L] if v is None else w[None, :L] + v[:, :L]
        return cls(node, np.ascontiguousarray(edge))

    def restrict(self, allowed: Bool) -> Potentials:
        """Constrained lattice: labels with allowed[t, b] false (bool[T, L]) become impossible."""
        return replace(self, node=np.where(allowed, self.node, -np.inf))

    def score(self, labels: I32) -> float:
        """S(y): sum of the potentials along a label sequence (int[T])."""
        t = np.arange(len(self.node))
        edge = np.broadcast_to(self.edge, (len(self.node), *self.edge.shape[1:]))
        arcs = edge[t[1:], labels[:-1], labels[1:]]
        return float(self.node[t, labels].sum() + arcs.sum())


@dataclass(frozen=True)
class Posterior:
    """log_z; node marginals mu float64[T, L]; beta and z: messages of the backward pass."""

    potentials: Potentials
    log_z: float
    node: F64
    beta: F64
    z: F64

    def edges(self) -> F64:
        """Arc marginals xi float64[T, L, L] (slice 0 is zero)."""
        p = self.potentials
        T, L = p.node.shape
        xi = np.zeros((T, L, L))
        kernels.marginals(p.node, p.edge, self.beta, self.z, np.empty((T, L)), xi)
        return xi

    def log_probability(self, labels: I32) -> float:
        """log p(y | x) as a sum of local conditionals (never S(y) - log Z)."""
        p = self.potentials
        return float(kernels.path_log_probability(p.node, p.edge, self.beta, self.z, labels))


def infer(potentials: Potentials) -> Posterior:
    """Log-partition and node marginals; raises InfeasibleSentenceError when log Z = -inf."""
    node, edge = potentials.node, potentials.edge
    beta, z, mu = np.empty_like(node), np.empty_like(node), np.empty_like(node)
    log_z = kernels.backward(node, edge, beta, z)
    if log_z == -np.inf:
        raise InfeasibleSentenceError("no label sequence is possible under the constraints")
    kernels.marginals(node, edge, beta, z, mu, np.empty((0, *edge.shape[1:])))
    return Posterior(potentials, float(log_z), mu, beta, z)


def viterbi(potentials: Potentials) -> tuple[float, I32]:
    """Score and labels (int32[T]) of the best sequence; ties go to the smallest labels."""
    path = np.empty(len(potentials.node), np.int32)
    score = kernels.viterbi(potentials.node, potentials.edge, path)
    if score == -np.inf:
        raise InfeasibleSentenceError("no label sequence is possible under the constraints")
    return float(score), path


def posterior_decode(potentials: Potentials) -> I32:
    """argmax_b mu_t(b) at each position (int32[T]); may be an illegal sequence, by definition."""
    return np.asarray(infer(potentials).node.argmax(axis=1), dtype=np.int32)


def max_expected_accuracy(potentials: Potentials) -> I32:
    """The legal sequence with the most expected correct labels: Viterbi with node score mu."""
    mu = infer(potentials).node
    legal = np.where(np.isfinite(potentials.edge), 0.0, -np.inf)
    return viterbi(Potentials(np.where(np.isfinite(potentials.node), mu, -np.inf), legal))[1]


def constrained_log_z(potentials: Potentials, allowed: Bool) -> float:
    """log Z of the sequences inside allowed (bool[T, L])."""
    return infer(potentials.restrict(allowed)).log_z


@dataclass(frozen=True)
class Covariance:
    """E[R]; Cov(1[y_t = b], R) float64[T, L]; Cov(1[arc], R) float64[T, L, L] (slice 0 unused)."""

    mean: float
    node: F64
    edge: F64


def additive_covariance(
    potentials: Potentials, r_node: F64, r_edge: F64 | None = None, *, per_position: bool = True
) -> Covariance:
    """Expectation of an additive score and its covariance with every clique, in two sweeps.

    r_node: float64[T, L] (START and stop parts folded in), r_edge: float64[1 or T, L, L].
    With per_position=False the arc covariances are summed over positions (memory O(T L)).
    """
    if r_edge is None:
        r_edge = np.zeros((1, *potentials.edge.shape[1:]))
    return _covariance(potentials, r_node, r_edge, False, per_position)


def negative_entropy(potentials: Potentials, *, per_position: bool = True) -> Covariance:
    """-H(p) in nats as `mean`, and its gradient with respect to every log-potential."""
    empty = np.zeros((1, 1, 1))
    return _covariance(potentials, empty[0], empty, True, per_position)


def _covariance(
    p: Potentials, r_node: F64, r_edge: F64, of_log_q: bool, per_position: bool
) -> Covariance:
    T, L = p.node.shape
    beta, z = np.empty((T, L)), np.empty((T, L))
    if kernels.backward(p.node, p.edge, beta, z) == -np.inf:
        raise InfeasibleSentenceError("no label sequence is possible under the constraints")
    node, edge = np.zeros((T, L)), np.zeros((T if per_position else 1, L, L))
    mean = kernels.additive_covariance(
        p.node, p.edge, beta, z, r_node, r_edge, of_log_q, node, edge
    )
    return Covariance(float(mean), node, edge)


def kl_divergence(p: Potentials, q: Potentials) -> float:
    """KL(p || q) of two chains over the same labels and length: E_p[S_p - S_q] - log Z_p + log Z_q.

    Computed as the expectation of the additive score log p-conditionals minus the score of q, so
    adding a constant to all potentials of one position changes nothing.
    """
    T = len(p.node)
    posterior = infer(p)
    mu, xi = posterior.node, posterior.edges()
    node_gap = np.where(mu > 0, _finite(p.node) - q.node, 0.0)
    p_edge, q_edge = (np.broadcast_to(x.edge, (T, *x.edge.shape[1:])) for x in (p, q))
    edge_gap = np.where(xi > 0, _finite(p_edge) - q_edge, 0.0)
    expected = float((mu * node_gap).sum() + (xi * edge_gap).sum())
    return expected - posterior.log_z + infer(q).log_z


def _finite(x: F64) -> F64:
    return np.where(np.isfinite(x), x, 0.0)
