"""The inverse Hessian of L-BFGS: the last pairs (s, y) on top of a scaled diagonal.

Source: J. Nocedal, S. J. Wright: Numerical Optimization, 2nd edition, Springer 2006, algorithm 7.4
(the two-loop recursion).  Here its loops run over inner products instead of vectors.  One pass over
the stored vectors takes their products with a new pair and a new gradient; a second pass forms the
direction, a linear combination of them.  The algorithm as printed makes four passes over vectors
that fit into no cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sslbench.checked import table
from sslbench.crf.optim import vectors
from sslbench.types import F32, F64

#: vectors of more numbers are long
LONG = 1 << 23
#: most pairs of long vectors: they take four times the memory of one vector, ten pairs 20 times
MOST_LONG = 4


class InverseHessian:
    """At most `limit` pairs (s, y): a step and the change of the gradient over it.

    They are float64[size]; of long vectors, whose pairs would need more memory than all else
    together, float32[size], and at most `MOST_LONG` pairs.
    preconditioner: float64[size] or float32[size], the diagonal D of the initial inverse Hessian;
    None = identity.
    """

    def __init__(self, limit: int, size: int, preconditioner: F64 | F32 | None) -> None:
        is_long = size > LONG
        limit = min(limit, MOST_LONG) if is_long else limit
        dtype = np.float32 if is_long else np.float64
        self.s, self.y = np.empty((limit, size), dtype), np.empty((limit, size), dtype)
        diagonal = np.empty(0) if preconditioner is None else preconditioner
        # In one precision, kernels are compiled once; of long vectors a copy is too large.
        self.preconditioner = diagonal if is_long else diagonal.astype(np.float64)
        self.sy, self.yy = np.zeros((limit, limit)), np.zeros((limit, limit))  # s.y, y.D.y
        self.order: list[int] = []  # rows in use, oldest first
        self._pending: int | None = None  # row of a pair whose products are not taken yet

    @property
    def empty(self) -> bool:
        """There is no pair, not even a pending one."""
        return not self.order and self._pending is None

    def next_pair(self) -> tuple[F64 | F32, F64 | F32]:
        """Rows for the caller to write the next s and y into; if all are in use, the oldest."""
        free = set(range(len(self.s))) - set(self.order)
        self._pending = min(free) if free else self.order.pop(0)
        return self.s[self._pending], self.y[self._pending]

    def clear(self) -> None:
        """Forget all pairs."""
        self.order.clear()
        self._pending = None

    def state(self) -> dict[str, Any]:
        """All that changes, see `restore`; views."""
        pairs = {f"{n}{row}": own[row] for n, own in self._pairs for row in self._rows}
        own = {"sy": self.sy, "yy": self.yy, "order": self.order, "pending": self._pending}
        return pairs | own

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put a state back; ValueError or KeyError if it does not fit, and then there is none."""
        self.sy = table(state, "sy", np.float64, self.sy.shape)
        self.yy = table(state, "yy", np.float64, self.yy.shape)
        self.order, self._pending = list(state["order"]), state["pending"]
        if not set(self._rows) <= set(range(len(self.s))):
            raise ValueError("the order of the pairs")
        for name, own in self._pairs:  # one vector at a time: they may be in a file
            for row in self._rows:
                own[row] = table(state, f"{name}{row}", own.dtype, self.s.shape[1:])

    @property
    def _pairs(self) -> tuple[tuple[str, F64 | F32], tuple[str, F64 | F32]]:
        return ("s", self.s), ("y", self.y)

    @property
    def _rows(self) -> list[int]:
        return self.order if self._pending is None else [*self.order, self._pending]

    def direction(self, gradient: F64, out: F64) -> None:
        """out = -H gradient, both float64[size]."""
        s_gradient, y_gradient = self._products(gradient)
        n = len(self.order)
        a, b = np.zeros(n), np.zeros(n)
        gamma = 1.0
        if n:
            rows = np.array(self.order)
            sy, yy = self.sy[np.ix_(rows, rows)], self.yy[np.ix_(rows, rows)]
            gamma = sy[-1, -1] / yy[-1, -1]
            for i in reversed(range(n)):
                a[i] = (s_gradient[i] - sy[i] @ a) / sy[i, i]
            for i in range(n):
                y_r = gamma * (y_gradient[i] - yy[i] @ a) + sy[:i, i] @ b[:i]
                b[i] = a[i] - y_r / sy[i, i]  # alpha - beta of the second loop
        order = np.array(self.order, np.int64)
        vectors.combine_pairs(
            self.s, self.y, order, a, b, gradient, self.preconditioner, gamma, out
        )

    def _products(self, gradient: F64) -> tuple[F64, F64]:
        """s.gradient and y.D.gradient of every pair, the pending one included.

        A pending pair without positive curvature s.y is dropped.
        """
        new = self._pending
        rows = self._rows
        if not rows:
            return np.empty(0), np.empty(0)
        products = vectors.pair_products(
            self.s, self.y, np.array(rows, np.int64), rows[-1], gradient, self.preconditioner
        )
        if new is not None:
            self.sy[rows, new], self.sy[new, rows] = products[:, 0], products[:, 1]
            self.yy[rows, new] = self.yy[new, rows] = products[:, 2]
            if self.sy[new, new] > 1e-300 + 1e-16 * self.yy[new, new]:
                self.order.append(new)
            else:
                products = products[:-1]
            self._pending = None
        return products[:, 3], products[:, 4]
