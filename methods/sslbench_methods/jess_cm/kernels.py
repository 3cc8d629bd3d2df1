"""Kernels of the embedded models: table rows to potentials, posteriors to counts.

A token reads one row per slot (`sslbench.engine.features.SymbolRows`).  State rows have L entries,
arc rows (L+1) L, previous label major, the last L of them for START, which first tokens of
sentences read.  So state rows are arc rows without transitions, read by tokens that are all first.
Rows are float32 logarithms (an error of 1e-6 in a log-probability is harmless and halves the
traffic), all sums float64.

Counting is parallel over tables: each is written by one thread, in token order.  So counts have the
same bits for any number of threads, without copies of the tables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import chunks, kernel, parallel_kernel
from sslbench.engine.crf.simd import lanes, rows
from sslbench.engine.crf.simd.exp import exp_shifted
from sslbench.engine.crf.simd.rows import ZERO
from sslbench.engine.types import F64, I32, I64, AnyArray, Bool

CHUNK = 64  # tokens of a task
ROWS = 256  # rows of a table in a task of the M-step
LINE = 16  # float32 of a cache line


class RowCounts(NamedTuple):
    """Expected counts of the rows of tables, R rows of width W.

    place: int32[R], row of `frequent`, or -1: the counts are in `rare`.
    rare: [R, W], of the dtype of the tables.  frequent: float64[F, W].
    A float32 that is added to a few thousand times has an error of some 1e-6; one that is added to
    millions of times would stop growing.
    """

    place: I32
    rare: AnyArray
    frequent: F64


class Groups(NamedTuple):
    """Scratch of `_group` for n tokens.

    slots: int32, a power of two above 2 n, hash table of the rows.  row: int32[n], the distinct
    rows.  member: int32[n], which of them a token has.  token: int32[n], tokens ordered by row;
    those of row e are token[border[e]:border[e + 1]].
    """

    slots: I32
    row: I32
    member: I32
    border: I64
    token: I32


@parallel_kernel(lambda *arguments: chunks(len(arguments[-1]), CHUNK))
def add_scores(
    begin: int,
    end: int,
    row_of: I32,
    owner: I32,
    weights: F64,
    table: AnyArray,
    lo: int,
    first: Bool,
    chain: F64,
    node: F64,
    edge: F64,
) -> None:
    """Add weight of the table * its log row over the slots, and what all tables share.

    row_of int32[N, S] rows, -1 = none; owner int32[S] table of the slot; table float32[R, K + L];
    chain float64[K + L]: sum over tables of weight * log a.
    Of the tokens lo, lo + 1, ..., at those that are `first` the last L numbers of the rows go to
    node float64[n, L], elsewhere the K others go to edge float64[n, ...], K numbers each.
    """
    N, L = node.shape
    K = table.shape[1] - L
    nodes, edges = node.reshape(N * L), edge.reshape(N * K)
    row, factor = np.empty(owner.shape[0], np.int32), np.empty(owner.shape[0])
    for n in range(begin * CHUNK, min(N, end * CHUNK)):
        count = _pick(row_of[lo + n], owner, weights, row, factor)
        if first[n]:
            for b in range(L):
                node[n, b] += chain[K + b]
            rows.add_weighted_rows(row, factor, count, table, K, L, nodes, n * L)
        else:
            for k in range(K):
                edges[n * K + k] += chain[k]
            rows.add_weighted_rows(row, factor, count, table, ZERO, K, edges, n * K)


@kernel
def _pick(row_of: I32, owner: I32, weights: F64, row: I32, factor: F64) -> int:
    """Pick the rows that count at a token and the weights of their tables; return how many."""
    count = 0
    for s in range(row_of.shape[0]):
        f = weights[owner[s]]
        if f != 0.0 and row_of[s] >= 0:
            row[count], factor[count] = row_of[s], f
            count += 1
    return count


@kernel
def _prefetch(row_of: I32, table: AnyArray, width: int) -> None:
    """Fetch rows that are read soon: they are anywhere in memory."""
    for s in range(row_of.shape[0]):
        r = np.int64(max(row_of[s], 0)) * table.shape[1]
        for k in range(0, width, LINE):
            lanes.prefetch(table, r + k)


@parallel_kernel(lambda *arguments: len(arguments[-1]))
def expectation(
    begin: int,
    end: int,
    row_of: I32,
    table: AnyArray,
    lo: int,
    first: Bool,
    node: F64,
    edge: F64,
    out: F64,
) -> None:
    """out[chunk, s] = sum over the chunk's tokens of omega . log row (float64[chunks, S]).

    The rows meet node at first tokens, elsewhere edge, as in `add_scores`.
    """
    N, L = node.shape
    K = table.shape[1] - L
    nodes, edges = node.reshape(N * L), edge.reshape(N * K)
    for c in range(begin, end):
        out[c] = 0.0
        for n in range(c * CHUNK, min(N, (c + 1) * CHUNK)):
            x, i, column, width = (nodes, n * L, K, L) if first[n] else (edges, n * K, 0, K)
            for s in range(row_of.shape[1]):
                r = np.int64(row_of[lo + n, s]) * (K + L)
                if r >= 0:
                    out[c, s] += rows.inner(x, i, table, r + column, width)


@parallel_kernel(lambda row_of, shares, *_: len(shares) - 1)
def count_states(
    begin: int, end: int, row_of: I32, shares: I32, lo: int, node: F64, counts: RowCounts
) -> None:
    """Add mu to the counts of each row.  shares int32[T + 1]: slots that one thread counts."""
    N, L = node.shape
    flat = node.reshape(N * L)
    place, rare, frequent = counts
    few, many = np.empty(row_of.shape[1], np.int32), np.empty(row_of.shape[1], np.int32)
    for g in range(begin, end):
        for n in range(N):
            ahead = min(lo + n + 2, row_of.shape[0] - 1)
            _prefetch(row_of[ahead, shares[g] : shares[g + 1]], rare, L)
            n_few = n_many = ZERO
            for s in range(shares[g], shares[g + 1]):
                row = row_of[lo + n, s]
                if row >= 0 and place[row] >= 0:
                    many[n_many] = place[row]
                    n_many += 1
                elif row >= 0:
                    few[n_few] = row
                    n_few += 1
            rows.add_to_rows(few, ZERO, n_few, flat, n * L, rare, ZERO, L)
            rows.add_to_rows(many, ZERO, n_many, flat, n * L, frequent, ZERO, L)


@parallel_kernel(lambda row_of, shares, *_: len(shares) - 1)
def count_arcs(
    begin: int,
    end: int,
    row_of: I32,
    shares: I32,
    lo: int,
    first: Bool,
    node: F64,
    edge: F64,
    counts: RowCounts,
) -> None:
    """Add xi to the counts of each row (mu from START at first tokens).

    A symbol repeats within a batch: the marginals of its tokens are summed before its row is
    fetched from memory.
    """
    N, L = node.shape
    K = L * L
    nodes, edges, pairs = node.reshape(N * L), edge.reshape(N * K), edge.reshape(N, K)
    total = np.empty(K)
    size = 16
    while size < 2 * N:
        size *= 2
    groups = Groups(
        np.empty(size, np.int32),
        np.empty(N, np.int32),
        np.empty(N, np.int32),
        np.empty(N + 1, np.int64),
        np.empty(N, np.int32),
    )
    row, token = groups.row, groups.token
    for s in range(shares[begin], shares[end]):
        count = _group(row_of, lo, s, first, groups)
        for e in range(count):
            ahead = np.int64(row[min(e + 2, count - 1)]) * (K + L)
            for k in range(0, K, LINE):
                lanes.prefetch(counts.rare, ahead + k)
            i, j, source = groups.border[e], groups.border[e + 1], edges
            at = np.int64(token[i]) * K
            if j > i + 1:
                rows.sum_rows(token, i, j, pairs, token, ZERO, ZERO, pairs, ZERO, K, total, ZERO)
                source, at = total, 0
            _add_row(counts, row, e, ZERO, K, source, at)
        for n in range(N):
            if first[n] and row_of[lo + n, s] >= 0:
                row[0] = row_of[lo + n, s]
                _add_row(counts, row, ZERO, K, L, nodes, n * L)


@kernel
def _add_row(
    counts: RowCounts, row: I32, e: int, column: int, width: int, source: F64, at: int
) -> None:
    """Add source[at:at+width] to counts[row[e], column:column+width]; row[e] is overwritten."""
    if counts.place[row[e]] >= 0:
        row[e] = counts.place[row[e]]
        rows.add_to_rows(row, e, e + 1, source, at, counts.frequent, column, width)
    else:
        rows.add_to_rows(row, e, e + 1, source, at, counts.rare, column, width)


@kernel
def _group(row_of: I32, lo: int, s: int, first: Bool, groups: Groups) -> int:
    """Sort the tokens of a batch that are no first ones by their row in slot s; how many rows."""
    slots, row, member, border, token = groups
    mask, count = slots.shape[0] - 1, 0
    for i in range(slots.shape[0]):
        slots[i] = -1
    for n in range(first.shape[0]):
        r = np.int64(row_of[lo + n, s])
        if r < 0 or first[n]:
            member[n] = -1
            continue
        slot = (r * 0x9E3779B1 >> 15) & mask
        while slots[slot] >= 0 and row[slots[slot]] != r:
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot], row[count], border[count] = count, r, 0
            count += 1
        member[n] = slots[slot]
        border[slots[slot]] += 1
    for e in range(1, count):
        border[e] += border[e - 1]
    border[count] = border[count - 1] if count else 0
    for n in range(first.shape[0] - 1, -1, -1):  # backwards, so that ends become beginnings
        if member[n] >= 0:
            border[member[n]] -= 1
            token[border[member[n]]] = n
    return count


@parallel_kernel(lambda *arguments: len(arguments[-1]))
def column_sums(begin: int, end: int, counts: RowCounts, lo: int, hi: int, out: F64) -> None:
    """Sum the counts of the chunk's rows among lo:hi into out[chunk] (float64[chunks, W])."""
    for c in range(begin, end):
        for k in range(out.shape[1]):
            out[c, k] = 0.0
        for r in range(lo + c * ROWS, min(hi, lo + (c + 1) * ROWS)):
            place = counts.place[r]
            for k in range(out.shape[1]):
                out[c, k] += counts.rare[r, k] if place < 0 else counts.frequent[place, k]


