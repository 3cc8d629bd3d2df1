"""Adam over batches of sentences, for models that are trained by a number of steps.

Source: D. P. Kingma, J. Ba: Adam: a method for stochastic optimization, ICLR 2015, algorithm 1,
with a rate that rises over the first steps and then falls linearly to 0, and gradients whose length
is bounded (R. Pascanu, T. Mikolov, Y. Bengio: On the difficulty of training recurrent neural
networks, ICML 2013, algorithm 1).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sslbench.engine.checked import table
from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.optim.lbfgs import Progress
from sslbench.engine.crf.params import TrainingParams, TrainingResult
from sslbench.engine.types import F32, F64, AnyArray

if TYPE_CHECKING:
    from sslbench.engine.crf.sequence import Parts, SequenceModel
    from sslbench.engine.crf.terms import Term

FIRST, SECOND, SMALL = 0.9, 0.999, 1e-8  # decay of the two moments; epsilon
#: numbers that are updated at a time: they stay in the cache
CHUNK = 1 << 15
#: steps whose mean loss is reported
REPORTED = 20


@dataclass(frozen=True)
class Schedule:
    """How a training goes.

    rates: the largest rate of each range of parameters, by its begin; the first one begins at 0.
    warm_up: share of the steps in which rates rise.
    longest: a gradient (per token) is shortened to this length.
    course: steps taken before, and steps in all, of several trainings over which the rates fall
        once; None = this training stands alone.
    """

    rates: Sequence[tuple[int, float]]
    warm_up: float = 0.1
    longest: float = 1.0
    course: tuple[int, int] | None = None

    def factor(self, step: int, steps: int) -> float:
        """Return what multiplies the rates in step 0, 1, ...; positive in each of `steps`."""
        before, total = self.course or (0, steps)
        rising = (step + 1) / max(1.0, self.warm_up * steps)
        falling = (total - before - step) / max(1.0, (1 - self.warm_up) * total)
        return min(rising, falling, 1.0)

    def ranges(self, size: int) -> list[tuple[int, int, float]]:
        """Return begin, end and rate of each range of `size` parameters."""
        begins = [begin for begin, _ in self.rates]
        ends = [*begins[1:], size]
        return [(a, b, rate) for (a, rate), b in zip(self.rates, ends, strict=True)]


def descend(
    model: SequenceModel,
    parts: Parts,
    params: TrainingParams,
    steps: int,
    schedule: Schedule,
    center: F32,
    *,
    callback: Callable[[int, float, float], None] | None = None,
    progress: Progress | None = None,
) -> TrainingResult:
    """Train a model for a number of steps, each on one batch of every part.

    The batches of a part come in a random order, all of them before one comes again. The order and
    the noise depend on the start and the step alone, so that a killed training goes on with the
    same bits.

    center: float32[P], where the Gaussian prior of variance `params.sigma2` is largest.
    callback: gets the mean loss per token of the last steps, now and then, and at the end.
    Raises ArithmeticError if a score or the gradient is not finite.
    """
    key = zlib.crc32(model.parameters.tobytes())
    objective = _Objective(model, [_Part.of(*part) for part in parts], key)
    given = (params, steps, schedule, center)
    return ascend(model, objective, *given, callback=callback, progress=progress)


class Penalized(Protocol):
    """Parameters float64[P], and what is subtracted for them."""

    parameters: F64

    def penalty(self, params: TrainingParams) -> float:
        """Return the penalty of the parameters, see `SequenceModel.penalty`."""


class Estimate(Protocol):
    """An objective that is estimated anew in each step. n_tokens: that it is a sum over."""

    n_tokens: float

    def at(self, step: int) -> tuple[float, F64]:
        """Return the loss per token, and the derivative float64[P] of the objective."""


def ascend(
    model: Penalized,
    objective: Estimate,
    params: TrainingParams,
    steps: int,
    schedule: Schedule,
    center: F32,
    *,
    callback: Callable[[int, float, float], None] | None = None,
    progress: Progress | None = None,
) -> TrainingResult:
    """Go up an objective of the parameters of a model; the rest is as in `descend`."""
    search = _Search.at(model.parameters, center, params.sigma2)
    if progress is not None and progress.state is not None:
        search.restore(progress.state)
    model.parameters = search.x
    length = 0.0
    while search.step < steps:
        if progress is not None:
            progress.keep(search.state)
        loss, gradient = objective.at(search.step)
        search.losses = [*search.losses, loss][-REPORTED:]
        length = search.move(gradient, objective.n_tokens, schedule, steps)
        if callback is not None and (search.step % REPORTED == 0 or search.step == steps):
            callback(search.step, float(np.mean(search.losses)), length)
    value = -float(np.mean(search.losses or [0.0])) * objective.n_tokens
    value -= model.penalty(params)
    counts = search.step, search.step
    return TrainingResult(value, "steps", True, *counts, length, len(search.x))


@dataclass(frozen=True)
class _Part:
    """A text with its batches, and a term."""

    text: Any
    batches: Sequence[Batch]
    term: Term
    n_tokens: float

    @classmethod
    def of(cls, text: Any, term: Term) -> _Part:
        return cls(text, list(text.batches), term, term.n_tokens(text.lengths))


class _Objective:
    """The sum of the terms, estimated by one batch of each part. key: of the random numbers."""

    def __init__(self, model: SequenceModel, parts: Sequence[_Part], key: int) -> None:
        self.model = model
        self.parts = [part for part in parts if part.batches]
        self.key = key
        self.n_tokens = max(1.0, sum(part.n_tokens for part in parts))
        self._gradient = np.empty_like(model.parameters)

    def at(self, step: int) -> tuple[float, F64]:
        """Return the loss per token, and the derivative float64[P] of the objective."""
        self._gradient[:] = 0.0
        noise = np.random.default_rng([self.key, step])
        total = 0.0
        for number, part in enumerate(self.parts):
            n = len(part.batches)
            batch = part.batches[batch_of_step(self.key, number, n, step)]
            potentials, pull = self.model.open(part.text, batch, noise)
            if np.isnan(potentials.node).any():  # a kernel would take it for what is impossible
                raise ArithmeticError(f"scores of step {step + 1} are no numbers")
            by_potential = part.term.evaluate(potentials)
            by_potential.check(batch.n_tokens, len(self.model.labels))
            total += n * math.fsum(by_potential.value)
            by_potential.node[:] *= n  # the batch stands for all of the text
            by_potential.edge[:] *= n
            pull(by_potential, self._gradient)
        return -total / self.n_tokens, self._gradient


def batch_of_step(key: int, part: int, n: int, step: int) -> int:
    """Return which of n batches of a part comes in a step."""
    epoch, place = divmod(step, n)
    return int(np.random.default_rng([key, part, epoch]).permutation(n)[place])


@dataclass
class _Search:
    """Where a training is.

    x: the parameters.  first, second: the moments of the gradient.
    center, sigma2: of the prior.  losses: of the last steps.
    """

    x: F64
    first: F32
    second: F32
    center: F32
    sigma2: float
    step: int = 0
    losses: list[float] = field(default_factory=list)

    @classmethod
    def at(cls, parameters: F64, center: F32, sigma2: float) -> _Search:
        first, second = np.zeros((2, len(parameters)), np.float32)
        return cls(parameters.copy(), first, second, center, sigma2)

    def state(self) -> dict[str, Any]:
        arrays = {"x": self.x, "first": self.first, "second": self.second}
        return {**arrays, "step": self.step, "losses": self.losses}

    def restore(self, state: Any) -> None:
        """KeyError or ValueError if the state is not one of this training."""
        shape = self.x.shape
        x = table(state, "x", np.float64, shape)
        first, second = (table(state, name, np.float32, shape) for name in ("first", "second"))
        self.step, self.losses = int(state["step"]), [float(loss) for loss in state["losses"]]
        self.x, self.first, self.second = x, first, second

    def move(self, gradient: F64, n_tokens: float, schedule: Schedule, steps: int) -> float:
        """Go one step up the gradient of an objective of so many tokens; return its length."""
        length = math.sqrt(float(gradient @ gradient)) / n_tokens
        if not math.isfinite(length):
            raise ArithmeticError(f"the gradient of step {self.step + 1} is not finite")
        shorten = min(1.0, schedule.longest / length) if length else 1.0
        factor = schedule.factor(self.step, steps)
        self.step += 1
        unbiased = math.sqrt(1 - SECOND**self.step) / (1 - FIRST**self.step)
        for begin, end, rate in schedule.ranges(len(self.x)):
            for lo in range(begin, end, CHUNK):
                own = slice(lo, min(end, lo + CHUNK))
                prior = (self.x[own] - self.center[own]) / self.sigma2
                slope = ((gradient[own] * shorten - prior) / n_tokens).astype(np.float32)
                self.x[own] += rate * factor * unbiased * self._direction(own, slope)
        return length

    def _direction(self, own: slice, slope: F32) -> AnyArray:
        """Take the slope into the moments of some parameters; return where they go."""
        first, second = self.first[own], self.second[own]
        first += np.float32(1 - FIRST) * (slope - first)
        second += np.float32(1 - SECOND) * (slope * slope - second)
        return first / (np.sqrt(second) + np.float32(SMALL))
