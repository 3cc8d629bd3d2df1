"""Counts of symbol tables as one array."""

from __future__ import annotations

import numpy as np

from sslbench.engine.types import F64
from sslbench_methods.jess_cm.kernels import RowCounts


def whole(counts: RowCounts) -> F64:
    """float64[R, W]: the counts of all rows; a copy."""
    table = counts.rare.astype(np.float64)
    frequent = np.flatnonzero(counts.place >= 0)
    assert not table[frequent].any()
    table[frequent] = counts.frequent[counts.place[frequent]]
    return table
