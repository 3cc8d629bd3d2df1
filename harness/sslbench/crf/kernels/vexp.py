"""Exponential of a whole array, written so that the compiler can vectorise it.

``exp(x) = 2^k exp(r)`` with ``k = round(x / log 2)`` and ``|r| <= log(2)/2``: ``r`` from a two-part
log 2 (Cody and Waite), ``exp(r)`` from its Taylor polynomial of degree 13 (truncation below
1e-17 relative), ``2^k`` by writing the exponent bits.  Error below 2 ulp (a test measures it).
A scalar library call per element does not vectorise and costs several times as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

LOG2E = 1.4426950408889634
LN2_HI = 0.693147180369123816490
LN2_LO = 1.90821492927058770002e-10
#: below this argument the result is zero (it would be denormal, or the input is -inf)
UNDERFLOW = -708.0
#: adding and subtracting 1.5 * 2^52 rounds to the nearest integer without a library call
ROUND = 6755399441055744.0


@intrinsic
def _float_of_bits(_context: Any, bits: Any) -> Any:
    """Reinterpret the 64 bits of an integer as a float (no conversion)."""

    def code(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), code


@njit(cache=True, nogil=True, error_model="numpy")
def exp_shifted(a, shift):  # type: ignore[no-untyped-def]
    """Replace a by exp(a - shift), in place.

    a: float64[n]; shift: at least max(a).  Where a - shift < -708 (and at -inf) the result is 0.
    """
    for i in range(a.shape[0]):
        x = a[i] - shift
        z = max(x, UNDERFLOW)
        k = (z * LOG2E + ROUND) - ROUND
        r = (z - k * LN2_HI) - k * LN2_LO
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        p = p * r + 1.0
        value = p * _float_of_bits((np.int64(k) + 1023) << 52)  # type: ignore[call-arg]
        a[i] = value if x >= UNDERFLOW else 0.0
