"""Lengths of the steps of a line search."""

from __future__ import annotations

import numpy as np

#: most growth of a step in a line search at once
FARTHEST = 1000.0


def growth(slope0: float, slope: float) -> float:
    """Factor of a step that was too short: to where the slope would vanish if it changed linearly,
    at least 4.  slope0, slope: at the start and after the step, both < 0.
    """
    return min(max(4.0, slope0 / (slope0 - slope)), FARTHEST) if slope > slope0 else 4.0


def between(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """Minimum of the cubic through two points with their slopes; the midpoint if it is too close to
    either end or undefined.
    """
    middle = 0.5 * (a + b)
    if not np.isfinite([fb, db]).all() or a == b:
        return middle
    d1 = da + db - 3.0 * (fa - fb) / (a - b)
    root = d1 * d1 - da * db
    if root < 0.0:
        return middle
    d2 = np.sign(b - a) * np.sqrt(root)
    if db - da + 2.0 * d2 == 0.0:
        return middle
    step = b - (b - a) * (db + d2 - d1) / (db - da + 2.0 * d2)
    margin = 0.1 * abs(b - a)
    inside = min(a, b) + margin <= step <= max(a, b) - margin
    return float(step) if inside else middle
