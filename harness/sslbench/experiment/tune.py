"""Tuning of parameters on development data, with the same budget for every method.

Each axis is searched as in Suzuki and Isozaki (2008), section 4.2 ("binary line search"): a grid,
then bisection in log space between the best value and its neighbors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec


@dataclass(frozen=True)
class SearchAxis:
    """One parameter to choose on development data.

    Attributes
    ----------
    param: name of the field in the method's `Params`.
    grid: values, strictly monotone, the strongest prior first: ties go to the first.
    refine: rounds of bisection (in log space) after the grid; each costs up to two trials.
    via: name of another method whose score chooses the value, None = the method itself.
    """

    param: str
    grid: tuple[float, ...]
    refine: int = 0
    via: str | None = None

    def __post_init__(self) -> None:
        steps = {math.copysign(1, b - a) for a, b in zip(self.grid, self.grid[1:], strict=False)}
        if not self.grid or len(steps) > 1 or len(set(self.grid)) < len(self.grid):
            raise ValueError(f"grid of {self.param!r} must be strictly monotone: {self.grid}")
        if self.refine and min(self.grid) <= 0:
            raise ValueError(f"grid of {self.param!r} must be positive to be bisected in logs")

    @property
    def need(self) -> int:
        """Trials that a full search of this axis takes."""
        return len(self.grid) + 2 * self.refine


class Trial(msgspec.Struct, frozen=True):
    """One training and its score on development data.

    param, value: the candidate.  method: that was trained, with `params`.  seconds: wall time.
    score: of `metric`, in [0, 1]; None if training failed with `error`.
    """

    param: str
    value: float
    method: str
    params: dict[str, Any]
    metric: str
    score: float | None
    seconds: float
    error: str | None = None


Evaluate = Callable[[SearchAxis, float, Mapping[str, Any]], Trial]


def search(
    axes: Sequence[SearchAxis], budget: int, fixed: Mapping[str, Any], evaluate: Evaluate
) -> tuple[dict[str, Any], list[Trial]]:
    """Tune the parameters of `axes`, one after another, within `budget` trials.

    Parameters
    ----------
    fixed: parameters that the user set; an axis of one of them is left out.
    evaluate: trains with parameters (the fixed ones, those tuned so far, the candidate) and scores.

    Returns
    -------
    The best values by parameter name, and all trials in order.

    Raises
    ------
    RuntimeError: all trials of an axis failed.
    """
    open_axes = [axis for axis in axes if axis.param not in fixed]
    best: dict[str, Any] = {}
    trials: list[Trial] = []
    for number, axis in enumerate(open_axes):
        left = budget - len(trials)
        # A small budget is divided in proportion to need, so that every axis gets trials.
        needed = sum(later.need for later in open_axes[number:])
        share = min(axis.need, left, max(1, round(left * axis.need / needed)))
        if share < 1:
            break
        line = _Line(axis, {**fixed, **best}, evaluate)
        line.run(share)
        trials += line.trials
        best[axis.param] = line.best()
    return best, trials


class _Line:
    """The search along one axis."""

    def __init__(self, axis: SearchAxis, params: dict[str, Any], evaluate: Evaluate) -> None:
        self.axis = axis
        self.params = params
        self.evaluate = evaluate
        self.trials: list[Trial] = []

    def run(self, budget: int) -> None:
        for value in _spread(self.axis.grid, budget):
            self._try(value)
        for _ in range(self.axis.refine):
            for value in self._midpoints():
                if len(self.trials) >= budget:
                    return
                self._try(value)

    def best(self) -> float:
        trials = self._ordered()
        if all(trial.score is None for trial in trials):
            raise RuntimeError(f"every tuning trial failed; the last one: {trials[-1].error}")
        # max() returns the first of equals, and _ordered() puts the stronger prior first.
        return max(trials, key=_score).value

    def _try(self, value: float) -> None:
        params = {**self.params, self.axis.param: value}
        self.trials.append(self.evaluate(self.axis, value, params))

    def _ordered(self) -> list[Trial]:
        falling = len(self.axis.grid) > 1 and self.axis.grid[0] > self.axis.grid[1]
        return sorted(self.trials, key=lambda trial: trial.value, reverse=falling)

    def _midpoints(self) -> list[float]:
        """Geometric means of the best value and its evaluated neighbors."""
        values = [trial.value for trial in self._ordered()]
        at = values.index(self.best())
        neighbors = values[max(0, at - 1) : at] + values[at + 1 : at + 2]
        return [math.sqrt(values[at] * other) for other in neighbors]


def _score(trial: Trial) -> float:
    return -math.inf if trial.score is None else trial.score


def _spread(grid: Sequence[float], budget: int) -> list[float]:
    """At most `budget` values of the grid, evenly spaced, with both ends if there are two."""
    if budget >= len(grid):
        return list(grid)
    if budget == 1:
        return [grid[len(grid) // 2]]
    return [grid[round(i * (len(grid) - 1) / (budget - 1))] for i in range(budget)]
