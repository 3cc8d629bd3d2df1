"""Scores of tokens from weights, and gradients of the weights from potential gradients.

A slope is the derivative of the value by a log-potential.  The weights of a token come as
`TokenSums`; rows and lists are those of `RowTable`.  Gradients are parallel over shares, of which
each weight is in one: the same bits for any number of threads.

Places in inner loops are unsigned: of others the compiler would have to check whether they are
negative, that is, counted from the end.

`sums` float64[B, K] is the table of the bundles: sums of the weights of each, or, in a gradient,
sums of the slopes of its tokens.  The functions that fill it or spread it take the members of the
bundles for tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import chunks, kernel, parallel_kernel
from sslbench.engine.crf.simd import lanes, rows
from sslbench.engine.crf.simd.lanes import Mask, Vector
from sslbench.engine.crf.simd.rows import ZERO
from sslbench.engine.crf.weights.bundles import TokenSums
from sslbench.engine.crf.weights.occurrences import BLOCK
from sslbench.engine.types import F64, I16, I32, Bool

#: tokens of edges per parallel task: few, so that their sums stay in the first-level cache
EDGE_CHUNK = 16
#: how many rows, weights and lists ahead these are fetched into the cache
ROWS_AHEAD, ITEMS_AHEAD, LISTS_AHEAD = 16, 24, 6
#: dense columns: tokens per task for scores, and shares of the columns for gradients
COLUMN_TOKENS, COLUMN_SHARES = 256, 4


class EdgeWeights(NamedTuple):
    """Weights of edge attributes, or their gradient.

    transitions: int32[K] codes a*L + b that any edge attribute has a weight for, ascending (a = L
    is START); inner: how many of them do not leave START.
    table: float64[D, stride(K)] dense rows; list_column: int16[n] (int32 of wide tables), lists:
    float64[n]; columns are indices into transitions.
    """

    transitions: I32
    inner: int
    table: F64
    list_column: I16 | I32
    lists: F64


def _blocks(lo: int, n: int) -> int:
    """Number of blocks that tokens lo up to lo + n are in."""
    return (lo + n + BLOCK - 1) // BLOCK - lo // BLOCK


@kernel
def prefetch_rows(row: I32, begin: int, end: int, table: F64) -> None:
    """Fetch rows of weights that are needed soon."""
    K = table.shape[1]
    for e in range(begin, end):
        for k in range(0, K, 8):
            lanes.prefetch(table, row[e] * K + k)


@kernel
def fetch_row(r: int, table: F64) -> None:
    """Fetch 16 numbers of a table, counted flat, that are needed soon."""
    lanes.prefetch(table, r)
    lanes.prefetch(table, r + lanes.WIDTH)


@kernel
def add_to_row(r: int, left: Mask, right: Mask, s0: Vector, s1: Vector, table: F64) -> None:
    """table[r:r+16] += s0, s1, counted flat, where the masks of the two registers are set."""
    old = lanes.load_first(table, r, left, 0.0)
    lanes.store_first(table, r, left, lanes.add(old, s0))
    old = lanes.load_first(table, r + lanes.WIDTH, right, 0.0)
    lanes.store_first(table, r + lanes.WIDTH, right, lanes.add(old, s1))


@kernel
def prefetch_list(item: I32, e: int, lists: F64) -> None:
    """Fetch the beginning of a list that is needed soon."""
    lanes.prefetch(lists, item[min(e, item.shape[0] - 1)])


@kernel
def sum_nodes(entries: TokenSums, lo: int, table: F64, lists: F64, sums: F64, out: F64) -> None:
    """`node_scores` in one thread."""
    bundle, _, row_border, row, list_border, item, cell, shares = entries
    N, G = bundle.shape
    L = out.shape[1]
    flat, bundles = out.reshape(out.shape[0] * L), bundle.reshape(N * G)
    final_bundle, final_row = len(bundles) - 1, len(row) - 1
    for c in range(lo // BLOCK, (lo + len(out) + BLOCK - 1) // BLOCK):
        first, last = max(lo, c * BLOCK), min(lo + len(out), (c + 1) * BLOCK)
        for n in range(first, last):
            b, e = row_border[n * shares] + ZERO, row_border[(n + 1) * shares] + ZERO
            for k in range(0, L, rows.WIDE):  # not `rows.sum_rows`: a call per token takes as long
                left, right = lanes.first(L - k), lanes.first(L - k - lanes.WIDTH)
                s0 = s1 = lanes.splat(0.0)
                for j in range(n * G, (n + 1) * G):
                    fetch_row(bundles[min(j + ROWS_AHEAD, final_bundle)] * L + k, sums)
                    r = bundles[j] * L + k
                    s0 = lanes.add(s0, lanes.load_first(sums, r, left, 0.0))
                    s1 = lanes.add(s1, lanes.load_first(sums, r + lanes.WIDTH, right, 0.0))
                for j in range(b, e):
                    fetch_row(row[min(j + ROWS_AHEAD, final_row)] * L + k, table)
                    r = row[j] * L + k
                    s0 = lanes.add(s0, lanes.load_first(table, r, left, 0.0))
                    s1 = lanes.add(s1, lanes.load_first(table, r + lanes.WIDTH, right, 0.0))
                i = (n - lo) * L + k
                lanes.store_first(flat, i, left, s0)
                lanes.store_first(flat, i + lanes.WIDTH, right, s1)
        # Apart: a number just written as part of a row is slow to read again.  A loop per token
        # would be slow, too: the processor cannot predict its length.
        at = (c * BLOCK - lo) * L
        for g in range(shares):
            for e in range(list_border[g * N + first], list_border[g * N + last]):
                prefetch_list(item, e + ITEMS_AHEAD, lists)
                flat[np.uint64(at + cell[e])] += lists[np.uint64(item[e])]


@parallel_kernel(lambda entries, lo, *others: _blocks(lo, len(others[-1])))
def node_scores(
    begin: int, end: int, entries: TokenSums, lo: int, table: F64, lists: F64, sums: F64, out: F64
) -> None:
    """out[n, :] = sum of the weights of the attributes of token lo + n.

    entries: with lists spelled out; table float64[D, L] dense rows; lists float64[K];
    out float64[n, L].
    """
    first = max(lo, (lo // BLOCK + begin) * BLOCK)
    last = min(lo + len(out), (lo // BLOCK + end) * BLOCK)
    sum_nodes(entries, first, table, lists, sums, out[first - lo : last - lo])


@kernel
def add_nodes(
    entries: TokenSums, g: int, lo: int, slope: F64, table: F64, lists: F64, sums: F64
) -> None:
    """`node_gradient` for share g."""
    bundle, cut, row_border, row, list_border, item, cell, shares = entries
    N, G = bundle.shape
    L = slope.shape[1]
    flat, bundles = slope.reshape(slope.shape[0] * L), bundle.reshape(N * G)
    final_bundle, final_row = len(bundles) - 1, len(row) - 1
    for c in range(lo // BLOCK, (lo + len(slope) + BLOCK - 1) // BLOCK):
        first, last = max(lo, c * BLOCK), min(lo + len(slope), (c + 1) * BLOCK)
        for n in range(first, last):
            b, e = row_border[n * shares + g] + ZERO, row_border[n * shares + g + 1] + ZERO
            for k in range(0, L, rows.WIDE):
                left, right = lanes.first(L - k), lanes.first(L - k - lanes.WIDTH)
                i = (n - lo) * L + k
                s0 = lanes.load_first(flat, i, left, 0.0)
                s1 = lanes.load_first(flat, i + lanes.WIDTH, right, 0.0)
                for j in range(n * G + cut[g], n * G + cut[g + 1]):
                    fetch_row(bundles[min(j + ROWS_AHEAD, final_bundle)] * L + k, sums)
                    add_to_row(bundles[j] * L + k, left, right, s0, s1, sums)
                for j in range(b, e):
                    fetch_row(row[min(j + ROWS_AHEAD, final_row)] * L + k, table)
                    add_to_row(row[j] * L + k, left, right, s0, s1, table)
        at = (c * BLOCK - lo) * L
        for e in range(list_border[g * N + first], list_border[g * N + last]):
            prefetch_list(item, e + ITEMS_AHEAD, lists)
            lists[np.uint64(item[e])] += flat[np.uint64(at + cell[e])]


@parallel_kernel(lambda entries, *_: entries.shares)
def node_gradient(
    begin: int, end: int, entries: TokenSums, lo: int, slope: F64, table: F64, lists: F64, sums: F64
) -> None:
    """Transpose of `node_scores`: add slope float64[n, L] to the weights of each token."""
    for g in range(begin, end):
        add_nodes(entries, g, lo, slope, table, lists, sums)


class EdgeTokens(NamedTuple):
    """Edge attributes of the tokens lo, lo + 1, ..., and the weights that they add up, or a
    gradient.

    entries: with lists not spelled out; first: bool[n], is the token the first of its sentence?
    Empty: each reads all columns; sums: float64[B, K].
    """

    entries: TokenSums
    lo: int
    first: Bool
    weights: EdgeWeights
    sums: F64


@kernel
def _columns(first: Bool, n: int, weights: EdgeWeights) -> tuple[int, int]:
    """Columns that token n reads: those of START, or the others; all where nothing is `first`."""
    K = weights.transitions.shape[0]
    if first.shape[0] == 0:
        return 0, K
    return (weights.inner, K) if first[n] else (0, weights.inner)


@kernel
def sum_edges(tokens: EdgeTokens, begin: int, end: int, out: F64) -> None:
    """out float64[n, K]: a row for each of the tokens lo + begin to lo + end."""
    entries, lo, first, weights, sums = tokens
    bundle, _, row_border, row, list_border, item, size, shares = entries
    column, table, lists = weights.list_column, weights.table, weights.lists
    K, (N, G) = out.shape[1], bundle.shape
    flat, bundles = out.reshape(out.shape[0] * K), bundle.reshape(N * G)
    for n in range(lo + begin, lo + end):
        low, high = _columns(first, n - lo, weights)
        b, e = row_border[n * shares] + ZERO, row_border[(n + 1) * shares] + ZERO
        at, w = (n - lo - begin) * K + low, high - low
        rows.sum_rows(bundles, n * G, (n + 1) * G, sums, row, b, e, table, low, w, flat, at)
    for g in range(shares):
        for n in range(lo + begin, lo + end):  # apart, as in `node_scores`
            at = (n - lo - begin) * K
            for e in range(list_border[g * N + n], list_border[g * N + n + 1]):
                prefetch_list(item, e + LISTS_AHEAD, lists)
                for k in range(np.uint64(item[e]), np.uint64(item[e] + size[e])):
                    flat[np.uint64(at + column[k])] += lists[k]


@kernel
def add_edges(tokens: EdgeTokens, begin: int, end: int, share: int, slope: F64) -> None:
    """Transpose of `sum_edges` for one share: slope float64[n, K] has a row for each token."""
    entries, lo, first, gradient, sums = tokens
    bundle, cut, row_border, row, list_border, item, size, shares = entries
    column, table, lists = gradient.list_column, gradient.table, gradient.lists
    K, (N, G) = slope.shape[1], bundle.shape
    flat, bundles = slope.reshape(slope.shape[0] * K), bundle.reshape(N * G)
    for n in range(lo + begin, lo + end):
        low, high = _columns(first, n - lo, gradient)
        at, i = (n - lo - begin) * K + low, n * shares + share
        b, e = n * G + cut[share], n * G + cut[share + 1]
        rows.add_to_rows(bundles, b, e, flat, at, sums, low, high - low)
        b, e = row_border[i] + ZERO, row_border[i + 1] + ZERO
        rows.add_to_rows(row, b, e, flat, at, table, low, high - low)
    for n in range(lo + begin, lo + end):
        at, i = (n - lo - begin) * K, share * N + n
        for e in range(list_border[i], list_border[i + 1]):
            prefetch_list(item, e + LISTS_AHEAD, lists)
            for k in range(np.uint64(item[e]), np.uint64(item[e] + size[e])):
                lists[k] += flat[np.uint64(at + column[k])]


@parallel_kernel(lambda members, out: chunks(len(out), EDGE_CHUNK))
def edge_sums(begin: int, end: int, members: EdgeTokens, out: F64) -> None:
    """out float64[B, K]: sums of the bundles of edge attributes."""
    for n in range(begin * EDGE_CHUNK, min(len(out), end * EDGE_CHUNK), EDGE_CHUNK):
        sum_edges(members, n, min(len(out), n + EDGE_CHUNK), out[n:])


@parallel_kernel(lambda members, _: members.entries.shares)
def spread_edge_sums(begin: int, end: int, members: EdgeTokens, sums: F64) -> None:
    """Transpose of `edge_sums`: sums float64[B, K] of slopes."""
    for share in range(begin, end):
        add_edges(members, 0, len(sums), share, sums)


@parallel_kernel(lambda tokens, *_: chunks(len(tokens.first), EDGE_CHUNK))
def edge_scores(begin: int, end: int, tokens: EdgeTokens, w: F64, node: F64, edge: F64) -> None:
    """edge[n] = w + weights of the edge attributes of token lo + n; node[n] += those from START.

    w float64[L, L]; node float64[n, L]; edge float64[n, L, L].
    """
    transitions, inner, first = tokens.weights.transitions, tokens.weights.inner, tokens.first
    N, L = node.shape
    K = transitions.shape[0]
    own = np.empty((EDGE_CHUNK, K))
    for c in range(begin, end):
        chunk, stop = c * EDGE_CHUNK, min(N, (c + 1) * EDGE_CHUNK)
        sum_edges(tokens, chunk, stop, own)
        for n in range(chunk, stop):
            scores = own[n - chunk]
            for a in range(L):
                for b in range(L):
                    edge[n, a, b] = w[a, b]
            if first[n]:
                for k in range(inner, K):
                    node[n, transitions[k] - L * L] += scores[k]
            else:
                out = edge[n].reshape(L * L)
                for k in range(inner):
                    out[np.uint64(transitions[k])] += scores[k]


@parallel_kernel(lambda tokens, *_: tokens.entries.shares)
def edge_gradient(
    begin: int, end: int, tokens: EdgeTokens, node_slope: F64, edge_slope: F64
) -> None:
    """Transpose of `edge_scores`: add the slopes to the weights of each token."""
    transitions, inner, first = tokens.weights.transitions, tokens.weights.inner, tokens.first
    N, L = node_slope.shape
    K = transitions.shape[0]
    slope = np.zeros((EDGE_CHUNK, K))
    for share in range(begin, end):
        for chunk in range(0, N, EDGE_CHUNK):
            stop = min(N, chunk + EDGE_CHUNK)
            for n in range(chunk, stop):
                own, source = slope[n - chunk], edge_slope[n].reshape(L * L)
                for k in range(inner):
                    own[k] = 0.0 if first[n] else source[np.uint64(transitions[k])]
                for k in range(inner, K):
                    own[k] = node_slope[n, transitions[k] - L * L] if first[n] else 0.0
            add_edges(tokens, chunk, stop, share, slope)


@parallel_kernel(lambda tokens, *_: chunks(len(tokens.first), EDGE_CHUNK))
def live_scores(begin: int, end: int, tokens: EdgeTokens, node: F64, out: F64) -> None:
    """out float64[n, K] = weights of the edge attributes of token lo + n, 0 at first tokens and for
    transitions from START; those are added to node float64[n, L].
    """
    transitions, inner, first = tokens.weights.transitions, tokens.weights.inner, tokens.first
    N, L = node.shape
    K = transitions.shape[0]
    for n in range(begin * EDGE_CHUNK, min(N, end * EDGE_CHUNK), EDGE_CHUNK):
        sum_edges(tokens, n, min(N, n + EDGE_CHUNK), out[n : min(N, n + EDGE_CHUNK)])
    for n in range(begin * EDGE_CHUNK, min(N, end * EDGE_CHUNK)):
        if first[n]:
            for k in range(inner, K):
                node[n, transitions[k] - L * L] += out[n, k]
        for k in range(0 if first[n] else inner, K):
            out[n, k] = 0.0


@parallel_kernel(lambda tokens, *_: tokens.entries.shares)
def live_gradient(begin: int, end: int, tokens: EdgeTokens, slope: F64) -> None:
    """Transpose of `live_scores`: add slope float64[n, K] to the weights of each token.

    The slopes of the transitions from START are those of the nodes of first tokens.
    """
    N = slope.shape[0]
    for share in range(begin, end):
        for n in range(0, N, EDGE_CHUNK):
            add_edges(tokens, n, min(N, n + EDGE_CHUNK), share, slope[n : min(N, n + EDGE_CHUNK)])


@kernel
def _not_zero(row: F64, columns: I32) -> int:
    """Put the numbers of the columns that are not 0 into columns int32[> D]; return how many.

    Without a branch per number: of pixels the processor would predict many wrong.
    """
    count = 0
    for d in range(row.shape[0]):
        columns[count] = d
        count += row[d] != 0.0
    return count


@parallel_kernel(lambda values, *_: chunks(len(values), COLUMN_TOKENS))
def column_scores(begin: int, end: int, values: F64, weight: F64, out: F64) -> None:
    """out float64[n, L] += values float64[n, D] @ weight float64[D, L], for dense columns."""
    N, D = values.shape
    L = weight.shape[1]
    columns, factors = np.empty(D + 1, np.int32), np.empty(D)
    for n in range(begin * COLUMN_TOKENS, min(N, end * COLUMN_TOKENS)):
        count = _not_zero(values[n], columns)
        for e in range(count):
            factors[e] = values[n, columns[e]]
        rows.add_weighted_rows(columns, factors, count, weight, 0, L, out, n * L)


@parallel_kernel(lambda *_: COLUMN_SHARES)
def column_gradient(begin: int, end: int, values: F64, slope: F64, weight: F64) -> None:
    """Transpose of `column_scores`: weight float64[D, L] += values^T slope, slope float64[n, L].

    Each thread has columns of its own and goes through all tokens.
    """
    N, D = values.shape
    L = weight.shape[1]
    columns = np.empty(D + 1, np.int32)
    for share in range(begin, end):
        low, high = D * share // COLUMN_SHARES, D * (share + 1) // COLUMN_SHARES
        for n in range(N):
            for e in range(_not_zero(values[n, low:high], columns)):
                d = low + columns[e]
                f = lanes.splat(values[n, d])
                for k in range(0, L, lanes.WIDTH):
                    tail = lanes.first(L - k)
                    old = lanes.load_first(weight, d * L + k, tail, 0.0)
                    own = lanes.load_first(slope, n * L + k, tail, 0.0)
                    lanes.store_first(weight, d * L + k, tail, lanes.fma(f, own, old))
