"""Exact search for the most similar letters, compiled.

Every pair of letters gets an upper bound on its similarity from the numbers of common and of other
pixels. Pairs are compared in descending order of the bound, first by sharper bounds, until no
remaining pair can be among the k best.
"""
# mypy: disallow-untyped-decorators=False, disable-error-code="no-any-return"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import njit, parallel_kernel
from sslbench.engine.graph.neighbor_kernels import best_first, offer
from sslbench.engine.types import F64, I32, I64
from sslbench_datasets.letters.emd import U64, Scratch, at_least, count, distance, scratch

OWN_WEIGHT = 0.8
SCALE = 100.0
"""Divisor of E: 10 squared, which the paper calls a variance (docs/specs/graph.md, section 6)."""

BORDER = 0.6
"""s at the left of two letters that both begin a word, and at the right of two that end one."""

ROWS = 64
"""Vertices per block of the search."""

_LEFT, _OWN, _RIGHT = 0, 1, 2
_SLACK = 1e-12  # far above the rounding error of a bound
_BUCKETS = 1024  # of equal width, by which pairs are sorted by their bounds


class VertexImages(NamedTuple):
    """Images of V vertices, [3, V] each: letter to the left, letter, letter to the right.

    high, low: uint64, see `emd`. lit: int64, number of lit pixels, -1 where the word has no letter.
    """

    high: U64
    low: U64
    lit: I64


# -- similarity ------------------------------------------------------------------------------------
@njit(cache=True, nogil=True, inline="always")
def _quick(v: VertexImages, side: int, i: int, j: int, closeness: F64) -> float:
    """Upper bound on s; exactly s if one of the letters is missing."""
    a, b = v.lit[side, i], v.lit[side, j]
    if a < 0 or b < 0:
        return BORDER if a == b else 0.0
    common = count(v.high[side, i] & v.high[side, j], v.low[side, i] & v.low[side, j])
    if 100 * common * common <= 9 * a * b:  # a cosine of 0.3 at most, in whole numbers
        return 0.0
    # A pixel that moves costs at least 1, an extra pixel FAR = 3.
    more, less = max(a, b) - common, min(a, b) - common
    return closeness[3 * more - 2 * less]


@njit(cache=True, nogil=True, inline="always")
def _total(left: float, middle: float, right: float, weight: float) -> float:
    return OWN_WEIGHT * middle + weight * (left + right)


@njit(cache=True, nogil=True)
def _bound(v: VertexImages, i: int, j: int, weight: float, closeness: F64) -> float:
    """Upper bound on the similarity, 0 if it is 0."""
    middle = _quick(v, _OWN, i, j, closeness)
    if middle == 0.0:
        return 0.0
    left, right = _quick(v, _LEFT, i, j, closeness), _quick(v, _RIGHT, i, j, closeness)
    return _total(left, middle, right, weight)


@njit(cache=True, nogil=True)
def _similarity(
    v: VertexImages,
    i: int,
    j: int,
    weight: float,
    closeness: F64,
    floor: float,
    part: F64,
    s: Scratch,
) -> tuple[float, int]:
    """The similarity, or 0 if it is below `floor`; and the number of distances computed."""
    for side in range(3):
        part[side] = _quick(v, side, i, j, closeness)
    n = 0
    for exact in (False, True):
        for side in (_OWN, _LEFT, _RIGHT):
            if part[side] == 0.0 or v.lit[side, i] < 0:
                continue
            p0, p1 = v.high[side, i], v.low[side, i]
            q0, q1 = v.high[side, j], v.low[side, j]
            if exact:
                cost = distance(p0, p1, q0, q1, s)
                n += 1
            else:
                cost = at_least(p0, p1, q0, q1)
            part[side] = np.exp(-cost / SCALE)
            if _total(part[_LEFT], part[_OWN], part[_RIGHT], weight) < floor - _SLACK:
                return 0.0, n
    return _total(part[_LEFT], part[_OWN], part[_RIGHT], weight), n


# -- search ----------------------------------------------------------------------------------------
@njit(cache=True, nogil=True)
def _candidates(
    v: VertexImages, i: int, weight: float, closeness: F64, bound: F64, start: I64, order: I32
) -> int:
    """List the letters of bound above 0 by descending bucket of the bound; returns their number.

    Outputs: bound float64[V], order int32[V] (the list). start: int64[_BUCKETS + 1], scratch space.
    """
    scale = (_BUCKETS - 1) / (OWN_WEIGHT + 2 * weight)
    start[:] = 0
    for j in range(len(bound)):
        bound[j] = _bound(v, i, j, weight, closeness)
        if bound[j] > 0.0 and j != i:
            start[_BUCKETS - int(bound[j] * scale)] += 1
    n = 0
    for b in range(_BUCKETS + 1):
        n, start[b] = n + start[b], n
    for j in range(len(bound)):
        if bound[j] > 0.0 and j != i:
            b = _BUCKETS - int(bound[j] * scale)
            order[start[b]] = j
            start[b] += 1
    return n


@parallel_kernel(lambda *arguments: len(arguments[-1]))
def search_blocks(
    begin: int,
    end: int,
    v: VertexImages,
    rows: I64,
    weight: float,
    closeness: F64,
    sims: F64,
    ids: I32,
    compared: I64,
) -> None:
    """Fill sims float64[V, k] and ids int32[V, k] for the rows.

    closeness: float64, exp(-E / SCALE) of whole E = 0, 1, ...; compared int64[blocks]: number of
    distances computed for each ROWS rows.
    """
    V, k = v.lit.shape[1], sims.shape[1]
    width = (OWN_WEIGHT + 2 * weight) / (_BUCKETS - 1)
    for b in range(begin, end):
        compared[b] = 0
        s, part = scratch(), np.empty(3)
        bound, order = np.empty(V), np.empty(V, np.int32)
        start = np.empty(_BUCKETS + 1, np.int64)
        for i in rows[b * ROWS : (b + 1) * ROWS]:
            size, floor = 0, 0.0
            n = _candidates(v, i, weight, closeness, bound, start, order)
            for t in range(n):
                j = order[t]
                # Bounds are not sorted within a bucket; they differ by at most its width.
                if bound[j] + width < floor - _SLACK:
                    break
                if bound[j] < floor - _SLACK:
                    continue
                sim, steps = _similarity(v, i, j, weight, closeness, floor, part, s)
                compared[b] += steps
                if sim > 0.0:
                    size = offer(sims[i], ids[i], size, sim, j)
                    floor = sims[i, 0] if size == k else 0.0
            best_first(sims[i], ids[i], size)
