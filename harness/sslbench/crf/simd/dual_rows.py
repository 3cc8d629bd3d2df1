"""Rows of dual numbers, eight lanes at a time: values, and beside them derivatives (`d` in front).

As `rows`, for the recursions of `entropy`; padded rows are whole lanes long, with zeros at the end.
"""

from __future__ import annotations

import numpy as np

from sslbench.compiled import njit
from sslbench.crf.simd import lanes, rows
from sslbench.crf.simd.exp import exp_lanes

WIDTH, STRIP, WIDE = rows.WIDTH, rows.STRIP, rows.WIDE
#: stands for a log-potential of -inf where a probability of exactly 0 will multiply it
FLOOR = -1000.0


@njit(cache=True, nogil=True, error_model="numpy")
def vector_matrix(v, dv, M, dM, out, dout):  # type: ignore[no-untyped-def]
    """out = v M, dout = dv M + v dM: M, dM float64[n, P] and outputs padded, v, dv float64[>= n].

    In strips of three registers, at last two or one, so that enough sums run side by side.
    """
    P, k = M.shape[1], 0
    while P - k > WIDE:
        _three_registers(v, dv, M, dM, k, out, dout)
        k += STRIP
    if P - k == WIDE:
        _two_registers(v, dv, M, dM, k, out, dout)
    elif P - k == WIDTH:
        _one_register(v, dv, M, dM, k, out, dout)


@njit(cache=True, nogil=True, error_model="numpy")
def _three_registers(v, dv, M, dM, k, out, dout):  # type: ignore[no-untyped-def]
    """`vector_matrix` for columns k to k + 23."""
    n, P = M.shape
    s0 = s1 = s2 = d0 = d1 = d2 = e0 = e1 = e2 = lanes.splat(0.0)
    for a in range(n):
        f, df, i = lanes.spread(v, a), lanes.spread(dv, a), a * P + k
        m0, m1, m2 = lanes.load(M, i), lanes.load(M, i + 8), lanes.load(M, i + 16)
        s0, s1, s2 = lanes.fma(f, m0, s0), lanes.fma(f, m1, s1), lanes.fma(f, m2, s2)
        d0, d1, d2 = lanes.fma(df, m0, d0), lanes.fma(df, m1, d1), lanes.fma(df, m2, d2)
        e0 = lanes.fma(f, lanes.load(dM, i), e0)
        e1 = lanes.fma(f, lanes.load(dM, i + 8), e1)
        e2 = lanes.fma(f, lanes.load(dM, i + 16), e2)
    lanes.store(out, k, s0)
    lanes.store(out, k + 8, s1)
    lanes.store(out, k + 16, s2)
    lanes.store(dout, k, lanes.add(d0, e0))
    lanes.store(dout, k + 8, lanes.add(d1, e1))
    lanes.store(dout, k + 16, lanes.add(d2, e2))


@njit(cache=True, nogil=True, error_model="numpy")
def _two_registers(v, dv, M, dM, k, out, dout):  # type: ignore[no-untyped-def]
    """`vector_matrix` for columns k to k + 15."""
    n, P = M.shape
    s0 = s1 = d0 = d1 = e0 = e1 = lanes.splat(0.0)
    for a in range(n):
        f, df, i = lanes.spread(v, a), lanes.spread(dv, a), a * P + k
        m0, m1 = lanes.load(M, i), lanes.load(M, i + 8)
        s0, s1 = lanes.fma(f, m0, s0), lanes.fma(f, m1, s1)
        d0, d1 = lanes.fma(df, m0, d0), lanes.fma(df, m1, d1)
        e0 = lanes.fma(f, lanes.load(dM, i), e0)
        e1 = lanes.fma(f, lanes.load(dM, i + 8), e1)
    lanes.store(out, k, s0)
    lanes.store(out, k + 8, s1)
    lanes.store(dout, k, lanes.add(d0, e0))
    lanes.store(dout, k + 8, lanes.add(d1, e1))


@njit(cache=True, nogil=True, error_model="numpy")
def _one_register(v, dv, M, dM, k, out, dout):  # type: ignore[no-untyped-def]
    """`vector_matrix` for columns k to k + 7."""
    n, P = M.shape
    s = d = e = lanes.splat(0.0)
    for a in range(n):
        f, i = lanes.spread(v, a), a * P + k
        m = lanes.load(M, i)
        s = lanes.fma(f, m, s)
        d = lanes.fma(lanes.spread(dv, a), m, d)
        e = lanes.fma(f, lanes.load(dM, i), e)
    lanes.store(out, k, s)
    lanes.store(dout, k, lanes.add(d, e))


@njit(cache=True, nogil=True, error_model="numpy")
def exp_row(score, shift, x, u):  # type: ignore[no-untyped-def]
    """u = score - shift (FLOOR for -inf and beyond the row), x = exp(u), in whole lanes."""
    s, floor = lanes.splat(shift), lanes.splat(FLOOR)
    for k in range(0, x.shape[0], WIDTH):
        row = lanes.load_first(score, k, lanes.first(score.shape[0] - k), -np.inf)
        value = lanes.maximum(lanes.subtract(row, s), floor)
        lanes.store(u, k, value)
        lanes.store(x, k, exp_lanes(value))


