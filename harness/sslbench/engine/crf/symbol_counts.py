"""Expected counts of the rows of symbol tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sslbench.engine.crf.symbol_kernels import RowCounts
from sslbench.engine.types import F64, Arrays


@dataclass
class SymbolCounts:
    """Expected counts over text: chain float64[(L+1) L]; of the rows of state and arc tables.

    log_z: sum of the log-partitions.
    """

    chain: F64
    state: RowCounts
    arc: RowCounts
    log_z: float = 0.0

    @property
    def arrays(self) -> Arrays:
        """All that is counted, by name, but `log_z`."""
        return {
            "chain_count": self.chain,
            "state_rare": self.state.rare,
            "state_frequent": self.state.frequent,
            "arc_rare": self.arc.rare,
            "arc_frequent": self.arc.frequent,
        }

    def add(self, other: SymbolCounts) -> None:
        """Those of text that follows."""
        self.log_z += other.log_z
        for own, more in zip(self.arrays.values(), other.arrays.values(), strict=True):
            own += more

    def packed(self) -> Arrays:
        """What `unpack` reads: rows without any count are left out."""
        found: Arrays = {"log_z": np.array([self.log_z])}
        for name, array in self.arrays.items():
            own = array.reshape(1, -1) if array.ndim == 1 else array
            rows = np.flatnonzero(own.any(axis=1))
            found |= {f"{name}.rows": rows, name: own[rows]}
        return found

    def unpack(self, packed: Arrays) -> SymbolCounts:
        """Put what `packed` gave into these counts, which are zero."""
        (self.log_z,) = packed["log_z"].tolist()
        for name, array in self.arrays.items():
            own = array.reshape(1, -1) if array.ndim == 1 else array
            own[packed[f"{name}.rows"]] = packed[name]
        return self
