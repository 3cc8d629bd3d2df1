"""Second-order chains where few pairs of labels may follow each other: `triples` over lists.

The labels of a codec (border and tag, or tag and the type before) forbid most arcs. States are the
legal pairs (a, b); the pairs that end in b are followed by those that begin with b, so that legal
triples are one small matrix for each middle label b, ``M[b]`` with a row for each a and a column
for each c.  The recursions are those of `triples`, one sentence at a time, alpha scaled to sum one:

    alpha_t(b, c)    = x_t(c) / c_t sum_a alpha_{t-1}(a, b) M[b](a, c)
    g_t(b, c)        = x_t(c) / c_t beta_t(b, c),   beta_{t-1}(a, b) = sum_c M[b](a, c) g_t(b, c)
    triples(a, b, c) = M[b](a, c) sum_t alpha_{t-1}(a, b) g_t(b, c)

Three multiply-adds a token for each legal triple, in place of each triple.  Messages stay between
1e-200 and 1e200 and potentials in the range of `triples`, else a sentence is done in log space.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from sslbench.compiled import njit
from sslbench.crf.first_order.scaled import INFEASIBLE, OK, REDO, TINY, smallest_positive
from sslbench.crf.second_order.scaled import SAFE_RANGE_WITH_ZEROS, alone, single
from sslbench.crf.second_order.tiles import exponential, extent
from sslbench.crf.simd import rows
from sslbench.types import F64, I8, I64, Bool

#: a legal triple costs this many times what one costs in `triples`, which takes them all: lists are
#: used where there are fewer (tests/benchmarks/test_legal_arcs.py)
PRICE = 8


def few(legal: Bool) -> bool:
    """Is this kernel faster than `triples` under legal pairs bool[L, L]?"""
    return 0 < PRICE * int(legal.sum(axis=0) @ legal.sum(axis=1)) < len(legal) ** 3


@njit(cache=True, nogil=True, error_model="numpy")
def pair_lists(legal):  # type: ignore[no-untyped-def]
    """Pairs (a, b) with legal[a, b], by b, then by a.

    (start, label, follow, after, block): pairs ending in b are start[b]:start[b + 1], int64[L + 1];
    label int64[pairs, 2]; those beginning with b are after[follow[b]:follow[b + 1]]; M[b] begins at
    block[b] of a flat array, row by row, int64[L + 1].
    """
    L = legal.shape[0]
    start, follow = np.zeros(L + 1, np.int64), np.zeros(L + 1, np.int64)
    block = np.zeros(L + 1, np.int64)
    for b in range(L):
        start[b + 1] = start[b] + legal[:, b].sum()
        follow[b + 1] = follow[b] + legal[b].sum()
        block[b + 1] = block[b] + legal[:, b].sum() * legal[b].sum()
    label, after = np.empty((start[L], 2), np.int64), np.empty(start[L], np.int64)
    filled = follow[:-1].copy()
    pair = 0
    for b in range(L):
        for a in range(L):
            if legal[a, b]:
                label[pair, 0], label[pair, 1] = a, b
                after[filled[a]] = pair
                filled[a] += 1
                pair += 1
    return start, label, follow, after, block


@njit(cache=True, nogil=True, error_model="numpy")
def _of_triples(log, lists):  # type: ignore[no-untyped-def]
    """What float64[L, L, L] has for the legal triples, as M: row by row of each block."""
    start, label, follow, after, block = lists
    out = np.empty(block[-1])
    for b in range(len(start) - 1):
        at = block[b]
        for i in range(start[b], start[b + 1]):
            for j in range(follow[b], follow[b + 1]):
                out[at] = log[label[i, 0], b, label[after[j], 1]]
                at += 1
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _transposed(M, lists):  # type: ignore[no-untyped-def]
    """The blocks of M column by column."""
    start, _, follow, _, block = lists
    out = np.empty(len(M))
    for b in range(len(start) - 1):
        n, m = start[b + 1] - start[b], follow[b + 1] - follow[b]
        for i in range(n):
            for j in range(m):
                out[block[b] + j * n + i] = M[block[b] + i * m + j]
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _of_pairs(log, label):  # type: ignore[no-untyped-def]
    """Log-potentials of the pairs out of float64[L, L]: float64[pairs]."""
    out = np.empty(label.shape[0])
    for p in range(label.shape[0]):
        out[p] = log[label[p, 0], label[p, 1]]
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _forward(before, x, lists, M, out):  # type: ignore[no-untyped-def]
    """out(b, c) = x(c) sum_a before(a, b) M[b](a, c); the sum of it."""
    start, label, follow, after, block = lists
    total, sums = 0.0, np.empty(len(x))
    for b in range(len(start) - 1):
        m = follow[b + 1] - follow[b]
        sums[:m] = 0.0
        for i in range(start[b], start[b + 1]):
            row = block[b] + (i - start[b]) * m
            f = before[i]
            for j in range(m):
                sums[j] += f * M[row + j]
        for j in range(m):
            pair = after[follow[b] + j]
            out[pair] = sums[j] * x[label[pair, 1]]
            total += out[pair]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _backward(before, g, lists, MT, beta, sums):  # type: ignore[no-untyped-def]
    """beta(a, b) = sum_c M[b](a, c) g(b, c); sums[b](a, c) += before(a, b) g(b, c)."""
    start, _, follow, after, block = lists
    for b in range(len(start) - 1):
        n, m = start[b + 1] - start[b], follow[b + 1] - follow[b]
        own = beta[start[b] : start[b + 1]]
        earlier = before[start[b] : start[b + 1]]
        own[:] = 0.0
        for j in range(m):
            f, row = g[after[follow[b] + j]], block[b] + j * n
            for i in range(n):
                own[i] += f * MT[row + i]
                sums[row + i] += f * earlier[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _sentence(  # type: ignore[no-untyped-def]
    node, tables, span, lists, weight, x, alpha, g, mu, step, part
):
    """One sentence of two tokens or more; OK, or REDO and nothing of it is in `part`.

    x float64[T, L], alpha, g float64[T, pairs] scratch; mu float64[T, L], step float64[T] out.
    part: sums over sentences, float64[pairs] of the first two labels, of the last two and, as the
    transposed M and still to be multiplied by it, float64[triples]; float64[triples] scratch.
    """
    T, L = node.shape
    M, _, M2, M4, tops = tables
    label = lists[1]
    widest = 0.0
    for t in range(T):
        top, low, _ = rows.bounds(node[t])
        if top == -np.inf:
            return INFEASIBLE
        widest = max(widest, top - low)
        step[t] = top
        for b in range(L):
            x[t, b] = math.exp(node[t, b] - top)
    if widest + span > SAFE_RANGE_WITH_ZEROS:
        return REDO
    total, least = 0.0, 1.0
    for p in range(label.shape[0]):
        alpha[1, p] = x[0, label[p, 0]] * M2[p] * x[1, label[p, 1]]
        total += alpha[1, p]
    for t in range(1, T):
        if t > 1:
            total = _forward(alpha[t - 1], x[t], lists, M, alpha[t])
        if not total > 0.0:
            return REDO  # impossible or underflow: log space tells
        rows.scale(alpha[t], 1.0 / total)
        least = min(least, smallest_positive(alpha[t]))
        step[t] += math.log(total) + (tops[0] if t == 1 else tops[1])
        for b in range(L):  # from here on x is x / c_t
            x[t, b] /= total
    z = 0.0
    for p in range(label.shape[0]):
        z += alpha[T - 1, p] * M4[p]
    if not z > 0.0:
        return REDO
    step[T - 1] += math.log(z) + tops[2]
    return _descend(tables, lists, weight, z, least, x, alpha, g, mu, part)


@njit(cache=True, nogil=True, error_model="numpy")
def _descend(  # type: ignore[no-untyped-def]
    tables, lists, weight, z, least, x, alpha, g, mu, part
):
    """The backward pass of `_sentence`."""
    T = mu.shape[0]
    MT, M2, M4 = tables[1], tables[2], tables[3]
    first, last, sums, fresh = part
    label, beta = lists[1], np.empty(len(M4))
    fresh[:] = 0.0
    for p in range(len(M4)):
        beta[p] = M4[p] / z
    for t in range(T - 1, 0, -1):
        least = min(least, smallest_positive(beta))
        mu[t] = 0.0
        for p in range(len(M4)):
            mu[t, label[p, 1]] += weight * alpha[t, p] * beta[p]
            g[t, p] = beta[p] * x[t, label[p, 1]]
        if t > 1:
            _backward(alpha[t - 1], g[t], lists, MT, beta, fresh)
    if least < TINY:
        return REDO
    mu[0] = 0.0
    for p in range(len(M4)):
        here = weight * x[0, label[p, 0]] * M2[p] * g[1, p]
        first[p] += here
        mu[0, label[p, 0]] += here
        last[p] += weight / z * M4[p] * alpha[T - 1, p]
    for k in range(len(fresh)):
        sums[k] += weight * fresh[k]
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def _scatter(part, tables, lists, first, triples, last):  # type: ignore[no-untyped-def]
    """Add what `_sentence` summed up over lists to float64[L, L], [L, L, L], [L, L]."""
    start, label, follow, after, block = lists
    for p in range(label.shape[0]):
        first[label[p, 0], label[p, 1]] += part[0][p]
        last[label[p, 0], label[p, 1]] += part[1][p]
    for b in range(len(start) - 1):
        n = start[b + 1] - start[b]
        for j in range(follow[b], follow[b + 1]):
            c, row = label[after[j], 1], block[b] + (j - follow[b]) * n
            for i in range(n):
                triples[label[start[b] + i, 0], b, c] += part[2][row + i] * tables[1][row + i]


@njit(cache=True, nogil=True, error_model="numpy")
def _tables(begin, inner, end, lists):  # type: ignore[no-untyped-def]
    """(M, its transpose, M2, M4, their log maxima), and the range of potentials at a position."""
    two, four = _of_pairs(begin, lists[1]), _of_pairs(end, lists[1])
    three = _of_triples(inner, lists)
    span = max(extent(two)[0], extent(three)[0]) + extent(four)[0]
    M2, first = exponential(two)
    M, middle = exponential(three)
    M4, last = exponential(four)
    return (M, _transposed(M, lists), M2, M4, np.array([first, middle, last])), span


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def shared(
    legal: Bool,
    node: F64,
    begin: F64,
    inner: F64,
    end: F64,
    offsets: I64,
    groups: I64,
    weights: F64,
    mu: F64,
    step: F64,
    first: F64,
    triples: F64,
    last: F64,
    status: I8,
) -> None:
    """As `triples.shared`, with labels a, b in a row only where legal[a, b] (bool[L, L])."""
    L, lists = node.shape[1], pair_lists(legal)
    tables, span = _tables(begin, inner, end, lists)
    pairs, n_triples = len(lists[1]), len(tables[0])
    for k in prange(groups.shape[0] - 1):
        longest = 1
        for i in range(groups[k], groups[k + 1]):
            longest = max(longest, offsets[i + 1] - offsets[i])
        x = np.empty((longest, L))
        alpha, g = np.empty((longest, pairs)), np.empty((longest, pairs))
        part = np.zeros(pairs), np.zeros(pairs), np.zeros(n_triples), np.zeros(n_triples)
        for i in range(groups[k], groups[k + 1]):
            lo, hi = offsets[i], offsets[i + 1]
            if weights[i] == 0.0:
                status[i], mu[lo:hi], step[lo:hi] = OK, 0.0, 0.0
                continue
            if hi - lo == 1:
                status[i] = single(node[lo:hi], weights[i], mu[lo:hi], step[lo:hi])
                continue
            status[i] = _sentence(
                node[lo:hi],
                tables,
                span,
                lists,
                weights[i],
                x,
                alpha,
                g,
                mu[lo:hi],
                step[lo:hi],
                part,
            )
            if status[i] == REDO:
                status[i] = alone(
                    node[lo:hi],
                    (begin, inner, end),
                    weights[i],
                    mu[lo:hi],
                    step[lo:hi],
                    first[k],
                    triples[k],
                    last[k],
                )
        _scatter(part, tables, lists, first[k], triples[k], last[k])
