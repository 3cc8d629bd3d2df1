"""One chain in log space: the reference recursions (docs/specs/crf_engine.md, section 7.1).

Everywhere: ``node`` float64[T, L] are node potentials, ``edge`` float64[1 or T, L, L] edge
potentials by (previous label, label): one matrix for all positions, or one per position (slice 0
unused).  START potentials are part of ``node[0]``, stop potentials part of ``node[T-1]``.
-inf forbids; 0 * -inf counts as 0.

    z_t(a)       = log sum_b exp(edge_t(a,b) + node_t(b) + z_{t+1}(b) - k_t)        (backward)
    k_{t-1}      = max_a z_t(a)                                                     (centering)
    log q_t(b|a) = edge_t(a,b) + node_t(b) + z_{t+1}(b) - k_t - z_t(a)              (conditionals)
    mu_t(b)      = sum_a mu_{t-1}(a) q_t(b|a),   xi_t(a,b) = mu_{t-1}(a) q_t(b|a)

Messages are centered at every step, so their size stays that of the local potentials, and every
later quantity is a sum of products of probabilities, without cancellation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import inline_kernel, kernel
from sslbench.engine.types import F64, I32


@kernel
def backward(node: F64, edge: F64, beta: F64, z: F64) -> float:
    """Fill in the messages; return log Z.

    beta: float64[T, L], beta[t] = z_{t+1} - k_t (0 at the last position).
    z: float64[T, L], z[t, a] = log of the mass from position t on, given label a at t - 1;
    z[0, 0] = log of the mass from position 0 on, the rest of row 0 is left alone.
    """
    T, L = node.shape
    total, carry = 0.0, 0.0
    for a in range(L):
        beta[T - 1, a] = 0.0
    for t in range(T - 1, 0, -1):
        e = edge[t if edge.shape[0] > 1 else 0]
        top = -np.inf
        for a in range(L):
            z[t, a] = _log_sum(e[a], node[t], beta[t])
            top = max(top, z[t, a])
        if top == -np.inf:
            return -np.inf
        total, carry = _add(total, carry, top)
        for a in range(L):
            beta[t - 1, a] = z[t, a] - top
    z[0, 0] = _log_sum(np.zeros(L), node[0], beta[0])
    if z[0, 0] == -np.inf:
        return -np.inf
    total, carry = _add(total, carry, z[0, 0])
    return total + carry


@kernel
def _log_sum(edge: F64, node: F64, beta: F64) -> float:
    """log sum_b exp(edge(b) + node(b) + beta(b)) of arrays float64[L]."""
    top = -np.inf
    for b in range(len(node)):
        top = max(top, edge[b] + node[b] + beta[b])
    if top == -np.inf:
        return -np.inf
    total = 0.0
    for b in range(len(node)):
        total += math.exp(edge[b] + node[b] + beta[b] - top)
    return top + math.log(total)


@kernel
def _add(total: float, carry: float, value: float) -> tuple[float, float]:
    """Neumaier's sum: total + carry is exact up to rounding once, also on long chains."""
    new = total + value
    if abs(total) >= abs(value):
        return new, carry + ((total - new) + value)
    return new, carry + ((value - new) + total)


@kernel
def log_conditional(node: F64, edge: F64, beta: F64, z: F64, t: int, out: F64) -> None:
    """out[a, b] = log q_t(b | a); for t = 0 every row is log q_0(b).

    Rows of labels without an allowed successor are -inf.
    """
    L = node.shape[1]
    e = edge[t if edge.shape[0] > 1 else 0]
    for a in range(L):
        start = z[0, 0] if t == 0 else z[t, a]
        for b in range(L):
            own = 0.0 if t == 0 else e[a, b]
            out[a, b] = own + node[t, b] + beta[t, b] - start if start > -np.inf else -np.inf


@kernel
def marginals(node: F64, edge: F64, beta: F64, z: F64, mu: F64, xi: F64) -> None:
    """Fill in mu float64[T, L] and xi: float64[T, L, L] (slice 0 unused), float64[1, L, L] (the
    sum over positions is added) or float64[0, L, L] (not wanted).
    """
    T, L = node.shape
    logq = np.empty((L, L))
    log_conditional(node, edge, beta, z, 0, logq)
    for b in range(L):
        mu[0, b] = math.exp(logq[0, b])
    for t in range(1, T):
        log_conditional(node, edge, beta, z, t, logq)
        total = 0.0
        for b in range(L):
            mu[t, b] = 0.0
        for a in range(L):
            for b in range(L):
                p = mu[t - 1, a] * math.exp(logq[a, b]) if mu[t - 1, a] > 0.0 else 0.0
                mu[t, b] += p
                total += p
                if xi.shape[0] > 1:
                    xi[t, a, b] = p
                elif xi.shape[0] == 1:
                    xi[0, a, b] += p
        for b in range(L):  # the sum is 1 up to rounding: keep it there on long chains
            mu[t, b] /= total


