"""The simulation of comparisons: what it makes is what it says, and a level on a few cells."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from studies.simulate import NULLS, WORLDS, Cell, comparisons, main, simulate

USUAL = WORLDS["usual"]


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("metric", ["accuracy", "f1"])
def test_counts_are_possible_and_the_two_sides_equal_on_average(null: str, metric: str) -> None:
    cell = Cell(null, metric, 3, 200)
    counts = comparisons(cell, USUAL, 60, np.random.default_rng(0))
    assert counts.min() >= 0
    tokens, right = counts[..., 0], counts[..., -1]
    assert (tokens == tokens[:, :1, :1]).all()
    assert (right <= counts[..., 1 if metric == "f1" else 0]).all()
    if metric == "f1":
        assert (right <= counts[..., 2]).all()
    sides = right.sum(axis=(2, 3)) / counts[..., -2].sum(axis=(2, 3))
    assert stats.ttest_rel(sides[:, 0], sides[:, 1]).pvalue > 0.001


def test_planted_effects_have_their_size() -> None:
    actual = simulate(Cell("shared", "accuracy", 3, 400, effect=0.2), USUAL, 100, taggers=False)
    errors = 1 - actual.scores.mean()
    assert actual.difference.mean() == pytest.approx(0.2 * errors, rel=0.05)


def test_equal_arguments_give_equal_lines() -> None:
    arguments = ["--draws", "1", "--draws", "3", "--sentences", "20", "--comparisons", "40"]
    arguments += ["--null", "shared", "--metric", "f1"]
    first, second = (CliRunner().invoke(main, arguments) for _ in range(2))
    assert first.exit_code == 0, first.output
    assert first.output == second.output
    head, _, one, three = first.output.splitlines()
    assert {line.count("|") for line in (head, one, three)} == {head.count("|")}
    assert "one draw" in one
    power = CliRunner().invoke(main, [*arguments, "--effect", "2"])
    assert len(power.output.splitlines()) == 3


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["accuracy", "f1"])
@pytest.mark.parametrize("null", NULLS)
def test_the_level_of_both_questions(null: str, metric: str) -> None:
    """With three draws: the limits that docs/statistics.md states, for 1,000 comparisons."""
    n = 1_000
    actual = simulate(Cell(null, metric, 3, 300), USUAL, n, taggers=null == "swapped")
    assert 0.012 * n <= n * actual.rejected() <= stats.binom.ppf(0.999, n, 0.06)
    assert actual.coverage(0.0) == pytest.approx(1 - actual.rejected())
    if null == "swapped":
        level = (actual.taggers <= 0.05).mean()
        assert stats.binom.ppf(0.001, n, 0.05) <= n * level <= stats.binom.ppf(0.999, n, 0.05)
