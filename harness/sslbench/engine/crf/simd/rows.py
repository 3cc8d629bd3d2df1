"""Operations on short rows of float64, eight lanes at a time (`lanes`).

A row of up to 24 labels fits into three registers.  Wider rows are cut into strips of 24; the at
most 16 numbers that are left go into single registers.  Arrays are C-contiguous; ``i`` is an index
into the flattened array.  A row is *padded* if it ends in zeros up to a multiple of eight.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from sslbench.engine.compilation.compiled import inline_kernel, kernel
from sslbench.engine.crf.simd import lanes
from sslbench.engine.crf.simd.exp import exp_lanes
from sslbench.engine.crf.simd.lanes import Vector
from sslbench.engine.types import F32, F64, I32, I64

WIDTH = lanes.WIDTH
STRIP = 3 * WIDTH
#: what is left of a row is a strip of three registers if more than two would be used
WIDE = 2 * WIDTH
#: 64 bits: functions would be compiled once more for a literal, or for places of 32 bits
ZERO: int = cast("int", np.int64(0))


@inline_kernel
def _store_three(out: F64, i: int, s0: Vector, s1: Vector, s2: Vector) -> None:
    lanes.store(out, i, s0)
    lanes.store(out, i + 8, s1)
    lanes.store(out, i + 16, s2)


@kernel
def sum_rows(
    rows: I32 | I64,
    begin: int,
    end: int,
    table: F64,
    more: I32 | I64,
    start: int,
    stop: int,
    second: F64,
    column: int,
    width: int,
    out: F64,
    i: int,
) -> None:
    """out[i:i+width] = sum over begin <= e < end of table[rows[e], column:column+width], and over
    start <= e < stop of second[more[e], column:column+width].

    Tables float64[R, K]; out flat.
    """
    K = table.shape[1]  # arguments are no tuples of arrays: these cost as much as the sums
    k = 0
    while width - k > WIDE:
        tail = lanes.first(width - k - 16)
        s0 = s1 = s2 = lanes.splat(0.0)
        for e in range(begin, end):
            r = rows[e] * K + column + k
            s0 = lanes.add(s0, lanes.load(table, r))
            s1 = lanes.add(s1, lanes.load(table, r + 8))
            s2 = lanes.add(s2, lanes.load_first(table, r + 16, tail, 0.0))
        for e in range(start, stop):
            r = more[e] * K + column + k
            s0 = lanes.add(s0, lanes.load(second, r))
            s1 = lanes.add(s1, lanes.load(second, r + 8))
            s2 = lanes.add(s2, lanes.load_first(second, r + 16, tail, 0.0))
        lanes.store(out, i + k, s0)
        lanes.store(out, i + k + 8, s1)
        lanes.store_first(out, i + k + 16, tail, s2)
        k += STRIP
    while k < width:
        tail = lanes.first(width - k)
        s0 = lanes.splat(0.0)
        for e in range(begin, end):
            r = rows[e] * K + column + k
            s0 = lanes.add(s0, lanes.load_first(table, r, tail, 0.0))
        for e in range(start, stop):
            r = more[e] * K + column + k
            s0 = lanes.add(s0, lanes.load_first(second, r, tail, 0.0))
        lanes.store_first(out, i + k, tail, s0)
        k += WIDTH


@kernel
def add_to_rows(
    rows: I32 | I64, begin: int, end: int, source: F64, i: int, table: F64, column: int, width: int
) -> None:
    """table[rows[e], column:column+width] += source[i:i+width] for begin <= e < end."""
    K = table.shape[1]
    k = 0
    while width - k > WIDE:
        tail = lanes.first(width - k - 16)
        s0, s1 = lanes.load(source, i + k), lanes.load(source, i + k + 8)
        s2 = lanes.load_first(source, i + k + 16, tail, 0.0)
        for e in range(begin, end):
            r = rows[e] * K + column + k
            lanes.store(table, r, lanes.add(lanes.load(table, r), s0))
            lanes.store(table, r + 8, lanes.add(lanes.load(table, r + 8), s1))
            old = lanes.load_first(table, r + 16, tail, 0.0)
            lanes.store_first(table, r + 16, tail, lanes.add(old, s2))
        k += STRIP
    while k < width:
        tail = lanes.first(width - k)
        s0 = lanes.load_first(source, i + k, tail, 0.0)
        for e in range(begin, end):
            r = rows[e] * K + column + k
            old = lanes.load_first(table, r, tail, 0.0)
            lanes.store_first(table, r, tail, lanes.add(old, s0))
        k += WIDTH


@kernel
def add_weighted_rows(
    rows: I32 | I64,
    factors: F64,
    count: int,
    table: F64 | F32,
    column: int,
    width: int,
    out: F64,
    i: int,
) -> None:
    """out[i:i+width] += sum over e < count of factors[e] * table[rows[e], column:column+width]."""
    K = table.shape[1]
    k = 0
    while width - k > WIDE:
        tail = lanes.first(width - k - 16)
        s0, s1 = lanes.load(out, i + k), lanes.load(out, i + k + 8)
        s2 = lanes.load_first(out, i + k + 16, tail, 0.0)
        for e in range(count):
            f, r = lanes.splat(factors[e]), rows[e] * K + column + k
            s0 = lanes.fma(f, lanes.load(table, r), s0)
            s1 = lanes.fma(f, lanes.load(table, r + 8), s1)
            s2 = lanes.fma(f, lanes.load_first(table, r + 16, tail, 0.0), s2)
        lanes.store(out, i + k, s0)
        lanes.store(out, i + k + 8, s1)
        lanes.store_first(out, i + k + 16, tail, s2)
        k += STRIP
    while k < width:
        tail = lanes.first(width - k)
        s0 = lanes.load_first(out, i + k, tail, 0.0)
        for e in range(count):
            row = lanes.load_first(table, rows[e] * K + column + k, tail, 0.0)
            s0 = lanes.fma(lanes.splat(factors[e]), row, s0)
        lanes.store_first(out, i + k, tail, s0)
        k += WIDTH


@inline_kernel
def inner(x: F64, i: int, table: F64 | F32, r: int, width: int) -> float:
    """Inner product of the items i:i+width of x and r:r+width of a table, both counted flat."""
    s0 = s1 = lanes.splat(0.0)
    k = 0
    while width - k >= WIDE:
        s0 = lanes.fma(lanes.load(x, i + k), lanes.load(table, r + k), s0)
        s1 = lanes.fma(lanes.load(x, i + k + 8), lanes.load(table, r + k + 8), s1)
        k += WIDE
    while k < width:
        tail = lanes.first(width - k)
        row = lanes.load_first(table, r + k, tail, 0.0)
        s0 = lanes.fma(lanes.load_first(x, i + k, tail, 0.0), row, s0)
        k += WIDTH
    return lanes.total(lanes.add(s0, s1))


@kernel
def vector_matrix(v: F64, M: F64, out: F64) -> None:
    """out = v M: M float64[n, P] and out float64[P] padded, v float64[>= n].

    Even and odd rows are summed apart, so that two chains of multiply-adds run side by side.
    """
    n, P = M.shape
    k = 0
    while P - k > WIDE:
        s0 = s1 = s2 = u0 = u1 = u2 = lanes.splat(0.0)
        for a in range(0, n - 1, 2):
            f, g, i = lanes.spread(v, a), lanes.spread(v, a + 1), a * P + k
            s0 = lanes.fma(f, lanes.load(M, i), s0)
            s1 = lanes.fma(f, lanes.load(M, i + 8), s1)
            s2 = lanes.fma(f, lanes.load(M, i + 16), s2)
            u0 = lanes.fma(g, lanes.load(M, i + P), u0)
            u1 = lanes.fma(g, lanes.load(M, i + P + 8), u1)
            u2 = lanes.fma(g, lanes.load(M, i + P + 16), u2)
        if n % 2:
            f, i = lanes.spread(v, n - 1), (n - 1) * P + k
            s0 = lanes.fma(f, lanes.load(M, i), s0)
            s1 = lanes.fma(f, lanes.load(M, i + 8), s1)
            s2 = lanes.fma(f, lanes.load(M, i + 16), s2)
        _store_three(out, k, lanes.add(s0, u0), lanes.add(s1, u1), lanes.add(s2, u2))
        k += STRIP
    while k < P:
        s0 = u0 = lanes.splat(0.0)
        for a in range(0, n - 1, 2):
            i = a * P + k
            s0 = lanes.fma(lanes.spread(v, a), lanes.load(M, i), s0)
            u0 = lanes.fma(lanes.spread(v, a + 1), lanes.load(M, i + P), u0)
        if n % 2:
            s0 = lanes.fma(lanes.spread(v, n - 1), lanes.load(M, (n - 1) * P + k), s0)
        lanes.store(out, k, lanes.add(s0, u0))
        k += WIDTH


@kernel
def add_outer(left: F64, right: F64, out: F64) -> None:
    """out += left^T right: float64[T, P], float64[T, P], float64[K, P] with K <= P, all padded.

    Tiles of three rows by three registers stay in registers while t runs.
    """
    P, K = right.shape[1], out.shape[0]
    k = 0
    while P - k > WIDE:
        for a in range(0, K - 2, 3):
            _outer_tile(left, right, out, a, k)
        for a in range(K - K % 3, K):
            for c in range(k, k + STRIP, WIDTH):
                _outer_register(left, right, out, a, c)
        k += STRIP
    while k < P:
        for a in range(K):
            _outer_register(left, right, out, a, k)
        k += WIDTH


@kernel
def _outer_tile(left: F64, right: F64, out: F64, a: int, k: int) -> None:
    """`add_outer` for the rows a to a + 2 and the columns k to k + 23."""
    T, P = right.shape
    i, j, m = a * P + k, (a + 1) * P + k, (a + 2) * P + k
    s0, s1, s2 = lanes.load(out, i), lanes.load(out, i + 8), lanes.load(out, i + 16)
    u0, u1, u2 = lanes.load(out, j), lanes.load(out, j + 8), lanes.load(out, j + 16)
    w0, w1, w2 = lanes.load(out, m), lanes.load(out, m + 8), lanes.load(out, m + 16)
    for t in range(T):
        r, f = t * P + k, lanes.spread(left, t * P + a)
        r0, r1, r2 = lanes.load(right, r), lanes.load(right, r + 8), lanes.load(right, r + 16)
        s0, s1, s2 = lanes.fma(f, r0, s0), lanes.fma(f, r1, s1), lanes.fma(f, r2, s2)
        f = lanes.spread(left, t * P + a + 1)
        u0, u1, u2 = lanes.fma(f, r0, u0), lanes.fma(f, r1, u1), lanes.fma(f, r2, u2)
        f = lanes.spread(left, t * P + a + 2)
        w0, w1, w2 = lanes.fma(f, r0, w0), lanes.fma(f, r1, w1), lanes.fma(f, r2, w2)
    _store_three(out, i, s0, s1, s2)
    _store_three(out, j, u0, u1, u2)
    _store_three(out, m, w0, w1, w2)


@kernel
def _outer_register(left: F64, right: F64, out: F64, a: int, k: int) -> None:
    """out[a, k:k+8] += sum over t of left[t, a] right[t, k:k+8]."""
    T, P = right.shape
    s = lanes.load(out, a * P + k)
    for t in range(T):
        s = lanes.fma(lanes.spread(left, t * P + a), lanes.load(right, t * P + k), s)
    lanes.store(out, a * P + k, s)


@kernel
def bounds(x: F64) -> tuple[float, float, bool]:
    """Largest value, smallest finite value, and whether there is a -inf.

    -inf is rare, so the smallest finite value is looked for only where there is one.
    """
    n = x.shape[0]
    high, low = lanes.splat(-np.inf), lanes.splat(np.inf)
    for k in range(0, n, WIDTH):
        tail = lanes.first(n - k)
        high = lanes.maximum(high, lanes.load_first(x, k, tail, -np.inf))
        low = lanes.minimum(low, lanes.load_first(x, k, tail, np.inf))
    top, bottom = lanes.largest(high), lanes.smallest(low)
    if bottom > -np.inf:
        return top, bottom, False
    bottom = np.inf
    for i in range(n):
        if x[i] > -np.inf:
            bottom = min(bottom, x[i])
    return top, bottom, True


@kernel
def total(x: F64) -> float:
    """Sum of a row."""
    s = lanes.splat(0.0)
    for k in range(0, x.shape[0], WIDTH):
        s = lanes.add(s, lanes.load_first(x, k, lanes.first(x.shape[0] - k), 0.0))
    return lanes.total(s)


@kernel
def multiply(x: F64, y: F64) -> None:
    """x *= y."""
    for k in range(0, x.shape[0], WIDTH):
        tail = lanes.first(x.shape[0] - k)
        product = lanes.multiply(
            lanes.load_first(x, k, tail, 0.0), lanes.load_first(y, k, tail, 0.0)
        )
        lanes.store_first(x, k, tail, product)


@kernel
def scale(x: F64, factor: float) -> None:
    """x *= factor."""
    f = lanes.splat(factor)
    for k in range(0, x.shape[0], WIDTH):
        tail = lanes.first(x.shape[0] - k)
        lanes.store_first(x, k, tail, lanes.multiply(lanes.load_first(x, k, tail, 0.0), f))


@kernel
def copy(x: F64, out: F64) -> None:
    """out = x, arrays of one shape; an assignment of an array would take long to compile."""
    flat, to = x.reshape(-1), out.reshape(-1)
    for i in range(flat.shape[0]):
        to[i] = flat[i]


@kernel
def add_scaled(x: F64, factor: float, out: F64) -> None:
    """out += factor x, arrays of one shape; an expression of arrays would take long to compile."""
    flat, to = x.reshape(-1), out.reshape(-1)
    for i in range(flat.shape[0]):
        to[i] += factor * flat[i]


@kernel
def add_columns(x: F64, factor: float, out: F64) -> None:
    """out[b] += factor times the sum of column b of x."""
    for b in range(x.shape[1]):
        s = 0.0
        for a in range(x.shape[0]):
            s += x[a, b]
        out[b] += factor * s


@kernel
def aligned(n: int, width: int) -> F64:
    """Zeros float64[n, width] that start on a cache line.

    A row across two lines would cost two accesses for every register.
    """
    line = 64 // 8
    space = np.zeros(n * width + line)
    begin = (-(space.ctypes.data // 8)) % line
    return space[begin : begin + n * width].reshape(n, width)


@kernel
def exp_padded(x: F64, shift: float, out: F64) -> None:
    """out = exp(x - shift) for the first len(x) items and 0 beyond; out is padded."""
    s = lanes.splat(shift)
    for k in range(0, out.shape[0], WIDTH):
        tail = lanes.first(x.shape[0] - k)
        value = lanes.subtract(lanes.load_first(x, k, tail, -np.inf), s)
        lanes.store(out, k, exp_lanes(value))


@kernel
def multiply_both(x: F64, y: F64, factor: float) -> float:
    """y *= factor, then x *= y, both padded; return the sum of x."""
    f, s = lanes.splat(factor), lanes.splat(0.0)
    for k in range(0, x.shape[0], WIDTH):
        scaled = lanes.multiply(lanes.load(y, k), f)
        product = lanes.multiply(lanes.load(x, k), scaled)
        lanes.store(y, k, scaled)
        lanes.store(x, k, product)
        s = lanes.add(s, product)
    return lanes.total(s)


@kernel
def product(x: F64, y: F64, out: F64) -> None:
    """out = x y, for padded x and y."""
    for k in range(0, out.shape[0], WIDTH):
        value = lanes.multiply(lanes.load(x, k), lanes.load(y, k))
        lanes.store_first(out, k, lanes.first(out.shape[0] - k), value)
