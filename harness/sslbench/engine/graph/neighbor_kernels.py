"""Compiled loops of the neighbor search: the k largest dot products of every sparse row.

Columns are numbered by document frequency, rarest first, and every dot product is summed in that
order in float64. A product of two float32 numbers is exact there, so a similarity has the same bits
by either search, in both directions, and on any processor.

A row is first searched by its rare columns. Their posting lists are added until bounds on the sum
over the frequent columns show that no further vertex can be among the k best; the remaining
candidates are completed by sparse products. If this costs too much, the row is searched in full,
tile by tile of the other vertices: frequent columns are added as dense vectors, and one pass reads
the sums, compares several at a time with the k-th best, and clears them (docs/specs/graph.md,
sections 9.2 and 9.3).

The k best of a row are a heap with the worst at its root; of equal similarities the smaller vertex
ranks higher.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import chunks, inline_kernel, kernel, parallel_kernel
from sslbench.engine.types import F32, F64, I32, I64

NEARLY_ZERO = 1e-300
"""Replaces a sum that cancels to 0, since 0 marks untouched sums; adding to it is exact."""

POSITIVE = 1e-200
"""Similarities above this count as positive."""

SLACK = 1e-9
"""Far above the rounding error of a bound."""

CHUNK = 32  # sums that are compared with the k-th best at once
HEAP = 128  # cost of a place on the heap in a check that seldom pays, in multiply-adds
COMPLETING = 16  # cost of completing a candidate, in multiply-adds
ROWS = 64  # rows of a task of the full search
BLOCK = 1024  # rows of a task elsewhere


class Index(NamedTuple):
    """Rows and posting lists of the columns with df > 1, which are sorted by df.

    ptr, column, value: the rows. start, row, weight: the columns, row numbers ascending.
    high, low: largest and smallest value of each column, 0 included.
    tail: tail[f] is the largest norm of any row in the columns f, f + 1, ...
    """

    ptr: I64
    column: I32
    value: F32
    start: I64
    row: I32
    weight: F32
    high: F64
    low: F64
    tail: F64


class Lists(NamedTuple):
    """The k best of some rows, int64[R]: similarities float64[R, k] and vertices int32[R, k]."""

    rows: I64
    sims: F64
    ids: I32


# -- the k best ------------------------------------------------------------------------------------
@inline_kernel
def _worse(s: float, j: int, s2: float, j2: int) -> bool:
    return s < s2 or (s == s2 and j > j2)


@kernel
def _sift_down(sims: F64, ids: I32, size: int) -> None:
    """Restore the heap after its root was replaced."""
    s, j = sims[0], ids[0]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _worse(sims[child + 1], ids[child + 1], sims[child], ids[child]):
            child += 1
        if not _worse(sims[child], ids[child], s, j):
            break
        sims[at], ids[at] = sims[child], ids[child]
        at = child
    sims[at], ids[at] = s, j


@kernel
def offer(sims: F64, ids: I32, size: int, s: float, j: int) -> int:
    """Put (s, j) on the heap if it is among the best; returns the new size of the heap."""
    if size < len(sims):
        at = size
        while at > 0 and _worse(s, j, sims[(at - 1) // 2], ids[(at - 1) // 2]):
            sims[at], ids[at] = sims[(at - 1) // 2], ids[(at - 1) // 2]
            at = (at - 1) // 2
        sims[at], ids[at] = s, j
        return size + 1
    if _worse(sims[0], ids[0], s, j):
        sims[0], ids[0] = s, j
        _sift_down(sims, ids, size)
    return size


@kernel
def best_first(sims: F64, ids: I32, size: int) -> None:
    """Turn a heap into a list, best first, padded with -1 and 0."""
    for end in range(size - 1, 0, -1):
        sims[0], sims[end] = sims[end], sims[0]
        ids[0], ids[end] = ids[end], ids[0]
        _sift_down(sims, ids, end)
    ids[size:] = -1
    sims[size:] = 0.0


# -- by the rare columns first ---------------------------------------------------------------------
@kernel
def _add(index: Index, f: int, v: float, acc: F64, touched: I32, n: int) -> int:
    """acc += v * column f; rows that were untouched join `touched`, whose length is returned.

    Branch-free: the branches would be unpredictable.
    """
    for p in range(index.start[f], index.start[f + 1]):
        j = np.uint32(index.row[p])  # a signed number might count from the end
        old = acc[j]
        touched[n] = index.row[p]
        n += old == 0.0
        new = old + v * index.weight[p]
        acc[j] = new if new != 0.0 else NEARLY_ZERO
    return n


@kernel
def _bounds(index: Index, i: int, e: int) -> tuple[float, float]:
    """Upper and lower bound on what the entries e, e + 1, ... of row i add to any similarity."""
    up, down, square = 0.0, 0.0, 0.0
    for at in range(e, index.ptr[i + 1]):
        v = np.float64(index.value[at])
        f = index.column[at]
        up += max(v * index.high[f], v * index.low[f])
        down += min(v * index.high[f], v * index.low[f])
        square += v * v
    most = np.sqrt(square) * index.tail[index.column[e]]
    return min(up, most), max(down, -most)


@kernel
def _complete(index: Index, i: int, e: int, j: int, s: float) -> float:
    """s plus the products of rows i and j over the entries e, e + 1, ... of row i."""
    begin, b = index.ptr[j], index.ptr[j + 1]
    while b > begin and index.column[b - 1] >= index.column[e]:
        b -= 1
    for a in range(e, index.ptr[i + 1]):
        f = index.column[a]
        while b < index.ptr[j + 1] and index.column[b] < f:
            b += 1
        if b < index.ptr[j + 1] and index.column[b] == f:
            s += np.float64(index.value[a]) * index.value[b]
    return s


@kernel
def _best(touched: I32, n: int, acc: F64, i: int, sims: F64, ids: I32) -> int:
    """Put the best of the current sums on the heap; returns its size."""
    size, least = 0, POSITIVE
    for t in range(n):
        j = touched[t]
        if acc[j] >= least and j != i:
            size = offer(sims, ids, size, acc[j], j)
            if size == len(sims):
                least = sims[0]
    return size


@kernel
def _finish(
    index: Index, i: int, e: int, least: float, touched: I32, n: int, acc: F64, sims: F64, ids: I32
) -> int:
    """Complete the sums that are at least `least`, put the best on the heap; returns its size."""
    size = 0
    for t in range(n):
        j = touched[t]
        if acc[j] >= least and acc[j] > POSITIVE and j != i:
            s = _complete(index, i, e, j, acc[j]) if e < index.ptr[i + 1] else acc[j]
            if s > POSITIVE:
                size = offer(sims, ids, size, s, j)
    return size


@kernel
def _worth_finishing(
    index: Index, i: int, e: int, least: float, touched: I32, n: int, acc: F64
) -> bool:
    """Whether completing the candidates costs less than adding the columns from entry e on."""
    rest = 0
    for at in range(e, index.ptr[i + 1]):
        rest += int(index.start[index.column[at] + 1] - index.start[index.column[at]])
    candidates = 0
    for t in range(n):
        candidates += int(acc[touched[t]] >= least)
    return candidates * COMPLETING < rest


@kernel
def _by_rare_columns(
    index: Index, i: int, budget: int, acc: F64, touched: I32, sims: F64, ids: I32
) -> tuple[int, int, float]:
    """The exact k best of row i: (size of the heap, sums touched, lower bound on the k-th best).

    The size is -1 if the search needs more than `budget` multiply-adds.
    """
    n, cost, floor = 0, 0, POSITIVE
    end = index.ptr[i + 1]
    for e in range(index.ptr[i], end):
        f = index.column[e]
        df = index.start[f + 1] - index.start[f]
        if n > len(sims) and df > cost // 2 + HEAP * len(sims):  # a check costs less than adding
            size = _best(touched, n, acc, i, sims, ids)
            if size == len(sims):
                up, down = _bounds(index, i, e)
                floor = max(floor, sims[0] + down - SLACK)
                least = floor - up
                if least > SLACK and _worth_finishing(index, i, e, least, touched, n, acc):
                    return _finish(index, i, e, least, touched, n, acc, sims, ids), n, floor
        cost += df
        if cost > budget:
            return -1, n, floor
        n = _add(index, f, np.float64(index.value[e]), acc, touched, n)
    return _best(touched, n, acc, i, sims, ids), n, floor


@parallel_kernel(lambda index, lists, *_: chunks(len(lists.rows), BLOCK))
def search_rare(
    begin: int, end: int, index: Index, lists: Lists, budget: int, sizes: I32, floors: F64
) -> None:
    """The k best of the rows by their rare columns; size -1 where the budget did not suffice."""
    (rows, sims, ids), n = lists, len(index.ptr) - 1
    acc = np.zeros(n)
    touched = np.empty(n + 1, np.int32)
    for r in range(begin * BLOCK, min(end * BLOCK, len(rows))):
        size, n_touched, floors[r] = _by_rare_columns(
            index, rows[r], budget, acc, touched, sims[r], ids[r]
        )
        best_first(sims[r], ids[r], max(size, 0))
        sizes[r] = size
        for t in range(n_touched):
            acc[touched[t]] = 0.0


@parallel_kernel(lambda index, lists, *_: chunks(len(lists.rows), BLOCK))
def search_cut(
    begin: int, end: int, index: Index, lists: Lists, columns: int, candidates: int
) -> None:
    """The k best among the `candidates` vertices that are best by the first `columns` columns."""
    (rows, sims, ids), n = lists, len(index.ptr) - 1
    acc = np.zeros(n)
    touched = np.empty(n + 1, np.int32)
    some = np.empty(candidates)
    some_ids = np.empty(candidates, np.int32)
    for r in range(begin * BLOCK, min(end * BLOCK, len(rows))):
        i = rows[r]
        n_touched = 0
        e = index.ptr[i]
        while e < index.ptr[i + 1] and index.column[e] < columns:
            value = np.float64(index.value[e])
            n_touched = _add(index, index.column[e], value, acc, touched, n_touched)
            e += 1
        n_some = _best(touched, n_touched, acc, i, some, some_ids)
        size = _finish(index, i, e, 0.0, some_ids, n_some, acc, sims[r], ids[r])
        best_first(sims[r], ids[r], size)
        for t in range(n_touched):
            acc[touched[t]] = 0.0


# -- in full ---------------------------------------------------------------------------------------
@kernel
def _add_tile(
    index: Index, i: int, first_dense: int, dense: F32, low: int, high: int, cursor: I64, acc: F64
) -> None:
    """Similarities of row i to vertices low .. high - 1; `cursor` continues from tile to tile."""
    begin = index.ptr[i]
    for e in range(begin, index.ptr[i + 1]):
        f = index.column[e]
        v = np.float64(index.value[e])
        if f >= first_dense:
            values = dense[f - first_dense, low:high]
            for t in range(len(values)):
                acc[t] += v * values[t]
        else:
            p = cursor[e - begin]
            end = index.start[f + 1]
            while p < end and index.row[p] < high:
                acc[index.row[p] - low] += v * index.weight[p]
                p += 1
            cursor[e - begin] = p


@kernel
def _any_above(part: F64, least: float) -> bool:
    above = False
    for t in range(len(part)):  # without early exit, for vector instructions
        above |= part[t] > least
    return above


@kernel
def _take_tile(acc: F64, low: int, width: int, floor: float, sims: F64, ids: I32, size: int) -> int:
    """Put the sums of a tile above the floor on the heap and clear them; returns its size."""
    for begin in range(0, width, CHUNK):
        part = acc[begin : min(begin + CHUNK, width)]
        if size == len(sims):
            floor = max(floor, sims[0])
        if _any_above(part, floor):
            for t in range(len(part)):
                if part[t] > floor:
                    size = offer(sims, ids, size, part[t], low + begin + t)
        for t in range(len(part)):
            part[t] = 0.0
    return size


@parallel_kernel(lambda index, lists, *_: chunks(len(lists.rows), ROWS))
def search_full(
    begin: int,
    end: int,
    index: Index,
    lists: Lists,
    floors: F64,
    first_dense: int,
    dense: F32,
    tile: int,
) -> None:
    """The exact k best of the rows, from all their similarities above the floors."""
    (rows, sims, ids), n = lists, len(index.ptr) - 1
    widest = np.max(index.ptr[1:] - index.ptr[:-1])
    for b in range(begin, end):
        mine = rows[b * ROWS : (b + 1) * ROWS]
        acc = np.zeros(tile)
        sizes = np.zeros(len(mine), np.int64)
        cursor = np.empty((len(mine), widest), np.int64)
        for r in range(len(mine)):
            for e in range(index.ptr[mine[r]], index.ptr[mine[r] + 1]):
                cursor[r, e - index.ptr[mine[r]]] = index.start[index.column[e]]
        for low in range(0, n, tile):
            high = min(low + tile, n)
            for r in range(len(mine)):
                i, at = mine[r], b * ROWS + r
                _add_tile(index, i, first_dense, dense, low, high, cursor[r], acc)
                if low <= i < high:
                    acc[i - low] = 0.0
                sizes[r] = _take_tile(acc, low, high - low, floors[at], sims[at], ids[at], sizes[r])
        for r in range(len(mine)):
            best_first(sims[b * ROWS + r], ids[b * ROWS + r], sizes[r])


@parallel_kernel(lambda index, rows, *_: chunks(len(rows), BLOCK))
def similarities(begin: int, end: int, index: Index, rows: I64, ids: I32, sims: F64) -> None:
    """sims[r, t] = similarity of rows[r] and ids[r, t]; 0 for -1 and for the row itself."""
    for r in range(begin * BLOCK, min(end * BLOCK, len(rows))):
        i = rows[r]
        for t in range(ids.shape[1]):
            j = ids[r, t]
            sims[r, t] = 0.0
            if 0 <= j != i and index.ptr[i] < index.ptr[i + 1]:
                sims[r, t] = _complete(index, i, index.ptr[i], j, 0.0)


@kernel
def tail_norms(ptr: I64, column: I32, value: F32, n_columns: int) -> F64:
    """Largest norm of any row in the columns f, f + 1, ...: float64[n_columns + 1]."""
    tail = np.zeros(n_columns + 1)
    for i in range(len(ptr) - 1):
        square = 0.0
        for e in range(ptr[i + 1] - 1, ptr[i] - 1, -1):
            square += np.float64(value[e]) * value[e]
            tail[column[e]] = max(tail[column[e]], np.sqrt(square))
    for f in range(n_columns - 1, -1, -1):
        tail[f] = max(tail[f], tail[f + 1])
    return tail
