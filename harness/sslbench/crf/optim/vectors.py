"""Operations on long vectors.

Sums run over chunks of a fixed length: the same bits for any number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from sslbench.compiled import kernel, parallel_kernel
from sslbench.crf.simd import lanes
from sslbench.types import F64, I64

CHUNK = 16_384
#: several vectors of this length fit into the second-level cache, beside the pairs of L-BFGS that
#: are read once
PAIR_CHUNK = 4096


@kernel
def _chunk_dot(x: F64, y: F64, lo: int, hi: int) -> float:
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    n4 = lo + (hi - lo) // 4 * 4
    for i in range(lo, n4, 4):
        s0 += x[i] * y[i]
        s1 += x[i + 1] * y[i + 1]
        s2 += x[i + 2] * y[i + 2]
        s3 += x[i + 3] * y[i + 3]
    for i in range(n4, hi):
        s0 += x[i] * y[i]
    return (s0 + s1) + (s2 + s3)


@parallel_kernel
def dot(x: F64, y: F64) -> float:
    """Inner product of float64[n]."""
    n = x.shape[0]
    chunks = (n + CHUNK - 1) // CHUNK
    partial = np.zeros(chunks)
    for c in prange(chunks):
        partial[c] = _chunk_dot(x, y, c * CHUNK, min(n, (c + 1) * CHUNK))
    total = 0.0
    for c in range(chunks):
        total += partial[c]
    return total


@parallel_kernel
def combine(a: float, x: F64, b: float, y: F64, out: F64) -> None:
    """out = a x + b y; out may be x or y."""
    for i in prange(x.shape[0]):
        out[i] = a * x[i] + b * y[i]


@parallel_kernel
def max_abs(x: F64) -> float:
    """Largest absolute value."""
    n = x.shape[0]
    chunks = (n + CHUNK - 1) // CHUNK
    partial = np.zeros(chunks)
    for c in prange(chunks):
        top = 0.0
        for i in range(c * CHUNK, min(n, (c + 1) * CHUNK)):
            top = max(top, abs(x[i]))
        partial[c] = top
    return partial.max() if chunks > 0 else 0.0


@parallel_kernel
def subtract_prior(precision: F64, x: F64, gradient: F64) -> float:
    """gradient -= precision * x; return the sum of precision * x^2 / 2.  All float64[n]."""
    n = x.shape[0]
    chunks = (n + CHUNK - 1) // CHUNK
    partial = np.zeros(chunks)
    for c in prange(chunks):
        total = 0.0
        for i in range(c * CHUNK, min(n, (c + 1) * CHUNK)):
            pull = precision[i] * x[i]
            gradient[i] -= pull
            total += pull * x[i]
        partial[c] = total
    half = 0.0
    for c in range(chunks):  # numba would turn partial.sum() into a parallel sum
        half += 0.5 * partial[c]
    return half


@parallel_kernel
def pair_products(S: F64, Y: F64, rows: I64, new: int, gradient: F64, preconditioner: F64) -> F64:
    """Inner products float64[k, 5] of the pairs of L-BFGS, in one pass over them.

    S, Y float64[m, n] the pairs; rows int64[k] those in use; new: row of the newest pair;
    preconditioner float64[n], the diagonal D (empty = identity).
    Columns: s.y_new, y.s_new, y.D.y_new, s.gradient, y.D.gradient.
    """
    n, k = gradient.shape[0], rows.shape[0]
    chunks = (n + PAIR_CHUNK - 1) // PAIR_CHUNK
    partial = np.zeros((chunks, k, 5))
    for c in prange(chunks):
        lo, hi = c * PAIR_CHUNK, min(n, (c + 1) * PAIR_CHUNK)
        scaled_y, scaled_g = Y[new, lo:hi].copy(), gradient[lo:hi].copy()
        if preconditioner.shape[0]:
            for i in range(hi - lo):
                scaled_y[i] *= preconditioner[lo + i]
                scaled_g[i] *= preconditioner[lo + i]
        for j in range(k):
            _five_products(
                S[rows[j], lo:hi],
                Y[rows[j], lo:hi],
                S[new, lo:hi],
                Y[new, lo:hi],
                scaled_y,
                gradient[lo:hi],
                scaled_g,
                partial[c, j],
            )
    total = np.zeros((k, 5))
    for c in range(chunks):
        for j in range(k):
            for q in range(5):
                total[j, q] += partial[c, j, q]
    return total


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


@parallel_kernel
def combine_pairs(
    S: F64,
    Y: F64,
    rows: I64,
    a: F64,
    b: F64,
    gradient: F64,
    preconditioner: F64,
    gamma: float,
    out: F64,
) -> None:
    """out = -(gamma D (gradient - sum_j a_j y_j) + sum_j b_j s_j); arrays as in `pair_products`."""
    n = gradient.shape[0]
    for c in prange((n + PAIR_CHUNK - 1) // PAIR_CHUNK):
        lo, hi = c * PAIR_CHUNK, min(n, (c + 1) * PAIR_CHUNK)
        part = gradient[lo:hi].copy()
        for j in range(rows.shape[0]):
            _add_multiple(-a[j], Y[rows[j], lo:hi], part)
        for i in range(hi - lo):
            part[i] *= -gamma if preconditioner.shape[0] == 0 else -gamma * preconditioner[lo + i]
        for j in range(rows.shape[0]):
            _add_multiple(-b[j], S[rows[j], lo:hi], part)
        out[lo:hi] = part


@kernel
def _add_multiple(a: float, x: F64, y: F64) -> None:
    """y += a x."""
    f = lanes.splat(a)
    whole = x.shape[0] - x.shape[0] % 8
    for i in range(0, whole, 8):
        lanes.store(y, i, lanes.fma(f, lanes.load(x, i), lanes.load(y, i)))
    for i in range(whole, x.shape[0]):
        y[i] += a * x[i]
