"""Successive halving: who goes on, by hand and by loops, and what is lost in a simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from sslbench import SearchAxis
from sslbench.engine.types import F64
from sslbench.experiment.records.trials import PartScore, Trial
from sslbench.experiment.run.racing import FOLDS, Race, survivors
from sslbench.experiment.run.trials import Attempt, Trials
from sslbench.experiment.run.tuning import Budget, search

AXIS = SearchAxis("place", tuple(range(40)))


class Scripted:
    """Trials whose score after n folds is the mean of the first n of their row; nan = it fails."""

    n_parts = 5

    def __init__(self, scores: F64, cpu_s: float = 1.0) -> None:
        self.scores, self.cpu_s = scores, cpu_s
        self.entered: list[Attempt] = []

    def attempt(self, params: Mapping[str, Any]) -> Attempt:
        self.entered.append(Attempt(params))
        return self.entered[-1]

    def row(self, attempt: Attempt) -> F64:
        row: F64 = self.scores[[each is attempt for each in self.entered].index(True)]
        return row

    def advance(self, attempt: Attempt, n_parts: int) -> None:
        while len(attempt.done) < n_parts and attempt.error is None:
            fails = math.isnan(self.row(attempt)[len(attempt.done)])
            attempt.done.append(PartScore({}, 0.0, self.cpu_s, "fails" if fails else None))

    def score(self, attempt: Attempt, n_parts: int) -> float:
        if attempt.error is not None:
            return -math.inf
        return float(self.row(attempt)[: min(n_parts, len(attempt.done))].mean())

    def trial(self, attempt: Attempt) -> Trial:
        dropped = attempt.error is None and len(attempt.done) < self.n_parts
        score = None if attempt.error else self.score(attempt, self.n_parts)
        after = len(attempt.done) if dropped else msgspec.UNSET
        params = dict(attempt.params)
        return Trial(params, "f1", score, 0.0, attempt.cpu_s, attempt.error, after)


def raced(trials: Scripted) -> list[Trial]:
    race = Race(cast(Trials, trials))
    for number in range(len(trials.scores)):
        race.enter({"place": number})
    return race.finish()


def folds(trials: list[Trial]) -> list[int]:
    return [5 if each.dropped_after is msgspec.UNSET else each.dropped_after for each in trials]


def test_how_many_go_on() -> None:
    assert [survivors(8, n) for n in (1, 2, 3, 4)] == [4, 3, 2, 2]
    assert [survivors(4, n) for n in (1, 2, 3, 4)] == [2, 2, 2, 2]
    assert [survivors(2, n) for n in (1, 2)] == [2, 2]
    assert survivors(1, 1) == 1
    assert sum([8, 4, 3, 2, 2]) / 8 == FOLDS == 2.375


def test_who_goes_on_by_hand() -> None:
    scores = np.array([[0.5], [0.9], [0.1], [0.8], [0.7], [0.2], [0.5], [0.5]]) * np.ones(5)
    scores[3] = [0.8, 0.8, 0.8, 0.8, 2.0]  # the best at the end
    scores[0] = [0.5, 9.0, 9.0, 9.0, 9.0]  # equal to the last two after a fold, and first
    found = raced(Scripted(scores))
    assert folds(found) == [5, 5, 1, 3, 2, 1, 1, 1]
    scores[4] = [0.7, np.nan, 0.0, 0.0, 0.0]
    failed = raced(Scripted(scores))
    assert (failed[4].error, failed[4].score) == ("fails", None)
    assert folds(failed)[:2] == [5, 5]


def test_if_the_last_ones_fail_the_next_best_takes_their_place() -> None:
    scores = np.array([[0.5], [0.9], [0.1], [0.8]]) * np.ones(5)
    scores[1, 4] = scores[3, 4] = np.nan
    found = raced(Scripted(scores))
    assert folds(found) == [5, 5, 1, 5]
    assert [each.error for each in found] == [None, "fails", None, "fails"]
    scores[:, 4] = np.nan
    assert all(each.error == "fails" for each in raced(Scripted(scores)))


@pytest.mark.parametrize("seed", range(20))
def test_who_goes_on_by_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 5, (rng.integers(1, 12), 5)).astype(float)
    left = list(range(len(scores)))
    expected = [1] * len(scores)
    for done in range(1, 5):
        number = survivors(len(scores), done)
        ranks = [(-scores[t, :done].mean(), t) for t in left]
        left = [t for _, t in sorted(ranks)[:number]]
        for t in left:
            expected[t] = done + 1
    assert folds(raced(Scripted(scores))) == expected


def test_the_other_half_searches_around_the_best_after_a_fold() -> None:
    scores = np.zeros((8, 5))
    scores[:4, :2] = [[0.5, 0.5], [0.2, 9.0], [0.6, 0.1], [0.6, 9.0]]  # the second is not looked at
    trials = Scripted(scores)
    race = Race(cast(Trials, trials))
    for number in range(4):
        race.enter({"place": number})
    assert race.leader() == {"place": 2}
    assert [len(each.done) for each in race.attempts] == [1, 1, 1, 1]
    scores[4] = 1.0
    race.enter({"place": 9})
    assert race.leader() == {"place": 2}
    assert len(race.attempts[4].done) == 1


def test_a_search_that_races_spends_its_budget() -> None:
    rng = np.random.default_rng(0)
    by_number = Scripted(rng.random((40, 5)))
    tuning = search([AXIS], {"place": 0}, Budget(8), 0, Race(cast(Trials, by_number)))
    assert len(tuning.trials) == 8
    finished = [each for each in tuning.trials if each.dropped_after is msgspec.UNSET]
    assert len(finished) == 2
    assert tuning.best == max(finished, key=lambda each: each.score or 0.0).params
    by_time = Scripted(rng.random((40, 5)))
    tuning = search([AXIS], {"place": 0}, Budget(None, 60.0), 0, Race(cast(Trials, by_time)))
    assert sum(each.cpu_s for each in tuning.trials) == pytest.approx(60.0, abs=3)


def simulated(spread: float, seed: int, trials: int = 8) -> tuple[float, float]:
    """Accuracy that a race loses on average, and its share of all folds.

    spread: standard deviation of the trials' true accuracies; a fold has 20 sentences of 15 tokens.
    """
    rng = np.random.default_rng(seed)
    lost, used, repeats = 0.0, 0, 300
    for _ in range(repeats):
        true = np.clip(rng.normal(0.8, spread, trials), 0.05, 0.98)
        # what is hard is hard for all trials
        hard, luck = rng.random((5, 300)), rng.random((trials, 5, 300)) < 0.15
        own = rng.random((trials, 5, 300))
        right = (np.where(luck, own, hard) < true[:, None, None]).mean(axis=2)
        found = raced(Scripted(right))
        done = folds(found)
        used += sum(done)
        ends = [t for t in range(trials) if done[t] == 5]
        best = max(ends, key=lambda t: right[t].mean())
        lost += float(true[int(right.mean(axis=1).argmax())] - true[best])
    return lost / repeats, used / (repeats * trials * 5)


@pytest.mark.parametrize("spread", [0.005, 0.02, 0.1])
def test_a_race_loses_little_and_saves_half(spread: float) -> None:
    lost, share = simulated(spread, seed=1)
    assert lost < 0.0006
    assert share == 0.475
