"""Operations on long vectors.

Sums run over chunks of a fixed length: the same bits for any number of threads. Loops are over a
slice from 0 on: the compiler uses vectors where it knows that no index is negative.
"""

from __future__ import annotations

import numpy as np

from sslbench.engine.compilation.compiled import chunks, kernel, parallel_kernel
from sslbench.engine.crf.simd import lanes
from sslbench.engine.types import F32, F64, I64

CHUNK = 16_384
#: several vectors of this length fit into the second-level cache, beside the pairs of L-BFGS that
#: are read once
PAIR_CHUNK = 4096


@kernel
def _chunk_dot(x: F64, y: F64) -> float:
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    n = x.shape[0]
    n4 = n - n % 4
    for i in range(0, n4, 4):
        s0 += x[i] * y[i]
        s1 += x[i + 1] * y[i + 1]
        s2 += x[i + 2] * y[i + 2]
        s3 += x[i + 3] * y[i + 3]
    for i in range(n4, n):
        s0 += x[i] * y[i]
    return (s0 + s1) + (s2 + s3)


def dot(x: F64, y: F64) -> float:
    """Inner product of float64[n]."""
    partial = np.empty(chunks(len(x), CHUNK))
    _dots(x, y, partial)
    return _in_order(partial)


@parallel_kernel(lambda x, y, partial: len(partial))
def _dots(begin: int, end: int, x: F64, y: F64, partial: F64) -> None:
    for c in range(begin, end):
        lo, hi = c * CHUNK, min(x.shape[0], (c + 1) * CHUNK)
        partial[c] = _chunk_dot(x[lo:hi], y[lo:hi])


def _in_order(partial: F64) -> float:
    """Sum from first to last; `sum` of NumPy adds pairs."""
    return float(np.add.accumulate(partial)[-1]) if len(partial) else 0.0


@parallel_kernel(lambda a, x, *_: chunks(len(x), CHUNK))
def combine(begin: int, end: int, a: float, x: F64, b: float, y: F64, out: F64 | F32) -> None:
    """out = a x + b y; out may be x or y; to float32 it is rounded."""
    lo, hi = begin * CHUNK, min(x.shape[0], end * CHUNK)
    own_x, own_y, own = x[lo:hi], y[lo:hi], out[lo:hi]
    for i in range(hi - lo):
        own[i] = a * own_x[i] + b * own_y[i]


def max_abs(x: F64) -> float:
    """Largest absolute value."""
    partial = np.empty(chunks(len(x), CHUNK))
    _largest(x, partial)
    return float(partial.max(initial=0.0))


@parallel_kernel(lambda x, partial: len(partial))
def _largest(begin: int, end: int, x: F64, partial: F64) -> None:
    for c in range(begin, end):
        own, top = x[c * CHUNK : min(x.shape[0], (c + 1) * CHUNK)], 0.0
        for i in range(own.shape[0]):
            top = max(top, abs(own[i]))
        partial[c] = top


def subtract_prior(precision: float, copies: F32, x: F64, gradient: F64) -> float:
    """gradient -= p * x; return the sum of p * x^2 / 2.  x, gradient: float64[n].

    p = precision / copies, float32[n]. An array of p would take twice the memory of copies, which
    the optimizer has anyway.
    """
    partial = np.empty(chunks(len(x), CHUNK))
    _subtract(precision, copies, x, gradient, partial)
    return _in_order(0.5 * partial)


@parallel_kernel(lambda *arguments: len(arguments[-1]))
def _subtract(
    begin: int, end: int, precision: float, copies: F32, x: F64, gradient: F64, partial: F64
) -> None:
    for c in range(begin, end):
        lo, hi = c * CHUNK, min(x.shape[0], (c + 1) * CHUNK)
        weight, slope, number = x[lo:hi], gradient[lo:hi], copies[lo:hi]
        total = 0.0
        for i in range(hi - lo):
            pull = precision / np.float64(number[i]) * weight[i]
            slope[i] -= pull
            total += pull * weight[i]
        partial[c] = total


@parallel_kernel(lambda *arguments: len(arguments[-1]))
def write_pair(
    begin: int, end: int, x: F64, old_x: F64, gradient: F64, old_gradient: F64, pair: F64
) -> None:
    """pair = x - old_x, gradient - old_gradient, chunk by chunk: [chunks, 2, chunk]."""
    for c in range(begin, end):
        lo = c * pair.shape[2]
        hi = min(x.shape[0], lo + pair.shape[2])
        _subtract_into(x[lo:hi], old_x[lo:hi], pair[c, 0])
        _subtract_into(gradient[lo:hi], old_gradient[lo:hi], pair[c, 1])


@kernel
def _subtract_into(x: F64, y: F64, out: F64) -> None:
    """out = x - y; out may be longer."""
    for i in range(x.shape[0]):
        out[i] = x[i] - y[i]


