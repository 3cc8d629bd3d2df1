"""Many chains at once in probability space: the fast path.

Source: docs/specs/crf_engine.md, section 7.2.

Potentials of a block of sentences: ``node`` float64[n, L] over flat tokens, ``edge``
float64[1, L, L] (shared) or float64[n, L, L] (per position).  Scaled recursions on shifted
potentials M_t = exp(phi_t - max phi_t):

    alpha_t = alpha_{t-1} M_t / c_t          with c_t such that alpha_t sums to one
    beta_{t-1} = M_t beta_t / c_t
    mu_t = alpha_t beta_t,   xi_t(a,b) = alpha_{t-1}(a) M_t(a,b) beta_t(b) / c_t
    log Z = sum_t log c_t + max phi_t = sum_t step_t

A scaled pass can be silently wrong when a message underflows.  It is used only where that cannot
happen: without -inf when max phi_t - min phi_t <= 300 everywhere (then every alpha_t(b) is at
least e^-300/L and every c_t at least e^-300, and no product of the two and their inverses leaves
the range of a float); with -inf when the finite range is at most 200 and all messages stay between
1e-200 and 1e200.
Any other sentence is redone in log space.  Sums run in an order fixed by the sentences: results
have the same bits for any number of threads.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from sslbench.compiled import njit
from sslbench.crf.first_order import log_space as chain
from sslbench.crf.simd import rows
from sslbench.crf.simd.exp import exp_shifted
from sslbench.types import F64, I8, I64

SAFE_RANGE = 300.0
SAFE_RANGE_WITH_ZEROS = 200.0
TINY, HUGE = 1e-200, 1e200
OK, REDO, INFEASIBLE = 0, 1, 2


@njit(cache=True, nogil=True, error_model="numpy")
def _normalize(row, zeros):  # type: ignore[no-untyped-def]
    """Divide by the sum; return the sum and (with zeros) the smallest positive value."""
    total = rows.total(row)
    low = 1.0
    if total > 0.0:
        rows.scale(row, 1.0 / total)
        if zeros:
            low = smallest_positive(row)
    return total, low


@njit(cache=True, nogil=True, error_model="numpy")
def smallest_positive(row):  # type: ignore[no-untyped-def]
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
    node, E, ET, e_top, e_span, e_zeros, x, alpha, beta, mu, step, pair
):
    """One sentence, one transition matrix E = exp(w - max w), ET its transpose.

    All rows but those of node and mu are padded with zeros to whole lanes: x, alpha, beta
    float64[T, P] scratch, E, ET float64[L, P]; pair float64[L, P] adds up the arcs.
    mu float64[T, L], step float64[T] out.  The scale is one step behind: alpha is left as it comes
    out of the product and c_{t-1} divides x_t, so that nothing waits for a division; beta carries
    1 / c_t, and alpha_t beta_t are the marginals as they stand.
    """
    T, P = x.shape
    smallest, any_zeros = 1.0, e_zeros
    for t in range(T):
        top, low, zeros = rows.bounds(node[t])
        if top == -np.inf:
            return INFEASIBLE
        any_zeros = any_zeros or zeros
        if not _safe(top - low + (e_span if t > 0 else 0.0), any_zeros):
            return REDO
        step[t] = top
        rows.exp_padded(node[t], top, x[t])
    inverse = 1.0
    for t in range(T):
        if t == 0:
            alpha[0] = x[0]
            c = rows.total(alpha[0])
        else:
            rows.vector_matrix(alpha[t - 1], E, alpha[t])
            c = rows.multiply_both(alpha[t], x[t], inverse)
        if c == 0.0:
            return REDO  # impossible or underflow: log space tells
        if any_zeros:
            smallest = min(smallest, smallest_positive(alpha[t]))
        inverse = 1.0 / c
        step[t] += math.log(c) + (e_top if t > 0 else 0.0)
    for b in range(P):
        beta[T - 1, b] = inverse
    for t in range(T - 1, 0, -1):
        rows.multiply(x[t], beta[t])  # the right-hand factor of xi
        rows.vector_matrix(x[t], ET, beta[t - 1])
        if any_zeros:
            smallest = min(smallest, smallest_positive(beta[t - 1]))
    rows.add_outer(alpha[: T - 1], x[1:], pair)
    for t in range(T):
        rows.product(alpha[t], beta[t], mu[t])
    return REDO if any_zeros and smallest < TINY else OK


@njit(cache=True, nogil=True, error_model="numpy")
def _prepare_varying(node, edge, tops):  # type: ignore[no-untyped-def]
    """Add node scores into edge (t >= 1), note each position's maximum; return whether scaling is
    safe and whether there are -inf.
    """
    T, L = node.shape
    top, low, zeros = rows.bounds(node[0])
    tops[0] = top
    safe = top == -np.inf or top - low <= SAFE_RANGE
    widest = top - low if top > -np.inf else 0.0
    for t in range(1, T):
        top, low = rows.add_to_each(edge[t], node[t])
        if low == -np.inf:
            zeros = True
            top, low, _ = rows.bounds(edge[t].reshape(L * L))
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
            rows.exp_product(edge[t], top, mu[t - 1], alpha)
        scale[t], low = _normalize(alpha, zeros)
        if scale[t] == 0.0:
            return REDO  # impossible or underflow: log space tells
        smallest = min(smallest, low)
        step[t] = top + math.log(scale[t])
    beta, g = np.ones(L), np.empty(L)
    for t in range(T - 1, 0, -1):
        rows.multiply(mu[t], beta)
        g[:] = beta
        rows.scale(g, 1.0 / scale[t])
        rows.arc_posterior(edge[t], mu[t - 1], g, beta)
        if zeros:
            smallest = min(smallest, smallest_positive(beta))
    rows.multiply(mu[0], beta)
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
def shared(
    node: F64, edge: F64, offsets: I64, groups: I64, mu: F64, step: F64, pair: F64, status: I8
) -> None:
    """All sentences of a block with one transition matrix.

    node float64[n, L]; edge float64[1, L, L] log; offsets int64[s+1] of the sentences;
    groups int64[G+1] sentence ranges handled by one thread at a time.
    Out: mu float64[n, L], step float64[n] (sums to log Z over a sentence), pair float64[G, L, L]
    arc marginals summed over the group's positions, status int8[s].
    """
    L = node.shape[1]
    P = (L + rows.WIDTH - 1) // rows.WIDTH * rows.WIDTH
    w = edge[0].copy()
    top, low, zeros = rows.bounds(w.reshape(L * L))
    exp_shifted(w.reshape(L * L), top)
    E, ET = rows.aligned(L, P), rows.aligned(L, P)
    for a in range(L):
        for b in range(L):
            E[a, b], ET[b, a] = w[a, b], w[a, b]
    for g in prange(groups.shape[0] - 1):
        sums, acc = np.zeros((L, L)), rows.aligned(L, P)
        longest = 0
        for i in range(groups[g], groups[g + 1]):
            longest = max(longest, offsets[i + 1] - offsets[i])
        x, alpha, beta = (
            rows.aligned(longest, P),
            rows.aligned(longest, P),
            rows.aligned(longest, P),
        )
        for i in range(groups[g], groups[g + 1]):
            lo, hi = offsets[i], offsets[i + 1]
            T = hi - lo
            acc[:] = 0.0
            s = _shared_sentence(
                node[lo:hi],
                E,
                ET,
                top,
                top - low,
                zeros,
                x[:T],
                alpha[:T],
                beta[:T],
                mu[lo:hi],
                step[lo:hi],
                acc,
            )
            if s == REDO:
                arcs = np.zeros((1, L, L))
                s = _log_space_sentence(node[lo:hi], edge, mu[lo:hi], step[lo:hi], arcs)
                sums += arcs[0]
            else:
                for a in range(L):
                    for b in range(L):
                        sums[a, b] += acc[a, b] * E[a, b]
            status[i] = s
        pair[g] = sums


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
def varying(
    node: F64, edge: F64, offsets: I64, groups: I64, mu: F64, step: F64, status: I8
) -> None:
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
