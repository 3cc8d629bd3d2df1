"""Many second-order chains at once in probability space: the fast path of `triple_chain`.

Potentials as there, transitions the same at every position (they are folded into ``begin`` and
``inner``).  With M3 = exp(inner - max), x_t = exp(node_t - max), all scaled by the sums c_t:

    alpha_1(b, c) = x_0(b) M2(b, c) x_1(c) / c_0
    alpha_t(b, c) = x_t(c) / c_{t-1} sum_a alpha_{t-1}(a, b) M3(a, b, c)
    g_t(b, c)     = x_t(c) / c_{t-1} beta_t(b, c),  beta_{t-1}(a, b) = sum_c M3(a, b, c) g_t(b, c)
    xi_t = alpha_t beta_t,   triples(a, b, c) = M3(a, b, c) sum_t alpha_{t-1}(a, b) g_t(b, c)

Each of the three sums takes L^3 multiply-adds a token.  A table M3 of 26 labels is 173 kB, more
than the first-level cache holds, so four sentences of about the same length go side by side, and
every part of M3 that is read serves four tokens.  For a fixed b the sums are
products of a vector with a matrix; ``alpha`` is kept as rows (b, c) of c and ``g`` as rows (c, b)
of b, so that either is read item by item where it is the vector, and the triples are products of
whole rows.

Safe without -inf while the range R of the potentials of a position is at most 220: the label before
the last keeps a share e^-R of the mass, a pair e^-2R, so that beta is below e^2R and g below e^3R.
With -inf: 150, and all messages between 1e-200 and 1e200.  Any other sentence is done in log space.
Sums run in an order fixed by the sentences: same bits for any number of threads.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from sslbench.compiled import njit
from sslbench.crf.first_order.scaled import INFEASIBLE, OK, REDO, TINY, smallest_positive
from sslbench.crf.second_order import log_space as triple_chain
from sslbench.crf.second_order.tiles import QUAD, add_label_triples, padded, prepared, products
from sslbench.crf.simd import lanes, rows
from sslbench.types import F64, I8, I64

SAFE_RANGE, SAFE_RANGE_WITH_ZEROS = 220.0, 150.0
WIDTH = lanes.WIDTH


@njit(cache=True, nogil=True, error_model="numpy")
def _scale_pairs(pairs, i, n, x, j, P):  # type: ignore[no-untyped-def]
    """pairs[i + b P + c] *= x[j + c] for b < n; the sum of the result."""
    total = lanes.splat(0.0)
    for k in range(0, P, WIDTH):
        f = lanes.load(x, j + k)
        for b in range(n):
            value = lanes.multiply(lanes.load(pairs, i + b * P + k), f)
            lanes.store(pairs, i + b * P + k, value)
            total = lanes.add(total, value)
    return lanes.total(total)


@njit(cache=True, nogil=True, error_model="numpy")
def _start_pairs(x0, x1, M2, alpha):  # type: ignore[no-untyped-def]
    """alpha[b, c] = x0[b] M2[b, c] x1[c]; its sum."""
    L, total = M2.shape[0], 0.0
    for b in range(L):
        for c in range(L):
            alpha[b, c] = x0[b] * M2[b, c] * x1[c]
            total += alpha[b, c]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _stop_pairs(alpha, M4, weight, g):  # type: ignore[no-untyped-def]
    """g[c, b] = weight M4[b, c] / z, the last pair's beta, with z = sum of alpha M4, returned."""
    L, z = M4.shape[0], 0.0
    for b in range(L):
        for c in range(L):
            z += alpha[b, c] * M4[b, c]
    if z > 0.0:
        for b in range(L):
            for c in range(L):
                g[c, b] = weight / z * M4[b, c]
    return z


@njit(cache=True, nogil=True, error_model="numpy")
def _finish_pairs(alpha, x, g, mu, zeros):  # type: ignore[no-untyped-def]
    """From beta to g: g[c, :] = x[c] beta(., c), and mu[c] = sum over b of alpha[b, c] beta(b, c).

    With zeros: the smallest positive beta, 0 if one is huge.
    """
    L, low = mu.shape[0], 1.0
    for c in range(L):
        total = 0.0
        for b in range(L):
            total += alpha[b, c] * g[c, b]
        mu[c] = total
        if zeros:
            low = min(low, smallest_positive(g[c]))
        for b in range(L):
            g[c, b] *= x[c]
    return low


