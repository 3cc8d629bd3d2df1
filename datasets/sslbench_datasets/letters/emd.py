"""Earth mover's distance of small binary images (EMD-hat of Pele & Werman, ECCV 2008), compiled.

Every lit pixel has mass 1. Moving mass from pixel a to pixel b costs D(a, b) = min(3, |a - b|), and
each unit of mass that one image has more than the other costs 3:

    E(P, Q) = cost of the cheapest flow of min(|P|, |Q|) units + 3 ||P| - |Q||

D is a metric, so mass on common pixels does not move; the rest is an assignment of the pixels of P
alone to those of Q alone. There are five nonzero distances below 3, so E = i + j sqrt 2 + k sqrt 5
with integers i, j, k. They are counted and summed once, which gives the same bits for (P, Q) and
(Q, P).

An image has 16 rows of 8 pixels in two words of 64 bits: rows 0 to 7 and rows 8 to 15, one byte per
row, the first row in the highest byte, the left pixel in the highest bit.
"""
# mypy: disallow-untyped-decorators=False, disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sslbench.engine.compilation.compiled import chunks, njit, parallel_kernel
from sslbench.engine.types import F64, I32

U64 = NDArray[np.uint64]

FAR = 3.0
"""The largest ground distance, and the cost of a unit of extra mass (Pele & Werman's default)."""

PIXELS = 128
BLOCK = 1024  # pairs of a task

_ROOT2, _ROOT5 = np.sqrt(2.0), np.sqrt(5.0)
# Distance of pixels |dy| and |dx| <= 2 apart, as (i, j, k) of E above; others are FAR apart.
_PARTS = np.array(
    [
        [(0, 0, 0), (1, 0, 0), (2, 0, 0)],
        [(1, 0, 0), (0, 1, 0), (0, 0, 1)],
        [(2, 0, 0), (0, 0, 1), (0, 2, 0)],
    ],
    np.int64,
)
_NEAR = _PARTS @ np.array([1.0, _ROOT2, _ROOT5])

_ONE, _TWO, _EIGHT, _SIXTEEN = (np.uint64(i) for i in (1, 2, 8, 16))
_BYTE, _SEVEN, _FORTY_EIGHT, _FIFTY_SIX = (np.uint64(i) for i in (255, 7, 48, 56))
_NOT_RIGHT1, _NOT_RIGHT2 = np.uint64(0xFEFEFEFEFEFEFEFE), np.uint64(0xFCFCFCFCFCFCFCFC)
_NOT_LEFT1, _NOT_LEFT2 = np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(0x3F3F3F3F3F3F3F3F)

#: numba passes its typing context as the first argument of the function below; callers do not
_operation: Any = intrinsic


class Scratch(NamedTuple):
    """Arrays for one assignment of at most 64 pixels to at most 127, 128 in all."""

    cost: F64  # [rows * columns], row by row
    row_price: F64
    column_price: F64
    distance: F64
    before: I32  # row from which the shortest path enters a column
    row_of: I32  # row assigned to each column, -1 = free
    column_of: I32  # column assigned to each row, -1 = free
    seen: I32  # columns of known distance, in the order in which they became known
    row_at: I32  # pixel of each row, 8 y + x
    column_at: I32  # pixel of each column


# -- sets of pixels --------------------------------------------------------------------------------
@_operation
def popcount(_context: Any, _word: Any) -> Any:
    """Number of bits set in a uint64."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


@njit(cache=True, nogil=True, inline="always")
def count(high: np.uint64, low: np.uint64) -> int:
    """Lit pixels of an image."""
    return popcount(high) + popcount(low)


@njit(cache=True, nogil=True, inline="always")
def _beside(word: np.uint64) -> np.uint64:
    """Pixels one column from a pixel of the word."""
    return ((word << _ONE) & _NOT_RIGHT1) | ((word >> _ONE) & _NOT_LEFT1)


@njit(cache=True, nogil=True, inline="always")
def _beside2(word: np.uint64) -> np.uint64:
    """Pixels two columns from a pixel of the word."""
    return ((word << _TWO) & _NOT_RIGHT2) | ((word >> _TWO) & _NOT_LEFT2)


@njit(cache=True, nogil=True, inline="always")
def _above_below(high: np.uint64, low: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Pixels one row from a pixel of the image."""
    return (
        (high << _EIGHT) | (high >> _EIGHT) | (low >> _FIFTY_SIX),
        (low << _EIGHT) | (low >> _EIGHT) | (high << _FIFTY_SIX),
    )


