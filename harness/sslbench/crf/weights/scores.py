"""Scores of tokens from weights, and gradients of the weights from potential gradients.

A slope is the derivative of the value by a log-potential.  The weights of a token come as
`Occurrences`; rows and lists are those of `RowTable`.  Gradients are parallel over shares, of which
each weight is in one: the same bits for any number of threads.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from sslbench.compiled import chunks, kernel, parallel_kernel
from sslbench.crf.simd import lanes, rows
from sslbench.crf.weights.occurrences import Occurrences
from sslbench.types import F64, I16, I32, Bool

#: tokens per parallel task; of edges fewer, so that their sums stay in the first-level cache
CHUNK, EDGE_CHUNK = 256, 16
#: how many lists ahead are fetched into the cache
LISTS_AHEAD = 6
#: dense columns: tokens per task for scores, and shares of the columns for gradients
COLUMN_TOKENS, COLUMN_SHARES = 256, 4
#: column 0, not as a literal, for which functions would be compiled once more
FIRST: int = cast("int", np.int64(0))


class EdgeWeights(NamedTuple):
    """Weights of edge attributes, or their gradient.

    transitions: int32[K] codes a*L + b that any edge attribute has a weight for, ascending (a = L
    is START); inner: how many of them do not leave START.
    table: float64[D, K] dense rows; list_column: int16[n] (int32 of wide tables), lists:
    float64[n]; columns are indices into transitions.
    """

    transitions: I32
    inner: int
    table: F64
    list_column: I16 | I32
    lists: F64


@parallel_kernel(lambda entries, lo, table, lists, out: chunks(len(out), CHUNK))
def node_scores(
    begin: int, end: int, entries: Occurrences, lo: int, table: F64, lists: F64, out: F64
) -> None:
    """out[n, :] = sum of the weights of the attributes of token lo + n.

    entries: with lists spelled out; table float64[D, L] dense rows; lists float64[K];
    out float64[n, L].
    """
    row_border, row, list_border, item, column, shares = entries
    N, L = out.shape
    flat = out.reshape(N * L)
    for c in range(begin, end):
        tokens = range(c * CHUNK, min(N, (c + 1) * CHUNK))
        for n in tokens:
            i = (lo + n) * shares
            first, last = row_border[i], row_border[i + shares]
            rows.sum_rows(row, first, last, table, FIRST, L, flat, n * L)
        # in a loop of its own: a number just written as part of a row is slow to read again
        for n in tokens:
            i = (lo + n) * shares
            for e in range(list_border[i], list_border[i + shares]):
                flat[n * L + column[e]] += lists[item[e]]


@parallel_kernel(lambda entries, *_: entries.shares)
def node_gradient(
    begin: int, end: int, entries: Occurrences, lo: int, slope: F64, table: F64, lists: F64
) -> None:
    """Transpose of `node_scores`: add slope float64[n, L] to the weights of each token."""
    row_border, row, list_border, item, column, shares = entries
    N, L = slope.shape
    flat = slope.reshape(N * L)
    for g in range(begin, end):
        for c in range(0, N, CHUNK):
            tokens = range(c, min(N, c + CHUNK))
            for n in tokens:
                i = (lo + n) * shares + g
                first, last = row_border[i], row_border[i + 1]
                rows.add_to_rows(row, first, last, flat, n * L, table, FIRST, L)
            for n in tokens:
                i = (lo + n) * shares + g
                for e in range(list_border[i], list_border[i + 1]):
                    lists[item[e]] += flat[n * L + column[e]]


@kernel
def _prefetch_list(item: I32, e: int, lists: F64) -> None:
    """Fetch the weights of a list that comes soon: lists are short and anywhere in memory."""
    k = item[min(e + LISTS_AHEAD, item.shape[0] - 1)]
    lanes.prefetch(lists, k)
    lanes.prefetch(lists, k + 8)


@parallel_kernel(lambda entries, lo, first, weights, w, node, edge: chunks(len(node), EDGE_CHUNK))
def edge_scores(
    begin: int,
    end: int,
    entries: Occurrences,
    lo: int,
    first: Bool,
    weights: EdgeWeights,
    w: F64,
    node: F64,
    edge: F64,
) -> None:
    """edge[n] = w + weights of the edge attributes of token lo + n; node[n] += those from START.

    entries: with lists not spelled out; first bool[n]: is the token the first of its sentence?
    w float64[L, L]; node float64[n, L]; edge float64[n, L, L].
    """
    row_border, row, list_border, item, size, shares = entries
    transitions, inner, table, list_column, lists = weights
    N, L = node.shape
    K = transitions.shape[0]
    sums = np.empty((EDGE_CHUNK, K))
    flat = sums.reshape(EDGE_CHUNK * K)
    for c in range(begin, end):
        chunk = c * EDGE_CHUNK
        tokens = range(chunk, min(N, chunk + EDGE_CHUNK))
        for n in tokens:
            i, q = (lo + n) * shares, inner if first[n] else 0
            lowest, highest = row_border[i], row_border[i + shares]
            width, at = (K if first[n] else inner) - q, (n - chunk) * K + q
            rows.sum_rows(row, lowest, highest, table, q, width, flat, at)
        for n in tokens:  # apart, as in `node_scores`
            i, here = (lo + n) * shares, (n - chunk) * K
            for e in range(list_border[i], list_border[i + shares]):
                _prefetch_list(item, e, lists)
                for k in range(item[e], item[e] + size[e]):
                    flat[here + list_column[k]] += lists[k]
        for n in tokens:
            for a in range(L):
                for b in range(L):
                    edge[n, a, b] = w[a, b]
            if first[n]:
                for k in range(inner, K):
                    node[n, transitions[k] - L * L] += sums[n - chunk, k]
            else:
                out = edge[n].reshape(L * L)
                for k in range(inner):
                    out[transitions[k]] += sums[n - chunk, k]


@parallel_kernel(lambda entries, *_: entries.shares)
def edge_gradient(
    begin: int,
    end: int,
    entries: Occurrences,
    lo: int,
    first: Bool,
    node_slope: F64,
    edge_slope: F64,
    gradient: EdgeWeights,
) -> None:
    """Transpose of `edge_scores`: add the slopes to the weights of each token."""
    row_border, row, list_border, item, size, shares = entries
    transitions, inner, table, list_column, lists = gradient
    N, L = node_slope.shape
    K = transitions.shape[0]
    slope = np.zeros((EDGE_CHUNK, K))
    flat = slope.reshape(EDGE_CHUNK * K)
    for g in range(begin, end):
        for chunk in range(0, N, EDGE_CHUNK):
            tokens = range(chunk, min(N, chunk + EDGE_CHUNK))
            for n in tokens:
                source = edge_slope[n].reshape(L * L)
                for k in range(inner):
                    slope[n - chunk, k] = 0.0 if first[n] else source[transitions[k]]
                for k in range(inner, K):
                    start = transitions[k] - L * L
                    slope[n - chunk, k] = node_slope[n, start] if first[n] else 0.0
            for n in tokens:
                i, q = (lo + n) * shares + g, inner if first[n] else 0
                lowest, highest = row_border[i], row_border[i + 1]
                width, at = (K if first[n] else inner) - q, (n - chunk) * K + q
                rows.add_to_rows(row, lowest, highest, flat, at, table, q, width)
            for n in tokens:
                i, here = (lo + n) * shares + g, (n - chunk) * K
                for e in range(list_border[i], list_border[i + 1]):
                    _prefetch_list(item, e, lists)
                    for k in range(item[e], item[e] + size[e]):
                        lists[k] += flat[here + list_column[k]]


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