@njit(cache=True, nogil=True, error_model="numpy")
def _add_first(x0, M2, g, mu, first):  # type: ignore[no-untyped-def]
    """first += posteriors of the first two labels; mu[b] of the first one.  g at position 1."""
    L = M2.shape[0]
    for b in range(L):
        total = 0.0
        for c in range(L):
            p = x0[b] * M2[b, c] * g[c, b]
            first[b, c] += p
            total += p
        mu[b] = total


@njit(cache=True, nogil=True, error_model="numpy")
def _add_last(alpha, M4, weight, last):  # type: ignore[no-untyped-def]
    """last += posteriors of the last two labels."""
    L, z = M4.shape[0], 0.0
    for b in range(L):
        for c in range(L):
            z += alpha[b, c] * M4[b, c]
    for b in range(L):
        for c in range(L):
            last[b, c] += weight / z * alpha[b, c] * M4[b, c]


# -- four sentences side by side -------------------------------------------------------------------
@njit(cache=True, nogil=True, error_model="numpy")
def _forward(x, T, tabs, tops, zeros, alpha, steps, low):  # type: ignore[no-untyped-def]
    """alpha float64[longest * 4, R, P]; x float64[longest, 4, P] is scaled in place.

    T int64[4] lengths, the largest first, 0 = none; steps float64[longest, 4] gets log c_t and the
    maxima of the transitions; low float64[4] the smallest message, with zeros, 0 if all are.
    """
    M2, M3, P, R = tabs[0], tabs[1], x.shape[2], alpha.shape[1]
    L, inverse = M2.shape[0], np.zeros(QUAD)
    for s in range(QUAD):
        if T[s] == 0:
            alpha[QUAD + s] = 0.0
            continue
        c = rows.total(x[0, s])
        steps[0, s] += math.log(c)
        rows.scale(x[1, s], 1.0 / c)
        c = _start_pairs(x[0, s], x[1, s], M2, alpha[QUAD + s])
        inverse[s] = _note(c, steps, 1, s, T[s], tops[0], low)
    for t in range(2, T[0]):
        o, before = t * QUAD * R * P, (t - 1) * QUAD * R * P
        for b in range(L):
            products(alpha, before + b, R * P, L, M3, b * L * P, alpha, o + b * P)
        for s in range(QUAD):
            if t >= T[s]:
                alpha[t * QUAD + s] = 0.0
                continue
            rows.scale(x[t, s], inverse[s])
            c = _scale_pairs(alpha, o + s * R * P, L, x, (t * QUAD + s) * P, P)
            inverse[s] = _note(c, steps, t, s, T[s], tops[1], low)
            if zeros:
                for b in range(L):
                    low[s] = min(low[s], smallest_positive(alpha[t * QUAD + s, b]))


@njit(cache=True, nogil=True, error_model="numpy")
def _note(c, steps, t, s, T, top, low):  # type: ignore[no-untyped-def]
    """Take the scale c of position t down; its inverse, 0 (and low = 0) if nothing is left.

    The last position's place is taken by z (`_stop_pairs`).
    """
    steps[t, s] += top
    if not c > 0.0:
        low[s] = 0.0
        return 0.0
    if t < T - 1:
        steps[t, s] += math.log(c)
    return 1.0 / c


