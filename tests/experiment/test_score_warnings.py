"""Warnings on scores that say little."""

from __future__ import annotations

import numpy as np

from sslbench.experiment.checks.warnings import score_warnings
from sslbench.experiment.metrics import SentenceCounts


def counts(**sums: int) -> SentenceCounts:
    """Of one sentence."""
    named = {"n_tokens": 10_000, "correct_tokens": 9_000, **sums}
    return SentenceCounts(**{name: np.array([value]) for name, value in named.items()})


def test_a_large_test_with_some_spans_is_no_reason_to_warn() -> None:
    assert score_warnings(counts()) == []
    assert score_warnings(counts(gold_chunks=500, predicted_chunks=1)) == []


def test_a_tagger_that_finds_nothing() -> None:
    (line,) = score_warnings(counts(gold_chunks=500, predicted_chunks=0))
    assert "finds nothing" in line
    (line,) = score_warnings(counts(gold_chunks=0, predicted_chunks=0))  # there is nothing to find
    assert "0 gold spans" in line


def test_a_small_test() -> None:
    (line,) = score_warnings(counts(gold_chunks=20, predicted_chunks=18))
    assert "20 gold spans" in line
    assert "22 points" in line  # 1.96 * sqrt(0.25 / 20)
    (line,) = score_warnings(counts(n_tokens=100))
    assert "100 tokens" in line