@parallel_kernel(lambda *arguments: len(arguments[-1]))
def renew_rows(
    begin: int,
    end: int,
    counts: RowCounts,
    lo: int,
    hi: int,
    scaling: tuple[float, float, float],
    total: F64,
    table: AnyArray,
    moved: F64,
) -> None:
    """Set table[lo:hi] = max(log((factor * counts + eta) / total), floor) where total > 0.

    scaling: factor, eta, floor.  total float64[W], of the columns.  moved[chunk] = sum of the
    absolute changes of the probabilities.
    """
    factor, eta, floor = scaling
    W = total.shape[0]
    old, new = np.empty(W), np.empty(W)
    for c in range(begin, end):
        moved[c] = 0.0
        for r in range(lo + c * ROWS, min(hi, lo + (c + 1) * ROWS)):
            place = counts.place[r]
            for k in range(W):
                old[k] = table[r, k]
            exp_shifted(old, 0.0)
            for k in range(W):
                count = counts.rare[r, k] if place < 0 else counts.frequent[place, k]
                new[k] = (factor * count + eta) / total[k] if total[k] > 0.0 else old[k]
                moved[c] += abs(new[k] - old[k])
            _logarithms(new, floor)
            for k in range(W):
                if total[k] > 0.0:
                    table[r, k] = new[k]


@kernel
def _logarithms(x: F64, floor: float) -> None:
    """Replace x by log(x), at least floor; absolute error 2e-14.

    x = 2^e m with sqrt(1/2) <= m < sqrt(2), log m = 2 artanh((m - 1) / (m + 1)).  In a loop that
    the compiler makes vectors of, which calls of the library's logarithm are not.
    """
    for k in range(x.shape[0]):
        word = lanes.word(x[k])
        e = np.float64((word >> 52) - 1023)
        m = lanes.number((word & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000)
        if m > 1.4142135623730951:
            m, e = 0.5 * m, e + 1.0
        s = (m - 1.0) / (m + 1.0)
        q = s * s
        p = 1 / 3 + q * (1 / 5 + q * (1 / 7 + q * (1 / 9 + q * (1 / 11 + q * (1 / 13 + q / 15)))))
        value = e * 0.6931471805599453 + 2.0 * (s + s * q * p)
        x[k] = value if x[k] > 0.0 and value > floor else floor
