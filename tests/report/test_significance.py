"""Paired tests against exact and independent computations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sslbench.engine.errors import UserError
from sslbench.engine.types import I64
from sslbench.experiment.metrics import CountTable, SentenceCounts
from sslbench.report.significance import RANDOM_SEED, compare_taggers, holm

FIELDS = (
    *("sentences", "exact_sentences", "n_tokens", "correct_tokens"),
    *("gold_chunks", "predicted_chunks", "correct_chunks"),
)


def counts(rng: np.random.Generator, n: int, skill: float, length: int = 10) -> I64:
    """int64[n, 7], with the columns of FIELDS, of a tagger with this accuracy."""
    correct = rng.binomial(length, skill, size=n)
    gold = rng.integers(1, 4, size=n)
    both = rng.binomial(gold, skill)
    predicted = both + rng.binomial(2, 1 - skill, size=n)
    lengths = np.full(n, length)
    made = SentenceCounts(lengths, correct, gold, predicted, both).table()
    assert made.fields == FIELDS
    return made.rows


def table(*seeds: I64) -> CountTable:
    return CountTable(FIELDS, np.stack(seeds))


def f1(rows: I64) -> float:
    gold, predicted, both = rows.sum(axis=0)[4:]
    return float(2 * both / (gold + predicted))


def p_of(a: CountTable, b: CountTable, metric: str, n: int = 9_999) -> float:
    return compare_taggers(a, b, metric, n).p_value


@pytest.mark.parametrize("scale", [1, 10**8])  # sums that are exact in float32, and that are not
def test_p_is_that_of_swaps_made_one_by_one(scale: int) -> None:
    rng = np.random.default_rng(9)
    n, n_swaps = 20, 99
    ours = table(*(counts(rng, n, 0.8) for _ in range(2))).rows * scale
    # Few sentences differ: many swaps give the observed difference again.
    ours[:, :3, 4:] += scale + 1
    theirs = ours.copy()
    theirs[:, :3, 6] -= np.minimum(theirs[:, :3, 6], scale + 1)
    chosen = np.random.default_rng(RANDOM_SEED).integers(0, 2, size=(n_swaps, n), dtype=np.int8)

    def difference(swap: I64) -> float:
        keep = swap[None, :, None] == 0
        a, b = np.where(keep, ours, theirs), np.where(keep, theirs, ours)
        return float(np.mean([f1(one) - f1(other) for one, other in zip(a, b, strict=True)]))

    observed = difference(np.zeros(n, dtype=np.int64))
    as_far = sum(abs(difference(swap)) >= abs(observed) - 1e-12 for swap in chosen)
    found = compare_taggers(CountTable(FIELDS, ours), CountTable(FIELDS, theirs), "f1", n_swaps)
    assert found.difference == pytest.approx(observed, abs=1e-15)
    assert found.p_value == (1 + as_far) / (1 + n_swaps)


def test_p_value_of_f1_agrees_with_scipys_exact_permutations() -> None:
    rng = np.random.default_rng(1)
    a, b = counts(rng, 9, 0.8), counts(rng, 9, 0.5)

    def difference(first: np.ndarray, second: np.ndarray) -> float:
        # scipy hands over sentence numbers: 0..8 are A's rows, 9..17 B's.
        rows = np.concatenate([a, b])
        return f1(rows[first.astype(int)]) - f1(rows[second.astype(int)])

    exact = stats.permutation_test(
        (np.arange(9), np.arange(9, 18)), difference, permutation_type="samples", n_resamples=np.inf
    )
    # scipy doubles the smaller tail; ours counts both tails, which is the same by symmetry.
    ours = p_of(table(a), table(b), "f1")
    assert 0.01 < exact.pvalue < 0.9
    assert ours == pytest.approx(exact.pvalue, abs=0.02)


def test_p_value_of_accuracy_agrees_with_the_exact_sign_test() -> None:
    # One token per sentence; A wins 9 of 11 disagreements: McNemar's exact test.
    a, b = np.ones(40, dtype=np.int64), np.ones(40, dtype=np.int64)
    b[:9], a[9:11] = 0, 0
    ones = np.ones(40, dtype=np.int64)
    sides = (SentenceCounts(ones, x).table() for x in (a, b))
    left, right = (CountTable(side.fields, side.rows[None]) for side in sides)
    exact = stats.binomtest(9, 11).pvalue
    assert p_of(left, right, "accuracy") == pytest.approx(exact, abs=0.012)


def test_smallest_and_largest_p_values() -> None:
    rng = np.random.default_rng(2)
    a, b = table(counts(rng, 300, 0.9)), table(counts(rng, 300, 0.5))
    assert p_of(a, a, "f1") == 1.0
    assert p_of(a, b, "f1", 999) == 1 / 1000
    assert p_of(a, b, "f1") == p_of(b, a, "f1")


def test_difference_is_the_mean_of_the_seeds_differences() -> None:
    rng = np.random.default_rng(3)
    a = table(*(counts(rng, 50, 0.8) for _ in range(3)))
    b = table(*(counts(rng, 50, 0.7) for _ in range(3)))
    paired = compare_taggers(a, b, "f1")
    expected = np.mean([f1(x) - f1(y) for x, y in zip(a.rows, b.rows, strict=True)])
    assert paired.difference == pytest.approx(expected)
    assert paired.low < paired.difference < paired.high
    assert compare_taggers(a, b, "f1") == paired
    swapped = compare_taggers(b, a, "f1")
    assert swapped.difference == pytest.approx(-paired.difference)
    assert swapped.low == pytest.approx(-paired.high)


def test_swaps_that_are_not_cached_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    a, b = (table(counts(rng, 3000, skill)) for skill in (0.8, 0.79))
    kept = compare_taggers(a, b, "f1")
    monkeypatch.setattr("sslbench.report.significance._CACHED_CELLS", 0)
    assert compare_taggers(a, b, "f1") == kept


def test_copies_of_a_seed_are_no_new_evidence() -> None:
    rng = np.random.default_rng(4)
    a, b = counts(rng, 100, 0.80), counts(rng, 100, 0.76)
    once = p_of(table(a), table(b), "f1")
    thrice = p_of(table(a, a, a), table(b, b, b), "f1")
    assert thrice == pytest.approx(once, abs=1e-9)


def test_interval_of_accuracy_is_that_of_scipys_sign_flips() -> None:
    """The smallest and largest difference that flipping the signs of sentences does not reject."""
    rng = np.random.default_rng(5)
    a, b = counts(rng, 60, 0.8), counts(rng, 60, 0.7)
    gains = (a - b)[:, FIELDS.index("correct_tokens")] / 10.0
    paired = compare_taggers(table(a), table(b), "accuracy")

    def p_value(shift: float) -> float:
        return float(
            stats.permutation_test(
                (gains - shift,),
                np.mean,
                permutation_type="samples",
                n_resamples=9_999,
                random_state=np.random.default_rng(0),
                vectorized=True,
                axis=-1,
            ).pvalue
        )

    width = paired.high - paired.low
    for end, outward in ((paired.low, -1), (paired.high, 1)):
        assert p_value(end - outward * 0.05 * width) > 0.05
        assert p_value(end + outward * 0.05 * width) < 0.05


@given(st.integers(0, 2**32 - 1), st.sampled_from(["accuracy", "f1", "sentence_accuracy"]))
def test_p_and_interval_agree(seed: int, metric: str) -> None:
    rng = np.random.default_rng(seed)
    n, skills = int(rng.integers(2, 30)), rng.uniform(0.3, 0.9, size=2)
    a, b = (table(*(counts(rng, n, skill) for _ in range(2))) for skill in skills)
    for n_swaps in (19, 99, 101):
        paired = compare_taggers(a, b, metric, n_swaps)
        assert paired.low <= paired.difference <= paired.high
        assert (paired.p_value <= 0.05) == (not paired.low <= 0 <= paired.high)


def test_what_cannot_be_compared_is_refused() -> None:
    rng = np.random.default_rng(6)
    rows = counts(rng, 5, 0.5)
    a = table(rows)
    with pytest.raises(UserError, match="differ"):
        compare_taggers(a, table(rows[:4]), "f1")
    with pytest.raises(UserError, match="differ"):  # as many counts, but of other things
        compare_taggers(a, CountTable((*FIELDS[:-1], "correct_words"), a.rows), "f1")
    with pytest.raises(UserError, match="no paired test"):
        compare_taggers(a, a, "unseen_accuracy")


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_against_its_definition(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    m = len(p_values)
    for i, p in enumerate(p_values):
        # p_(j) counts with the number of hypotheses still in at its step.
        order = sorted(range(m), key=p_values.__getitem__)
        upto = order[: order.index(i) + 1]
        assert adjusted[i] == min(1.0, max((m - order.index(j)) * p_values[j] for j in upto))
        assert adjusted[i] >= p
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_type_one_error_is_at_most_five_percent() -> None:
    """Two equal taggers with 3 seeds, whose errors on a sentence go together over seeds."""
    rng = np.random.default_rng(7)
    trials, rejected = 400, 0
    for _ in range(trials):
        sides = []
        for _ in range(2):
            ease = rng.beta(8, 2, size=80)  # of each sentence for this tagger, in all seeds
            correct = [rng.binomial(10, ease) for _ in range(3)]
            lengths = np.full(80, 10)
            tables = [SentenceCounts(lengths, c).table() for c in correct]
            sides.append(CountTable(tables[0].fields, np.stack([t.rows for t in tables])))
        rejected += p_of(*sides, "accuracy", 499) <= 0.05
    assert rejected <= stats.binom.ppf(0.999, trials, 0.05)
    assert rejected >= stats.binom.ppf(0.001, trials, 0.05)  # and it is no timid test
