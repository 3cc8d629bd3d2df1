"""Statistics over families against enumeration, a search for the interval, and simulations."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import optimize, stats

from sslbench.engine.types import F64
from sslbench.report import families
from sslbench.report.families import (
    family_means,
    first_shares,
    mean_interval,
    mean_p_value,
    set_apart,
)


def all_signs(n: int) -> F64:
    return np.array(list(product((-1.0, 1.0), repeat=n)))


def by_signs(values: F64) -> float:
    """p of |sum| over all changes of signs."""
    sums = np.abs(all_signs(len(values)) @ values)
    return float((sums >= abs(values.sum()) - 1e-12).mean())


@pytest.mark.parametrize("n", [3, 6, 9, 11])
@pytest.mark.parametrize("shift", [0.0, 0.4, 2.0])
def test_p_is_that_of_all_changes_of_signs(n: int, shift: float) -> None:
    values = np.random.default_rng(n).normal(shift, 1.0, n)
    assert mean_p_value(values) == by_signs(values)


@pytest.mark.parametrize("values", [[0.0] * 8, [1.0, -1.0] * 4, [0.1, 0.1, 0.1, 0.2, 0.2, 0.3]])
def test_p_with_ties(values: list[float]) -> None:
    assert mean_p_value(np.array(values)) == by_signs(np.array(values))


@pytest.mark.parametrize("n", [6, 8, 12])
def test_the_interval_has_what_the_test_does_not_reject(n: int) -> None:
    values = np.random.default_rng(n).standard_t(3, n)
    low, high = mean_interval(values)

    def rejected(center: float) -> float:
        return 0.5 - (by_signs(values - center) <= 0.05)

    middle = float(values.mean())
    assert low == pytest.approx(optimize.bisect(rejected, middle - 50, middle), abs=1e-9)
    assert high == pytest.approx(optimize.bisect(rejected, middle, middle + 50), abs=1e-9)


def test_few_families_say_nothing() -> None:
    values = np.array([1.0, 1.1, 0.9, 1.2, 1.05])
    assert mean_interval(values) == (-np.inf, np.inf)
    assert mean_p_value(values) == 2 / 2**5 > 0.05
    assert mean_interval(np.append(values, 0.8)) == (0.8, 1.2)


def test_many_families_take_random_subsets() -> None:
    values = np.random.default_rng(3).normal(0.3, 1.0, 20)
    sums = np.random.default_rng(4).choice((-1.0, 1.0), (100_000, 20)) @ values
    expected = float((np.abs(sums) >= abs(values.sum())).mean())
    assert mean_p_value(values) == pytest.approx(expected, abs=0.01)
    low, high = mean_interval(values)
    assert low < values.mean() < high
    assert len(families._subset_means(values)) == 2**16 - 1


def test_a_family_counts_once() -> None:
    values = np.array([[1.0, 2.0, 3.0, 10.0], [0.0, 0.0, 0.0, 4.0]])
    names = ["ud", "ud", "ud", "genes"]
    np.testing.assert_array_equal(family_means(values, names), [[2.0, 10.0], [0.0, 4.0]])


@pytest.mark.parametrize("n", [6, 9])
def test_advantages_with_a_sign_per_family_are_called_differences_in_one_of_twenty(n: int) -> None:
    """All sign patterns, sizes of families and advantages as unequal as on the board."""
    rng = np.random.default_rng(n)
    sizes = [10, 5, *[1] * (n - 2)]
    names = [f"family{i}" for i, size in enumerate(sizes) for _ in range(size)]
    advantage = np.abs(rng.normal(1.0, 0.5, n)) * np.exp(rng.normal(0.0, 1.0, n))
    new = old = 0
    for signs in all_signs(n):
        columns = np.repeat(signs * advantage, sizes)
        new += mean_p_value(family_means(columns, names)) <= 0.05
        old += float(stats.wilcoxon(columns).pvalue) <= 0.05
    assert new / 2**n <= 0.05
    # The same advantages with each corpus as a witness: what a board must not do.
    assert old / 2**n > 0.3


def test_the_false_discovery_rate_of_a_board() -> None:
    """Half of eight lines are equal, half better by one: false pairs among those set apart."""
    rng = np.random.default_rng(5)
    truth = np.repeat([0.0, 1.0], 4)
    shares, complete, n_found = [], [], []
    for _ in range(200):
        noise = rng.normal(0.0, 0.7, (8, 14))
        apart = set_apart(truth[:, None] + noise)
        wrong = sum(truth[a] == truth[b] for a, b in apart)
        shares.append(wrong / max(1, len(apart)))
        n_found.append(len(apart) - wrong)
        complete.append(bool(set_apart(noise)))
    assert np.mean(shares) <= 0.05
    assert np.mean(complete) <= 0.07  # 0.05 and two standard errors
    assert np.mean(n_found) > 0.6 * 16


def test_pairs_are_places_in_order() -> None:
    values = np.array([[2.0], [1.0], [2.0]]) + np.linspace(0.0, 0.1, 14)
    assert set_apart(values) == [(0, 1), (1, 2)]
    assert set_apart(values[:1]) == []


def test_first_shares_against_a_slow_resampling() -> None:
    rng = np.random.default_rng(8)
    sizes = [4, 1, 2, 1, 1]
    names = [f"family{i}" for i, size in enumerate(sizes) for _ in range(size)]
    values = rng.normal(0.0, 1.0, (3, 9))
    wins = np.zeros(3)
    for _ in range(4000):
        drawn = []
        for family in rng.integers(0, 5, 5):
            own = [i for i, name in enumerate(names) if name == f"family{family}"]
            drawn.append(values[:, rng.choice(own, len(own))].mean(axis=1))
        wins[np.mean(drawn, axis=0).argmax()] += 1
    np.testing.assert_allclose(first_shares(values, names), wins / 4000, atol=0.03)


def test_equal_lines_share_the_first_place() -> None:
    values = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]])
    np.testing.assert_array_equal(first_shares(values, ["a", "b"]), [0.5, 0.5, 0.0])
