"""Expected counts of chains and emissions, the sufficient statistics of an EM step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sslbench.engine.types import F64, Arrays
from sslbench_methods.jess_cm.kernels import RowCounts

__all__ = ["RowCounts", "SymbolCounts"]


@dataclass
class SymbolCounts:
    """Expected counts over text.

    total: float64[1], the sum of the log-partitions.
    chain: float64[(L+1) L], of label pairs; START last.
    state, arc: of the rows of the tables of emissions.
    """

    total: F64
    chain: F64
    state: RowCounts
    arc: RowCounts

    @property
    def log_z(self) -> float:
        """Sum of the log-partitions of the sentences."""
        return float(self.total[0])

    @property
    def arrays(self) -> Arrays:
        """All that is counted, by name."""
        return {
            "log_z": self.total,
            "chain_count": self.chain,
            "state_rare": self.state.rare,
            "state_frequent": self.state.frequent,
            "arc_rare": self.arc.rare,
            "arc_frequent": self.arc.frequent,
        }

    def add(self, other: SymbolCounts) -> None:
        """Add the counts of text that follows."""
        for total, more in zip(self.arrays.values(), other.arrays.values(), strict=True):
            total += more

    def packed(self) -> Arrays:
        """Return what `unpack` reads: rows without any count are left out."""
        packed: Arrays = {}
        for name, array in self.arrays.items():
            table = np.atleast_2d(array)
            rows = np.flatnonzero(table.any(axis=1))
            packed |= {f"{name}.rows": rows, name: table[rows]}
        return packed

    def unpack(self, packed: Arrays) -> SymbolCounts:
        """Put what `packed` gave into these counts, which are zero."""
        for name, array in self.arrays.items():
            np.atleast_2d(array)[packed[f"{name}.rows"]] = packed[name]
        return self