@njit(cache=True, nogil=True, inline="always")
def _above_below2(high: np.uint64, low: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Pixels two rows from a pixel of the image."""
    return (
        (high << _SIXTEEN) | (high >> _SIXTEEN) | (low >> _FORTY_EIGHT),
        (low << _SIXTEEN) | (low >> _SIXTEEN) | (high << _FORTY_EIGHT),
    )


@njit(cache=True, nogil=True)
def nearest_cost(
    a0: np.uint64, a1: np.uint64, b0: np.uint64, b1: np.uint64
) -> tuple[float, np.uint64, np.uint64]:
    """Sum over the pixels of A of the distance to the nearest pixel of B, for disjoint A and B.

    Returned with the pixels of A that have a pixel of B nearer than FAR.
    """
    h10, h11, h20, h21 = _beside(b0), _beside(b1), _beside2(b0), _beside2(b1)
    v10, v11 = _above_below(b0, b1)
    v20, v21 = _above_below2(b0, b1)
    v1h10, v1h11 = _above_below(h10, h11)
    v1h20, v1h21 = _above_below(h20, h21)
    v2h10, v2h11 = _above_below2(h10, h11)
    v2h20, v2h21 = _above_below2(h20, h21)
    # The pixels within each of the five distances of B, in ascending order.
    r10, r11 = h10 | v10, h11 | v11
    r20, r21 = r10 | v1h10, r11 | v1h11
    r30, r31 = r20 | h20 | v20, r21 | h21 | v21
    r40, r41 = r30 | v1h20 | v2h10, r31 | v1h21 | v2h11
    r50, r51 = r40 | v2h20, r41 | v2h21
    c1, c2, c3 = count(a0 & r10, a1 & r11), count(a0 & r20, a1 & r21), count(a0 & r30, a1 & r31)
    near0, near1 = a0 & r50, a1 & r51
    c4, c5 = count(a0 & r40, a1 & r41), count(near0, near1)
    ones = c1 + 2 * (c3 - c2) + 3 * (count(a0, a1) - c5)
    twos = (c2 - c1) + 2 * (c5 - c4)
    return ones + twos * _ROOT2 + (c4 - c3) * _ROOT5, near0, near1


@njit(cache=True, nogil=True)
def at_least(p0: np.uint64, p1: np.uint64, q0: np.uint64, q1: np.uint64) -> float:
    """A lower bound on E(P, Q): every pixel moves to its nearest, which several may share."""
    a0, a1, b0, b1 = p0 & ~q0, p1 & ~q1, q0 & ~p0, q1 & ~p1
    n, m = count(a0, a1), count(b0, b1)
    there, _, _ = nearest_cost(a0, a1, b0, b1)
    back, _, _ = nearest_cost(b0, b1, a0, a1)
    return max(there + FAR * max(0, m - n), back + FAR * max(0, n - m))


# -- assignment ------------------------------------------------------------------------------------
@njit(cache=True, nogil=True)
def scratch() -> Scratch:
    """A `Scratch` for `distance`; one for each thread."""
    half = PIXELS // 2
    return Scratch(
        np.empty(half * half),
        np.empty(half),
        np.empty(PIXELS),
        np.empty(PIXELS),
        np.empty(PIXELS, np.int32),
        np.empty(PIXELS, np.int32),
        np.empty(half, np.int32),
        np.empty(PIXELS, np.int32),
        np.empty(PIXELS, np.int32),
        np.empty(PIXELS, np.int32),
    )


@njit(cache=True, nogil=True)
def _places(high: np.uint64, low: np.uint64, at: I32) -> int:
    """List the pixels in `at` as 8 y + x, from the bottom right; returns their number."""
    n = 0
    while low:
        at[n] = popcount((low - _ONE) & ~low)
        low &= low - _ONE
        n += 1
    while high:
        at[n] = 64 + popcount((high - _ONE) & ~high)
        high &= high - _ONE
        n += 1
    return n


@njit(cache=True, nogil=True)
def _cheapest(s: Scratch, n: int, m: int) -> None:
    """Fill `cost` and assign each row its cheapest column if that is free; prices are feasible."""
    for j in range(m):
        s.row_of[j] = -1
        s.column_price[j] = 0.0
    for i in range(n):
        y, x, least, best = s.row_at[i] >> 3, s.row_at[i] & 7, 2 * FAR, -1
        for j in range(m):
            dy, dx = abs(y - (s.column_at[j] >> 3)), abs(x - (s.column_at[j] & 7))
            c = _NEAR[dy, dx] if dy < 3 and dx < 3 else FAR
            s.cost[i * m + j] = c
            if c < least or (c == least and s.row_of[best] >= 0):
                least, best = c, j
        s.row_price[i] = least
        s.column_of[i] = -1
        if s.row_of[best] < 0:
            s.row_of[best], s.column_of[i] = i, best


@njit(cache=True, nogil=True)
def _augment(s: Scratch, m: int, start: int) -> None:
    """Assign one more row by a shortest path to a free column in reduced costs (Dijkstra)."""
    for j in range(m):
        reduced = s.cost[start * m + j] - s.row_price[start] - s.column_price[j]
        s.distance[j] = max(reduced, 0.0)  # rounding may give less
        s.before[j] = start
    n_seen, length = 0, 0.0
    while True:
        best, length = -1, np.inf
        for j in range(m):
            d = s.distance[j]
            if d >= 0.0 and (d < length or (d == length and s.row_of[j] < 0)):
                best, length = j, d
        i = s.row_of[best]
        if i < 0:
            break
        # Known distances d are stored as -1 - d < 0, which the loop above skips.
        s.distance[best] = -1.0 - length
        s.seen[n_seen] = best
        n_seen += 1
        for j in range(m):
            d = max(length + s.cost[i * m + j] - s.row_price[i] - s.column_price[j], length)
            if d < s.distance[j]:
                s.distance[j], s.before[j] = d, i
    s.row_price[start] += length
    for t in range(n_seen):
        j = s.seen[t]
        left = length + 1.0 + s.distance[j]
        s.row_price[s.row_of[j]] += left
        s.column_price[j] -= left
    j = best
    while True:
        i = s.before[j]
        s.row_of[j] = i
        s.column_of[i], j = j, s.column_of[i]
        if i == start:
            break


@njit(cache=True, nogil=True)
def distance(p0: np.uint64, p1: np.uint64, q0: np.uint64, q1: np.uint64, s: Scratch) -> float:
    """E(P, Q)."""
    a0, a1, b0, b1 = p0 & ~q0, p1 & ~q1, q0 & ~p0, q1 & ~p1
    larger = max(count(a0, a1), count(b0, b1))
    # A pixel without a near pixel on the other side costs FAR wherever it moves.
    _, near_a0, near_a1 = nearest_cost(a0, a1, b0, b1)
    _, near_b0, near_b1 = nearest_cost(b0, b1, a0, a1)
    if count(near_a0, near_a1) > count(near_b0, near_b1):
        near_a0, near_a1, near_b0, near_b1 = near_b0, near_b1, near_a0, near_a1
    n, m = _places(near_a0, near_a1, s.row_at), _places(near_b0, near_b1, s.column_at)
    _cheapest(s, n, m)
    for i in range(n):
        if s.column_of[i] < 0:
            _augment(s, m, i)
    ones, twos, fives = 3 * (larger - n), 0, 0
    for i in range(n):
        at, to = s.row_at[i], s.column_at[s.column_of[i]]
        dy, dx = abs((at >> 3) - (to >> 3)), abs((at & 7) - (to & 7))
        if dy < 3 and dx < 3:
            ones += _PARTS[dy, dx, 0]
            twos += _PARTS[dy, dx, 1]
            fives += _PARTS[dy, dx, 2]
        else:
            ones += 3
    return ones + twos * _ROOT2 + fives * _ROOT5


@parallel_kernel(lambda P, *_: chunks(len(P), BLOCK))
def _distances(begin: int, end: int, P: U64, Q: U64, out: F64) -> None:
    s = scratch()
    for i in range(begin * BLOCK, min(end * BLOCK, len(P))):
        out[i] = distance(P[i, 0], P[i, 1], Q[i, 0], Q[i, 1], s)


def emd(P: U64, Q: U64) -> F64:
    """float64[n]: E of each pair of images, uint64[n, 2] each; the same bits for any threads.

    ValueError if the shapes differ or are not [n, 2].
    """
    if P.shape != Q.shape or P.shape[1:] != (2,):
        raise ValueError(f"images must be uint64[n, 2] twice, got {P.shape} and {Q.shape}")
    out = np.empty(len(P))
    _distances(P.astype(np.uint64), Q.astype(np.uint64), out)
    return out
