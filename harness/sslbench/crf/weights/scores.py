"""From weights to potentials and from potential gradients back to gradients.

Attributes come as entries, token by token (`occurrences`).  Gradients are parallel over shares of
the slots that have no attribute in common: each weight is written by one thread, its occurrences in
token order.  No atomics, no copies per thread, and the same bits for any number of threads.

Weights live in two places (`rowtable`): rows of a dense table (attribute codes >= 0) and, for
attributes with few columns, lists of pairs (codes <= -2); -1 is no attribute.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from sslbench.compiled import njit
from sslbench.crf.simd import lanes, rows
from sslbench.types import F64, I16, I32, I64, AnyArray, Bool

CHUNK = 256  # tokens per parallel task in `node_scores`
LISTS_AHEAD = 6
#: dense columns: tokens per task for scores, and shares of the columns for gradients
COLUMN_TOKENS, COLUMN_SHARES = 256, 4
EDGE_CHUNK = 16  # the same for edges: their sums stay in the first-level cache


@njit(cache=True, nogil=True, error_model="numpy")
def _code(ids, number, s, n):  # type: ignore[no-untyped-def]
    """Engine code of slot s at token n; an empty `number` means the ids themselves."""
    i = ids[s, n]
    return i if number.shape[0] == 0 else number[i]


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def count_entries(
    ids: I32, number: I32, slots: I32, list_start: I64, spelled: bool, n_rows: I32, n_lists: I32
) -> None:
    """n_rows[n * G + g + 1], n_lists[...] += dense rows and lists of share g at token n.

    ids int32[S, N] attributes; number int32[A + 1] engine codes; slots int32[G + 1] the shares;
    spelled: count the weights of the lists instead.
    """
    G = slots.shape[0] - 1
    for n in prange(ids.shape[1]):
        for g in range(G):
            for s in range(slots[g], slots[g + 1]):
                i = _code(ids, number, s, n)
                if i >= 0:
                    n_rows[n * G + g + 1] += 1
                elif i < -1:
                    size = list_start[-1 - i] - list_start[-2 - i]
                    n_lists[n * G + g + 1] += size if spelled else min(size, 1)


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def fill_entries(
    ids: I32,
    number: I32,
    list_start: I64,
    list_column: I16,
    spelled: bool,
    row_border: I32,
    row: I32,
    list_border: I32,
    item: I32,
    extra: I16,
    shares: int,
) -> None:
    """The entries that `count_entries` counted; borders are now cumulated."""
    for n in prange(ids.shape[1]):
        r, p = row_border[n * shares], list_border[n * shares]
        for s in range(ids.shape[0]):
            i = _code(ids, number, s, n)
            if i >= 0:
                row[r] = i
                r += 1
            elif i < -1:
                begin, end = list_start[-2 - i], list_start[-1 - i]
                if spelled:
                    for k in range(begin, end):
                        item[p], extra[p] = k, list_column[k]
                        p += 1
                elif begin < end:
                    item[p], extra[p] = begin, end - begin
                    p += 1


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def node_scores(
    row_border: I32,
    row: I32,
    list_border: I32,
    item: I32,
    label: I16,
    shares: int,
    lo: int,
    table: F64,
    list_weight: F64,
    out: F64,
) -> None:
    """out[n, :] = sum of the weights of token lo + n's attributes (entries as in `occurrences`).

    table float64[D, L] dense rows; list_weight float64[K]; out float64[n, L].
    """
    N, L = out.shape
    flat = out.reshape(N * L)
    for c in prange((N + CHUNK - 1) // CHUNK):
        begin, end = c * CHUNK, min(N, (c + 1) * CHUNK)
        for n in range(begin, end):
            i = (lo + n) * shares
            rows.sum_rows(row, row_border[i], row_border[i + shares], table, 0, L, flat, n * L)
        # in a loop of their own: a number just written as part of a row is slow to read again
        for n in range(begin, end):
            i = (lo + n) * shares
            for e in range(list_border[i], list_border[i + shares]):
                flat[n * L + label[e]] += list_weight[item[e]]


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def node_gradient(
    row_border: I32,
    row: I32,
    list_border: I32,
    item: I32,
    label: I16,
    shares: int,
    lo: int,
    omega: F64,
    table: F64,
    list_weight: F64,
) -> None:
    """Transpose of `node_scores`: add omega float64[n, L] to the weights of each token."""
    N, L = omega.shape
    flat = omega.reshape(N * L)
    for g in prange(shares):
        for begin in range(0, N, CHUNK):
            end = min(N, begin + CHUNK)
            for n in range(begin, end):
                i = (lo + n) * shares + g
                rows.add_to_rows(row, row_border[i], row_border[i + 1], flat, n * L, table, 0, L)
            for n in range(begin, end):
                i = (lo + n) * shares + g
                for e in range(list_border[i], list_border[i + 1]):
                    list_weight[item[e]] += flat[n * L + label[e]]


@njit(cache=True, nogil=True, error_model="numpy")
def _prefetch_list(item, e, weight):  # type: ignore[no-untyped-def]
    """Ask for the weights of a list that comes soon: lists lie anywhere, and are short."""
    k = item[min(e + LISTS_AHEAD, item.shape[0] - 1)]
    lanes.prefetch(weight, k)
    lanes.prefetch(weight, k + 8)


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def edge_scores(
    row_border: I32,
    row: I32,
    list_border: I32,
    item: I32,
    size: I16,
    shares: int,
    lo: int,
    first: Bool,
    w: F64,
    arcs: I32,
    inner: int,
    table: F64,
    list_column: I16,
    list_weight: F64,
    node: F64,
    edge: F64,
) -> None:
    """edge[n] = w + arc weights of token lo + n's edge attributes; START arcs go to node[n].

    arcs int32[K] codes a*L+b, from `inner` on those that leave START (a = L); columns of table
    float64[D, K] and of the lists are numbers into them.  first bool[n] marks sentence starts;
    w float64[L, L]; node float64[n, L] (added to), edge float64[n, L, L] (overwritten).
    """
    N, L = node.shape
    K = arcs.shape[0]
    for c in prange((N + EDGE_CHUNK - 1) // EDGE_CHUNK):
        begin, end = c * EDGE_CHUNK, min(N, (c + 1) * EDGE_CHUNK)
        sums = np.empty((EDGE_CHUNK, K))
        flat = sums.reshape(EDGE_CHUNK * K)
        for n in range(begin, end):
            i, q = (lo + n) * shares, inner if first[n] else 0
            width = (K if first[n] else inner) - q
            rows.sum_rows(
                row,
                row_border[i],
                row_border[i + shares],
                table,
                q,
                width,
                flat,
                (n - begin) * K + q,
            )
        for n in range(begin, end):  # apart, as in `node_scores`
            i, here = (lo + n) * shares, (n - begin) * K
            for e in range(list_border[i], list_border[i + shares]):
                _prefetch_list(item, e, list_weight)
                for k in range(item[e], item[e] + size[e]):
                    flat[here + list_column[k]] += list_weight[k]
        for n in range(begin, end):
            for a in range(L):
                for b in range(L):
                    edge[n, a, b] = w[a, b]
            if first[n]:
                for k in range(inner, K):
                    node[n, arcs[k] - L * L] += sums[n - begin, k]
            else:
                out = edge[n].reshape(L * L)
                for k in range(inner):
                    out[arcs[k]] += sums[n - begin, k]


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def edge_gradient(
    row_border: I32,
    row: I32,
    list_border: I32,
    item: I32,
    size: I16,
    shares: int,
    lo: int,
    first: Bool,
    arcs: I32,
    inner: int,
    node: F64,
    edge: F64,
    table: F64,
    list_column: I16,
    list_weight: F64,
) -> None:
    """Transpose of `edge_scores` for the arc weights, which are added to."""
    N, L = node.shape
    K = arcs.shape[0]
    for g in prange(shares):
        omega = np.zeros((EDGE_CHUNK, K))
        flat = omega.reshape(EDGE_CHUNK * K)
        for begin in range(0, N, EDGE_CHUNK):
            end = min(N, begin + EDGE_CHUNK)
            for n in range(begin, end):
                source = edge[n].reshape(L * L)
                for k in range(inner):
                    omega[n - begin, k] = 0.0 if first[n] else source[arcs[k]]
                for k in range(inner, K):
                    omega[n - begin, k] = node[n, arcs[k] - L * L] if first[n] else 0.0
            for n in range(begin, end):
                i, q = (lo + n) * shares + g, inner if first[n] else 0
                width = (K if first[n] else inner) - q
                rows.add_to_rows(
                    row,
                    row_border[i],
                    row_border[i + 1],
                    flat,
                    (n - begin) * K + q,
                    table,
                    q,
                    width,
                )
            for n in range(begin, end):
                i, here = (lo + n) * shares + g, (n - begin) * K
                for e in range(list_border[i], list_border[i + 1]):
                    _prefetch_list(item, e, list_weight)
                    for k in range(item[e], item[e] + size[e]):
                        list_weight[k] += flat[here + list_column[k]]


@njit(cache=True, nogil=True, error_model="numpy")
def _not_zero(row, columns):  # type: ignore[no-untyped-def]
    """Numbers of the columns that are not 0 into columns int32[>= D]; how many.

    Pixels are mostly 0, and a branch on each would be guessed wrong as often as not.
    """
    count = 0
    for d in range(row.shape[0]):
        columns[count] = d
        count += row[d] != 0.0
    return count


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def column_scores(values: F64, weight: F64, out: F64) -> None:
    """Dense columns: out float64[n, L] += values float64[n, D] @ weight float64[D, L]."""
    N, D = values.shape
    L = weight.shape[1]
    for first in prange((N + COLUMN_TOKENS - 1) // COLUMN_TOKENS):
        columns, factors = np.empty(D + 1, np.int32), np.empty(D)
        for n in range(first * COLUMN_TOKENS, min(N, (first + 1) * COLUMN_TOKENS)):
            count = _not_zero(values[n], columns)
            for e in range(count):
                factors[e] = values[n, columns[e]]
            rows.add_weighted_rows(columns, factors, count, weight, 0, L, out, n * L)


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def column_gradient(values: F64, omega: F64, weight: F64) -> None:
    """Transpose of `column_scores`: weight float64[D, L] += values^T omega.

    Each thread has columns of its own, and goes through all tokens.
    """
    N, D = values.shape
    L = weight.shape[1]
    for share in prange(COLUMN_SHARES):
        begin, end = D * share // COLUMN_SHARES, D * (share + 1) // COLUMN_SHARES
        columns = np.empty(D + 1, np.int32)
        for n in range(N):
            for e in range(_not_zero(values[n, begin:end], columns)):
                d = begin + columns[e]
                f = lanes.splat(values[n, d])
                for k in range(0, L, lanes.WIDTH):
                    tail = lanes.first(L - k)
                    old = lanes.load_first(weight, d * L + k, tail, 0.0)
                    own = lanes.load_first(omega, n * L + k, tail, 0.0)
                    lanes.store_first(weight, d * L + k, tail, lanes.fma(f, own, old))


@njit(cache=True, nogil=True, error_model="numpy")
def path_scores(node: F64, edge: F64, offsets: I64, labels: I32, out: F64) -> None:
    """out[n] = phi_t(y_{t-1}, y_t) along the labels int32[n] of each sentence."""
    for i in range(offsets.shape[0] - 1):
        for n in range(offsets[i], offsets[i + 1]):
            y = labels[n]
            out[n] = node[n, y]
            if n > offsets[i]:
                out[n] += edge[n if edge.shape[0] > 1 else 0, labels[n - 1], y]


@njit(cache=True, nogil=True, error_model="numpy")
def add_path(offsets: I64, labels: I32, scale: F64, node: F64, edge: F64) -> None:
    """Clique indicators of a labeling: node[n, y] and edge[., y', y] += scale[sentence]."""
    for i in range(offsets.shape[0] - 1):
        for n in range(offsets[i], offsets[i + 1]):
            y = labels[n]
            node[n, y] += scale[i]
            if n > offsets[i]:
                edge[n if edge.shape[0] > 1 else 0, labels[n - 1], y] += scale[i]


@njit(cache=True, nogil=True, error_model="numpy")
def supported_pairs(codes: I32, labels: I32, n_attributes: int, n_labels: int) -> Bool:
    """bool[A, L]: does the attribute occur with the label?  codes int32[S, n], labels int32[n]."""
    seen = np.zeros((n_attributes, n_labels), np.bool_)
    for s in range(codes.shape[0]):
        for n in range(codes.shape[1]):
            i = codes[s, n]
            if i >= 0 and labels[n] >= 0:
                seen[i, labels[n]] = True
    return seen


@njit(cache=True, nogil=True, error_model="numpy")
def occurrence_hash(codes: I32, tokens: AnyArray, keys: AnyArray, counts: I64) -> None:
    """keys[attribute] += key of each token where it occurs (uint64, wrapping); counts likewise."""
    for s in range(codes.shape[0]):
        for n in range(codes.shape[1]):
            i = codes[s, n]
            if i >= 0:
                keys[i] += tokens[n]
                counts[i] += 1
