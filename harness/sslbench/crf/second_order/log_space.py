"""One second-order chain in log space: the reference (docs/specs/crf_engine.md, section 4).

First-order recursions on pairs of labels.  Everywhere: ``node`` float64[T, L] with the START arc
and, of a single token, the stop score folded in; ``edge`` float64[1 or T, L, L] (a, b), one matrix
for all positions or one each (slice 0 unused); ``begin`` float64[L, L] of the first two labels,
``inner`` float64[L, L, L] of any three in a row, ``end`` float64[L, L] of the last two.
-inf forbids; 0 * -inf counts as 0.

    phi_1(b, c)     = node_1(c) + edge_1(b, c) + begin(b, c)
    phi_t(a, b, c)  = node_t(c) + edge_t(b, c) + inner(a, b, c)            t >= 2
    beta_{T-1}      = end,   beta_{t-1}(a, b) = log sum_c exp(phi_t(a, b, c) + beta_t(b, c)) - k_t
    q_t(c | a, b)   = exp(phi_t(a, b, c) + beta_t(b, c) - k_t - beta_{t-1}(a, b))
    xi_t(b, c)      = sum_a xi_{t-1}(a, b) q_t(c | a, b)

``k_t``, the largest message, keeps them the size of the local potentials.  The pair at position 0
is (anything, first label): its messages stand in row 0 of ``beta[0]``.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from sslbench.compiled import njit
from sslbench.crf.first_order.scaled import INFEASIBLE, OK
from sslbench.types import F64, I8, I32, I64


@njit(cache=True, nogil=True, error_model="numpy")
def _rows(t, L):  # type: ignore[no-untyped-def]
    """How many labels the first of the pair (y_{t-1}, y_t) has: at position 0 there is none."""
    return 1 if t == 0 else L


@njit(cache=True, nogil=True, error_model="numpy")
def _clique(node, edge, begin, inner, t, a, b, c):  # type: ignore[no-untyped-def]
    """phi_t(a, b, c) for t >= 1; a has no meaning at t = 1."""
    high = begin[b, c] if t == 1 else inner[a, b, c]
    return node[t, c] + edge[t if edge.shape[0] > 1 else 0, b, c] + high


@njit(cache=True, nogil=True, error_model="numpy")
def backward(node: F64, edge: F64, begin: F64, inner: F64, end: F64, beta: F64, k: F64) -> float:
    """Fill beta float64[T, L, L] and the centering constants k float64[T]; return log Z."""
    T, L = node.shape
    for b in range(L):
        for c in range(L):
            beta[T - 1, b, c] = end[b, c] if T > 1 else 0.0
    for t in range(T - 1, 0, -1):
        top = -np.inf
        for a in range(_rows(t - 1, L)):
            for b in range(L):
                high = -np.inf
                for c in range(L):
                    value = _clique(node, edge, begin, inner, t, a, b, c) + beta[t, b, c]
                    high = max(high, value)
                total = 0.0
                if high > -np.inf:
                    for c in range(L):
                        value = _clique(node, edge, begin, inner, t, a, b, c) + beta[t, b, c]
                        total += math.exp(value - high)
                    high += math.log(total)
                beta[t - 1, a, b] = high
                top = max(top, high)
        k[t] = top
        if top == -np.inf:
            return -np.inf
        for a in range(_rows(t - 1, L)):
            for b in range(L):
                beta[t - 1, a, b] -= top
    high = -np.inf
    for b in range(L):
        high = max(high, node[0, b] + beta[0, 0, b])
    if high == -np.inf:
        return -np.inf
    total = 0.0
    for b in range(L):
        total += math.exp(node[0, b] + beta[0, 0, b] - high)
    k[0] = high + math.log(total)
    log_z, carry = 0.0, 0.0  # Neumaier: thousands of centering constants without drift
    for t in range(T):
        new = log_z + k[t]
        carry += (log_z - new) + k[t] if abs(log_z) >= abs(k[t]) else (k[t] - new) + log_z
        log_z = new
    return log_z + carry


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def log_conditional(node, edge, begin, inner, beta, k, t, a, b, c):  # type: ignore[no-untyped-def]
    """log q_t(c | a, b), t >= 1; -inf where (a, b) leads nowhere."""
    if beta[t - 1, a, b] == -np.inf:
        return -np.inf
    value = _clique(node, edge, begin, inner, t, a, b, c) + beta[t, b, c]
    return value - k[t] - beta[t - 1, a, b]


@njit(cache=True, nogil=True, error_model="numpy")
def marginals(  # type: ignore[no-untyped-def]
    node, edge, begin, inner, beta, k, weight, mu, arcs, first, triples, last
):
    """Posteriors times a weight: mu float64[T, L] is set; arcs float64[0 or 1 or T, L, L], first,
    last float64[L, L] and triples float64[L, L, L] are added to.
    """
    T, L = node.shape
    xi, new = np.zeros((L, L)), np.empty((L, L))
    for b in range(L):
        xi[0, b] = math.exp(node[0, b] + beta[0, 0, b] - k[0])
        mu[0, b] = weight * xi[0, b]
    for t in range(1, T):
        new[:] = 0.0
        for a in range(_rows(t - 1, L)):
            for b in range(L):
                if xi[a, b] == 0.0:
                    continue
                for c in range(L):
                    p = xi[a, b] * math.exp(
                        log_conditional(node, edge, begin, inner, beta, k, t, a, b, c)
                    )
                    new[b, c] += p
                    if t > 1:
                        triples[a, b, c] += weight * p
        xi[:] = new
        _note_pairs(xi, weight, t, T, mu, arcs, first, last)


@njit(cache=True, nogil=True, error_model="numpy")
def _note_pairs(xi, weight, t, T, mu, arcs, first, last):  # type: ignore[no-untyped-def]
    """Add the pairs of position t >= 1 to what `marginals` sums up."""
    mu[t] = weight * xi.sum(axis=0)
    if arcs.shape[0] > 0:
        arcs[t if arcs.shape[0] > 1 else 0] += weight * xi
    if t == 1:
        first += weight * xi
    if t == T - 1:
        last += weight * xi


@njit(cache=True, nogil=True, error_model="numpy")
def best_path(node: F64, edge: F64, begin: F64, inner: F64, end: F64, path: I32) -> float:
    """Best labels into path int32[T]; ties go to the smallest labels, from the last one on."""
    T, L = node.shape
    best, new = np.full((L, L), -np.inf), np.empty((L, L))
    back = np.zeros((T, L, L), np.int32)
    for b in range(L):
        best[0, b] = node[0, b]
    for t in range(1, T):
        new[:] = -np.inf
        for a in range(_rows(t - 1, L)):
            for b in range(L):
                if best[a, b] == -np.inf:
                    continue
                for c in range(L):
                    value = best[a, b] + _clique(node, edge, begin, inner, t, a, b, c)
                    if value > new[b, c]:
                        new[b, c], back[t, b, c] = value, a
        best[:] = new
    score, b_last, c_last = -np.inf, 0, 0
    for c in range(L):
        for b in range(_rows(T - 1, L)):
            value = best[b, c] + (end[b, c] if T > 1 else 0.0)
            if value > score:
                score, b_last, c_last = value, b, c
    path[T - 1] = c_last
    for t in range(T - 1, 0, -1):
        path[t - 1] = b_last
        b_last, c_last = back[t, b_last, c_last], b_last
    return score


@njit(cache=True, nogil=True, error_model="numpy")
def _entropy(  # type: ignore[no-untyped-def]
    node, edge, begin, inner, beta, k, weight, omega, mass, arcs, first, triples, last
):
    """Entropy H of the chain, and weight d(-H) added to the cliques' sums as in `marginals`.

    With r = log q, every potential's derivative is Cov(1_factor, sum r) (docs/specs/crf_engine.md,
    section 7.4): omega float64[T, L] is set; mass float64[L] += the expected tokens of each label.
    """
    T, L = node.shape
    G = np.zeros((T, L, L))
    for t in range(T - 1, 0, -1):
        for a in range(_rows(t - 1, L)):
            for b in range(L):
                for c in range(L):
                    r = log_conditional(node, edge, begin, inner, beta, k, t, a, b, c)
                    if r > -np.inf:
                        G[t - 1, a, b] += math.exp(r) * (r + G[t, b, c])
    xi, F = np.zeros((L, L)), np.zeros((L, L))
    mean = 0.0
    for b in range(L):
        r = node[0, b] + beta[0, 0, b] - k[0]
        if r > -np.inf:
            xi[0, b], F[0, b] = math.exp(r), r
            mean += xi[0, b] * (r + G[0, 0, b])
    for b in range(L):
        omega[0, b] = weight * xi[0, b] * (F[0, b] + G[0, 0, b] - mean)
        mass[b] += xi[0, b]
    new, moment, cov = np.empty((L, L)), np.empty((L, L)), np.empty((L, L))
    for t in range(1, T):
        new[:], moment[:], cov[:] = 0.0, 0.0, 0.0
        for a in range(_rows(t - 1, L)):
            for b in range(L):
                if xi[a, b] == 0.0:
                    continue
                for c in range(L):
                    r = log_conditional(node, edge, begin, inner, beta, k, t, a, b, c)
                    if r == -np.inf:
                        continue
                    p, so_far = xi[a, b] * math.exp(r), F[a, b] + r
                    here = weight * p * (so_far + G[t, b, c] - mean)
                    new[b, c] += p
                    moment[b, c] += p * so_far
                    cov[b, c] += here
                    if t > 1:
                        triples[a, b, c] += here
        for b in range(L):
            for c in range(L):
                xi[b, c] = new[b, c]
                F[b, c] = moment[b, c] / new[b, c] if new[b, c] > 0.0 else 0.0
        _note_pairs(cov, 1.0, t, T, omega, arcs, first, last)
        for c in range(L):
            mass[c] += xi[:, c].sum()
    return -mean


# -- blocks of sentences ---------------------------------------------------------------------------
@njit(cache=True, nogil=True, error_model="numpy")
def log_space(  # type: ignore[no-untyped-def]
    node, edge, begin, inner, end, weight, mu, step, arcs, first, triples, last
):
    """One sentence by the reference recursions: mu and step are set, the rest is added to."""
    T, L = node.shape
    beta, k = np.empty((T, L, L)), np.empty(T)
    step[:] = 0.0
    step[0] = backward(node, edge, begin, inner, end, beta, k)
    if step[0] == -np.inf:
        return INFEASIBLE
    marginals(node, edge, begin, inner, beta, k, weight, mu, arcs, first, triples, last)
    return OK


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def varying(
    node: F64,
    edge: F64,
    begin: F64,
    inner: F64,
    end: F64,
    offsets: I64,
    groups: I64,
    weights: F64,
    mu: F64,
    step: F64,
    arcs: F64,
    first: F64,
    triples: F64,
    last: F64,
    status: I8,
) -> None:
    """As `shared` with edge float64[n, L, L] of every position besides, all in log space.

    arcs float64[n, L, L]: posteriors of the pairs, zero at first tokens.
    """
    for k in prange(groups.shape[0] - 1):
        first[k], triples[k], last[k] = 0.0, 0.0, 0.0
        for i in range(groups[k], groups[k + 1]):
            a, b = offsets[i], offsets[i + 1]
            arcs[a:b] = 0.0
            if weights[i] == 0.0:
                status[i], mu[a:b], step[a:b] = OK, 0.0, 0.0
                continue
            status[i] = log_space(
                node[a:b],
                edge[a:b],
                begin,
                inner,
                end,
                weights[i],
                mu[a:b],
                step[a:b],
                arcs[a:b] if b - a > 1 else arcs[a : a + 0],
                first[k],
                triples[k],
                last[k],
            )


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def viterbi(
    node: F64, edge: F64, begin: F64, inner: F64, end: F64, offsets: I64, path: I32, status: I8
) -> None:
    """Best labels of every sentence: path int32[n]."""
    for i in prange(offsets.shape[0] - 1):
        a, b = offsets[i], offsets[i + 1]
        own = edge if edge.shape[0] == 1 else edge[a:b]
        score = best_path(node[a:b], own, begin, inner, end, path[a:b])
        status[i] = INFEASIBLE if score == -np.inf else OK


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def entropy(
    node: F64,
    edge: F64,
    begin: F64,
    inner: F64,
    end: F64,
    offsets: I64,
    groups: I64,
    weights: F64,
    found: F64,
    omega: F64,
    mass: F64,
    arcs: F64,
    first: F64,
    triples: F64,
    last: F64,
    status: I8,
) -> None:
    """Entropies float64[s] of the sentences, and the derivatives of -sum weights H.

    Outputs as in `varying`, with omega in place of mu and mass float64[G, L]; arcs float64[n, L, L]
    or float64[0, L, L].
    """
    for k in prange(groups.shape[0] - 1):
        first[k], triples[k], last[k], mass[k] = 0.0, 0.0, 0.0, 0.0
        for i in range(groups[k], groups[k + 1]):
            a, b = offsets[i], offsets[i + 1]
            own = edge if edge.shape[0] == 1 else edge[a:b]
            out = arcs[a:b] if arcs.shape[0] > 0 and b - a > 1 else arcs[0:0]
            arcs[a:b] = 0.0
            status[i], found[i], omega[a:b] = OK, 0.0, 0.0
            if weights[i] == 0.0:
                continue
            T, L = b - a, node.shape[1]
            beta, scales = np.empty((T, L, L)), np.empty(T)
            log_z = backward(node[a:b], own, begin, inner, end, beta, scales)
            if log_z == -np.inf:
                status[i] = INFEASIBLE
                continue
            found[i] = _entropy(
                node[a:b],
                own,
                begin,
                inner,
                beta,
                scales,
                weights[i],
                omega[a:b],
                mass[k],
                out,
                first[k],
                triples[k],
                last[k],
            )