@njit(cache=True, nogil=True, error_model="numpy")
def forward_row(x, u, inverse, kappa, alpha, dalpha):  # type: ignore[no-untyped-def]
    """Take position t's own potentials into alpha, which has come through the transitions.

    x, scaled by inverse = 1 / c_{t-1} in place, has derivative (u - kappa_{t-1}) x.
    Returns c_t and dc_t.
    """
    f, shift = lanes.splat(inverse), lanes.splat(kappa)
    s = ds = lanes.splat(0.0)
    for k in range(0, x.shape[0], WIDTH):
        scaled = lanes.multiply(lanes.load(x, k), f)
        value = lanes.multiply(lanes.load(alpha, k), scaled)
        slope = lanes.multiply(lanes.subtract(lanes.load(u, k), shift), value)
        slope = lanes.fma(lanes.load(dalpha, k), scaled, slope)
        lanes.store(x, k, scaled)
        lanes.store(alpha, k, value)
        lanes.store(dalpha, k, slope)
        s, ds = lanes.add(s, value), lanes.add(ds, slope)
    return lanes.total(s), lanes.total(ds)


@njit(cache=True, nogil=True, error_model="numpy")
def sum_of_slopes(alpha, dalpha, beta, dbeta):  # type: ignore[no-untyped-def]
    """Sum over a position's labels of the derivatives of its marginals: rounding."""
    s = lanes.splat(0.0)
    for k in range(0, alpha.shape[0], WIDTH):
        tail = lanes.first(alpha.shape[0] - k)
        b, db = lanes.load_first(beta, k, tail, 0.0), lanes.load_first(dbeta, k, tail, 0.0)
        s = lanes.fma(lanes.load_first(dalpha, k, tail, 0.0), b, s)
        s = lanes.fma(lanes.load_first(alpha, k, tail, 0.0), db, s)
    return lanes.total(s)


@njit(cache=True, nogil=True, error_model="numpy")
def marginal_row(alpha, dalpha, beta, dbeta, rest, weight, omega, mass):  # type: ignore[no-untyped-def]
    """omega = weight d(alpha beta) less its share of the rest; mass += alpha beta.

    omega, mass float64[L]; the others may be padded.
    """
    w, r = lanes.splat(weight), lanes.splat(rest)
    L = omega.shape[0]
    for k in range(0, L, WIDTH):
        tail = lanes.first(L - k)
        a, b = lanes.load_first(alpha, k, tail, 0.0), lanes.load_first(beta, k, tail, 0.0)
        mu = lanes.multiply(a, b)
        slope = lanes.multiply(lanes.load_first(dalpha, k, tail, 0.0), b)
        slope = lanes.fma(a, lanes.load_first(dbeta, k, tail, 0.0), slope)
        slope = lanes.subtract(slope, lanes.multiply(r, mu))
        lanes.store_first(omega, k, tail, lanes.multiply(w, slope))
        lanes.store_first(mass, k, tail, lanes.add(lanes.load_first(mass, k, tail, 0.0), mu))


@njit(cache=True, nogil=True, error_model="numpy")
def backward_row(x, u, shift, beta, dbeta):  # type: ignore[no-untyped-def]
    """x *= beta, u = d(x beta) where dx = (u - shift) x: the right-hand factor of the arcs."""
    s = lanes.splat(shift)
    for k in range(0, x.shape[0], WIDTH):
        own = lanes.load(x, k)
        g = lanes.multiply(own, lanes.load(beta, k))
        slope = lanes.multiply(lanes.subtract(lanes.load(u, k), s), g)
        lanes.store(x, k, g)
        lanes.store(u, k, lanes.fma(own, lanes.load(dbeta, k), slope))


@njit(cache=True, nogil=True, error_model="numpy")
def exp_product(score, top, v, dv, M, out, dout):  # type: ignore[no-untyped-def]
    """M = exp(score - top), then out = v M and dout = dv M + v dM with dM = (score - top) M.

    score, M float64[n, L]; v, dv float64[n]; out, dout float64[L].
    """
    n, L = M.shape
    s, floor = lanes.splat(top), lanes.splat(FLOOR)
    for k in range(0, L, WIDTH):
        tail = lanes.first(L - k)
        s0 = d0 = lanes.splat(0.0)
        for a in range(n):
            f, df, i = lanes.spread(v, a), lanes.spread(dv, a), a * L + k
            row = lanes.load_first(score, i, tail, -np.inf)
            u = lanes.maximum(lanes.subtract(row, s), floor)
            m = exp_lanes(u)
            lanes.store_first(M, i, tail, m)
            s0 = lanes.fma(f, m, s0)
            d0 = lanes.fma(lanes.fma(f, u, df), m, d0)
        lanes.store_first(out, k, tail, s0)
        lanes.store_first(dout, k, tail, d0)


@njit(cache=True, nogil=True, error_model="numpy")
def arc_slopes(  # type: ignore[no-untyped-def]
    score, top, shift, weight, v, dv, g, dg, M, beta, dbeta
):
    """M[a, b] = weight d(v[a] m g[b]) for m = M[a, b] before that, dm = (score - top - shift) m;
    beta = m g and dbeta = dm g + m dg, summed over b.
    """
    n, L = M.shape
    s, floor, center = lanes.splat(top), lanes.splat(FLOOR), lanes.splat(shift)
    for a in range(n):
        f, df = lanes.splat(weight * v[a]), lanes.splat(weight * dv[a])
        total = dtotal = lanes.splat(0.0)
        for k in range(0, L, WIDTH):
            tail, i = lanes.first(L - k), a * L + k
            row = lanes.load_first(score, i, tail, -np.inf)
            u = lanes.subtract(lanes.maximum(lanes.subtract(row, s), floor), center)
            m = lanes.load_first(M, i, tail, 0.0)
            value = lanes.multiply(m, lanes.load_first(g, k, tail, 0.0))
            slope = lanes.fma(u, value, lanes.multiply(m, lanes.load_first(dg, k, tail, 0.0)))
            omega = lanes.fma(f, slope, lanes.multiply(df, value))
            lanes.store_first(M, i, tail, omega)
            total, dtotal = lanes.add(total, value), lanes.add(dtotal, slope)
        beta[a], dbeta[a] = lanes.total(total), lanes.total(dtotal)
