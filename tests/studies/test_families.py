"""The simulation of boards: what it makes is what it says, and the level on a few cells."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from studies.families import NULLS, Cell, any_pair, main, rejections


@pytest.mark.parametrize("null", NULLS)
def test_the_effects_of_families_have_the_mean_that_is_asked_for(null: str) -> None:
    rng = np.random.default_rng(0)
    effects = np.concatenate([Cell(null, "mixed", 10, 3, 0.7).effects(rng) for _ in range(2000)])
    assert effects.mean() == pytest.approx(0.7, abs=0.06)
    assert (np.ptp(effects) == 0) == (null == "equal")


def test_columns_and_their_families() -> None:
    cell = Cell("normal", "tags", 6, 3)
    assert len(cell.names) == len(cell.gains(np.random.default_rng(0))) == 18
    assert [cell.names.count(f"f{i}") for i in range(6)] == [10, 3, 2, 1, 1, 1]


def test_the_level_of_the_tests() -> None:
    families, _, corpora = rejections(Cell("signs", "spans", 8, 3), 300)
    assert families <= 0.05 + 3 * 0.013  # three standard errors
    assert corpora > 0.2  # what a board must not do
    assert rejections(Cell("signs", "spans", 8, 3, shift=6.0), 50)[0] > 0.5
    assert any_pair(4, Cell("equal", "mixed", 6, 3), 40) <= 0.15


def test_equal_arguments_give_equal_lines() -> None:
    arguments = ["--families", "6", "--null", "normal", "--boards", "20"]
    first, second = (CliRunner().invoke(main, arguments) for _ in range(2))
    assert first.exit_code == 0, first.output
    assert first.output == second.output
    lines = first.output.splitlines()
    assert len(lines) == 2 + 4
    assert {line.count("|") for line in lines} == {9}
    pairs = CliRunner().invoke(main, [*arguments, "--methods", "3"])
    assert pairs.output.count("\n") == 2 + 4
