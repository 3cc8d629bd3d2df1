"""Prices of tuned runs: what a race is expected to need, and what its record says it took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from sslbench.experiment.records.cost import (
    Prices,
    cost_keys,
    has_dev,
    training_cpu_s,
    trainings,
    trials_cpu_s,
    whole_cpu_s,
)
from sslbench.experiment.records.record import ProtocolSpec, RunRecord, RunSpec
from sslbench.experiment.run.runner import execute
from support.run_fakes import task


class Costs:
    """Every training took two seconds; there is a development split."""

    def training_cpu_s(self, key: str) -> Sequence[float]:
        return [2.0]

    def has_dev(self, dataset: str) -> bool | None:
        return True


def spec(**protocol: Any) -> RunSpec:
    return RunSpec("m", "d", "f", "c", protocol=ProtocolSpec(**protocol), search="x")


def test_a_race_is_expected_to_need_half_of_the_folds() -> None:
    def price(trials: int, by: Any) -> float:
        found = Prices(Costs()).of(spec(tune=trials, tune_by=by))
        assert found is not None
        return found.cpu_s / 2

    assert price(8, UNSET) == 1 + 8  # trials on dev train once
    assert price(8, "cv-full") == 1 + 8 * 4  # five times four fifths
    assert price(8, "cv") == 1 + 8 * 4 / 2
    assert trainings(spec(tune=2, tune_by="cv", folds=3), 2, True) == 3 * (1 + 4)


@pytest.mark.usefixtures("fake_plugin")
def test_a_training_costs_what_is_left_without_the_race() -> None:
    record: RunRecord = execute(task(labeled=20, tune=4, tune_by="cv"))
    record.cpu_s = record.tuned.cpu_s + 3.0
    assert training_cpu_s(record) == pytest.approx(3.0)
    assert whole_cpu_s(record) == pytest.approx(record.cpu_s)
    record.fit_cpu_s = 4.0  # most trials were in the store
    assert training_cpu_s(record) == pytest.approx(4.0)
    assert not has_dev(record)
    record.data["sentences"]["dev"] = 20  # cross-validated although there is one
    assert has_dev(record)


@pytest.mark.usefixtures("fake_plugin")
def test_trials_count_for_the_draw_that_is_tuned_on() -> None:
    own, other = (execute(task(labeled=20, tune=4, seed=seed, tune_seed=0)) for seed in (0, 1))
    assert trials_cpu_s(own) == own.tuned.cpu_s > 0
    assert trials_cpu_s(other) == 0.0 < other.tuned.cpu_s


class OfOneModel(Costs):
    """There are runs with the model "c" alone."""

    def training_cpu_s(self, key: str) -> Sequence[float]:
        return [2.0] if key in cost_keys(spec()) else []


def test_a_model_without_runs_is_priced_by_the_others() -> None:
    other = replace(spec(), model="slow")
    assert Prices(OfOneModel()).of(other) is None  # nothing says how slow it is
    known = Prices(OfOneModel(), models={"fast": 0.5, "c": 2.0, "slow": 60.0})
    assert known.of(other) == (60.0, True)  # thirty times the two seconds
    assert known.of(spec()) == (2.0, False)
    assert known.of(replace(spec(), model="unknown")) is None
