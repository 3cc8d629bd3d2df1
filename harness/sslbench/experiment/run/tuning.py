"""Search for the parameters with the best score on data that no trial is trained on.

The first trial is the method's default. Where trials do not race, tuning so never ends below it on
the data that score them. The others are stratified random points: in all of the space until half of
the budget is spent, then in a shrinking box around the best. The positions are drawn for each
parameter by its name and the seed of the protocol: before the box, trial k has the same value of a
shared parameter for every method, and in the box the same distance from that method's best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from typing import Any, Protocol

import msgspec
import numpy as np

from sslbench.experiment.inputs.protocol import Sample
from sslbench.experiment.planning.description import MethodDescription
from sslbench.experiment.planning.space import SearchAxis, edge_warning
from sslbench.experiment.records.record import ProtocolSpec
from sslbench.experiment.records.trials import Trial, TuningSpent
from sslbench.experiment.run.fitting import Session
from sslbench.experiment.run.racing import Race
from sslbench.experiment.run.trials import Trials

#: separates the candidates of tuning from the other random numbers of a seed
TUNE_STREAM = 0x74756E65
#: trials before the search turns to the neighborhood of the best one
LEAST_EXPLORED = 4
#: points that are drawn in a row without a new one among them, before the search ends
STALE = 1000


@dataclass(frozen=True)
class Budget:
    """The most trials and CPU seconds; None = no limit. The default is tried in any case."""

    trials: int | None
    cpu_s: float | None = None

    def share(self, trials: int, cpu_s: float) -> float:
        """The part that trials have used, at least 0; 1 or more when no further one may start."""
        by_number = trials / self.trials if self.trials else 0.0
        by_cpu = cpu_s / self.cpu_s if self.cpu_s and trials else 0.0
        return max(by_number, by_cpu)


@dataclass(frozen=True)
class Tuning:
    """The result of a search: the axes, and the trials in order, the default first."""

    axes: tuple[SearchAxis, ...] = ()
    trials: list[Trial] = field(default_factory=list)

    @property
    def best(self) -> dict[str, Any]:
        """The parameters of the best trial, of equal ones the first; {} without trials."""
        # max() returns the first of equals
        return dict(max(self.trials, key=_score).params) if self.trials else {}

    def spent(self, *, asked: bool) -> TuningSpent:
        """What the record says of tuning. asked: whether there was a budget."""
        if not self.trials:
            return TuningSpent("untuned" if asked else "off")
        return TuningSpent(
            status="tuned",
            searched=[axis.param for axis in self.axes],
            trials=len(self.trials),
            cpu_s=sum(trial.cpu_s for trial in self.trials),
            seconds=sum(trial.seconds for trial in self.trials),
            dropped=sum(trial.dropped_after is not msgspec.UNSET for trial in self.trials),
        )


class Contest(Protocol):
    """Takes trials, and says which one leads."""

    def enter(self, params: Mapping[str, Any]) -> float:
        """Take a trial; returns the CPU seconds that it takes or is expected to take."""

    def leader(self) -> Mapping[str, Any]:
        """Return the parameters of the best trial until now."""

    def finish(self) -> list[Trial]:
        """Return all trials in order, when there are no more."""


class InTurn:
    """Each trial to its end before the next. evaluate: trains with these values and scores."""

    def __init__(self, evaluate: Callable[[Mapping[str, Any]], Trial]) -> None:
        self._evaluate = evaluate
        self._trials: list[Trial] = []

    def enter(self, params: Mapping[str, Any]) -> float:
        """See `Contest`."""
        self._trials.append(self._evaluate(params))
        return self._trials[-1].cpu_s

    def leader(self) -> Mapping[str, Any]:
        """See `Contest`."""
        return max(self._trials, key=_score).params

    def finish(self) -> list[Trial]:
        """See `Contest`."""
        return self._trials


def search(
    axes: Sequence[SearchAxis],
    default: Mapping[str, Any],
    budget: Budget,
    seed: int,
    contest: Contest,
) -> Tuning:
    """Try the default, then candidates until the budget is spent or all candidates were tried.

    Parameters
    ----------
    default: a value for each axis.
    seed: the seed of the protocol.
    contest: takes the trials.

    Raises
    ------
    RuntimeError: all trials failed.
    """
    candidates = _Candidates(axes, default, seed)
    params: dict[str, Any] | None = dict(default)
    tried, cpu_s = 0, 0.0
    while params is not None:
        cpu_s += contest.enter(params)
        tried += 1
        share = budget.share(tried, cpu_s)
        if share >= 1:
            break
        refine = share >= 0.5 and tried >= LEAST_EXPLORED
        params = candidates.next(contest.leader() if refine else None, 0.5 ** (2 * share))
    trials = contest.finish()
    if all(trial.score is None for trial in trials):
        raise RuntimeError(f"every tuning trial failed; the last one: {trials[-1].error}")
    return Tuning(tuple(axes), trials)


class _Candidates:
    """Points of the space, none of them twice."""

    def __init__(self, axes: Sequence[SearchAxis], default: Mapping[str, Any], seed: int) -> None:
        self.axes = axes
        self.seen = {repr(dict(default))}
        self.streams = [positions(axis.param, seed) for axis in axes]

    def next(self, center: Mapping[str, Any] | None, width: float) -> dict[str, Any] | None:
        """A new point; None when there seems to be no other.

        center: where to search, in a box of this width (of 1 in each direction); None: everywhere.
        """
        for _ in range(STALE):
            drawn = [next(stream) for stream in self.streams]
            points = [drawn]
            if center is not None:  # where the box has no new point, the space may have one
                points.insert(0, self._near(center, drawn, width))
            for point in points:
                params = {axis.param: axis.at(u) for axis, u in zip(self.axes, point, strict=True)}
                if repr(params) not in self.seen:
                    self.seen.add(repr(params))
                    return params
        return None

    def _near(self, center: Mapping[str, Any], drawn: list[float], width: float) -> list[float]:
        middle = [axis.position(center[axis.param]) for axis in self.axes]
        near = (m + width * (u - 0.5) for m, u in zip(middle, drawn, strict=True))
        return [min(max(position, 0.0), 1.0) for position in near]


def positions(param: str, seed: int) -> Iterator[float]:
    """Positions of a parameter's candidates in [0, 1): of the first 2^k, one in each 2^-k.

    The strata are visited in an order of the parameter's own, so that the joint candidates of
    several parameters are spread too (progressive stratified samples: Christensen, Kensler &
    Kilpatrick 2018, section 4, in one dimension).
    """
    name = int.from_bytes(sha256(param.encode()).digest()[:8], "little")
    rng = np.random.default_rng([seed, TUNE_STREAM, name])
    filled: list[float] = []
    for level in count():
        strata = 2**level
        taken = {int(u * strata) for u in filled}
        free = [stratum for stratum in range(strata) if stratum not in taken]
        fresh = [(free[i] + rng.random()) / strata for i in rng.permutation(len(free))]
        yield from fresh
        filled += fresh


def _score(trial: Trial) -> float:
    """What trials are chosen by; those that failed or left the race are never chosen."""
    out = trial.dropped_after is not msgspec.UNSET
    return -math.inf if out or trial.score is None or math.isnan(trial.score) else trial.score


UNTUNED = "untuned: the method has nothing to search"


def tune(session: Session, sample: Sample) -> Tuning:
    """Tune the parameters that the user has not set; no trials without a budget or a space."""
    protocol = sample.spec.protocol
    if not protocol.tuned or not session.method.description.axes:
        return Tuning()
    method, budget = session.method.description, Budget(protocol.tune or None, protocol.tune_cpu)
    trials = Trials(session, sample)
    contest: Contest = Race(trials) if protocol.tune_by == "cv" else InTurn(trials)
    return search(method.axes, method.defaults, budget, protocol.seed, contest)


def tuning_warnings(
    protocol: ProtocolSpec, method: MethodDescription, tuning: Tuning
) -> tuple[str, ...]:
    """Lines on a method that was not tuned, and on choices at an edge of the space."""
    if protocol.tuned and not tuning.trials:
        return (UNTUNED,)
    if not tuning.axes:
        return ()
    best, ends = tuning.best, method.ends
    lines = [edge_warning(axis, best[axis.param], ends[axis.param]) for axis in tuning.axes]
    return tuple(line for line in lines if line is not None)
