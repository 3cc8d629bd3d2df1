"""How far the value at the end of a search may be above the minimum.

A Gaussian prior makes the loss strongly convex where the rest of it is convex: with the prior
variances v and the gradient g there,

    loss - minimum <= sum v g^2 / 2

(S. Boyd, L. Vandenberghe: Convex Optimization, Cambridge 2004, section 9.1.2).  That is 4 to 50
times the distance after a training by L-BFGS.  Closer, but no bound, is what the decreases promise
if they go on to shrink as they did.
"""

from __future__ import annotations

import math

import numpy as np

from sslbench.engine.crf.optim.lbfgs import Result
from sslbench.engine.crf.optim.vectors import dot
from sslbench.engine.types import F32, F64

#: iterations of the two decreases that are compared
STRETCH = 5
#: what the decreases promise was .4 to 1.5 times the distance, on corpora of 20 to 400 sentences
CAUTION = 2.0


def gap(result: Result, variance: float, copies: F64 | F32, lower: float) -> float:
    """Return the least of three estimates, in units of the function that was minimized.

    They are the bound above, the decreases to come, and the distance from `lower`.

    variance: prior variance, times that by which the function was scaled down.  copies: float per
    weight, by which its variance is larger.  lower: a number that the minimum is not below.
    """
    slope = result.slope
    bound = 0.5 * variance * dot(slope, slope * copies)
    return min(bound, CAUTION * to_come(result.history), result.value - lower)


def to_come(history: list[float]) -> float:
    """Return the decrease to come if it goes on shrinking by the factor by which it did.

    history: the value at the start and after each iteration.  Returns inf where the decrease does
    not shrink, or where there are too few iterations to compare.
    """
    if len(history) <= 2 * STRETCH:
        return math.inf
    earlier, middle, now = (history[-1 - steps] for steps in (2 * STRETCH, STRETCH, 0))
    before, last = earlier - middle, middle - now
    if not np.isfinite(before) or not 0.0 <= last < before:
        return math.inf
    return last * last / (before - last)
