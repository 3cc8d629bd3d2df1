"""Many chains at once in probability space: the fast path (crf_engine specification, section 7.2).

Potentials of a block of sentences: ``node`` float64[n, L] over flat tokens, ``edge``
float64[1, L, L] (shared) or float64[n, L, L] (per position).  Scaled recursions on shifted
potentials M_t = exp(phi_t - max phi_t):

    alpha_t = alpha_{t-1} M_t / c_t          with c_t such that alpha_t sums to one
    beta_{t-1} = M_t beta_t / c_t
    mu_t = alpha_t beta_t,   xi_t(a,b) = alpha_{t-1}(a) M_t(a,b) beta_t(b) / c_t
    log Z = sum_t log c_t + max phi_t = sum_t step_t

A scaled pass can be silently wrong when a message underflows.  It is used only where that cannot
happen: without -inf when max phi_t - min phi_t <= 600 everywhere (then every alpha_t(b) is at
least e^-600/L); with -inf when the finite range is at most 200 and all messages stay between 1e-200
and 1e200.
Any other sentence is redone in log space.  Sums run in an order fixed by the sentences: results
have the same bits for any number of threads.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from ...types import F64, I8, I64
from . import chain
from .vexp import exp_shifted

SAFE_RANGE = 600.0
SAFE_RANGE_WITH_ZEROS = 200.0
TINY, HUGE = 1e-200, 1e200
OK, REDO, INFEASIBLE = 0, 1, 2


@njit(cache=True, nogil=True, error_model="numpy")
def _range(x):  # type: ignore[no-untyped-def]
    """Largest value, smallest finite value, and whether there is a -inf.

    Interleaved like `_sum`; -inf is rare, so the smallest finite value is looked for only then.
    """
    n = x.shape[0]
    h0, h1, h2, h3 = x[0], x[0], x[0], x[0]
    l0, l1, l2, l3 = x[0], x[0], x[0], x[0]
    for i in range(0, n - 3, 4):
        h0, l0 = max(h0, x[i]), min(l0, x[i])
        h1, l1 = max(h1, x[i + 1]), min(l1, x[i + 1])
        h2, l2 = max(h2, x[i + 2]), min(l2, x[i + 2])
        h3, l3 = max(h3, x[i + 3]), min(l3, x[i + 3])
    for i in range(n - n % 4, n):
        h0, l0 = max(h0, x[i]), min(l0, x[i])
    top, low = max(max(h0, h1), max(h2, h3)), min(min(l0, l1), min(l2, l3))
    if low > -np.inf:
        return top, low, False
    low = np.inf
    for i in range(n):
        if x[i] > -np.inf:
            low = min(low, x[i])
    return top, low, True


@njit(cache=True, nogil=True, error_model="numpy")
def _sum(x):  # type: ignore[no-untyped-def]
    """Sum with four interleaved partial sums: a single chain of additions would not pipeline."""
    n = x.shape[0]
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for i in range(0, n - 3, 4):
        s0 += x[i]
        s1 += x[i + 1]
        s2 += x[i + 2]
        s3 += x[i + 3]
    for i in range(n - n % 4, n):
        s0 += x[i]
    return (s0 + s1) + (s2 + s3)


@njit(cache=True, nogil=True, error_model="numpy")
def _vector_matrix(v, M, out):  # type: ignore[no-untyped-def]
    """out = v M, four rows at a time so that `out` is loaded and stored a quarter as often."""
    n, L = M.shape
    for b in range(L):
        out[b] = 0.0
    for a in range(0, n - 3, 4):
        f0, f1, f2, f3 = v[a], v[a + 1], v[a + 2], v[a + 3]
        for b in range(L):
            out[b] += (f0 * M[a, b] + f1 * M[a + 1, b]) + (f2 * M[a + 2, b] + f3 * M[a + 3, b])
    for a in range(n - n % 4, n):
        f = v[a]
        for b in range(L):
            out[b] += f * M[a, b]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_outer(left, right, out):  # type: ignore[no-untyped-def]
    """out += left^T right (float64[T, L] each), four positions at a time."""
    T, L = left.shape
    for t in range(0, T - 3, 4):
        for a in range(L):
            f0, f1, f2, f3 = left[t, a], left[t + 1, a], left[t + 2, a], left[t + 3, a]
            for b in range(L):
                out[a, b] += (f0 * right[t, b] + f1 * right[t + 1, b]) + (
                    f2 * right[t + 2, b] + f3 * right[t + 3, b]
                )
    for t in range(T - T % 4, T):
        for a in range(L):
            f = left[t, a]
            for b in range(L):
                out[a, b] += f * right[t, b]


@njit(cache=True, nogil=True, error_model="numpy")
def _normalise(row, zeros):  # type: ignore[no-untyped-def]
    """Divide by the sum; return the sum and (with zeros) the smallest positive value."""
    total = _sum(row)
    low = 1.0
    if total > 0.0:
        inverse = 1.0 / total
        for b in range(row.shape[0]):
            row[b] *= inverse
        if zeros:
            low = _smallest_positive(row)
    return total, low


@njit(cache=True, nogil=True, error_model="numpy")
def _smallest_positive(row):  # type: ignore[no-untyped-def]
    """0 if one is huge, too: beta grows without bound at labels that cannot be reached."""
    low = 1.0
    for b in range(row.shape[0]):
        if not row[b] < HUGE:
            return 0.0
        if row[b] > 0.0:
            low = min(low, row[b])
    return low


@njit(cache=True, nogil=True, error_model="numpy")
def _safe(span, zeros):  # type: ignore[no-untyped-def]
    return span <= (SAFE_RANGE_WITH_ZEROS if zeros else SAFE_RANGE)


@njit(cache=True, nogil=True, error_model="numpy")
def _shared_sentence(  # type: ignore[no-untyped-def]
    node, E, ET, e_top, e_span, e_zeros, x, beta, mu, step, pair
):
    """One sentence, one transition matrix E = exp(w - max w), ET its transpose.

    x, beta: float64[T, L] scratch; mu float64[T, L], step float64[T] out; pair float64[L, L] adds
    up the arcs.
    """
    T, L = node.shape
    smallest, any_zeros = 1.0, e_zeros
    for t in range(T):
        top, low, zeros = _range(node[t])
        if top == -np.inf:
            return INFEASIBLE
        any_zeros = any_zeros or zeros
        if not _safe(top - low + (e_span if t > 0 else 0.0), any_zeros):
            return REDO
        step[t] = top
        for b in range(L):
            x[t, b] = node[t, b] - top
    exp_shifted(x.reshape(T * L), 0.0)
    for t in range(T):
        row, alpha = x[t], mu[t]
        if t == 0:
            for b in range(L):
                alpha[b] = row[b]
        else:
            _vector_matrix(mu[t - 1], E, alpha)
            for b in range(L):
                alpha[b] *= row[b]
        c, low = _normalise(alpha, any_zeros)
        if c == 0.0:
            return REDO  # impossible or underflow: log space tells
        smallest = min(smallest, low)
        step[t] += math.log(c) + (e_top if t > 0 else 0.0)
        inverse = 1.0 / c
        for b in range(L):
            row[b] *= inverse
    for b in range(L):
        beta[T - 1, b] = 1.0
    for t in range(T - 1, 0, -1):
        for b in range(L):
            x[t, b] *= beta[t, b]  # now E_u beta / c, the right-hand factor of xi
        _vector_matrix(x[t], ET, beta[t - 1])
        if any_zeros:
            smallest = min(smallest, _smallest_positive(beta[t - 1]))
    _add_outer(mu[: T - 1], x[1:], pair)
    for t in range(T):
        for b in range(L):
            mu[t, b] *= beta[t, b]
    return REDO if any_zeros and smallest < TINY else OK


@njit(cache=True, nogil=True, error_model="numpy")
def _prepare_varying(node, edge, tops):  # type: ignore[no-untyped-def]
    """Add node scores into edge (t >= 1), note each position's maximum; return whether scaling is
    safe and whether there are -inf.  Element-wise maxima first: they vectorise, a running one
    does not.
    """
    T, L = node.shape
    top, low, zeros = _range(node[0])
    tops[0] = top
    safe = top == -np.inf or top - low <= SAFE_RANGE
    high_row, low_row = np.empty(L), np.empty(L)
    widest = top - low if top > -np.inf else 0.0
    for t in range(1, T):
        high_row[:] = -np.inf
        low_row[:] = np.inf
        for a in range(L):
            for b in range(L):
                v = edge[t, a, b] + node[t, b]
                edge[t, a, b] = v
                high_row[b] = max(high_row[b], v)
                low_row[b] = min(low_row[b], v)
        top, low = high_row.max(), low_row.min()
        if low == -np.inf:
            zeros = True
            top, low, _ = _range(edge[t].reshape(L * L))
        tops[t] = top
        if top > -np.inf:
            widest = max(widest, top - low)
    return safe and _safe(widest, zeros), zeros


@njit(cache=True, nogil=True, error_model="numpy")
def _varying_sentence(node, edge, zeros, mu, step, scale):  # type: ignore[no-untyped-def]
    """One sentence with edge float64[T, L, L] as prepared; edge becomes xi (slice 0 left alone).

    step comes in as the maxima of the positions; scale float64[T] is scratch.
    """
    T, L = node.shape
    smallest = 1.0
    for t in range(T):
        top, alpha = step[t], mu[t]
        if top == -np.inf:
            return INFEASIBLE
        if t == 0:
            for b in range(L):
                alpha[b] = node[0, b]
            exp_shifted(alpha, top)
        else:
            exp_shifted(edge[t].reshape(L * L), top)
            _vector_matrix(mu[t - 1], edge[t], alpha)
        scale[t], low = _normalise(alpha, zeros)
        if scale[t] == 0.0:
            return REDO  # impossible or underflow: log space tells
        smallest = min(smallest, low)
        step[t] = top + math.log(scale[t])
    beta = np.ones(L)
    g = np.empty(L)
    for t in range(T - 1, 0, -1):
        inverse = 1.0 / scale[t]
        for b in range(L):
            g[b] = beta[b] * inverse
            mu[t, b] *= beta[b]
        for a in range(L):
            m = edge[t, a]
            for b in range(L):
                m[b] *= g[b]
            beta[a] = _sum(m)
            f = mu[t - 1, a]
            for b in range(L):
                m[b] *= f
        if zeros:
            smallest = min(smallest, _smallest_positive(beta))
    for b in range(L):
        mu[0, b] *= beta[b]
    return REDO if zeros and smallest < TINY else OK


@njit(cache=True, nogil=True, error_model="numpy")
def _log_space_sentence(node, edge, mu, step, xi):  # type: ignore[no-untyped-def]
    """The reference recursion with the outputs of the fast path; xi as in `chain.marginals`."""
    T, L = node.shape
    beta = np.empty((T, L))
    z = np.empty((T, L))
    log_z = chain.backward(node, edge, beta, z)
    for t in range(T):
        step[t] = 0.0
    step[0] = log_z
    if log_z == -np.inf:
        return INFEASIBLE
    chain.marginals(node, edge, beta, z, mu, xi)
    return OK


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def shared(node: F64, edge: F64, offsets: I64, groups: I64, mu: F64, step: F64,
           pair: F64, status: I8) -> None:  # fmt: skip
    """All sentences of a block with one transition matrix.

    node float64[n, L]; edge float64[1, L, L] log; offsets int64[s+1] of the sentences;
    groups int64[G+1] sentence ranges handled by one thread at a time.
    Out: mu float64[n, L], step float64[n] (sums to log Z over a sentence), pair float64[G, L, L]
    arc marginals summed over the group's positions, status int8[s].
    """
    L = node.shape[1]
    E = edge[0].copy()
    top, low, zeros = _range(E.reshape(L * L))
    exp_shifted(E.reshape(L * L), top)
    ET = E.T.copy()
    for g in prange(groups.shape[0] - 1):
        for a in range(L):
            for b in range(L):
                pair[g, a, b] = 0.0
        acc = np.zeros((L, L))
        size = offsets[groups[g + 1]] - offsets[groups[g]]
        x, beta = np.empty((size, L)), np.empty((size, L))
        for i in range(groups[g], groups[g + 1]):
            lo, hi = offsets[i], offsets[i + 1]
            acc[:] = 0.0
            T = hi - lo
            s = _shared_sentence(
                node[lo:hi], E, ET, top, top - low, zeros, x[:T], beta[:T], mu[lo:hi],
                step[lo:hi], acc,
            )  # fmt: skip
            if s == REDO:
                acc[:] = 0.0
                s = _log_space_sentence(
                    node[lo:hi], edge, mu[lo:hi], step[lo:hi], acc.reshape(1, L, L)
                )
                for a in range(L):
                    for b in range(L):
                        pair[g, a, b] += acc[a, b]
            else:
                for a in range(L):
                    for b in range(L):
                        pair[g, a, b] += acc[a, b] * E[a, b]
            status[i] = s


@njit(cache=True, nogil=True, error_model="numpy")
def _one_varying(node, edge, mu, step):  # type: ignore[no-untyped-def]
    """Scaled if safe, else log space."""
    T, L = node.shape
    safe, zeros = _prepare_varying(node, edge, step)
    status = REDO
    saved = edge.copy() if zeros or not safe else np.empty((0, L, L))
    if safe:
        status = _varying_sentence(node, edge, zeros, mu, step, np.empty(T))
    if status == REDO:
        first = np.zeros((T, L))  # the other positions' node scores are inside `saved` already
        first[0] = node[0]
        status = _log_space_sentence(first, saved, mu, step, edge)
    for a in range(L):
        for b in range(L):
            edge[0, a, b] = 0.0
    return status


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def varying(node: F64, edge: F64, offsets: I64, groups: I64, mu: F64, step: F64,
            status: I8) -> None:  # fmt: skip
    """All sentences of a block with one transition matrix per position.

    As `shared`, but edge is float64[n, L, L] and is replaced by the arc marginals xi (zero at the
    first token of each sentence).
    """
    for g in prange(groups.shape[0] - 1):
        for i in range(groups[g], groups[g + 1]):
            lo, hi = offsets[i], offsets[i + 1]
            status[i] = _one_varying(node[lo:hi], edge[lo:hi], mu[lo:hi], step[lo:hi])


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def viterbi(node: F64, edge: F64, offsets: I64, path: np.ndarray, status: I8) -> None:
    """Best labels of every sentence; path int32[n]."""
    for i in prange(offsets.shape[0] - 1):
        lo, hi = offsets[i], offsets[i + 1]
        e = edge if edge.shape[0] == 1 else edge[lo:hi]
        score = chain.viterbi(node[lo:hi], e, path[lo:hi])
        status[i] = INFEASIBLE if score == -np.inf else OK
