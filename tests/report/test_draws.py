"""The test of the methods against mean squares by loops, exact cases and its own interval."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from sslbench.engine.types import F64
from sslbench.experiment.metrics import CountTable, ratio
from sslbench.report.draws import Components, compare_methods, crossed, values

FIELDS = ("n_tokens", "gold_chunks", "predicted_chunks", "correct_chunks")


def loops(D: F64) -> tuple[float, float, float]:
    """Mean squares of a two-way layout without repetition, by their definition."""
    S, n = D.shape
    grand = sum(D[i, j] for i, j in itertools.product(range(S), range(n))) / (S * n)
    rows = [sum(D[i, j] for j in range(n)) / n for i in range(S)]
    columns = [sum(D[i, j] for i in range(S)) / S for j in range(n)]
    draws = sum(n * (row - grand) ** 2 for row in rows) / (S - 1)
    sentences = sum(S * (column - grand) ** 2 for column in columns) / (n - 1)
    rest = sum(
        (D[i, j] - rows[i] - columns[j] + grand) ** 2
        for i, j in itertools.product(range(S), range(n))
    )
    return draws, sentences, rest / ((S - 1) * (n - 1))


def test_components_are_the_mean_squares() -> None:
    D = np.random.default_rng(0).normal(size=(4, 7)) + np.arange(7)
    draws, sentences, rest = loops(D)
    parts = crossed(D)
    assert parts.draws == pytest.approx(draws / 28)
    assert parts.sentences == pytest.approx(sentences / 28)
    assert parts.residual == pytest.approx(rest / 28)
    many = crossed(np.stack([D, D]))
    assert many.half_width() == pytest.approx([parts.half_width()] * 2)


def test_the_variance_of_the_mean_is_unbiased() -> None:
    """Against the variance over repetitions, with skewed effects of draws, sentences and both."""
    rng = np.random.default_rng(1)
    shape = (20_000, 3, 12)
    D = (
        0.4 * rng.exponential(size=(*shape[:2], 1))
        + rng.exponential(size=(shape[0], 1, shape[2]))
        + 0.7 * rng.exponential(size=shape)
    )
    parts = crossed(D)
    estimate = (parts.draws + parts.sentences - parts.residual).mean()
    assert estimate == pytest.approx(D.mean(axis=(1, 2)).var(), rel=0.04)


def test_without_sentence_effects_it_is_near_the_paired_t_test() -> None:
    """Many sentences, draws that differ much: only the spread of the draws' means matters."""
    rng = np.random.default_rng(2)
    D = rng.normal(size=(6, 1)) + 0.01 * rng.normal(size=(6, 500))
    ours = compare_methods(D, np.zeros_like(D))
    exact = stats.ttest_1samp(D.mean(axis=1), 0.0)
    assert ours.p_value == pytest.approx(exact.pvalue, rel=1e-3)
    low, high = exact.confidence_interval()
    assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-3)


def test_draws_that_are_all_the_same_leave_the_test_of_the_sentences() -> None:
    D = np.repeat(np.random.default_rng(3).normal(0.3, 1, size=(1, 40)), 5, axis=0)
    exact = stats.ttest_1samp(D[0], 0.0)
    assert compare_methods(D, 0 * D).p_value == pytest.approx(exact.pvalue, rel=1e-6)


@example(136859, 4, 2)  # fewer sentences than draws
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(2, 30))
def test_p_and_interval_agree_and_the_interval_is_never_the_narrower_one(
    seed: int, S: int, n: int
) -> None:
    rng = np.random.default_rng(seed)
    scales = rng.uniform(0, 1, size=3)
    D = scales[0] * rng.normal(size=(S, 1)) + scales[1] * rng.normal(size=(1, n))
    D = D + scales[2] * rng.normal(size=(S, n)) + rng.uniform(-1, 1)
    test = compare_methods(D, np.zeros_like(D))
    assert (test.p_value <= 0.05) == (not test.low <= 0 <= test.high)
    sentences = stats.ttest_1samp(D.mean(axis=0), 0.0).confidence_interval()
    assert test.high - test.low >= (sentences.high - sentences.low) * (1 - 1e-9)
    assert test.seen > (test.high - test.low) / 2
    swapped = compare_methods(-D, np.zeros_like(D))
    assert (swapped.low, swapped.p_value) == pytest.approx((-test.high, test.p_value))


@pytest.mark.parametrize("ratio_of_draws", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("S", [2, 3, 5, 10])
def test_its_level_under_normal_distributions(S: int, ratio_of_draws: float) -> None:
    """Between the limits of docs/statistics.md, with as many sentences as one likes."""
    u = (np.arange(4_000) + 0.5) / 4_000
    draws = ratio_of_draws * stats.chi2.ppf(u, S - 1) / (S - 1)
    one = np.ones_like(draws)
    width = Components(draws, one, one, S, 10**6).half_width()
    level = (2 * stats.norm.sf(width / np.sqrt(ratio_of_draws))).mean()
    assert level <= 0.0601
    assert level > (0.013 if S == 2 else 0.019)


def test_values_have_the_metric_as_mean_and_the_derivative_as_spread() -> None:
    rng = np.random.default_rng(4)
    gold = rng.integers(0, 5, size=400)
    right = rng.binomial(gold, 0.8)
    rows = np.stack([np.full(400, 9), gold, right + rng.binomial(2, 0.2, 400), right], axis=-1)
    actual = values(CountTable(FIELDS, rows), "f1")
    f1 = 2 * right.sum() / (gold.sum() + rows[:, 2].sum())
    assert actual.mean() == pytest.approx(f1)
    # d F1 / d (weight of a sentence), the delta method.
    slope = 400 * (2 * right - f1 * (gold + rows[:, 2])) / (gold.sum() + rows[:, 2].sum())
    assert actual - f1 == pytest.approx(slope, abs=0.02)


def test_sentences_that_a_draw_lacks_add_nothing() -> None:
    """Disjoint test sets: the variance is that of the means over draws."""
    rng = np.random.default_rng(5)
    S, n = 4, 30
    rows = np.zeros((S, S * n, 2), dtype=np.int64)
    for s in range(S):
        rows[s, s * n : (s + 1) * n, 0] = 10
        rows[s, s * n : (s + 1) * n, 1] = rng.binomial(10, 0.5 + 0.1 * s, size=n)
    table = CountTable(("n_tokens", "correct_tokens"), rows)
    actual = values(table, "accuracy")
    scores = ratio(rows.sum(axis=1), table.fields, "accuracy")
    assert actual.mean(axis=1) == pytest.approx(scores)
    parts = crossed(actual)
    assert parts.draws == pytest.approx(scores.var(ddof=1) / S)
    within = np.mean([row[row != 0].var() for row in rows[..., 1] / 10.0])
    assert parts.sentences == pytest.approx(within / (S * n), rel=0.3)
    assert parts.residual == pytest.approx(parts.sentences, rel=0.05)
