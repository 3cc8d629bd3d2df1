"""The search: the default first, equal candidates, the whole budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench import SearchAxis
from sslbench.experiment.planning.space import SHARED
from sslbench.experiment.records.trials import Trial
from sslbench.experiment.run.tuning import (
    LEAST_EXPLORED,
    Budget,
    InTurn,
    Tuning,
    positions,
    search,
)

ROUNDS = SearchAxis("rounds", low=1, high=20, log=True, integer=True)
SIGN = SearchAxis("sign", ("+", "-"))
DEFAULT = {"sigma2": 10.0, "rounds": 5, "sign": "+"}


def run(
    axes: tuple[SearchAxis, ...],
    score: Callable[[Mapping[str, Any]], float | None],
    budget: Budget,
    seed: int = 0,
    cpu_s: float = 1.0,
) -> Tuning:
    def evaluate(params: Mapping[str, Any]) -> Trial:
        return Trial(dict(params), "f1", score(params), 2 * cpu_s, cpu_s, "boom")

    default = {axis.param: DEFAULT[axis.param] for axis in axes}
    return search(axes, default, budget, seed, InTurn(evaluate))


def peak(at: float) -> Callable[[Mapping[str, Any]], float]:
    return lambda params: 1 - abs(math.log10(params["sigma2"] / at)) / 10


@given(st.integers(1, 40), st.integers(0, 99))
def test_every_trial_of_the_budget_is_used_and_the_default_is_first(n: int, seed: int) -> None:
    tuning = run((*SHARED, ROUNDS, SIGN), peak(300), Budget(n), seed)
    assert len(tuning.trials) == n
    assert tuning.trials[0].params == DEFAULT
    assert len({repr(trial.params) for trial in tuning.trials}) == n
    for trial in tuning.trials:
        assert 0.01 <= trial.params["sigma2"] <= 1e4
        assert isinstance(trial.params["rounds"], int)
        assert trial.params["sign"] in "+-"


@given(st.floats(0.01, 1e4), st.integers(1, 12), st.integers(0, 9))
def test_tuning_never_ends_below_the_default(best: float, n: int, seed: int) -> None:
    tuning = run(SHARED, peak(best), Budget(n), seed)
    scores = [trial.score or 0.0 for trial in tuning.trials]
    assert peak(best)(tuning.best) == max(scores) >= scores[0]


def test_ties_go_to_the_earlier_trial() -> None:
    assert run((*SHARED, SIGN), lambda p: 0.5, Budget(9)).best == {"sigma2": 10.0, "sign": "+"}
    later = run(SHARED, lambda p: float(p["sigma2"] != 10.0), Budget(9))
    assert later.best == later.trials[1].params


def test_methods_get_the_same_candidates_of_a_shared_parameter() -> None:
    one = run(SHARED, peak(0.02), Budget(16), seed=3)
    two = run((ROUNDS, *SHARED, SIGN), peak(5000), Budget(16), seed=3)
    shared = [[trial.params["sigma2"] for trial in tuning.trials] for tuning in (one, two)]
    assert shared[0][:8] == shared[1][:8]
    assert shared[0] != shared[1]  # each goes on around its own best
    other = run(SHARED, peak(0.02), Budget(16), seed=4)
    assert [trial.params["sigma2"] for trial in other.trials][1:8] != shared[0][1:8]


def test_the_second_half_of_the_budget_searches_around_the_best() -> None:
    tuning = run(SHARED, peak(300), Budget(32))
    late = [abs(math.log10(t.params["sigma2"] / 300)) for t in tuning.trials[16:]]
    assert max(late) <= 6 * 0.5 / 2 + 1  # half of six decades around a point less than one away
    assert abs(math.log10(tuning.best["sigma2"] / 300)) < 0.15
    few = run(SHARED, peak(0.02), Budget(LEAST_EXPLORED))
    many = run(SHARED, peak(0.02), Budget(40))
    assert [t.params for t in few.trials] == [t.params for t in many.trials[:LEAST_EXPLORED]]


@pytest.mark.parametrize("param", ["sigma2", "rounds"])
@pytest.mark.parametrize("seed", [0, 7])
def test_positions_are_stratified(param: str, seed: int) -> None:
    for k in range(7):
        first = list(islice(positions(param, seed), 2**k))
        assert sorted(int(u * 2**k) for u in first) == list(range(2**k))


def test_a_small_space_is_tried_whole_and_then_left() -> None:
    tuning = run((SIGN, SearchAxis("rounds", (5, 6, 7))), lambda p: p["rounds"], Budget(99))
    assert len(tuning.trials) == 6
    assert tuning.best["rounds"] == 7


def test_no_trial_starts_when_the_cpu_budget_is_spent() -> None:
    assert len(run(SHARED, peak(1), Budget(None, 10.0), cpu_s=3.0).trials) == 4
    assert len(run(SHARED, peak(1), Budget(3, 10.0), cpu_s=3.0).trials) == 3
    assert len(run(SHARED, peak(1), Budget(None, 0.5), cpu_s=3.0).trials) == 1
    spent = run(SHARED, peak(1), Budget(None, 10.0), cpu_s=3.0).spent(asked=True)
    assert (spent.status, spent.trials, spent.cpu_s, spent.seconds) == ("tuned", 4, 12.0, 24.0)
    assert spent.searched == ["sigma2"]


def test_failed_trials_lose_and_all_failed_is_an_error() -> None:
    tuning = run(SHARED, lambda p: None if p["sigma2"] > 5 else p["sigma2"], Budget(8))
    assert tuning.trials[0].score is None
    assert tuning.best["sigma2"] == max(t.params["sigma2"] for t in tuning.trials if t.score)
    assert run(SHARED, lambda p: math.nan if p["sigma2"] > 5 else 0.1, Budget(8)).best["sigma2"] < 5
    with pytest.raises(RuntimeError, match="boom"):
        run(SHARED, lambda p: None, Budget(3))
