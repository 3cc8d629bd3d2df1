"""What runs cost: what records say of it, and prices of runs like them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from statistics import median
from typing import NamedTuple, Protocol

import msgspec

from sslbench.experiment.records.record import RunRecord, RunSpec, content_id
from sslbench.experiment.records.trials import TUNING_FOLDS

#: trainings that a trial is worth where it trains on all folds of the labeled sample but one each
_TRIAL_ON_FOLDS = TUNING_FOLDS - 1.0
#: the share of these that a trial is expected to need where trials race
_RACED = 0.5


def cost_keys(spec: RunSpec) -> tuple[str, str, str]:
    """Runs that share a key cost about as much, those with the first one most nearly so."""
    p = spec.protocol
    system = (spec.method, spec.dataset, spec.featurizer, spec.model, tuple(spec.learned))
    return keys_of(system, (p.labeled, p.unlabeled, p.text))


def keys_of(
    system: tuple[str, str, str, str, tuple[str, ...]], sample: tuple[object, ...]
) -> tuple[str, str, str]:
    """`cost_keys` of method, dataset, featurizer, model and learned features, and of a sample."""
    method, _, _, model, learned = system
    first, second, third = map(content_id, ((system, sample), system, (method, learned, model)))
    return first, second, third


def trainings(spec: RunSpec, n_trials: float, has_dev: bool) -> float:
    """Number of trainings that a run is worth.

    has_dev: whether the dataset has a development split, which scores trials unless they are
        cross-validated; on folds a trial trains on each.
    """
    protocol = spec.protocol
    per_trial = 1.0 if has_dev and not protocol.cross_validated else _TRIAL_ON_FOLDS
    trials = per_trial * n_trials * (_RACED if protocol.tune_by == "cv" else 1.0)
    guard = 0 if spec.guard is msgspec.UNSET else spec.guard.folds
    return (1 + trials + guard) * max(1, protocol.folds)


def has_dev(record: RunRecord) -> bool:
    """Whether the dataset of the run has a development split of its own."""
    return record.protocol.get("dev") == "own" or "dev" in record.data.get("sentences", {})


def training_cpu_s(record: RunRecord) -> float | None:
    """CPU seconds of one training of a successful run; None if they were not measured."""
    if record.status != "ok" or not record.cpu_s:
        return None
    if record.spec.protocol.tune_by == "cv":  # how many folds a race needed is not the same
        return rest_cpu_s(record) / trainings(record.spec, 0, True)
    n_trials = record.tuned.trials * _made(record)
    return record.cpu_s / trainings(record.spec, n_trials, has_dev(record))


def _made(record: RunRecord) -> float:
    """The share of the tuning of a run that it did itself: the rest was in the store."""
    stored, seconds = record.timing.get("tune_stored", 0.0), record.tuned.seconds
    return max(0.0, 1 - stored / seconds) if seconds else 0.0


def rest_cpu_s(record: RunRecord) -> float:
    """CPU seconds of a run without its tuning trials; 0 if they were not measured.

    At least those of the final training: where most trials were in the store, what the run made of
    them itself is known roughly.
    """
    rest = (record.cpu_s or 0.0) - made_cpu_s(record)
    return max(record.fit_cpu_s or 0.0, rest)


def whole_cpu_s(record: RunRecord) -> float:
    """CPU seconds of a run with all tuning trials of its draw, those found in the store too."""
    return rest_cpu_s(record) + trials_cpu_s(record)


def trials_cpu_s(record: RunRecord) -> float:
    """CPU seconds of the tuning trials of the draw of a run; 0 if it is tuned on another draw."""
    protocol = record.spec.protocol
    own = protocol.tune_seed in (msgspec.UNSET, protocol.seed)
    return record.tuned.cpu_s if own else 0.0


def made_cpu_s(record: RunRecord) -> float:
    """CPU seconds of the tuning trials that the run did itself."""
    return record.tuned.cpu_s * _made(record)


class Price(NamedTuple):
    """CPU seconds; a guess is of runs that differ in more than the seed and the tuning budget."""

    cpu_s: float
    guess: bool


class Costs(Protocol):
    """What finished runs took: those of a store, or those that are published."""

    def training_cpu_s(self, key: str) -> Sequence[float]:
        """CPU seconds of a training, of each run with this key (see `cost_keys`).

        A key without a method is that of the runs of all methods.
        """

    def has_dev(self, dataset: str) -> bool | None:
        """Whether the dataset has a development split; None if no run tells."""


class Prices:
    """Prices by finished runs: the median of one training, times the trainings of the run.

    sources: the first one that has equally similar runs counts.
    models: what a training of a model takes, divided by that of others, see `ModelInfo.cost`.
    """

    def __init__(self, *sources: Costs, models: Mapping[str, float] | None = None) -> None:
        self._sources = sources
        self._models = models or {}
        self._median = cache(self._median_of)
        self._has_dev = cache(self._first_has_dev)

    def of(self, spec: RunSpec) -> Price | None:
        """The price of a run; None if there is no run of its method or on its dataset.

        A method without runs is priced by the other methods on the dataset, a model without runs by
        the other models. A run that is tuned on another draw finds the trials in the store.
        """
        protocol = spec.protocol
        same_draw = protocol.tune_seed in (msgspec.UNSET, protocol.seed)
        n_trials = protocol.tune if same_draw and spec.search else 0
        factor = trainings(spec, n_trials, self._has_dev(spec.dataset))
        own = self._training(spec)
        if own is not None:
            return Price(own.cpu_s * factor, own.guess)
        for name, cost in self._models.items():
            other = self._training(msgspec.structs.replace(spec, model=name))
            if other is not None and spec.model in self._models:
                return Price(other.cpu_s * factor * self._models[spec.model] / cost, guess=True)
        return None

    def _training(self, spec: RunSpec) -> Price | None:
        """The price of one training, by runs with the same model."""
        keys = cost_keys(spec)
        for key in (*keys, *cost_keys(msgspec.structs.replace(spec, method=""))[:2]):
            one = self._median(key)
            if one is not None:
                return Price(one, key != keys[0])
        return None

    def _median_of(self, key: str) -> float | None:
        for source in self._sources:
            seconds = source.training_cpu_s(key)
            if seconds:
                return median(seconds)
        return None

    def _first_has_dev(self, dataset: str) -> bool:
        answers = (source.has_dev(dataset) for source in self._sources)
        return next((answer for answer in answers if answer is not None), False)
