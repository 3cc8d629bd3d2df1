"""The inverse Hessian of L-BFGS: the last pairs (s, y) on top of a scaled diagonal.

Nocedal & Wright, Numerical Optimization, algorithm 7.4 (two loops).  The loops run over inner
products instead of vectors: all products with a new pair and a new gradient are taken in one pass
over the stored vectors, and the direction is their linear combination, a second pass.  The loops as
printed pass four times over vectors that do not fit into any cache.
"""

from __future__ import annotations

import numpy as np

from sslbench.crf.optim import vectors
from sslbench.types import F64


class Curvature:
    """At most `limit` pairs of float64[size]; preconditioner: float64[size] diagonal D, None =
    identity.
    """

    def __init__(self, limit: int, size: int, preconditioner: F64 | None) -> None:
        self.s, self.y = np.empty((limit, size)), np.empty((limit, size))
        self.preconditioner = np.empty(0) if preconditioner is None else preconditioner
        self.sy, self.yy = np.zeros((limit, limit)), np.zeros((limit, limit))  # s.y, y.D.y
        self.order: list[int] = []  # rows in use, oldest first
        self._pending: int | None = None

    @property
    def empty(self) -> bool:
        """No pair at all, not even one that waits for its products."""
        return not self.order and self._pending is None

    def room(self) -> tuple[F64, F64]:
        """Rows to write the next pair s, y into; the oldest pair goes if there is no other room."""
        free = set(range(len(self.s))) - set(self.order)
        self._pending = min(free) if free else self.order.pop(0)
        return self.s[self._pending], self.y[self._pending]

    def clear(self) -> None:
        """Forget all pairs."""
        self.order.clear()
        self._pending = None

    def direction(self, gradient: F64, out: F64) -> None:
        """out = -H gradient."""
        sq, yq = self._products(gradient)
        n = len(self.order)
        a, b = np.zeros(n), np.zeros(n)
        gamma = 1.0
        if n:
            rows = np.array(self.order)
            sy, yy = self.sy[np.ix_(rows, rows)], self.yy[np.ix_(rows, rows)]
            gamma = sy[-1, -1] / yy[-1, -1]
            for i in reversed(range(n)):
                a[i] = (sq[i] - sy[i] @ a) / sy[i, i]
            for i in range(n):
                b[i] = a[i] - (gamma * (yq[i] - yy[i] @ a) + sy[:i, i] @ b[:i]) / sy[i, i]
        vectors.combine_pairs(
            self.s,
            self.y,
            np.array(self.order, np.int64),
            a,
            b,
            gradient,
            self.preconditioner,
            gamma,
            out,
        )

    def _products(self, gradient: F64) -> tuple[F64, F64]:
        """s.gradient and y.D.gradient of all pairs; takes in the pair that waits, if any.

        A pair without positive curvature is dropped.
        """
        new = self._pending
        rows = self.order if new is None else [*self.order, new]
        if not rows:
            return np.empty(0), np.empty(0)
        found = vectors.pair_products(
            self.s, self.y, np.array(rows, np.int64), rows[-1], gradient, self.preconditioner
        )
        if new is not None:
            self.sy[rows, new], self.sy[new, rows] = found[:, 0], found[:, 1]
            self.yy[rows, new] = self.yy[new, rows] = found[:, 2]
            if self.sy[new, new] > 1e-300 + 1e-16 * self.yy[new, new]:
                self.order.append(new)
            else:
                found = found[:-1]
            self._pending = None
        return found[:, 3], found[:, 4]
