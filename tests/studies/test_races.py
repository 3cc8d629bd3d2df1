"""The study of races: a race on known counts, and what it loses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sslbench
from sslbench.experiment.metrics import SentenceCounts
from studies.races import (
    ALL,
    SHARES_NOW,
    Search,
    compared,
    outcome,
    print_compared,
    raced,
    searched,
)


def counts(correct: list[int]) -> SentenceCounts:
    return SentenceCounts(np.full(len(correct), 10), np.array(correct))


def test_all_trials_on_all_folds_choose_the_best_of_all() -> None:
    folds = [[counts([k]), counts([9 - k])] for k in (1, 5, 3)]
    folds[2][1] = counts([9])
    assert raced(folds, "accuracy", ALL) == (2, [2, 2, 2])
    late = [[counts([k])] * 4 + [counts([10 * (k == 1)])] for k in (1, 8, 7, 6)]
    assert raced(late, "accuracy", ALL)[0] == 1
    assert raced(late, "accuracy", SHARES_NOW) == (1, [1, 5, 5, 1])


def test_what_a_race_loses_is_the_difference_of_tests() -> None:
    same = [{"n_tokens": [10, 10], "correct_tokens": [5, 5]}] * 5
    first_is_late = [
        *[{"n_tokens": [10, 10], "correct_tokens": [4, 4]}] * 2,
        *[{"n_tokens": [10, 10], "correct_tokens": [10, 10]}] * 3,
    ]
    trials = [first_is_late, same, same, same]
    search = Search("x", "accuracy", trials, [[1.0] * 5] * 4, [70.0, 60.0, 60.0, 60.0])
    found = outcome(search, SHARES_NOW, 3)
    assert (found.lost, found.share) == (10.0, 12 / 20)
    assert outcome(search, ALL, 3).lost == 0.0


def test_a_search_is_stored(tmp_path: Path) -> None:
    one = searched("supervised", "synth", 0, tmp_path)
    assert len(one.test) == len(one.counts) == 8
    assert all(len(trial) == 5 for trial in one.counts)
    assert 0 < min(one.test) <= max(one.test) < 100
    assert searched("supervised", "synth", 0, tmp_path) == one


def test_stored_runs_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for by in ("cv", "cv-full"):
        sslbench.run("supervised", "synth", labeled=20, tune=2, tune_by=by, store=str(tmp_path))
    (pair,) = compared(tmp_path).itertuples()
    assert (pair.dataset, pair.method, pair.seed) == ("synth", "supervised", 0)
    assert pair.lost == 0  # of two trials both go on to the end
    print_compared(tmp_path)
    assert "| all | 1 | 0.00 | " in capsys.readouterr().out
