"""Limited-memory BFGS with lower bounds and L1.

Nocedal & Wright, Numerical Optimization, algorithms 7.5, 3.5, 3.6 (strong Wolfe);
OWL-QN: Andrew & Gao 2007; the inverse Hessian: `curvature`.  The library routine (scipy's L-BFGS-B)
is the oracle in the tests; an iteration of it costs more than twice as much (`sslbench bench`, row
"optimizer alone").
Sums run in fixed chunks, so iterates have the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from sslbench.crf.optim.inverse_hessian import Curvature
from sslbench.crf.optim.vectors import combine, dot, max_abs
from sslbench.types import F64, I64

Function = Callable[[F64, F64], float]  # (weights, gradient to fill) -> value
#: differences of values below this relative size are rounding, not an increase
ROUNDING = 1e-15
Status = Literal["gradient", "decrease", "max_iterations", "line_search"]


@dataclass(frozen=True)
class Options:
    """Stopping rules on the function as given (the trainer scales it per token).

    gtol: largest absolute (projected) gradient; ftol: relative decrease over `window` iterations.
    """

    memory: int = 10
    gtol: float = 1e-6
    ftol: float = 1e-7
    window: int = 5
    max_iterations: int = 500
    max_evaluations: int = 30  # per line search


STRICT = Options(gtol=1e-10, ftol=0.0, max_iterations=5000)


@dataclass
class Result:
    """Where the search ended: weights, value, why, and the value after every iteration."""

    weights: F64
    value: float
    status: Status
    iterations: int
    evaluations: int
    gradient: float
    history: list[float] = field(default_factory=list)

    @property
    def converged(self) -> bool:
        return self.status in ("gradient", "decrease")


@dataclass
class _Pool:
    """Vectors to use again: page faults of a fresh 100 MB cost as much as a pass over it."""

    size: int
    spare: list[F64] = field(default_factory=list)

    def take(self) -> F64:
        return self.spare.pop() if self.spare else np.empty(self.size)

    def give(self, *vectors: F64) -> None:
        self.spare.extend(vectors)


def minimize(
    function: Function,
    start: F64,
    options: Options | None = None,
    *,
    preconditioner: F64 | None = None,
    nonnegative: I64 | None = None,
    l1: float = 0.0,
    callback: Callable[[int, float, float], None] | None = None,
) -> Result:
    """Minimize function(x) + l1 * |x|_1 subject to x[nonnegative] >= 0.

    preconditioner: float64[n] initial inverse Hessian up to a factor; None = identity.
    ValueError if both l1 and nonnegative are given.  callback(iteration, value, largest gradient).
    """
    if l1 and nonnegative is not None:
        raise ValueError("l1 and nonnegative cannot be combined")
    options = options or Options()
    pool = _Pool(len(start))
    search = _Search(function, options, nonnegative, l1, pool)
    x = search.project_start(start)
    value, gradient = search.evaluate(x)
    memory = Curvature(options.memory, len(start), preconditioner)
    history = [value]
    status: Status = "max_iterations"
    iteration, restarted = 0, False
    while True:
        steepest = search.steepest(x, gradient)
        size = max_abs(steepest)
        if callback is not None:
            callback(iteration, value, size)
        if size <= options.gtol:
            status = "gradient"
            break
        if _small_decrease(history, options):
            status = "decrease"
            break
        if iteration >= options.max_iterations:
            break
        direction = pool.take()
        memory.direction(steepest, direction)
        direction = search.align(direction, steepest, x)
        first = _first_step(steepest) if memory.empty else 1.0
        found = search.line(x, value, gradient, steepest, direction, first)
        if found is None:
            if restarted or memory.empty:
                status = "line_search"
                break
            memory.clear()
            restarted = True
            continue
        restarted = False
        new_x, new_value, new_gradient = found
        s, y = memory.room()
        combine(1.0, new_x, -1.0, x, s)
        combine(1.0, new_gradient, -1.0, gradient, y)
        pool.give(x, gradient, direction)
        x, value, gradient = new_x, new_value, new_gradient
        history.append(value)
        iteration += 1
    return Result(x, value, status, iteration, search.evaluations, size, history)


def _small_decrease(history: list[float], options: Options) -> bool:
    if len(history) <= options.window:
        return False  # with ftol = 0, no decrease at all still means that rounding rules
    old, new = history[-1 - options.window], history[-1]
    return old - new <= options.ftol * max(abs(old), abs(new))


def _first_step(steepest: F64) -> float:
    return min(1.0, 1.0 / float(np.abs(steepest).sum()))


@dataclass
class _Search:
    """One-dimensional searches, and what bounds and L1 do to gradient, direction and step."""

    function: Function
    options: Options
    nonnegative: I64 | None
    l1: float
    pool: _Pool
    evaluations: int = 0

    def evaluate(self, x: F64) -> tuple[float, F64]:
        gradient = self.pool.take()
        value = self.function(x, gradient)
        self.evaluations += 1
        if self.l1:
            value += self.l1 * float(np.abs(x).sum())
        return value, gradient

    def project_start(self, start: F64) -> F64:
        x = np.array(start, dtype=np.float64)
        if self.nonnegative is not None:
            x[self.nonnegative] = np.maximum(x[self.nonnegative], 0.0)
        return x

    def steepest(self, x: F64, gradient: F64) -> F64:
        """Gradient, with bound-active coordinates zeroed; the pseudo-gradient for L1."""
        if self.l1:
            down, up = gradient - self.l1, gradient + self.l1
            at_zero = np.where(up < 0, up, np.where(down > 0, down, 0.0))
            return np.where(x > 0, up, np.where(x < 0, down, at_zero))
        if self.nonnegative is None:
            return gradient
        steepest = gradient.copy()
        blocked = (x[self.nonnegative] <= 0) & (gradient[self.nonnegative] > 0)
        steepest[self.nonnegative[blocked]] = 0.0
        return steepest

    def align(self, direction: F64, steepest: F64, x: F64) -> F64:
        """Keep the direction a descent direction inside the orthant or the bounds."""
        if self.l1:
            direction[direction * steepest >= 0] = 0.0
        elif self.nonnegative is not None:
            i = self.nonnegative
            blocked = (x[i] <= 0) & ((direction[i] < 0) | (steepest[i] == 0))
            direction[i[blocked]] = 0.0
        if dot(direction, steepest) >= 0.0:
            combine(-1.0, steepest, 0.0, steepest, direction)
        return direction

    def line(
        self, x: F64, value: float, gradient: F64, steepest: F64, direction: F64, first: float
    ) -> tuple[F64, float, F64] | None:
        """A point with enough decrease, or None."""
        if self.l1 or (self.nonnegative is not None and self._hits(x, direction, first)):
            return self._backtrack(x, value, steepest, direction, first)
        return self._wolfe(x, value, gradient, direction, first)

    def _hits(self, x: F64, direction: F64, step: float) -> bool:
        assert self.nonnegative is not None
        return bool((x[self.nonnegative] + 4.0 * step * direction[self.nonnegative] < 0).any())

    def _backtrack(
        self, x: F64, value: float, steepest: F64, direction: F64, step: float
    ) -> tuple[F64, float, F64] | None:
        """Armijo along the projected path."""
        orthant = np.where(x != 0, np.sign(x), -np.sign(steepest)) if self.l1 else None
        for _ in range(self.options.max_evaluations):
            point = x + step * direction
            if orthant is not None:
                point[np.sign(point) * orthant < 0] = 0.0
            elif self.nonnegative is not None:
                point[self.nonnegative] = np.maximum(point[self.nonnegative], 0.0)
            new, gradient = self.evaluate(point)
            if new <= value + 1e-4 * dot(steepest, point - x) + ROUNDING * abs(value):
                return point, new, gradient
            step *= 0.5
        return None

    def _wolfe(
        self, x: F64, value: float, gradient: F64, direction: F64, step: float
    ) -> tuple[F64, float, F64] | None:
        """Strong Wolfe conditions (1e-4, 0.9) by bracketing and safeguarded cubic steps."""
        slope0 = dot(gradient, direction)
        low, f_low, d_low = 0.0, value, slope0
        high: tuple[float, float, float] | None = None
        best: tuple[F64, float, F64] | None = None
        for _ in range(self.options.max_evaluations):
            point = self.pool.take()
            combine(1.0, x, step, direction, point)
            f, g = self.evaluate(point)
            d = dot(g, direction) if np.isfinite(f) else np.inf
            enough = f <= value + 1e-4 * step * slope0 + ROUNDING * abs(value)
            if enough and (best is None or f < best[1]):
                best = (point, f, g)
            if not enough or (f >= f_low and low > 0.0) or not np.isfinite(f):
                high = (step, f, d)
            elif abs(d) <= -0.9 * slope0:
                return point, f, g
            elif d * ((step if high is None else high[0]) - low) >= 0.0:
                high, (low, f_low, d_low) = (low, f_low, d_low), (step, f, d)
            else:
                low, f_low, d_low = step, f, d
            if high is None:
                step *= 4.0
            else:
                step = _between(low, f_low, d_low, *high)
                if abs(high[0] - low) < 1e-9 * max(1.0, low):
                    break
        return best


def _between(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """Minimum of the cubic through two points with slopes, kept inside the interval."""
    middle = 0.5 * (a + b)
    if not np.isfinite([fb, db]).all() or a == b:
        return middle
    d1 = da + db - 3.0 * (fa - fb) / (a - b)
    root = d1 * d1 - da * db
    if root < 0.0:
        return middle
    d2 = np.sign(b - a) * np.sqrt(root)
    if db - da + 2.0 * d2 == 0.0:
        return middle
    step = b - (b - a) * (db + d2 - d1) / (db - da + 2.0 * d2)
    edge = 0.1 * abs(b - a)
    inside = min(a, b) + edge <= step <= max(a, b) - edge
    return float(step) if inside else middle
