"""Weights of the (attribute, column) pairs that exist, as the kernels read them.

A column is a label, or a transition.  An attribute with many columns has a *dense row* in a table,
where cells without a weight stay 0; one with few columns has a *list* of (column, weight) pairs.
Adding a row takes one vector operation per eight columns, a list one scalar operation per column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sslbench.engine.crf.simd import rows
from sslbench.engine.lazy import lazy
from sslbench.engine.types import F64, I16, I32, I64

#: rows of more columns begin at a cache line; short ones would take more of the cache
WIDE = 64


def stride(columns: int) -> int:
    """Return how many numbers a row of so many columns takes in memory."""
    lines = -(-columns // rows.WIDTH)
    return lines * rows.WIDTH if columns > WIDE else columns


@dataclass(frozen=True)
class RowTable:
    """Which attributes have a dense row, which a list.

    start: int64[A + 1], column: int32[n] ascending: the columns of each attribute, in the order of
    the flat weights; width: number of columns; dense_from: an attribute with at least this many
    columns has a dense row.
    """

    start: I64
    column: I32
    width: int
    dense_from: int

    @lazy
    def _counts(self) -> I64:
        return np.diff(self.start)

    @lazy
    def code(self) -> I32:
        """int32[A + 1]: code of each attribute for the kernels, and of id -1 (the last item).

        A code >= 0 is a row, -2 and below is list -2 - code, -1 is no attribute.
        """
        dense = self._counts >= self.dense_from
        code = np.where(dense, np.cumsum(dense) - 1, -1 - np.cumsum(~dense))
        return np.append(code, -1).astype(np.int32)

    @lazy
    def _places(self) -> tuple[I64, I64, I64]:
        """Flat weights that are in dense rows, their cells, and the flat weights in lists."""
        code = np.repeat(self.code[:-1], self._counts)
        in_rows = np.flatnonzero(code >= 0)
        cell = code[in_rows].astype(np.int64) * stride(self.width) + self.column[in_rows]
        return in_rows, cell, np.flatnonzero(code < 0)

    @lazy
    def list_start(self) -> I64:
        """int64[R + 1]: borders of the lists."""
        sizes = self._counts[self._counts < self.dense_from]
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])

    @lazy
    def list_column(self) -> I16 | I32:
        """int16[K]: the column of every weight in a list; int32 where columns are too many."""
        column = self.column[self._places[2]]
        return column.astype(np.int16) if self.width <= np.iinfo(np.int16).max else column

    def zeros(self) -> tuple[F64, F64]:
        """Dense rows float64[D, stride(width)] and lists float64[K], all zero."""
        n_rows = int((self._counts >= self.dense_from).sum())
        return rows.aligned(n_rows, stride(self.width)), np.zeros(len(self._places[2]))

    def unpack(self, flat: F64) -> tuple[F64, F64]:
        """Dense rows and lists of flat weights float64[n]."""
        in_rows, cell, in_lists = self._places
        dense, _ = self.zeros()
        dense.reshape(-1)[cell] = flat[in_rows]
        return dense, flat[in_lists]

    def pack(self, dense: F64, lists: F64, flat: F64) -> None:
        """Write dense rows and lists back into the flat weights."""
        in_rows, cell, in_lists = self._places
        flat[in_rows] = dense.reshape(-1)[cell]
        flat[in_lists] = lists
