"""Tables, products and operations on pairs of labels for `scaled`.

In the products four sentences side by side share what is read of a matrix.

Eight labels at a time (`lanes`), sums in registers.  Indices are into the flattened arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import inline_kernel, kernel
from sslbench.engine.crf.data import LabelTriples
from sslbench.engine.crf.first_order.scaled import smallest_positive
from sslbench.engine.crf.simd import lanes, rows
from sslbench.engine.crf.simd.exp import exp_shifted
from sslbench.engine.crf.simd.lanes import Vector
from sslbench.engine.types import F64

#: number of sentences side by side, and side of a tile of `add_products`
QUAD = 4
#: in place of a maximum of -inf
LEAST = -1e300
WIDTH = lanes.WIDTH


class TripleTables(NamedTuple):
    """Exponentials of the potentials of `LabelTriples`, each less its maximum.

    begin, end: float64[L, L]; forward: float64[b, a, P of c] and backward: float64[b, c, P of a],
    both of inner(a, b, c).
    tops: float64[3] maxima of begin, inner, end; span: largest range of potentials at one position;
    zeros: some potentials are -inf.
    """

    begin: F64
    forward: F64
    backward: F64
    end: F64
    tops: F64
    span: float
    zeros: bool


@kernel
def products(v: F64, i: int, stride: int, n: int, M: F64, j: int, out: F64, o: int) -> None:
    """out[o + s stride + k] = sum over a < n of v[i + s stride + a P] M[j + a P + k], s < 4, k < P.

    P is the width of the rows of M.
    """
    P = M.shape[2]
    k = 0
    while P - k >= 2 * WIDTH:
        s0 = s1 = s2 = s3 = u0 = u1 = u2 = u3 = lanes.splat(0.0)
        p, m = i, j + k
        for _ in range(n):
            e0, e1 = lanes.load(M, m), lanes.load(M, m + WIDTH)
            f = lanes.spread(v, p)
            s0, u0 = lanes.fma(f, e0, s0), lanes.fma(f, e1, u0)
            f = lanes.spread(v, p + stride)
            s1, u1 = lanes.fma(f, e0, s1), lanes.fma(f, e1, u1)
            f = lanes.spread(v, p + 2 * stride)
            s2, u2 = lanes.fma(f, e0, s2), lanes.fma(f, e1, u2)
            f = lanes.spread(v, p + 3 * stride)
            s3, u3 = lanes.fma(f, e0, s3), lanes.fma(f, e1, u3)
            p += P
            m += P
        lanes.store(out, o + k, s0)
        lanes.store(out, o + k + WIDTH, u0)
        lanes.store(out, o + stride + k, s1)
        lanes.store(out, o + stride + k + WIDTH, u1)
        lanes.store(out, o + 2 * stride + k, s2)
        lanes.store(out, o + 2 * stride + k + WIDTH, u2)
        lanes.store(out, o + 3 * stride + k, s3)
        lanes.store(out, o + 3 * stride + k + WIDTH, u3)
        k += 2 * WIDTH
    if k < P:
        _last_products(v, i, stride, n, M, j + k, out, o + k)


@kernel
def _last_products(v: F64, i: int, stride: int, n: int, M: F64, m: int, out: F64, o: int) -> None:
    """`products` for eight columns, the first of them at m in M and at o in the output."""
    P = M.shape[2]
    s0 = s1 = s2 = s3 = lanes.splat(0.0)
    p = i
    for _ in range(n):
        e = lanes.load(M, m)
        s0 = lanes.fma(lanes.spread(v, p), e, s0)
        s1 = lanes.fma(lanes.spread(v, p + stride), e, s1)
        s2 = lanes.fma(lanes.spread(v, p + 2 * stride), e, s2)
        s3 = lanes.fma(lanes.spread(v, p + 3 * stride), e, s3)
        p += P
        m += P
    lanes.store(out, o, s0)
    lanes.store(out, o + stride, s1)
    lanes.store(out, o + 2 * stride, s2)
    lanes.store(out, o + 3 * stride, s3)


@kernel
def add_products(alpha: F64, g: F64, first: int, last: int, out: F64) -> None:
    """out[a, c, :] += sum over first <= r < last of alpha[r - 4, a, :] g[r, c, :].

    alpha, g: float64[rows, R, P]; out float64[R, R, P]; R a multiple of four.
    """
    R, P = alpha.shape[1], alpha.shape[2]
    size = R * P
    for a in range(0, R, QUAD):
        for c in range(0, R, QUAD):
            for k in range(0, P, WIDTH):
                _tile(
                    alpha, g, first, last, size, a * P + k, c * P + k, P, out, (a * R + c) * P + k
                )


@kernel
def _tile(
    alpha: F64, g: F64, first: int, last: int, size: int, i: int, j: int, P: int, out: F64, o: int
) -> None:
    """`add_products` for four labels a, four c and eight b; the sums stay in registers."""
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = lanes.splat(0.0)
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = lanes.splat(0.0)
    for r in range(first, last):
        p, q = (r - QUAD) * size + i, r * size + j
        g0, g1 = lanes.load(g, q), lanes.load(g, q + P)
        g2, g3 = lanes.load(g, q + 2 * P), lanes.load(g, q + 3 * P)
        x = lanes.load(alpha, p)
        s00, s01 = lanes.fma(x, g0, s00), lanes.fma(x, g1, s01)
        s02, s03 = lanes.fma(x, g2, s02), lanes.fma(x, g3, s03)
        x = lanes.load(alpha, p + P)
        s10, s11 = lanes.fma(x, g0, s10), lanes.fma(x, g1, s11)
        s12, s13 = lanes.fma(x, g2, s12), lanes.fma(x, g3, s13)
        x = lanes.load(alpha, p + 2 * P)
        s20, s21 = lanes.fma(x, g0, s20), lanes.fma(x, g1, s21)
        s22, s23 = lanes.fma(x, g2, s22), lanes.fma(x, g3, s23)
        x = lanes.load(alpha, p + 3 * P)
        s30, s31 = lanes.fma(x, g0, s30), lanes.fma(x, g1, s31)
        s32, s33 = lanes.fma(x, g2, s32), lanes.fma(x, g3, s33)
    row = out.shape[1] * P
    _add_four(out, o, P, s00, s01, s02, s03)
    _add_four(out, o + row, P, s10, s11, s12, s13)
    _add_four(out, o + 2 * row, P, s20, s21, s22, s23)
    _add_four(out, o + 3 * row, P, s30, s31, s32, s33)


@inline_kernel
def _add_four(out: F64, o: int, P: int, s0: Vector, s1: Vector, s2: Vector, s3: Vector) -> None:
    lanes.store(out, o, lanes.add(lanes.load(out, o), s0))
    lanes.store(out, o + P, lanes.add(lanes.load(out, o + P), s1))
    lanes.store(out, o + 2 * P, lanes.add(lanes.load(out, o + 2 * P), s2))
    lanes.store(out, o + 3 * P, lanes.add(lanes.load(out, o + 3 * P), s3))


@kernel
def scale_pairs(pairs: F64, i: int, n: int, x: F64, j: int, P: int) -> float:
    """pairs[i + b P + c] *= x[j + c] for b < n, both counted flat; the sum of the result."""
    total = lanes.splat(0.0)
    for k in range(0, P, WIDTH):
        f = lanes.load(x, j + k)
        for b in range(n):
            value = lanes.multiply(lanes.load(pairs, i + b * P + k), f)
            lanes.store(pairs, i + b * P + k, value)
            total = lanes.add(total, value)
    return lanes.total(total)


@kernel
def start_pairs(x0: F64, x1: F64, M2: F64, alpha: F64) -> float:
    """alpha[b, c] = x0[b] M2[b, c] x1[c]; its sum."""
    L, total = M2.shape[0], 0.0
    for b in range(L):
        for c in range(L):
            alpha[b, c] = x0[b] * M2[b, c] * x1[c]
            total += alpha[b, c]
    return total


@kernel
def stop_pairs(alpha: F64, M4: F64, weight: float, g: F64) -> float:
    """g[c, b] = weight M4[b, c] / z, the beta of the last pair; returns z = sum of alpha M4."""
    L, z = M4.shape[0], 0.0
    for b in range(L):
        for c in range(L):
            z += alpha[b, c] * M4[b, c]
    if z > 0.0:
        for b in range(L):
            for c in range(L):
                g[c, b] = weight / z * M4[b, c]
    return z


@kernel
def finish_pairs(alpha: F64, x: F64, g: F64, mu: F64, zeros: bool) -> float:
    """From beta to g: g[c, :] = x[c] beta(., c), and mu[c] = sum over b of alpha[b, c] beta(b, c).

    Returns, with zeros, the smallest positive beta, 0 if one is huge.
    """
    L, low = mu.shape[0], 1.0
    for c in range(L):
        total = 0.0
        for b in range(L):
            total += alpha[b, c] * g[c, b]
        mu[c] = total
        if zeros:
            low = min(low, smallest_positive(g[c]))
        for b in range(L):
            g[c, b] *= x[c]
    return low


@kernel
def add_first(x0: F64, M2: F64, g: F64, mu: F64, first: F64) -> None:
    """first += marginals of the first two labels; mu: of the first one.  g at position 1."""
    L = M2.shape[0]
    for b in range(L):
        total = 0.0
        for c in range(L):
            p = x0[b] * M2[b, c] * g[c, b]
            first[b, c] += p
            total += p
        mu[b] = total


@kernel
def add_last(alpha: F64, M4: F64, weight: float, last: F64) -> None:
    """last += marginals of the last two labels."""
    L, z = M4.shape[0], 0.0
    for b in range(L):
        for c in range(L):
            z += alpha[b, c] * M4[b, c]
    for b in range(L):
        for c in range(L):
            last[b, c] += weight / z * alpha[b, c] * M4[b, c]


@kernel
def padded(n: int, width: int) -> int:
    """n, rounded up to a multiple of width."""
    return (n + width - 1) // width * width


@kernel
def tables(triples: LabelTriples) -> TripleTables:
    """Tables of the log-potentials."""
    begin, first, two, zeros2 = _exponential(triples.begin)
    M, inner, three, zeros3 = _exponential(triples.inner)
    end, last, ending, zeros4 = _exponential(triples.end)
    L = begin.shape[0]
    P = padded(L, WIDTH)
    forward = rows.aligned(L * L, P).reshape(L, L, P)
    backward = rows.aligned(L * L, P).reshape(L, L, P)
    for a in range(L):
        for b in range(L):
            for c in range(L):
                forward[b, a, c], backward[b, c, a] = M[a, b, c], M[a, b, c]
    tops, span = np.array([first, inner, last]), max(two, three) + ending
    return TripleTables(begin, forward, backward, end, tops, span, zeros2 or zeros3 or zeros4)


@kernel
def _exponential(log: F64) -> tuple[F64, float, float, bool]:
    """exp(log - max), the maximum, the range of the finite values, and whether there is a -inf."""
    out = log.copy()
    high, low, zeros = rows.bounds(out.reshape(out.size))
    top = max(high, LEAST)
    exp_shifted(out.reshape(out.size), top)
    return out, top, (high - low if high > -np.inf else 0.0), zeros
