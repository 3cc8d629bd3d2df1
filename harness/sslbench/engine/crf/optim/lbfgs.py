"""Limited-memory BFGS with lower bounds and L1.

Sources: J. Nocedal, S. J. Wright: Numerical Optimization, 2nd edition, Springer 2006, algorithms
7.5 (L-BFGS), 3.5 and 3.6 (line search, strong Wolfe conditions); G. Andrew, J. Gao: Scalable
training of L1-regularized log-linear models, ICML 2007 (OWL-QN).
An iteration of scipy's L-BFGS-B costs more than twice as much (`sslbench bench`).
Sums run over chunks of a fixed length: the same bits for any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from sslbench.engine.checked import table
from sslbench.engine.crf.optim.inverse_hessian import InverseHessian
from sslbench.engine.crf.optim.steps import between, growth
from sslbench.engine.crf.optim.vectors import combine, dot, max_abs
from sslbench.engine.lazy import lazy
from sslbench.engine.types import F32, F64, I64

Function = Callable[[F64, F64], float]  # (weights, gradient to fill) -> value
#: differences of values below this relative size are rounding, not an increase
ROUNDING = 1e-15
Status = Literal["gradient", "decrease", "gap", "max_iterations", "line_search"]


@dataclass(frozen=True)
class Options:
    """When to stop, in units of the function as given (that of a training is per token).

    memory: number of pairs (s, y) stored; gtol: largest absolute value of the gradient (projected
    onto the bounds) at an optimum; ftol: smallest relative decrease over `window` iterations;
    share: smallest share of these iterations in the decrease since the start; max_evaluations:
    most evaluations of one line search.
    """

    memory: int = 10
    gtol: float = 1e-6
    ftol: float = 1e-7
    share: float = 0.0
    window: int = 5
    max_iterations: int = 500
    max_evaluations: int = 30


STRICT = Options(gtol=1e-10, ftol=0.0, max_iterations=5000)


@dataclass
class Result:
    """Where the search ended and why.

    slope: the gradient, projected onto the bounds; gradient: its largest absolute value; history:
    the value at the start and after each iteration.
    """

    weights: F64
    value: float
    status: Status
    iterations: int
    evaluations: int
    gradient: float
    slope: F64
    history: list[float]

    @property
    def finished(self) -> bool:
        """Whether a rule ended the search, and neither its limit nor a line search that failed."""
        return self.status in ("gradient", "decrease", "gap")


@dataclass(frozen=True)
class Progress:
    """Lets a killed search go on, with the same bits.

    state: of the killed search; None = there is none.
    keep: called before each step with a function that gives the state there, as views.
    """

    state: Mapping[str, Any] | None
    keep: Callable[[Callable[[], dict[str, Any]]], None]


@dataclass
class _Pool:
    """Vectors for reuse: the page faults of a fresh 100 MB cost as much as a pass over it."""

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
    preconditioner: F64 | F32 | None = None,
    nonnegative: I64 | None = None,
    l1: float = 0.0,
    bound: float = -math.inf,
    callback: Callable[[int, float, float], None] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Minimize function(x) + l1 * |x|_1 subject to x[nonnegative] >= 0.

    function(x, gradient): returns the value and fills in the gradient.
    start: float64[n], overwritten.  preconditioner: float64[n] or float32[n], diagonal of the
    initial inverse Hessian, up to a factor; None = identity.
    nonnegative: int64[k] indices of bounded coordinates.
    bound: the minimum is not below it; the search ends at a value that is ftol above, relatively.
    callback(iteration, value, largest absolute gradient) is called before each iteration.
    progress: keeps states, and goes on from one; ValueError or KeyError if that one does not fit.
    Raises ValueError if both l1 and nonnegative are given.
    """
    if l1 and nonnegative is not None:
        raise ValueError("l1 and nonnegative cannot be combined")
    options = options or Options()
    search = _Search(function, options, nonnegative, l1, _Pool(len(start)))
    inverse_hessian = InverseHessian(options.memory, len(start), preconditioner)
    x = search.project_start(start)
    if resumed := progress is not None and progress.state is not None:
        iterate = _Iterate(search, inverse_hessian, x, np.inf, np.empty(0))
        iterate.restore(progress.state)
    else:
        iterate = _Iterate(search, inverse_hessian, x, *search.evaluate(x))
    while True:
        projected = search.projected_gradient(iterate.x, iterate.gradient)
        size = max_abs(projected)
        if callback is not None and not resumed:
            callback(iterate.iterations, iterate.value, size)
        resumed = False
        status = _reason_to_stop(iterate.history, size, bound, options)
        if status is None and progress is not None:
            progress.keep(iterate.state)
        if status is None and not iterate.advance(projected):
            status = "line_search"
        if status is not None:
            counts, history = (iterate.iterations, search.evaluations), iterate.history
            return Result(iterate.x, iterate.value, status, *counts, size, projected, history)


