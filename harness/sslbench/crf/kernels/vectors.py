"""Long vectors: sums in fixed chunks (the same bits for any number of threads), fused updates."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from ...types import F64

CHUNK = 16_384


@njit(cache=True, nogil=True, error_model="numpy")
def _chunk_dot(x, y, lo, hi):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def dot(x: F64, y: F64) -> float:
    """Inner product."""
    n = x.shape[0]
    chunks = (n + CHUNK - 1) // CHUNK
    partial = np.zeros(chunks)
    for c in prange(chunks):
        partial[c] = _chunk_dot(x, y, c * CHUNK, min(n, (c + 1) * CHUNK))
    total = 0.0
    for c in range(chunks):
        total += partial[c]
    return total


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def axpy_dot(a: float, x: F64, y: F64, z: F64) -> float:
    """y += a x, then z . y (one pass over memory instead of two)."""
    n = x.shape[0]
    chunks = (n + CHUNK - 1) // CHUNK
    partial = np.zeros(chunks)
    for c in prange(chunks):
        lo, hi = c * CHUNK, min(n, (c + 1) * CHUNK)
        for i in range(lo, hi):
            y[i] += a * x[i]
        partial[c] = _chunk_dot(z, y, lo, hi)
    total = 0.0
    for c in range(chunks):
        total += partial[c]
    return total


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def combine(a: float, x: F64, b: float, y: F64, out: F64) -> None:
    """out = a x + b y."""
    for i in prange(x.shape[0]):
        out[i] = a * x[i] + b * y[i]


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def multiply(x: F64, y: F64) -> None:
    """y *= x."""
    for i in prange(x.shape[0]):
        y[i] *= x[i]


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
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


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def subtract_prior(precision: F64, x: F64, gradient: F64) -> float:
    """gradient -= precision * x; return sum of precision * x^2 / 2."""
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
    for c in range(chunks):  # not partial.sum(): numba would make it a parallel sum
        half += 0.5 * partial[c]
    return half