def pair_products(pairs: F64, rows: I64, new: int, gradient: F64, preconditioner: F64 | F32) -> F64:
    """Inner products float64[k, 5] of the pairs of L-BFGS, in one pass over them.

    pairs [m, chunks, 2, chunk]: s and y, chunk by chunk; rows int64[k] those in use; new: row of
    the newest pair; preconditioner float64[n] or float32[n], the diagonal D (empty = identity).
    Columns: s.y_new, y.s_new, y.D.y_new, s.gradient, y.D.gradient.
    """
    partial = np.empty((pairs.shape[1], len(rows), 5))
    _pair_products(pairs, rows, new, gradient, preconditioner, partial)
    total: F64 = np.zeros((len(rows), 5))
    for part in partial:
        total += part
    return total


@parallel_kernel(lambda *arguments: len(arguments[-1]))
def _pair_products(
    begin: int,
    end: int,
    pairs: F64,
    rows: I64,
    new: int,
    gradient: F64,
    preconditioner: F64 | F32,
    partial: F64,
) -> None:
    chunk = pairs.shape[3]
    scaled_y, scaled_g = np.empty(chunk), np.empty(chunk)
    for c in range(begin, end):
        lo, hi = c * chunk, min(gradient.shape[0], (c + 1) * chunk)
        n, g = hi - lo, gradient[lo:hi]
        s_new, y_new = pairs[new, c, 0, :n], pairs[new, c, 1, :n]
        _times(y_new, 1.0, preconditioner[lo:hi], scaled_y)
        _times(g, 1.0, preconditioner[lo:hi], scaled_g)
        for j in range(rows.shape[0]):
            s, y = pairs[rows[j], c, 0, :n], pairs[rows[j], c, 1, :n]
            _five_products(s, y, s_new, y_new, scaled_y, g, scaled_g, partial[c, j])


@kernel
def _five_products(
    s: F64, y: F64, s_new: F64, y_new: F64, scaled_y: F64, g: F64, scaled_g: F64, out: F64
) -> None:
    """out = s.y_new, y.s_new, y.scaled_y, s.g, y.scaled_g; s and y are read once."""
    n = s.shape[0]
    t0 = t1 = t2 = t3 = t4 = lanes.splat(0.0)
    for i in range(0, n, 8):
        tail = lanes.first(n - i)
        u, v = lanes.load_first(s, i, tail, 0.0), lanes.load_first(y, i, tail, 0.0)
        t0 = lanes.fma(u, lanes.load_first(y_new, i, tail, 0.0), t0)
        t1 = lanes.fma(v, lanes.load_first(s_new, i, tail, 0.0), t1)
        t2 = lanes.fma(v, lanes.load_first(scaled_y, i, tail, 0.0), t2)
        t3 = lanes.fma(u, lanes.load_first(g, i, tail, 0.0), t3)
        t4 = lanes.fma(v, lanes.load_first(scaled_g, i, tail, 0.0), t4)
    out[0], out[1], out[2] = lanes.total(t0), lanes.total(t1), lanes.total(t2)
    out[3], out[4] = lanes.total(t3), lanes.total(t4)


@parallel_kernel(lambda pairs, *_: pairs.shape[1])
def combine_pairs(
    begin: int,
    end: int,
    pairs: F64,
    rows: I64,
    a: F64,
    b: F64,
    gradient: F64,
    preconditioner: F64 | F32,
    gamma: float,
    out: F64,
) -> None:
    """out = -(gamma D (gradient - sum_j a_j y_j) + sum_j b_j s_j); arrays as in `pair_products`.

    A chunk of `out` may lie where that of one of the pairs does.
    """
    chunk = pairs.shape[3]
    part = np.empty(chunk)
    empty = preconditioner[:0]
    for c in range(begin, end):
        lo, hi = c * chunk, min(gradient.shape[0], (c + 1) * chunk)
        n = hi - lo
        _times(gradient[lo:hi], 1.0, empty, part)
        for j in range(rows.shape[0]):
            _add_multiple(-a[j], pairs[rows[j], c, 1, :n], part)
        _times(part[:n], -gamma, preconditioner[lo:hi], part)
        for j in range(rows.shape[0]):
            _add_multiple(-b[j], pairs[rows[j], c, 0, :n], part)
        _times(part[:n], 1.0, empty, out[lo:hi])


@kernel
def _times(x: F64, factor: float, diagonal: F64 | F32, out: F64) -> None:
    """out = (factor D) x, D a diagonal or, if that is empty, the identity; out may be longer."""
    if diagonal.shape[0] == 0:
        for i in range(x.shape[0]):
            out[i] = x[i] * factor
    else:
        for i in range(x.shape[0]):
            out[i] = x[i] * (factor * diagonal[i])


@kernel
def _add_multiple(a: float, x: F64, y: F64) -> None:
    """y += a x."""
    f = lanes.splat(a)
    whole = x.shape[0] - x.shape[0] % 8
    for i in range(0, whole, 8):
        lanes.store(y, i, lanes.fma(f, lanes.load(x, i), lanes.load(y, i)))
    for i in range(whole, x.shape[0]):
        y[i] += a * x[i]
