"""The Bayesian signed-rank test: by loops, at its ends, and the table of docs/statistics.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from studies.signed_rank import LEVEL, PRIOR, main, probabilities

ROOT = Path(__file__).parents[2]


def test_a_few_samples_by_loops() -> None:
    values, n = np.array([0.4, -0.3, 0.05, 1.2]), 40
    weights = np.random.default_rng(5).dirichlet([1, 1, 1, 1, PRIOR], n)
    padded, wins = [*values, 0.0], np.zeros(3)
    for own in weights:
        sums = [0.0, 0.0, 0.0]
        for a, p in zip(padded, own, strict=True):
            for b, q in zip(padded, own, strict=True):
                middle = (a + b) / 2
                sums[0 if middle > LEVEL else 2 if middle < -LEVEL else 1] += p * q
        wins[np.argmax(sums)] += 1
    found = probabilities(values, np.random.default_rng(5), n)
    np.testing.assert_allclose(found, wins / n)


def test_the_ends() -> None:
    rng = np.random.default_rng(0)
    values = np.array([2.0, 3.0, 1.5, 2.5, 4.0, 1.0, 3.0])
    assert probabilities(values, rng)[0] > 0.99
    assert probabilities(-values, rng)[2] > 0.99
    assert probabilities(values / 100, rng)[1] > 0.99
    better, _, worse = probabilities(np.concatenate([values, -values]), rng)
    assert better == pytest.approx(worse, abs=0.02)


def test_the_table_of_the_page() -> None:
    shown = CliRunner().invoke(main, [str(ROOT / "leaderboards/standard.csv")]).output
    assert len(shown.splitlines()) == 2 + 16
    assert shown.strip() in (ROOT / "docs/statistics.md").read_text(encoding="utf-8")
