"""Counts of symbol tables as one array."""

from __future__ import annotations

import numpy as np

from sslbench.engine.crf.symbol_kernels import RowCounts
from sslbench.engine.types import F64


def whole(counts: RowCounts) -> F64:
    """float64[R, W]: the counts of all rows; a copy."""
    table = counts.rare.astype(np.float64)
    frequent = np.flatnonzero(counts.place >= 0)
    assert not table[frequent].any()
    table[frequent] = counts.frequent[counts.place[frequent]]
    return table
