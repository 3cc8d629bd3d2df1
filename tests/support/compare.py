"""Comparisons that several tests share."""

from __future__ import annotations

import numpy as np


def close(actual: object, wanted: object, atol: float = 1e-10) -> None:
    """Equal to an absolute tolerance: by default to ten digits."""
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=atol)
