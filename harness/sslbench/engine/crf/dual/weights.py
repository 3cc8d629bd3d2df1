"""Kernels of the ascent on the dual (`ascent`): weights, their scores, and their changes."""

from __future__ import annotations

from typing import NamedTuple

from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.crf.simd import lanes, rows
from sslbench.engine.crf.simd.rows import ZERO
from sslbench.engine.crf.weights.occurrences import BLOCK, Occurrences
from sslbench.engine.crf.weights.scores import prefetch_list, prefetch_rows
from sslbench.engine.types import F64, I32, I64, U8

#: how many tokens and weights ahead these are fetched into the cache
AHEAD, ITEMS_AHEAD = 8, 24


class DualRows(NamedTuple):
    """Weights of attributes, and what a unit of the gradient adds to them.

    entries: which weights each token adds up, lists spelled out, in one share.
    table float64[D, P], lists float64[K]: as in `RowTable`, rows may be padded.
    row_scale float64[D], list_scale float64[K]: prior variances.
    kept: uint8[D, ceil(width / 8)] bit b % 8 of byte b // 8: does the row have a weight in column
    b?
    """

    entries: Occurrences
    table: F64
    lists: F64
    row_scale: F64
    list_scale: F64
    kept: U8


class DualTransitions(NamedTuple):
    """Weights of all positions: inner float64[L + 1, L], row L = START; stop float64[L].

    scale: their prior variance; use_start, use_stop: are there such weights?
    """

    inner: F64
    stop: F64
    scale: float
    use_start: bool
    use_stop: bool


@kernel
def sums(lo: int, hi: int, own: DualRows, width: int, out: F64) -> None:
    """out float64[n * width]: sums of the weights of tokens lo to hi."""
    row_border, row, list_border, item, cell, _ = own.entries
    table, lists = own.table, own.lists
    N = row_border.shape[0] - 1
    for n in range(lo, hi):
        ahead = min(n + AHEAD, N - 1)
        prefetch_rows(row, row_border[ahead] + ZERO, row_border[ahead + 1] + ZERO, table)
        b, e, at = row_border[n] + ZERO, row_border[n + 1] + ZERO, (n - lo) * width
        rows.sum_rows(row, ZERO, ZERO, table, row, b, e, table, ZERO, width, out, at)
    for c in range(lo // BLOCK, (hi - 1) // BLOCK + 1):
        first, last = max(lo, c * BLOCK), min(hi, (c + 1) * BLOCK)
        for i in range(list_border[first], list_border[last]):
            prefetch_list(item, i + ITEMS_AHEAD, lists)
            out[(c * BLOCK - lo) * width + cell[i]] += lists[item[i]]


@kernel
def _add_scaled(
    row: I32,
    begin: int,
    end: int,
    source: F64,
    i: int,
    sign: float,
    table: F64,
    scale: F64,
    kept: U8,
) -> float:
    """table[r] += scale[r] sign source[i:] for the rows r = row[e], begin <= e < end, where the
    bits kept uint8[R, ceil(width / 8)] of the row are set.

    Return the sum over these cells of sign source (old + new).
    """
    K, M = table.shape[1], kept.shape[1]
    s, total = lanes.splat(sign), lanes.splat(0.0)
    for e in range(begin, end):
        r = row[e] + ZERO
        factor = lanes.splat(scale[r])
        for k in range(M):
            mask, at = lanes.bits(kept, r * M + k), r * K + rows.WIDTH * k
            own = lanes.multiply(s, lanes.load_first(source, i + rows.WIDTH * k, mask, 0.0))
            old = lanes.load_first(table, at, mask, 0.0)
            new = lanes.fma(factor, own, old)
            lanes.store_first(table, at, mask, new)
            total = lanes.fma(own, lanes.add(old, new), total)
    return lanes.total(total)


@kernel
def move(lo: int, hi: int, own: DualRows, width: int, change: F64, sign: float) -> float:
    """Add sign times the change float64[n * width] of the gradient of the sums to the weights,
    times their prior variances; return the change of half their norm, |w|^2 / (2 variance).
    """
    row_border, row, list_border, item, cell, _ = own.entries
    table, lists, scale, kept, total = own.table, own.lists, own.row_scale, own.kept, 0.0
    for n in range(lo, hi):
        b, e = row_border[n] + ZERO, row_border[n + 1] + ZERO
        at = (n - lo) * width
        total += _add_scaled(row, b, e, change, at, sign, table, scale, kept)
    for c in range(lo // BLOCK, (hi - 1) // BLOCK + 1):
        first, last = max(lo, c * BLOCK), min(hi, (c + 1) * BLOCK)
        for i in range(list_border[first], list_border[last]):
            k = item[i]
            slope, old = sign * change[(c * BLOCK - lo) * width + cell[i]], lists[k]
            lists[k] = old + own.list_scale[k] * slope
            total += slope * (old + lists[k])
    return 0.5 * total


@kernel
def _move_row(weights: F64, change: F64, factor: float) -> float:
    """weights += factor change; return the sum of change (old + new)."""
    total = 0.0
    for b in range(weights.shape[0]):
        old = weights[b]
        weights[b] = old + factor * change[b]
        total += change[b] * (old + weights[b])
    return total


@kernel
def move_transitions(
    borders: I64, weights: DualTransitions, change: F64, xi: F64, sign: float
) -> float:
    """Move as `move` does: borders int64[s + 1] of sentences, change float64[n, L] by node and xi
    float64[L, L] by transition.
    """
    inner, L, factor = weights.inner, weights.stop.shape[0], sign * weights.scale
    total = 0.0
    for a in range(L):
        total += _move_row(inner[a], xi[a], factor)
    for i in range(borders.shape[0] - 1):
        if weights.use_start:
            total += _move_row(inner[L], change[borders[i] - borders[0]], factor)
        if weights.use_stop:
            total += _move_row(weights.stop, change[borders[i + 1] - borders[0] - 1], factor)
    return 0.5 * sign * total
