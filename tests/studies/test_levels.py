"""The computed level of the test of the methods, against simulated normal differences."""

from __future__ import annotations

import numpy as np
import pytest

from sslbench.report.draws import crossed
from studies.levels import extremes, level


@pytest.mark.parametrize(
    ("n_draws", "between_draws", "between_sentences"),
    [(3, 0.0, 0.0), (3, 3.0, 0.0), (5, 1.0, 4.0), (2, 100.0, 0.0)],
)
def test_the_level_is_that_of_a_simulation(
    n_draws: int, between_draws: float, between_sentences: float
) -> None:
    rng = np.random.default_rng(0)
    n, comparisons = 400, 4000
    # In units of the residual's share of the mean square: a draw's variance is divided by n.
    rows = rng.normal(0, np.sqrt(between_draws / n), (comparisons, n_draws, 1))
    columns = rng.normal(0, np.sqrt(between_sentences / n_draws), (comparisons, 1, n))
    D = rows + columns + rng.normal(0, 1, (comparisons, n_draws, n))
    rejected = np.abs(D.mean(axis=(1, 2))) > crossed(D).half_width()
    wanted = level(n_draws, between_draws, between_sentences)
    assert rejected.mean() == pytest.approx(wanted, abs=4 * np.sqrt(wanted / comparisons))


def test_it_lies_between_its_extremes() -> None:
    low, high = extremes(5, (0.0, 1.0, 1000.0))
    assert 0.015 < low <= level(5, 1.0, 1.0) <= high < 0.065