@njit(cache=True, nogil=True, error_model="numpy")
def _backward(  # type: ignore[no-untyped-def]
    x, T, weight, tabs, top, zeros, alpha, g, steps, mu, low
):
    """g float64[longest * 4, R, P] and mu float64[longest, 4, L], for t >= 1."""
    M3, M4, P, R = tabs[2], tabs[3], x.shape[2], alpha.shape[1]
    L = M4.shape[0]
    for t in range(T[0] - 1, 0, -1):
        o, after = t * QUAD * R * P, (t + 1) * QUAD * R * P
        if t + 1 < T[0]:
            for b in range(L):
                products(g, after + b, R * P, L, M3, b * L * P, g, o + b * P)
        for s in range(QUAD):
            r = t * QUAD + s
            if t >= T[s]:
                g[r] = 0.0
                continue
            if t == T[s] - 1:
                z = _stop_pairs(alpha[r], M4, weight[s], g[r])
                if z > 0.0:
                    steps[t, s] += math.log(z) + top
                else:
                    low[s], g[r] = 0.0, 0.0
            low[s] = min(low[s], _finish_pairs(alpha[r], x[t, s], g[r], mu[t, s], zeros))


@njit(cache=True, nogil=True, error_model="numpy")
def _quad(  # type: ignore[no-untyped-def]
    x, T, weight, tabs, tops, zeros, alpha, g, steps, mu, sums, first, last
):
    """Up to four sentences that are safe; int8[4]: OK, or REDO and nothing of it is in the sums."""
    R, P, longest = alpha.shape[1], alpha.shape[2], T[0]
    low, status = np.ones(QUAD), np.zeros(QUAD, np.int8)
    _forward(x, T, tabs, tops, zeros, alpha, steps, low)
    _backward(x, T, weight, tabs, tops[2], zeros, alpha, g, steps, mu, low)
    for s in range(QUAD):
        if T[s] > 0 and low[s] < TINY:  # impossible or underflow: log space tells
            status[s] = REDO
            for t in range(1, T[s]):
                alpha[t * QUAD + s], g[t * QUAD + s] = 0.0, 0.0
        elif T[s] > 0:
            _add_first(x[0, s], tabs[0], g[QUAD + s], mu[0, s], first)
            _add_last(alpha[(T[s] - 1) * QUAD + s], tabs[3], weight[s], last)
    add_label_triples(alpha, g, 2 * QUAD, longest * QUAD, R, P, sums)
    return status


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(node, span, zeros, x, s, steps):  # type: ignore[no-untyped-def]
    """Put a sentence into place s, if it is safe: (OK, REDO or INFEASIBLE; has it -inf?)."""
    widest, some = 0.0, False
    x[:, s], steps[:, s] = 0.0, 0.0
    for t in range(node.shape[0]):
        top, low, any_zero = rows.bounds(node[t])
        if top == -np.inf:
            return INFEASIBLE, some
        widest, some = max(widest, top - low), some or any_zero
        steps[t, s] = top
        rows.exp_padded(node[t], top, x[t, s])
    limit = SAFE_RANGE_WITH_ZEROS if zeros or some else SAFE_RANGE
    return (OK if widest + span <= limit else REDO), some


@njit(cache=True, nogil=True, error_model="numpy")
def single(node, weight, mu, step):  # type: ignore[no-untyped-def]
    """A sentence of one token: mu float64[1, L], step float64[1]."""
    top = rows.bounds(node[0])[0]
    if top == -np.inf:
        return INFEASIBLE
    total = 0.0
    for b in range(node.shape[1]):
        mu[0, b] = math.exp(node[0, b] - top)
        total += mu[0, b]
    mu[0] *= weight / total
    step[0] = top + math.log(total)
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def _take_out(steps, means, s, mu, step):  # type: ignore[no-untyped-def]
    """Results of the sentence at place s: mu float64[T, L], step float64[T]."""
    for t in range(mu.shape[0]):
        step[t] = steps[t, s]
        for b in range(mu.shape[1]):
            mu[t, b] = means[t, s, b]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_up(sums, forward, triples):  # type: ignore[no-untyped-def]
    """triples[a, b, c] += sums[a, c, b] M3(a, b, c)."""
    L = triples.shape[0]
    for a in range(L):
        for b in range(L):
            for c in range(L):
                triples[a, b, c] += sums[a, c, b] * forward[b, a, c]