def _reason_to_stop(
    history: list[float], size: float, bound: float, options: Options
) -> Status | None:
    """Return why the search ends here, None if it goes on.

    history: values so far; size: largest absolute gradient.
    """
    if size <= options.gtol:
        return "gradient"
    if history[-1] - bound <= options.ftol * abs(history[-1]):
        return "gap"
    if _small_decrease(history, options):
        return "decrease"
    return "max_iterations" if len(history) > options.max_iterations else None


def _small_decrease(history: list[float], options: Options) -> bool:
    if len(history) <= options.window:
        return False
    old, new = history[-1 - options.window], history[-1]
    # also with ftol = 0: stop once changes are rounding error
    least = max(options.ftol * max(abs(old), abs(new)), options.share * (history[0] - new))
    return old - new <= least


def _first_step(projected: F64) -> float:
    return min(1.0, 1.0 / float(np.abs(projected).sum()))


@dataclass
class _Iterate:
    """The current point with its value and gradient, and the steps that led to it."""

    search: _Search
    inverse_hessian: InverseHessian
    x: F64
    value: float
    gradient: F64
    history: list[float] = field(init=False)
    restarted: bool = False

    def __post_init__(self) -> None:
        self.history = [self.value]

    @property
    def iterations(self) -> int:
        return len(self.history) - 1

    def state(self) -> dict[str, Any]:
        """Return the state that `Progress` stores."""
        own = {"x": self.x, "gradient": self.gradient, "history": self.history}
        more = {"restarted": self.restarted, "evaluations": self.search.evaluations}
        return own | more | self.inverse_hessian.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put a state back; ValueError or KeyError if it does not fit."""
        size = len(self.x)
        self.x, self.gradient = (table(state, n, np.float64, (size,)) for n in ("x", "gradient"))
        self.inverse_hessian.restore(state)
        self.history = list(state["history"])
        self.value = self.history[-1]
        self.restarted, self.search.evaluations = state["restarted"], state["evaluations"]

    def advance(self, projected: F64) -> bool:
        """Take one step; projected: the projected gradient.

        If the line search fails, the inverse Hessian is cleared for one more attempt; False if
        that one fails, too.
        """
        search, inverse_hessian, pool = self.search, self.inverse_hessian, self.search.pool
        direction = search.align(inverse_hessian.direction(projected), projected, self.x)
        first = _first_step(projected) if inverse_hessian.empty else 1.0
        point = search.line(self.x, self.value, self.gradient, projected, direction, first)
        if point is None:
            if self.restarted or inverse_hessian.empty:
                return False
            inverse_hessian.clear()
            self.restarted = True
            return True
        self.restarted = False
        x, value, gradient = point
        inverse_hessian.add(x, self.x, gradient, self.gradient)
        pool.give(self.x, self.gradient)
        self.x, self.value, self.gradient = x, value, gradient
        self.history.append(value)
        return True


@dataclass
class _Search:
    """Line searches, with the effect of bounds and L1 on gradient, direction and step."""

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
        if self.nonnegative is not None:
            start[self.nonnegative] = np.maximum(start[self.nonnegative], 0.0)
        return start

    def projected_gradient(self, x: F64, gradient: F64) -> F64:
        """Return the gradient, 0 at coordinates that a bound stops; with L1 the pseudo-gradient.

        It may be the gradient itself, or an array that the next call overwrites.
        """
        if self.l1:
            down, up = gradient - self.l1, gradient + self.l1
            at_zero = np.where(up < 0, up, np.where(down > 0, down, 0.0))
            return np.where(x > 0, up, np.where(x < 0, down, at_zero))
        if self.nonnegative is None:
            return gradient
        blocked = (x[self.nonnegative] <= 0) & (gradient[self.nonnegative] > 0)
        if not blocked.any():
            return gradient
        self._projected[:] = gradient
        self._projected[self.nonnegative[blocked]] = 0.0
        return self._projected

    @lazy
    def _projected(self) -> F64:
        return self.pool.take()

    def align(self, direction: F64, projected: F64, x: F64) -> F64:
        """Restrict the direction to the orthant or the bounds; keep it a descent direction."""
        if self.l1:
            direction[direction * projected >= 0] = 0.0
        elif self.nonnegative is not None:
            i = self.nonnegative
            blocked = (x[i] <= 0) & ((direction[i] < 0) | (projected[i] == 0))
            direction[i[blocked]] = 0.0
        if dot(direction, projected) >= 0.0:
            combine(-1.0, projected, 0.0, projected, direction)
        return direction

    def line(
        self, x: F64, value: float, gradient: F64, projected: F64, direction: F64, first: float
    ) -> tuple[F64, float, F64] | None:
        """Point, value and gradient after enough decrease along the direction; None = not found.

        first: step length to try first.
        """
        if self.l1 or (self.nonnegative is not None and self._hits(x, direction, first)):
            return self._backtrack(x, value, projected, direction, first)
        return self._wolfe(x, value, gradient, direction, first)

    def _hits(self, x: F64, direction: F64, step: float) -> bool:
        """Does a step of up to four times this length cross a bound?"""
        assert self.nonnegative is not None
        return bool((x[self.nonnegative] + 4.0 * step * direction[self.nonnegative] < 0).any())

    def _backtrack(
        self, x: F64, value: float, projected: F64, direction: F64, step: float
    ) -> tuple[F64, float, F64] | None:
        """Halve the step along the projected path until the Armijo condition holds."""
        orthant = np.where(x != 0, np.sign(x), -np.sign(projected)) if self.l1 else None
        for _ in range(self.options.max_evaluations):
            point, moved = self.pool.take(), self.pool.take()
            combine(1.0, x, step, direction, point)
            if orthant is not None:
                point[np.sign(point) * orthant < 0] = 0.0
            elif self.nonnegative is not None:
                point[self.nonnegative] = np.maximum(point[self.nonnegative], 0.0)
            combine(1.0, point, -1.0, x, moved)
            slope = dot(projected, moved)
            self.pool.give(moved)
            new, gradient = self.evaluate(point)
            if new <= value + 1e-4 * slope + ROUNDING * abs(value):
                return point, new, gradient
            self.pool.give(point, gradient)
            step *= 0.5
        return None

    def _wolfe(
        self, x: F64, value: float, gradient: F64, direction: F64, step: float
    ) -> tuple[F64, float, F64] | None:
        """A point that satisfies the strong Wolfe conditions (constants 1e-4, 0.9), by bracketing
        and safeguarded cubic steps; else the best one with enough decrease, if any, which is
        evaluated again: to keep it would take the memory of two more vectors.
        """
        slope0 = dot(gradient, direction)
        low, f_low, d_low = 0.0, value, slope0
        high: tuple[float, float, float] | None = None
        best: tuple[float, float] | None = None  # value, step
        for _ in range(self.options.max_evaluations):
            point, f, g = self._at(x, step, direction)
            d = dot(g, direction) if np.isfinite(f) else np.inf
            enough = f <= value + 1e-4 * step * slope0 + ROUNDING * abs(value)
            if enough and (best is None or f < best[0]):
                best = f, step
            if not enough or (f >= f_low and low > 0.0) or not np.isfinite(f):
                high = (step, f, d)
            elif abs(d) <= -0.9 * slope0:
                return point, f, g
            elif d * ((step if high is None else high[0]) - low) >= 0.0:
                high, (low, f_low, d_low) = (low, f_low, d_low), (step, f, d)
            else:
                low, f_low, d_low = step, f, d
            self.pool.give(point, g)
            if high is None:
                step *= growth(slope0, d)
            else:
                step = between(low, f_low, d_low, *high)
                if abs(high[0] - low) < 1e-9 * max(1.0, low):
                    break
        return None if best is None else self._at(x, best[1], direction)

    def _at(self, x: F64, step: float, direction: F64) -> tuple[F64, float, F64]:
        """Point, value and gradient after a step along the direction."""
        point = self.pool.take()
        combine(1.0, x, step, direction, point)
        return point, *self.evaluate(point)