@kernel
def viterbi(node: F64, edge: F64, path: I32) -> float:
    """Best path (int32[T]) and its score; ties go to the smallest previous and final label."""
    T, L = node.shape
    score = node[0].copy()
    new = np.empty(L)
    back = np.zeros((T, L), np.int32)
    for t in range(1, T):
        e = edge[t if edge.shape[0] > 1 else 0]
        new[:] = -np.inf
        for a in range(L):
            for b in range(L):
                s = score[a] + e[a, b]
                if s > new[b]:
                    new[b] = s
                    back[t, b] = a
        for b in range(L):
            score[b] = new[b] + node[t, b]
    best = 0
    for b in range(1, L):
        if score[b] > score[best]:
            best = b
    path[T - 1] = best
    for t in range(T - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return float(score[best])


class AdditiveScore(NamedTuple):
    """R(y), the sum of r over the factors of y.

    node: float64[T, L], edge: float64[1 or T, L, L]: r_t(a, b) = node[t, b] + edge[t, a, b].
    of_log_q: they are ignored and r = log q, so that R(y) = log p(y).
    """

    node: F64
    edge: F64
    of_log_q: bool


@kernel
def additive_covariance(
    node: F64, edge: F64, beta: F64, z: F64, score: AdditiveScore, cov_node: F64, cov_edge: F64
) -> float:
    """E[R] and Cov(1_c, R) for every factor c (docs/specs/crf_engine.md, section 7.4).

    With r = log q, E[R] = -H and the covariances are the gradient of -H.
    cov_node: float64[T, L]; cov_edge: float64[1, L, L] (sum over positions), float64[T, L, L] or
    float64[0, L, L] (not wanted); both must come in as zeros.

        B_{t-1}(a) = sum_b q_t(b|a) [r_t(a,b) + B_t(b)]                      (backward)
        F_t(b)     = sum_a xi_t(a,b)/mu_t(b) [F_{t-1}(a) + r_t(a,b)]         (forward)
        Cov(1_(t,a,b), R) = xi_t(a,b) [F_{t-1}(a) + r_t(a,b) + B_t(b) - E[R]]

    E[R] is computed anew at every position from the terms of that position: the rounding error of
    B grows with T, and the covariances of a position would sum to that error instead of to 0.
    """
    T, L = node.shape
    B, logq = np.zeros((T, L)), np.empty((L, L))
    _rest(node, edge, beta, z, score, logq, B)
    log_conditional(node, edge, beta, z, 0, logq)
    mean = 0.0
    F = np.zeros(L)
    mu = np.zeros(L)
    for b in range(L):
        mu[b] = math.exp(logq[0, b])
        if mu[b] > 0.0:
            F[b] = logq[0, b] if score.of_log_q else score.node[0, b]
            mean += mu[b] * (F[b] + B[0, b])
    for b in range(L):
        cov_node[0, b] = mu[b] * (F[b] + B[0, b] - mean) if mu[b] > 0.0 else 0.0
    sums, xi, value = np.empty((2, L)), np.empty((L, L)), np.zeros((L, L))
    for t in range(1, T):
        log_conditional(node, edge, beta, z, t, logq)
        here = _advance(score, logq, t, B[t], mu, F, xi, value, sums)
        if cov_edge.shape[0] > 0:
            out = cov_edge[t if cov_edge.shape[0] > 1 else 0]
            for a in range(L):
                for b in range(L):
                    if xi[a, b] > 0.0:
                        out[a, b] += xi[a, b] * (value[a, b] - here)
        for b in range(L):
            cov_node[t, b] = mu[b] * (F[b] + B[t, b] - here)
    return mean


@kernel
def _rest(node: F64, edge: F64, beta: F64, z: F64, score: AdditiveScore, logq: F64, B: F64) -> None:
    """B float64[T, L], which comes in as zeros: the expected sum of r after each position."""
    T, L = node.shape
    for t in range(T - 1, 0, -1):
        log_conditional(node, edge, beta, z, t, logq)
        for a in range(L):
            for b in range(L):
                q = math.exp(logq[a, b])
                if q > 0.0:
                    B[t - 1, a] += q * (_r(score, logq, t, a, b) + B[t, b])


@kernel
def _advance(
    score: AdditiveScore,
    logq: F64,
    t: int,
    rest: F64,
    mu: F64,
    F: F64,
    xi: F64,
    value: F64,
    sums: F64,
) -> float:
    """Move mu and F float64[L] from position t - 1 to t; return E[R] from the terms of t.

    rest: B_t.  Out: xi float64[L, L] and, where it is positive, value = F_{t-1} + r_t + B_t.
    sums: float64[2, L] scratch.
    """
    L = mu.shape[0]
    mu_new, F_new = sums[0], sums[1]
    sums[:] = 0.0
    for a in range(L):
        for b in range(L):
            xi[a, b] = mu[a] * math.exp(logq[a, b])
            if xi[a, b] > 0.0:
                r = F[a] + _r(score, logq, t, a, b)
                mu_new[b] += xi[a, b]
                F_new[b] += xi[a, b] * r
                value[a, b] = r + rest[b]
    here, mass = 0.0, 0.0
    for b in range(L):
        here += F_new[b] + mu_new[b] * rest[b]
        mass += mu_new[b]
    for b in range(L):
        mu[b] = mu_new[b]
        F[b] = F_new[b] / mu_new[b] if mu_new[b] > 0.0 else 0.0
    return here / mass


@inline_kernel
def _r(score: AdditiveScore, logq: F64, t: int, a: int, b: int) -> float:
    """r_t(a, b)."""
    if score.of_log_q:
        return float(logq[a, b])
    return float(score.node[t, b] + score.edge[t if score.edge.shape[0] > 1 else 0, a, b])