@njit(cache=True, nogil=True, error_model="numpy")
def _clear(array):  # type: ignore[no-untyped-def]
    flat = array.reshape(array.size)
    for i in range(flat.shape[0]):
        flat[i] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def alone(node, logs, weight, mu, step, first, triples, last):  # type: ignore[no-untyped-def]
    """A sentence that must be done in log space."""
    L = node.shape[1]
    begin, inner, end = logs
    return triple_chain.log_space(
        node,
        np.zeros((1, L, L)),
        begin,
        inner,
        end,
        weight,
        mu,
        step,
        np.zeros((0, L, L)),
        first,
        triples,
        last,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _group(  # type: ignore[no-untyped-def]
    node,
    logs,
    tabs,
    tops,
    span,
    zeros,
    offsets,
    order,
    weights,
    mu,
    step,
    first,
    triples,
    last,
    status,
):
    """Some sentences, the longest first: four by four."""
    L = node.shape[1]
    P, R = padded(L, WIDTH), padded(L, QUAD)
    longest = offsets[order[0] + 1] - offsets[order[0]]
    x = rows.aligned(longest * QUAD, P).reshape(longest, QUAD, P)
    alpha = rows.aligned(longest * QUAD * R, P).reshape(longest * QUAD, R, P)
    g = rows.aligned(longest * QUAD * R, P).reshape(longest * QUAD, R, P)
    sums = rows.aligned(R * R, P).reshape(R, R, P)
    steps, means = np.zeros((longest, QUAD)), np.zeros((longest, QUAD, L))
    chosen, weight = np.empty(QUAD, np.int64), np.zeros(QUAD)
    at = 0
    while at < order.shape[0]:
        T, count, some_zero = np.zeros(QUAD, np.int64), 0, zeros
        while count < QUAD and at < order.shape[0]:
            i = order[at]
            at += 1
            a, b = offsets[i], offsets[i + 1]
            if weights[i] == 0.0:
                status[i] = OK
                _clear(mu[a:b])
                _clear(step[a:b])
            elif b - a == 1:
                status[i] = single(node[a:b], weights[i], mu[a:b], step[a:b])
            else:
                status[i], has = _fill(node[a:b], span, zeros, x, count, steps)
                if status[i] == OK:
                    chosen[count], T[count], weight[count] = i, b - a, weights[i]
                    some_zero = some_zero or has
                    count += 1
        if count > 0:
            bad = _quad(
                x, T, weight, tabs, tops, some_zero, alpha, g, steps, means, sums, first, last
            )
            for s in range(count):
                i = chosen[s]
                status[i] = bad[s]
                a, b = offsets[i], offsets[i + 1]
                _take_out(steps, means, s, mu[a:b], step[a:b])
    for i in order:
        if status[i] == REDO:
            a, b = offsets[i], offsets[i + 1]
            status[i] = alone(node[a:b], logs, weights[i], mu[a:b], step[a:b], first, triples, last)
    _add_up(sums, tabs[1], triples)


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def shared(
    node: F64,
    begin: F64,
    inner: F64,
    end: F64,
    offsets: I64,
    groups: I64,
    order: I64,
    weights: F64,
    mu: F64,
    step: F64,
    first: F64,
    triples: F64,
    last: F64,
    status: I8,
) -> None:
    """All sentences of a block, with the same transitions at every position.

    node float64[n, L]; begin, end float64[L, L], inner float64[L, L, L] logs; offsets int64[s + 1];
    groups int64[G + 1] sentence ranges that one thread handles; order int64[s] sentences, those of
    a group in descending order of their lengths; weights float64[s] >= 0.
    Out, posteriors times the weights: mu float64[n, L]; first, last float64[G, L, L] and triples
    float64[G, L, L, L], zero before, sums over the group; step float64[n] (sums to log Z over a
    sentence); status int8[s].
    """
    tabs, tops, span, zeros = prepared(begin, inner, end)
    for k in prange(groups.shape[0] - 1):
        _group(
            node,
            (begin, inner, end),
            tabs,
            tops,
            span,
            zeros,
            offsets,
            order[groups[k] : groups[k + 1]],
            weights,
            mu,
            step,
            first[k],
            triples[k],
            last[k],
            status,
        )
