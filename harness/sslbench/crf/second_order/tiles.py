"""Tables and products for `triples`: four sentences at a time share what is read of a matrix.

Eight labels at a time (`lanes`), sums in registers; all arrays are counted flat.
"""

from __future__ import annotations

import numpy as np

from sslbench.compiled import njit
from sslbench.crf.simd import lanes, rows
from sslbench.crf.simd.exp import exp_shifted

#: sentences side by side, and the side of a tile of triples
QUAD = 4
#: in place of a maximum of -inf
LEAST = -1e300
WIDTH = lanes.WIDTH


@njit(cache=True, nogil=True, error_model="numpy")
def products(v, i, stride, n, M, j, out, o):  # type: ignore[no-untyped-def]
    """out[o + s stride + k] = sum over a < n of v[i + s stride + a P] M[j + a P + k], s < 4, k < P.

    All arrays counted flat; P is the width of M's rows.
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
        s0 = s1 = s2 = s3 = lanes.splat(0.0)
        p, m = i, j + k
        for _ in range(n):
            e0 = lanes.load(M, m)
            s0 = lanes.fma(lanes.spread(v, p), e0, s0)
            s1 = lanes.fma(lanes.spread(v, p + stride), e0, s1)
            s2 = lanes.fma(lanes.spread(v, p + 2 * stride), e0, s2)
            s3 = lanes.fma(lanes.spread(v, p + 3 * stride), e0, s3)
            p += P
            m += P
        lanes.store(out, o + k, s0)
        lanes.store(out, o + stride + k, s1)
        lanes.store(out, o + 2 * stride + k, s2)
        lanes.store(out, o + 3 * stride + k, s3)


@njit(cache=True, nogil=True, error_model="numpy")
def add_label_triples(alpha, g, first, last, R, P, out):  # type: ignore[no-untyped-def]
    """out[a, c, :] += sum over first <= r < last of alpha[r - 4, a, :] g[r, c, :].

    alpha, g: float64[rows, R, P] counted flat; out float64[R, R, P]; R a multiple of four.
    """
    size = R * P
    for a in range(0, R, QUAD):
        for c in range(0, R, QUAD):
            for k in range(0, P, WIDTH):
                _tile(
                    alpha, g, first, last, size, a * P + k, c * P + k, P, out, (a * R + c) * P + k
                )


@njit(cache=True, nogil=True, error_model="numpy")
def _tile(alpha, g, first, last, size, i, j, P, out, o):  # type: ignore[no-untyped-def]
    """`add_label_triples` for four labels a, four c and eight b; the sums stay in registers."""
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


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _add_four(out, o, P, s0, s1, s2, s3):  # type: ignore[no-untyped-def]
    lanes.store(out, o, lanes.add(lanes.load(out, o), s0))
    lanes.store(out, o + P, lanes.add(lanes.load(out, o + P), s1))
    lanes.store(out, o + 2 * P, lanes.add(lanes.load(out, o + 2 * P), s2))
    lanes.store(out, o + 3 * P, lanes.add(lanes.load(out, o + 3 * P), s3))


# -- tables ----------------------------------------------------------------------------------------
@njit(cache=True, nogil=True, error_model="numpy")
def padded(n, width):  # type: ignore[no-untyped-def]
    return (n + width - 1) // width * width


@njit(cache=True, nogil=True, error_model="numpy")
def tables(inner):  # type: ignore[no-untyped-def]
    """M3 as forward float64[b, a, P of c] and backward float64[b, c, P of a]; its log maximum."""
    L = inner.shape[0]
    P = padded(L, WIDTH)
    M, top = exponential(inner)
    forward = rows.aligned(L * L, P).reshape(L, L, P)
    backward = rows.aligned(L * L, P).reshape(L, L, P)
    for a in range(L):
        for b in range(L):
            for c in range(L):
                forward[b, a, c], backward[b, c, a] = M[a, b, c], M[a, b, c]
    return forward, backward, top


@njit(cache=True, nogil=True, error_model="numpy")
def exponential(log):  # type: ignore[no-untyped-def]
    """exp(log - max) and the maximum."""
    out = log.copy()
    top = max(rows.bounds(out.reshape(out.size))[0], LEAST)
    exp_shifted(out.reshape(out.size), top)
    return out, top


@njit(cache=True, nogil=True, error_model="numpy")
def prepared(begin, inner, end):  # type: ignore[no-untyped-def]
    """Exponentials of the transitions, their log maxima, their range at one position, any -inf?"""
    forward, backward, top = tables(inner)
    M2, first = exponential(begin)
    M4, last = exponential(end)
    two, some2 = extent(begin)
    three, some3 = extent(inner)
    ending, some4 = extent(end)
    tops = np.array([first, top, last])
    return (M2, forward, backward, M4), tops, max(two, three) + ending, some2 or some3 or some4


@njit(cache=True, nogil=True, error_model="numpy")
def extent(log):  # type: ignore[no-untyped-def]
    """Largest less smallest finite value, and whether there is a -inf."""
    high, low, some = rows.bounds(log.reshape(log.size))
    return (high - low if high > -np.inf else 0.0), some
