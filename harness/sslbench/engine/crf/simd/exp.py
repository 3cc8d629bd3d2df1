"""Exponential of eight lanes and of a whole array.

``exp(x) = 2^k exp(r)`` with ``k = round(x / log 2)`` and ``|r| <= log(2)/2``: ``r`` from a two-part
log 2 (Cody and Waite), ``exp(r)`` from its Taylor polynomial of degree 13 (truncation below
1e-17 relative), ``2^k`` by writing the exponent bits.  Error below 2 ulp (a test measures it).
A call of the library's exp per number does not vectorize and costs several times as much.
"""

from __future__ import annotations

from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.crf.simd import lanes
from sslbench.engine.crf.simd.lanes import Vector
from sslbench.engine.types import F64

LOG2E = 1.4426950408889634
LN2_HI = 0.693147180369123816490
LN2_LO = 1.90821492927058770002e-10
#: below this argument, and for -inf, the result is 0 (it would be denormal)
UNDERFLOW = -708.0
#: adding and subtracting 1.5 * 2^52 rounds to the nearest integer without a library call; with 1023
#: more, the lowest bits of the sum are the biased exponent of 2^k
ROUND = 6755399441055744.0 + 1023.0


@kernel
def exp_lanes(x: Vector) -> Vector:
    """exp of eight numbers, each at most 709; 0 for numbers below -708."""
    z = lanes.maximum(x, lanes.splat(UNDERFLOW))
    shifted = lanes.fma(z, lanes.splat(LOG2E), lanes.splat(ROUND))
    k = lanes.subtract(shifted, lanes.splat(ROUND))
    r = lanes.fma(k, lanes.splat(-LN2_LO), lanes.fma(k, lanes.splat(-LN2_HI), z))
    p = lanes.splat(1.0 / 6227020800.0)
    p = lanes.fma(p, r, lanes.splat(1.0 / 479001600.0))
    p = lanes.fma(p, r, lanes.splat(1.0 / 39916800.0))
    p = lanes.fma(p, r, lanes.splat(1.0 / 3628800.0))
    p = lanes.fma(p, r, lanes.splat(1.0 / 362880.0))
    p = lanes.fma(p, r, lanes.splat(1.0 / 40320.0))
    p = lanes.fma(p, r, lanes.splat(1.0 / 5040.0))
    p = lanes.fma(p, r, lanes.splat(1.0 / 720.0))
    p = lanes.fma(p, r, lanes.splat(1.0 / 120.0))
    p = lanes.fma(p, r, lanes.splat(1.0 / 24.0))
    p = lanes.fma(p, r, lanes.splat(1.0 / 6.0))
    p = lanes.fma(p, r, lanes.splat(0.5))
    p = lanes.fma(p, r, lanes.splat(1.0))
    p = lanes.fma(p, r, lanes.splat(1.0))
    value = lanes.multiply(p, lanes.power_of_two(shifted))
    return lanes.where_at_least(x, lanes.splat(UNDERFLOW), value)


@kernel
def exp_shifted(a: F64, shift: float) -> None:
    """a = exp(a - shift), in place; 0 where a - shift < -708.

    a: float64[n], may hold -inf; shift: at least max(a).
    """
    n, s = a.shape[0], lanes.splat(shift)
    whole = n - n % lanes.WIDTH
    for i in range(0, whole, lanes.WIDTH):
        lanes.store(a, i, exp_lanes(lanes.subtract(lanes.load(a, i), s)))
    if whole < n:
        tail = lanes.first(n - whole)
        x = lanes.subtract(lanes.load_first(a, whole, tail, -1e300), s)
        lanes.store_first(a, whole, tail, exp_lanes(x))
