"""Which tokens of a batch belong to which row of a table: scores from rows, sums to rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sslbench.engine.compilation.compiled import chunks, parallel_kernel
from sslbench.engine.crf.simd import lanes
from sslbench.engine.graph.tokens import check_below
from sslbench.engine.types import F64, I32, I64

CHUNK = 256  # tokens or rows of a task


@dataclass(frozen=True, eq=False)
class BatchRows:
    """The rows of the n tokens of a batch, each token in one row or none.

    row_of: int32[n], -1 = none. used: int32[m], the rows in use, ascending; the tokens of used[g]
    are tokens[border[g]:border[g + 1]], in their order: a row is summed by one thread.
    """

    row_of: I32
    used: I32
    border: I64
    tokens: I32

    @classmethod
    def build(cls, row_of: I32, rows: int) -> BatchRows:
        """Group tokens by row; ValueError for a row beyond the `rows` of the table.

        row_of: int32[n], -1 = none.
        """
        check_below(row_of, rows, "row")
        tokens = np.argsort(row_of, kind="stable")[np.count_nonzero(row_of < 0) :]
        used, border = np.unique(row_of[tokens], return_index=True)
        return cls(row_of, used, np.append(border, len(tokens)), tokens.astype(np.int32))

    def shifted(self, node: F64, table: F64) -> F64:
        """Return node scores plus those of the row of each token, float64[n, K].

        table: float64[rows or more, K]. ValueError for arrays of other shapes.
        """
        self._check(node, table)
        out = np.empty_like(node)
        _shift(node, table, self.row_of, out)
        return out

    def add_sums(self, values: F64, sums: F64) -> None:
        """Add values float64[n, K] of tokens to sums float64[rows, K] of their rows.

        ValueError for arrays of other shapes.
        """
        self._check(values, sums)
        _add_sums(values, self.border, self.tokens, sums, self.used)

    def _check(self, of_tokens: F64, of_rows: F64) -> None:
        shape, rows = (len(self.row_of), of_rows.shape[1]), len(of_rows)
        if of_tokens.shape != shape or (len(self.used) and self.used[-1] >= rows):
            raise ValueError(f"{of_tokens.shape} and {of_rows.shape} do not fit {shape[0]} tokens")


@parallel_kernel(lambda *arguments: chunks(len(arguments[-1]), CHUNK))
def scale_rows(begin: int, end: int, x: F64, scale: F64, plus: F64, out: F64) -> None:
    """out_r = scale_r x_r + plus_r, product and sum rounded; numpy takes twice as long.

    x, plus float64[R, K]; scale float64[R]; out float64[R, P], 0 in the columns from K on.
    """
    (R, K), P = x.shape, out.shape[1]
    for r in range(begin * CHUNK, min(R, end * CHUNK)):
        f = lanes.splat(scale[r])
        for k in range(0, P, lanes.WIDTH):
            tail = lanes.first(K - k)
            value = lanes.multiply(f, lanes.load_first(x, r * K + k, tail, 0.0))
            value = lanes.add(value, lanes.load_first(plus, r * K + k, tail, 0.0))
            lanes.store_first(out, r * P + k, lanes.first(P - k), value)


@parallel_kernel(lambda node, *_: chunks(len(node), CHUNK))
def _shift(begin: int, end: int, node: F64, table: F64, row_of: I32, out: F64) -> None:
    N, K = node.shape
    for n in range(begin * CHUNK, min(N, end * CHUNK)):
        row = np.int64(row_of[n])
        for k in range(0, K, lanes.WIDTH):
            tail = lanes.first(K - k)
            value = lanes.load_first(node, n * K + k, tail, 0.0)
            if row >= 0:
                value = lanes.add(value, lanes.load_first(table, row * K + k, tail, 0.0))
            lanes.store_first(out, n * K + k, tail, value)


@parallel_kernel(lambda *arguments: chunks(len(arguments[-1]), CHUNK))
def _add_sums(
    begin: int, end: int, values: F64, border: I64, tokens: I32, sums: F64, used: I32
) -> None:
    K = values.shape[1]
    for g in range(begin * CHUNK, min(used.shape[0], end * CHUNK)):
        row = np.int64(used[g])
        for k in range(0, K, lanes.WIDTH):
            tail = lanes.first(K - k)
            s = lanes.load_first(sums, row * K + k, tail, 0.0)
            for j in range(border[g], border[g + 1]):
                i = np.int64(tokens[j]) * K + k
                s = lanes.add(s, lanes.load_first(values, i, tail, 0.0))
            lanes.store_first(sums, row * K + k, tail, s)
