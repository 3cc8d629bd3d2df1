"""The range of a score of cross-validation, and tests that swap whole documents."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats

from sslbench.engine.corpus import Corpus
from sslbench.experiment.data import Dataset
from sslbench.experiment.records.record import FoldBy, ProtocolSpec
from sslbench.report.held_out import half_width, score_range, witnesses


def run_on(right: list[int], fold_by: FoldBy) -> tuple[Any, Dataset]:
    """A record of folds of documents; right: correct tokens of ten, by sentence of train."""
    documents = (np.arange(len(right)) // 3).astype(np.int32)
    train = Corpus.from_sentences({"word": [["a"] * 10] * len(right)})
    train = replace(train, documents=documents)
    data = Dataset("mine", "tagging", "accuracy", None, {"train": train})
    protocol = ProtocolSpec(folds=3, fold_by=fold_by)
    order = np.concatenate([np.flatnonzero(part) for part in folds_of(fold_by, documents)])
    record = SimpleNamespace(
        score=sum(right) / 10 / len(right),
        primary_metric="accuracy",
        spec=SimpleNamespace(protocol=protocol),
        counts={
            "test": {
                "n_tokens": [10] * len(right),
                "correct_tokens": [right[i] for i in order],
            }
        },
    )
    return cast(Any, record), data


def folds_of(fold_by: FoldBy, documents: Any) -> list[Any]:
    if fold_by == "blocks":
        return [np.arange(len(documents)) * 3 // len(documents) == fold for fold in range(3)]
    return [documents == fold for fold in range(3)]


def test_the_range_is_an_interval_over_the_scores_of_folds() -> None:
    record, data = run_on([2, 2, 2, 5, 5, 5, 8, 8, 8], "documents")
    got = score_range(record, data)
    assert got.value == pytest.approx(0.5)
    sd = np.std([0.2, 0.5, 0.8], ddof=1)
    half = stats.t.ppf(0.975, 2) * np.sqrt(1 / 3 + 1 / 2) * sd
    assert half == pytest.approx(half_width(np.array([0.2, 0.5, 0.8])))
    assert (got.low, got.high) == (0.0, 1.0)  # cut at what a score can be
    record, data = run_on([5, 5, 5, 5, 5, 5, 5, 5, 5], "documents")
    assert score_range(record, data).low == pytest.approx(0.5)
    assert half_width(np.array([0.5])) == 1.0


def test_witnesses_are_documents_or_blocks() -> None:
    record, data = run_on([1] * 9, "documents")
    groups = witnesses(record, data)
    assert groups is not None
    assert sorted(np.bincount(groups)) == [3, 3, 3]
    record, data = run_on([1] * 30, "blocks")
    groups = witnesses(record, data)
    assert groups is not None
    assert np.bincount(groups).tolist() == [10, 10, 10]


def test_a_test_of_documents_has_their_number_of_witnesses() -> None:
    """Ten sentences of one document that all differ in the same way are one witness, not ten."""
    from sslbench.report.two_runs import compare_runs
    from support.board_records import record

    a, b = record("better"), record("worse")
    for run, right in ((a, 9), (b, 5)):
        run.counts = {"test": {"n_tokens": [10] * 30, "correct_tokens": [right] * 30}}
    assert compare_runs(a, b).p_value < 0.01
    grouped = compare_runs(a, b, groups=np.arange(30) // 10)
    assert grouped.difference == pytest.approx(compare_runs(a, b).difference)
    assert 0.1 < grouped.p_value < 0.5  # two of the eight swaps of three documents
