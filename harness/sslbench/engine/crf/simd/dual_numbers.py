"""Operations on rows of dual numbers, eight lanes at a time.

Arrays come in pairs: values, and their derivatives with `d` in front of the name.  Conventions are
those of `rows`.
"""

from __future__ import annotations

import numpy as np

from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.crf.simd import lanes, rows
from sslbench.engine.crf.simd.exp import exp_lanes
from sslbench.engine.types import F64

WIDTH, STRIP, WIDE = rows.WIDTH, rows.STRIP, rows.WIDE
#: stands for a log-potential of -inf where a probability of exactly 0 will multiply it
FLOOR = -1000.0


@kernel
def vector_matrix(v: F64, dv: F64, M: F64, dM: F64, out: F64, dout: F64) -> None:
    """out = v M, dout = dv M + v dM: M, dM float64[n, P] and outputs padded, v, dv float64[>= n].

    In strips of three registers, at last of two or one, so that enough sums run side by side.
    """
    P, k = M.shape[1], 0
    while P - k > WIDE:
        _three_registers(v, dv, M, dM, k, out, dout)
        k += STRIP
    if P - k == WIDE:
        _two_registers(v, dv, M, dM, k, out, dout)
    elif P - k == WIDTH:
        _one_register(v, dv, M, dM, k, out, dout)


@kernel
def _three_registers(v: F64, dv: F64, M: F64, dM: F64, k: int, out: F64, dout: F64) -> None:
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


@kernel
def _two_registers(v: F64, dv: F64, M: F64, dM: F64, k: int, out: F64, dout: F64) -> None:
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


@kernel
def _one_register(v: F64, dv: F64, M: F64, dM: F64, k: int, out: F64, dout: F64) -> None:
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


@kernel
def exp_row(score: F64, shift: float, x: F64, u: F64) -> None:
    """u = score - shift (FLOOR for -inf and beyond the row), x = exp(u), in whole lanes."""
    s, floor = lanes.splat(shift), lanes.splat(FLOOR)
    for k in range(0, x.shape[0], WIDTH):
        row = lanes.load_first(score, k, lanes.first(score.shape[0] - k), -np.inf)
        value = lanes.maximum(lanes.subtract(row, s), floor)
        lanes.store(u, k, value)
        lanes.store(x, k, exp_lanes(value))


@kernel
def forward_row(
    x: F64, u: F64, inverse: float, kappa: float, alpha: F64, dalpha: F64
) -> tuple[float, float]:
    """Multiply the own potentials of position t into alpha, which has passed the transitions.

    x is scaled in place by inverse = 1 / c_{t-1}; its derivative is (u - kappa_{t-1}) x.
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


@kernel
def sum_of_slopes(alpha: F64, dalpha: F64, beta: F64, dbeta: F64) -> float:
    """Sum over the labels of a position of d(alpha beta): 0 but for rounding."""
    s = lanes.splat(0.0)
    for k in range(0, alpha.shape[0], WIDTH):
        tail = lanes.first(alpha.shape[0] - k)
        b, db = lanes.load_first(beta, k, tail, 0.0), lanes.load_first(dbeta, k, tail, 0.0)
        s = lanes.fma(lanes.load_first(dalpha, k, tail, 0.0), b, s)
        s = lanes.fma(lanes.load_first(alpha, k, tail, 0.0), db, s)
    return lanes.total(s)


@kernel
def marginal_row(
    alpha: F64,
    dalpha: F64,
    beta: F64,
    dbeta: F64,
    rest: float,
    weight: float,
    slope: F64,
    counts: F64,
) -> None:
    """slope = weight (d(alpha beta) - rest alpha beta); counts += alpha beta.

    slope, counts float64[L]; the others may be padded.
    """
    w, r = lanes.splat(weight), lanes.splat(rest)
    L = slope.shape[0]
    for k in range(0, L, WIDTH):
        tail = lanes.first(L - k)
        a, b = lanes.load_first(alpha, k, tail, 0.0), lanes.load_first(beta, k, tail, 0.0)
        mu = lanes.multiply(a, b)
        d = lanes.multiply(lanes.load_first(dalpha, k, tail, 0.0), b)
        d = lanes.fma(a, lanes.load_first(dbeta, k, tail, 0.0), d)
        d = lanes.subtract(d, lanes.multiply(r, mu))
        lanes.store_first(slope, k, tail, lanes.multiply(w, d))
        lanes.store_first(counts, k, tail, lanes.add(lanes.load_first(counts, k, tail, 0.0), mu))


@kernel
def backward_row(x: F64, u: F64, shift: float, beta: F64, dbeta: F64) -> None:
    """x *= beta and u = d(x beta), where dx = (u - shift) x: the right factor of the edges."""
    s = lanes.splat(shift)
    for k in range(0, x.shape[0], WIDTH):
        own = lanes.load(x, k)
        g = lanes.multiply(own, lanes.load(beta, k))
        slope = lanes.multiply(lanes.subtract(lanes.load(u, k), s), g)
        lanes.store(x, k, g)
        lanes.store(u, k, lanes.fma(own, lanes.load(dbeta, k), slope))


@kernel
def exp_product(score: F64, top: float, v: F64, dv: F64, M: F64, out: F64, dout: F64) -> None:
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


@kernel
def edge_slopes(
    score: F64,
    top: float,
    shift: float,
    weight: float,
    v: F64,
    dv: F64,
    g: F64,
    dg: F64,
    M: F64,
    beta: F64,
    dbeta: F64,
) -> None:
    """With m = M[a, b] as it comes in and dm = (score - top - shift) m:

    M[a, b] = weight d(v[a] m g[b]); beta[a] = sum over b of m g[b], dbeta[a] = that of d(m g[b]).
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
            lanes.store_first(M, i, tail, lanes.fma(f, slope, lanes.multiply(df, value)))
            total, dtotal = lanes.add(total, value), lanes.add(dtotal, slope)
        beta[a], dbeta[a] = lanes.total(total), lanes.total(dtotal)
