"""Second-order chains where few pairs of labels may follow each other: `scaled` over lists.

The labels of a codec (border and tag, or tag and the type before) forbid most transitions.  States
are the allowed pairs (a, b).  The pairs that end in b are followed by those that begin with b, so
the allowed triples form one small matrix for each middle label b, ``M[b]`` with a row for each a
and a column for each c.  The recursions are those of `scaled`, one sentence at a time, with alpha
scaled to sum to one:

    alpha_t(b, c)    = x_t(c) / c_t sum_a alpha_{t-1}(a, b) M[b](a, c)
    g_t(b, c)        = x_t(c) / c_t beta_t(b, c),   beta_{t-1}(a, b) = sum_c M[b](a, c) g_t(b, c)
    triples(a, b, c) = M[b](a, c) sum_t alpha_{t-1}(a, b) g_t(b, c)

This takes three multiply-adds per token for each allowed triple, instead of for all triples.
Messages must stay between 1e-200 and 1e200 and potentials in the range of `scaled`; otherwise a
sentence is done in log space.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import kernel, parallel_kernel
from sslbench.engine.crf.data import LabelTriples, SentenceGroups
from sslbench.engine.crf.first_order.scaled import INFEASIBLE, OK, REDO, TINY, smallest_positive
from sslbench.engine.crf.second_order.log_space import BatchMarginals, part
from sslbench.engine.crf.second_order.scaled import SAFE_RANGE_WITH_ZEROS, alone, single
from sslbench.engine.crf.second_order.tiles import exponential, extent
from sslbench.engine.crf.simd import rows
from sslbench.engine.types import F64, I8, I64, Bool

#: an allowed triple costs about this many times what a triple costs in `scaled`, which takes all of
#: them (measured by tests/benchmarks/test_allowed_transitions.py)
PRICE = 8


def is_faster(allowed: Bool) -> bool:
    """Is this kernel faster than `scaled`?  allowed: bool[L, L] pairs of labels."""
    return 0 < PRICE * int(allowed.sum(axis=0) @ allowed.sum(axis=1)) < len(allowed) ** 3


class PairLists(NamedTuple):
    """Allowed pairs (a, b), ordered by b, then by a.

    The pairs that end in b are start[b]:start[b + 1], int64[L + 1]; label: int64[pairs, 2].
    The pairs that begin with b are after[follow[b]:follow[b + 1]], int64[pairs] and int64[L + 1].
    M[b] begins at matrix[b] of a flat array, int64[L + 1], row by row.
    """

    start: I64
    label: I64
    follow: I64
    after: I64
    matrix: I64


class _Tables(NamedTuple):
    """Exponentials of the log-potentials, each less its maximum.

    M: float64[triples], row by row of each matrix; MT: column by column; begin, end:
    float64[pairs]; tops: float64[3] maxima of begin, M, end; span: largest range of potentials at
    one position.
    """

    M: F64
    MT: F64
    begin: F64
    end: F64
    tops: F64
    span: float


class _Scratch(NamedTuple):
    """Of one sentence: x float64[>= T, L]; alpha, g float64[>= T, pairs]; triples
    float64[triples].
    """

    x: F64
    alpha: F64
    g: F64
    triples: F64


class _Sums(NamedTuple):
    """Over sentences: float64[pairs] of the first two and of the last two labels; triples, as MT
    and still to be multiplied by it.
    """

    begin: F64
    end: F64
    triples: F64


@kernel
def pair_lists(allowed: Bool) -> PairLists:
    """Lists of the pairs (a, b) with allowed[a, b], bool[L, L]."""
    L = allowed.shape[0]
    start, follow = np.zeros(L + 1, np.int64), np.zeros(L + 1, np.int64)
    matrix = np.zeros(L + 1, np.int64)
    for b in range(L):
        start[b + 1] = start[b] + allowed[:, b].sum()
        follow[b + 1] = follow[b] + allowed[b].sum()
        matrix[b + 1] = matrix[b] + allowed[:, b].sum() * allowed[b].sum()
    label, after = np.empty((start[L], 2), np.int64), np.empty(start[L], np.int64)
    filled = follow[:-1].copy()
    pair = 0
    for b in range(L):
        for a in range(L):
            if allowed[a, b]:
                label[pair, 0], label[pair, 1] = a, b
                after[filled[a]] = pair
                filled[a] += 1
                pair += 1
    return PairLists(start, label, follow, after, matrix)


@kernel
def _of_triples(log: F64, lists: PairLists) -> F64:
    """The numbers of float64[L, L, L] for the allowed triples, as M."""
    start, label, follow, after, matrix = lists
    out = np.empty(matrix[-1])
    for b in range(len(start) - 1):
        at = matrix[b]
        for i in range(start[b], start[b + 1]):
            for j in range(follow[b], follow[b + 1]):
                out[at] = log[label[i, 0], b, label[after[j], 1]]
                at += 1
    return out


@kernel
def _transposed(M: F64, lists: PairLists) -> F64:
    """The matrices of M column by column."""
    start, _, follow, _, matrix = lists
    out = np.empty(len(M))
    for b in range(len(start) - 1):
        n, m = start[b + 1] - start[b], follow[b + 1] - follow[b]
        for i in range(n):
            for j in range(m):
                out[matrix[b] + j * n + i] = M[matrix[b] + i * m + j]
    return out


@kernel
def _of_pairs(log: F64, label: I64) -> F64:
    """The numbers of float64[L, L] for the allowed pairs: float64[pairs]."""
    out = np.empty(label.shape[0])
    for p in range(label.shape[0]):
        out[p] = log[label[p, 0], label[p, 1]]
    return out


@kernel
def _tables(triples: LabelTriples, lists: PairLists) -> _Tables:
    two, four = _of_pairs(triples.begin, lists.label), _of_pairs(triples.end, lists.label)
    three = _of_triples(triples.inner, lists)
    span = max(extent(two)[0], extent(three)[0]) + extent(four)[0]
    begin, first = exponential(two)
    M, middle = exponential(three)
    end, last = exponential(four)
    return _Tables(M, _transposed(M, lists), begin, end, np.array([first, middle, last]), span)


@kernel
def _forward(before: F64, x: F64, lists: PairLists, M: F64, out: F64) -> float:
    """out(b, c) = x(c) sum_a before(a, b) M[b](a, c); returns its sum."""
    start, label, follow, after, matrix = lists
    total, sums = 0.0, np.empty(len(x))
    for b in range(len(start) - 1):
        m = follow[b + 1] - follow[b]
        sums[:m] = 0.0
        for i in range(start[b], start[b + 1]):
            row = matrix[b] + (i - start[b]) * m
            f = before[i]
            for j in range(m):
                sums[j] += f * M[row + j]
        for j in range(m):
            pair = after[follow[b] + j]
            out[pair] = sums[j] * x[label[pair, 1]]
            total += out[pair]
    return total


@kernel
def _backward(before: F64, g: F64, lists: PairLists, MT: F64, beta: F64, sums: F64) -> None:
    """beta(a, b) = sum_c M[b](a, c) g(b, c); sums[b](a, c) += before(a, b) g(b, c)."""
    start, _, follow, after, matrix = lists
    for b in range(len(start) - 1):
        n, m = start[b + 1] - start[b], follow[b + 1] - follow[b]
        own = beta[start[b] : start[b + 1]]
        earlier = before[start[b] : start[b + 1]]
        own[:] = 0.0
        for j in range(m):
            f, row = g[after[follow[b] + j]], matrix[b] + j * n
            for i in range(n):
                own[i] += f * MT[row + i]
                sums[row + i] += f * earlier[i]


@kernel
def _sentence(
    node: F64,
    tables: _Tables,
    lists: PairLists,
    weight: float,
    scratch: _Scratch,
    mu: F64,
    log_scale: F64,
    sums: _Sums,
) -> int:
    """One sentence of two tokens or more; its status.  If it is REDO, `sums` are left alone.

    Out: mu float64[T, L] and log_scale float64[T].
    """
    T, L = node.shape
    x, alpha, label = scratch.x, scratch.alpha, lists.label
    M, M2, M4, tops = tables.M, tables.begin, tables.end, tables.tops
    widest = 0.0
    for t in range(T):
        top, low, _ = rows.bounds(node[t])
        if top == -np.inf:
            return INFEASIBLE
        widest = max(widest, top - low)
        log_scale[t] = top
        for b in range(L):
            x[t, b] = math.exp(node[t, b] - top)
    if widest + tables.span > SAFE_RANGE_WITH_ZEROS:
        return REDO
    total, smallest = 0.0, 1.0
    for p in range(label.shape[0]):
        alpha[1, p] = x[0, label[p, 0]] * M2[p] * x[1, label[p, 1]]
        total += alpha[1, p]
    for t in range(1, T):
        if t > 1:
            total = _forward(alpha[t - 1], x[t], lists, M, alpha[t])
        if not total > 0.0:
            return REDO  # impossible or underflow: log space decides
        rows.scale(alpha[t], 1.0 / total)
        smallest = min(smallest, smallest_positive(alpha[t]))
        log_scale[t] += math.log(total) + (tops[0] if t == 1 else tops[1])
        for b in range(L):  # from here on x is x / c_t
            x[t, b] /= total
    z = 0.0
    for p in range(label.shape[0]):
        z += alpha[T - 1, p] * M4[p]
    if not z > 0.0:
        return REDO
    log_scale[T - 1] += math.log(z) + tops[2]
    return _backward_pass(tables, lists, weight, z, smallest, scratch, mu, sums)


@kernel
def _backward_pass(
    tables: _Tables,
    lists: PairLists,
    weight: float,
    z: float,
    smallest: float,
    scratch: _Scratch,
    mu: F64,
    sums: _Sums,
) -> int:
    """The second half of `_sentence`."""
    x, alpha, g, triples = scratch
    T, label, MT, M2, M4 = mu.shape[0], lists.label, tables.MT, tables.begin, tables.end
    begin, end, all_triples = sums
    beta = np.empty(len(M4))
    triples[:] = 0.0
    for p in range(len(M4)):
        beta[p] = M4[p] / z
    for t in range(T - 1, 0, -1):
        smallest = min(smallest, smallest_positive(beta))
        mu[t] = 0.0
        for p in range(len(M4)):
            mu[t, label[p, 1]] += weight * alpha[t, p] * beta[p]
            g[t, p] = beta[p] * x[t, label[p, 1]]
        if t > 1:
            _backward(alpha[t - 1], g[t], lists, MT, beta, triples)
    if smallest < TINY:
        return REDO
    mu[0] = 0.0
    for p in range(len(M4)):
        here = weight * x[0, label[p, 0]] * M2[p] * g[1, p]
        begin[p] += here
        mu[0, label[p, 0]] += here
        end[p] += weight / z * M4[p] * alpha[T - 1, p]
    for k in range(len(triples)):
        all_triples[k] += weight * triples[k]
    return OK


@kernel
def _scatter(sums: _Sums, MT: F64, lists: PairLists, begin: F64, inner: F64, end: F64) -> None:
    """Add the sums over lists to float64[L, L], [L, L, L], [L, L]."""
    start, label, follow, after, matrix = lists
    for p in range(label.shape[0]):
        begin[label[p, 0], label[p, 1]] += sums.begin[p]
        end[label[p, 0], label[p, 1]] += sums.end[p]
    for b in range(len(start) - 1):
        n = start[b + 1] - start[b]
        for j in range(follow[b], follow[b + 1]):
            c, row = label[after[j], 1], matrix[b] + (j - follow[b]) * n
            for i in range(n):
                inner[label[start[b] + i, 0], b, c] += sums.triples[row + i] * MT[row + i]


def shared(
    allowed: Bool,
    node: F64,
    triples: LabelTriples,
    sentences: SentenceGroups,
    log_scale: F64,
    out: BatchMarginals,
    status: I8,
) -> None:
    """As `scaled.shared`, with labels a, b in a row only where allowed[a, b] (bool[L, L])."""
    lists = pair_lists(allowed)
    tables = _tables(triples, lists)
    _groups(sentences, lists, tables, node, triples, log_scale, out, status)


@parallel_kernel(lambda sentences, *_: len(sentences.groups) - 1)
def _groups(
    begin: int,
    end: int,
    sentences: SentenceGroups,
    lists: PairLists,
    tables: _Tables,
    node: F64,
    triples: LabelTriples,
    log_scale: F64,
    out: BatchMarginals,
    status: I8,
) -> None:
    offsets, groups, weights = sentences
    L, node_marginals = node.shape[1], out.node
    n_pairs, n_triples = len(lists.label), len(tables.M)
    for k in range(begin, end):
        longest = 1
        for i in range(groups[k], groups[k + 1]):
            longest = max(longest, offsets[i + 1] - offsets[i])
        x, messages = np.empty((longest, L)), np.empty((2, longest, n_pairs))
        scratch = _Scratch(x, messages[0], messages[1], np.zeros(n_triples))
        sums = _Sums(np.zeros(n_pairs), np.zeros(n_pairs), np.zeros(n_triples))
        for i in range(groups[k], groups[k + 1]):
            lo, hi = offsets[i], offsets[i + 1]
            mu, scale = node_marginals[lo:hi], log_scale[lo:hi]
            if weights[i] == 0.0:
                status[i], mu[:], scale[:] = OK, 0.0, 0.0
                continue
            if hi - lo == 1:
                status[i] = single(node[lo:hi], weights[i], mu, scale)
                continue
            status[i] = _sentence(node[lo:hi], tables, lists, weights[i], scratch, mu, scale, sums)
            if status[i] == REDO:
                status[i] = alone(node[lo:hi], triples, weights[i], scale, part(out, lo, hi, k))
        _scatter(sums, tables.MT, lists, out.begin[k], out.inner[k], out.end[k])
