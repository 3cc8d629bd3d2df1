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

from sslbench.engine.checked import table
from sslbench.engine.compilation.compiled import chunks
from sslbench.engine.crf.optim import vectors
from sslbench.engine.types import F32, F64, AnyArray

#: vectors of more numbers are long
LONG = 1 << 23
#: most pairs of long vectors: they take four times the memory of one vector, ten pairs 20 times
MOST_LONG = 4


class InverseHessian:
    """At most `limit` pairs (s, y): a step and the change of the gradient over it.

    They are float64[size]; of long vectors, whose pairs would need more memory than all else
    together, float32[size], and at most `MOST_LONG` pairs.  `pairs` is [limit, chunks, 2, chunk]: a
    chunk of s, then that of y.
    preconditioner: float64[size] or float32[size], the diagonal D of the initial inverse Hessian;
    None = identity.
    """

    def __init__(self, limit: int, size: int, preconditioner: F64 | F32 | None) -> None:
        is_long = size > LONG
        limit = min(limit, MOST_LONG) if is_long else limit
        dtype = np.float32 if is_long else np.float64
        chunk = max(1, min(vectors.PAIR_CHUNK, size))
        self.pairs: AnyArray = np.zeros((limit, chunks(size, chunk), 2, chunk), dtype)
        self._direction = None if is_long else np.empty(size)
        diagonal = np.empty(0) if preconditioner is None else preconditioner
        # In one precision, kernels are compiled once; of long vectors a copy is too large.
        self.preconditioner = diagonal if is_long else diagonal.astype(np.float64)
        self.sy, self.yy = np.zeros((limit, limit)), np.zeros((limit, limit))  # s.y, y.D.y
        self.order: list[int] = []  # rows in use, oldest first
        self._next = 0  # row of the next pair
        self._pending: int | None = None  # row of a pair whose products are not taken yet

    @property
    def empty(self) -> bool:
        """There is no pair, not even a pending one."""
        return not self.order and self._pending is None

    def add(self, x: F64, old_x: F64, gradient: F64, old_gradient: F64) -> None:
        """The pair of a step along the last direction, which is overwritten."""
        if self._next in self.order:
            self.order.remove(self._next)
        self._pending = self._next
        vectors.write_pair(x, old_x, gradient, old_gradient, self.pairs[self._next])

    def clear(self) -> None:
        """Forget all pairs."""
        self.order.clear()
        self._pending = None

    def state(self) -> dict[str, Any]:
        """Return all that changes, see `restore`; views."""
        pairs = {f"pair{row}": self.pairs[row] for row in self._rows}
        own = {"sy": self.sy, "yy": self.yy, "order": self.order, "pending": self._pending}
        return pairs | own

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put a state back; ValueError or KeyError if it does not fit, and then there is none."""
        self.sy = table(state, "sy", np.float64, self.sy.shape)
        self.yy = table(state, "yy", np.float64, self.yy.shape)
        self.order, self._pending = list(state["order"]), state["pending"]
        if not set(self._rows) <= set(range(len(self.pairs))):
            raise ValueError("the order of the pairs")
        for row in self._rows:  # one pair at a time: they may be in a file
            shape = self.pairs.shape[1:]
            self.pairs[row] = table(state, f"pair{row}", self.pairs.dtype, shape)

    @property
    def _rows(self) -> list[int]:
        return self.order if self._pending is None else [*self.order, self._pending]

    def direction(self, gradient: F64) -> F64:
        """-H gradient, both float64[size].  The next call overwrites it, and so does `add`.

        A long one lies where the next pair will be, which may be the place of the oldest.
        """
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
        free = set(range(len(self.pairs))) - set(self.order)
        self._next = min(free) if free else self.order[0]
        out = self._direction
        if out is None:  # two numbers of single precision have the place of one of double
            out = self.pairs[self._next].reshape(-1).view(np.float64)[: len(gradient)]
        vectors.combine_pairs(self.pairs, order, a, b, gradient, self.preconditioner, gamma, out)
        return out

    def _products(self, gradient: F64) -> tuple[F64, F64]:
        """s.gradient and y.D.gradient of every pair, the pending one included.

        A pending pair without positive curvature s.y is dropped.
        """
        new = self._pending
        rows = self._rows
        if not rows:
            return np.empty(0), np.empty(0)
        products = vectors.pair_products(
            self.pairs, np.array(rows, np.int64), rows[-1], gradient, self.preconditioner
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
