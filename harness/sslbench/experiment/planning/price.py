"""What runs will take, by the recorded CPU seconds of runs like them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from statistics import median
from typing import NamedTuple, Protocol

import msgspec

from sslbench.experiment.records.cost import cost_keys, trainings
from sslbench.experiment.records.record import RunSpec


class Price(NamedTuple):
    """cpu_s: seconds.  guess: from runs that differ in more than the seed and the tuning budget."""

    cpu_s: float
    guess: bool


class Costs(Protocol):
    """What finished runs took: those of a store, or those that are published."""

    def training_cpu_s(self, key: str) -> Sequence[float]:
        """CPU seconds of a training, of each run with this key (see `cost_keys`)."""
        ...

    def has_dev(self, dataset: str) -> bool | None:
        """Whether the dataset has a development split; None if no run tells."""
        ...


class Prices:
    """Prices by finished runs: the median of one training, times the trainings of the run.

    sources: of equally near runs, those of the first one count.
    """

    def __init__(self, *sources: Costs) -> None:
        self._sources = sources
        self._median = cache(self._median_of)
        self._has_dev = cache(self._first_has_dev)

    def of(self, spec: RunSpec) -> Price | None:
        """The price of a run; None if there is no run of its method.

        A run that is tuned on another draw finds the trials in the store.
        """
        protocol = spec.protocol
        own = protocol.tune_seed in (msgspec.UNSET, protocol.seed)
        n_trials = protocol.tune if own and spec.search else 0
        factor = trainings(spec, n_trials, self._has_dev(spec.dataset))
        for level, key in enumerate(cost_keys(spec)):
            one = self._median(key)
            if one is not None:
                return Price(one * factor, level > 0)
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
