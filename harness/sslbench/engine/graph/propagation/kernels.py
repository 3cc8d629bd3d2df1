"""Compiled passes over a graph with K numbers per vertex.

A graph is CSR: indptr int[V + 1], indices int[E], weights float64[E]; both directions of every
edge. Each row is written by one thread and column sums are over fixed chunks of rows, so results
have the same bits for any number of threads.
"""

from __future__ import annotations

import numpy as np

from sslbench.engine.compilation.compiled import chunks, kernel, parallel_kernel
from sslbench.engine.crf.simd import lanes
from sslbench.engine.types import F64, I32

CHUNK = 1024  # rows of a task
STRIP = 2 * lanes.WIDTH  # columns that a pass over the edges of a vertex sums in registers
AHEAD = 32  # how many edges ahead rows are fetched into the cache


@kernel
def neighbor_sum(
    u: int, indptr: I32, indices: I32, weights: F64, q: F64, k: int
) -> tuple[lanes.Vector, lanes.Vector]:
    """Columns k to k + 15 of sum_v w_uv q_v; 0 beyond K.

    Fetches those of neighbors that come soon into the cache: they are anywhere in memory.
    """
    K, end = q.shape[1], indices.shape[0] - 1
    ahead = K if k == 0 else 0
    low, high = lanes.first(K - k), lanes.first(K - k - lanes.WIDTH)
    s0 = s1 = lanes.splat(0.0)
    for e in range(indptr[u], indptr[u + 1]):
        later = np.int64(indices[min(e + AHEAD, end)]) * K + k
        for c in range(0, ahead, lanes.WIDTH):
            lanes.prefetch(q, later + c)
        w, i = lanes.splat(weights[e]), np.int64(indices[e]) * K + k
        s0 = lanes.fma(w, lanes.load_first(q, i, low, 0.0), s0)
        s1 = lanes.fma(w, lanes.load_first(q, i + lanes.WIDTH, high, 0.0), s1)
    return s0, s1


@parallel_kernel(lambda *arguments: chunks(len(arguments[-1]), CHUNK))
def row_energy(
    begin: int, end: int, indptr: I32, indices: I32, weights: F64, q: F64, out: F64
) -> None:
    """out_u = sum_v w_uv |q_u - q_v|^2; q float64[V, K], out float64[V]."""
    K = q.shape[1]
    for u in range(begin * CHUNK, min(end * CHUNK, q.shape[0])):
        total = lanes.splat(0.0)
        for k in range(0, K, lanes.WIDTH):
            tail = lanes.first(K - k)
            own = lanes.load_first(q, u * K + k, tail, 0.0)
            for e in range(indptr[u], indptr[u + 1]):
                other = lanes.load_first(q, np.int64(indices[e]) * K + k, tail, 0.0)
                gap = lanes.subtract(own, other)
                total = lanes.fma(lanes.multiply(lanes.splat(weights[e]), gap), gap, total)
        out[u] = lanes.total(total)


def _padded(K: int) -> int:
    """Columns of whole strips for K columns."""
    return chunks(K, STRIP) * STRIP


def _chunk_sums(partial: F64, out: F64) -> None:
    """out[K] = sum over chunks of partial[chunks, K], in order."""
    out[:] = 0.0
    for part in partial:
        out += part


def system_product(
    indptr: I32,
    indices: I32,
    weights: F64,
    coupling: float,
    diagonal: F64,
    p: F64,
    out: F64,
    dots: F64,
    *,
    scale: F64 | None = None,
) -> None:
    """out = (diag - coupling W) p, and dots_k = p_k . out_k for each column k.

    diagonal float64[V]; p float64[V, P], columns from K on not used; out float64[V, K]; dots
    float64[K]. scale: float64[V], by which the rows of `out`, not `dots`, are multiplied; None = 1.
    """
    K = out.shape[1]
    partial, total = np.zeros((chunks(len(p), CHUNK), _padded(K))), np.empty(_padded(K))
    scale = np.empty(0) if scale is None else scale
    _system_product(indptr, indices, weights, coupling, diagonal, scale, p, out, partial)
    _chunk_sums(partial, total)
    dots[:] = total[:K]


@parallel_kernel(lambda *arguments: len(arguments[-1]))
def _system_product(
    begin: int,
    end: int,
    indptr: I32,
    indices: I32,
    weights: F64,
    coupling: float,
    diagonal: F64,
    scale: F64,
    p: F64,
    out: F64,
    partial: F64,
) -> None:
    V, K = out.shape
    P, c, scaled = partial.shape[1], lanes.splat(-coupling), scale.shape[0] > 0
    for chunk in range(begin, end):
        for u in range(chunk * CHUNK, min(V, (chunk + 1) * CHUNK)):
            f = lanes.splat(diagonal[u])
            for k in range(0, K, STRIP):
                i, j = u * K + k, chunk * P + k
                low, high = lanes.first(K - k), lanes.first(K - k - lanes.WIDTH)
                s0, s1 = neighbor_sum(u, indptr, indices, weights, p, k)
                own = u * p.shape[1] + k
                p0 = lanes.load_first(p, own, low, 0.0)
                p1 = lanes.load_first(p, own + lanes.WIDTH, high, 0.0)
                x0 = lanes.fma(c, s0, lanes.multiply(f, p0))
                x1 = lanes.fma(c, s1, lanes.multiply(f, p1))
                lanes.store(partial, j, lanes.fma(p0, x0, lanes.load(partial, j)))
                j += lanes.WIDTH
                lanes.store(partial, j, lanes.fma(p1, x1, lanes.load(partial, j)))
                if scaled:
                    s = lanes.splat(scale[u])
                    x0, x1 = lanes.multiply(x0, s), lanes.multiply(x1, s)
                lanes.store_first(out, i, low, x0)
                lanes.store_first(out, i + lanes.WIDTH, high, x1)


def advance(
    step: F64, p: F64, product: F64, inverse: F64, x: F64, residual: F64, dots: F64, squares: F64
) -> None:
    """A step of conjugate gradients with the inner products that the next one needs.

    x += step p; residual -= step product; dots = residual . (inverse residual); squares = residual
    . residual. step, dots, squares float64[K]; inverse float64[V]; the rest float64[V, K].
    """
    V, K = p.shape
    partial, total = np.zeros((chunks(V, CHUNK), 2 * K)), np.empty(2 * K)
    _advance(step, p, product, inverse, x, residual, partial)
    _chunk_sums(partial, total)
    dots[:] = total[:K]
    squares[:] = total[K:]


@parallel_kernel(lambda *arguments: len(arguments[-1]))
def _advance(
    begin: int,
    end: int,
    step: F64,
    p: F64,
    product: F64,
    inverse: F64,
    x: F64,
    residual: F64,
    partial: F64,
) -> None:
    V, K = p.shape
    for c in range(begin, end):
        for u in range(c * CHUNK, min(V, (c + 1) * CHUNK)):
            for k in range(K):
                x[u, k] += step[k] * p[u, k]
                left = residual[u, k] - step[k] * product[u, k]
                residual[u, k] = left
                partial[c, k] += left * left * inverse[u]
                partial[c, K + k] += left * left


@parallel_kernel(lambda inverse, residual, keep, p: chunks(len(p), CHUNK))
def turn(begin: int, end: int, inverse: F64, residual: F64, keep: F64, p: F64) -> None:
    """The next direction: p = inverse residual + keep p; keep float64[K]."""
    for u in range(begin * CHUNK, min(end * CHUNK, p.shape[0])):
        for k in range(p.shape[1]):
            p[u, k] = inverse[u] * residual[u, k] + keep[k] * p[u, k]
