"""What runs will take, by the recorded CPU seconds of runs like them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import median
from typing import Any, NamedTuple

import msgspec

from sslbench.experiment.inputs.protocol import TUNING_FOLDS
from sslbench.experiment.records.record import RunRecord, RunSpec

#: trainings that a trial is worth where it trains on all folds of the labeled sample but one each
_TRIAL_ON_FOLDS = TUNING_FOLDS - 1.0


class Price(NamedTuple):
    """cpu_s: seconds.  guess: from runs that differ in more than the seed and the tuning budget."""

    cpu_s: float
    guess: bool


class Prices:
    """Prices by stored runs: the median of one training, times the trainings of the run."""

    def __init__(self, records: Iterable[RunRecord]) -> None:
        self._known: dict[tuple[Any, ...], list[float]] = defaultdict(list)
        self._has_dev: dict[str, bool] = {}
        for record in records:
            if record.status == "ok" and record.cpu_s:
                has_dev = record.protocol.get("dev") == "own"
                self._has_dev[record.dataset] = has_dev
                one = record.cpu_s / _trainings(
                    record.spec, record.tuned.trials * _made(record), has_dev
                )
                for key in _keys(record.spec):
                    self._known[key].append(one)

    def of(self, spec: RunSpec) -> Price | None:
        """The price of a run; None if there is no run of its method.

        A run that is tuned on another draw finds the trials in the store.
        """
        protocol = spec.protocol
        own = protocol.tune_seed in (msgspec.UNSET, protocol.seed)
        n_trials = protocol.tune if own and spec.search else 0
        trainings = _trainings(spec, n_trials, self._has_dev.get(spec.dataset, False))
        for level, key in enumerate(_keys(spec)):
            if key in self._known:
                return Price(median(self._known[key]) * trainings, level > 0)
        return None


def _keys(spec: RunSpec) -> list[tuple[Any, ...]]:
    """Runs that share a key cost about as much, those with the first one most nearly so."""
    p = spec.protocol
    system = (spec.method, spec.dataset, spec.features, spec.model)
    return [
        (*system, p.labeled, p.unlabeled, p.text),
        system,
        (spec.method, *spec.learned, spec.model),
    ]


def _trainings(spec: RunSpec, n_trials: float, has_dev: bool) -> float:
    """In units of the final one. has_dev: else each trial trains on folds of the sample."""
    per_trial = 1.0 if has_dev else _TRIAL_ON_FOLDS
    guard = 0 if spec.guard is msgspec.UNSET else spec.guard.folds
    return (1 + n_trials * per_trial + guard) * max(1, spec.protocol.folds)


def _made(record: RunRecord) -> float:
    """The share of the tuning of a run that it did itself: the rest was found in the store."""
    stored, seconds = record.timing.get("tune_stored", 0.0), record.tuned.seconds
    return max(0.0, 1 - stored / seconds) if seconds else 0.0


def made_cpu_s(record: RunRecord) -> float:
    """CPU seconds of the tuning trials that the run did itself."""
    return record.tuned.cpu_s * _made(record)
