"""Racing over folds: its error bars, its rule, and what it loses in a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from sslbench.experiment.metrics import SentenceCounts
from sslbench.experiment.run.racing import Race, difference

FOLDS, SENTENCES = 5, 20


def tagged(correct: Sequence[int], tokens: Sequence[int]) -> SentenceCounts:
    return SentenceCounts(np.array(tokens), np.array(correct))


def spans(rng: np.random.Generator, n: int) -> SentenceCounts:
    gold, guessed = rng.integers(0, 4, n), rng.integers(0, 4, n)
    right = rng.integers(0, np.minimum(gold, guessed) + 1)
    tokens = np.full(n, 9)
    return SentenceCounts(tokens, tokens, gold, guessed, right)


def f1(counts: SentenceCounts, without: int = -1) -> Fraction:
    """F1 in exact arithmetic, without a sentence."""
    stay = [i for i in range(len(counts.n_tokens)) if i != without]
    gold, guessed, right = (
        sum(int(column[i]) for i in stay)
        for column in (counts.gold_chunks, counts.predicted_chunks, counts.correct_chunks)
    )
    return Fraction(2 * right, gold + guessed) if gold + guessed else Fraction(0)


@pytest.mark.parametrize("seed", range(5))
def test_the_error_is_that_of_leaving_out_each_sentence(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ours, theirs = spans(rng, 7), spans(rng, 7)
    left = [f1(ours, i) - f1(theirs, i) for i in range(7)]
    mean = sum(left) / 7
    variance = Fraction(6, 7) * sum((value - mean) ** 2 for value in left)
    ahead, error = difference(ours, theirs, "f1")
    assert ahead == pytest.approx(float(f1(ours) - f1(theirs)))
    assert error == pytest.approx(float(variance) ** 0.5)


def test_the_error_of_a_mean_is_the_usual_one() -> None:
    rng = np.random.default_rng(0)
    ones = np.ones(50, dtype=np.int64)
    ours, theirs = (SentenceCounts(ones, rng.integers(0, 2, 50)) for _ in range(2))
    ahead, error = difference(ours, theirs, "accuracy")
    differences = ours.correct_tokens - theirs.correct_tokens
    assert ahead == pytest.approx(differences.mean())
    assert error == pytest.approx(differences.std(ddof=1) / 50**0.5)


def race(*best: SentenceCounts) -> Race:
    made = Race("accuracy")
    assert not made.is_behind(best[:1])  # nothing to be behind of
    made.finish(best)
    return made


def test_who_is_clearly_behind_leaves() -> None:
    best = tagged([8, 8, 8, 8], [10] * 4), tagged([8, 9, 8, 7], [10] * 4)
    made = race(*best)
    for first, behind in (
        (tagged([5, 6, 5, 5], [10] * 4), True),
        (tagged([9, 8, 9, 9], [10] * 4), False),
        (best[0], True),  # no difference, and none to be expected
        (tagged([2, 10, 10, 9], [10] * 4), False),  # behind by a third of the error
    ):
        assert made.is_behind([first]) == behind
    assert not race(tagged([9], [10])).is_behind([tagged([1], [10])])  # a sentence has no error


def test_all_folds_until_now_count() -> None:
    best = tagged([8, 8, 8, 8], [10] * 4), tagged([8, 9, 8, 7], [10] * 4)
    low, high = tagged([7, 7, 7, 7], [10] * 4), tagged([10, 10, 10, 10], [10] * 4)
    assert race(*best).is_behind([low])
    assert not race(*best).is_behind([low, high])


def test_a_better_trial_becomes_the_one_to_beat() -> None:
    low, middle, high = (tagged([k] * 4, [10] * 4) for k in (5, 7, 9))
    made = race(low, low)
    made.finish([high, high])
    assert made.is_behind([middle])
    made.finish([low, low])
    assert made.is_behind([middle])


def simulated(spread: float, seed: int, trials: int = 8) -> tuple[float, float]:
    """Accuracy that a race loses on average, and its share of all folds.

    spread: standard deviation of the trials' true accuracies; a sentence has 15 tokens.
    """
    rng = np.random.default_rng(seed)
    lost, used, repeats = 0.0, 0, 150
    for _ in range(repeats):
        true = np.clip(rng.normal(0.8, spread, trials), 0.05, 0.98)
        # what is hard is hard for all trials
        hard = rng.random((FOLDS, SENTENCES, 15))
        luck = rng.random((trials, FOLDS, SENTENCES, 15)) < 0.15
        own = rng.random((trials, FOLDS, SENTENCES, 15))
        right = (np.where(luck, own, hard) < true[:, None, None, None]).sum(axis=3)
        made, best, means = Race("accuracy"), 0, right.mean(axis=(1, 2))
        for trial in range(trials):
            folds: list[SentenceCounts] = []
            for fold in range(FOLDS):
                folds.append(tagged(right[trial, fold], [15] * SENTENCES))
                used += 1
                if fold < FOLDS - 1 and made.is_behind(folds):
                    break
            else:
                made.finish(folds)
                best = trial if means[trial] > means[best] else best
        lost += float(true[int(means.argmax())] - true[best])
    return lost / repeats, used / (repeats * trials * FOLDS)


@pytest.mark.parametrize("spread", [0.005, 0.02, 0.1])
def test_a_race_loses_little_and_saves_almost_half(spread: float) -> None:
    lost, share = simulated(spread, seed=1)
    assert lost < 0.0006  # with half an error throughout 0.0004, with none 0.0013
    assert share < 0.6  # with one error throughout up to 0.68
