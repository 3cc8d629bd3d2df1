"""Noise on purpose: shares and kinds of wrong labels, files, a small curve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sslbench.testing.toys import toy_dataset
from studies.noise import METHODS, Sample, damaged, scores

LABELS = ["B-PER", "I-PER", "O", "B-LOC", "B-LOC", "I-LOC", "O"] * 200
NAMES = ["B-LOC", "B-ORG", "B-PER", "I-LOC", "I-ORG", "I-PER", "O"]


def chunks(labels: list[str]) -> list[tuple[int, str]]:
    return [(t, label[2:]) for t, label in enumerate(labels) if label.startswith("B-")]


def test_a_share_of_the_chunks_is_missing() -> None:
    found = damaged(LABELS, "missing", 0.3, NAMES, np.random.default_rng(0))
    assert 0.25 < 1 - len(chunks(found)) / len(chunks(LABELS)) < 0.35
    assert set(chunks(found)) < set(chunks(LABELS))
    for t, label in enumerate(found):
        assert label in ("O", LABELS[t])
        assert not label.startswith("I-") or found[t - 1] != "O"  # whole chunks


def test_a_share_of_the_chunks_has_another_type() -> None:
    found = damaged(LABELS, "type", 0.3, NAMES, np.random.default_rng(0))
    assert [t for t, _ in chunks(found)] == [t for t, _ in chunks(LABELS)]
    wrong = np.mean([a != b for a, b in zip(chunks(found), chunks(LABELS), strict=True)])
    assert 0.25 < wrong < 0.35
    assert {kind for _, kind in chunks(found)} == {"LOC", "ORG", "PER"}
    for t, label in enumerate(found):
        assert not label.startswith("I-") or found[t - 1][2:] == label[2:]


def test_a_share_of_the_tokens_has_another_label() -> None:
    found = damaged(LABELS, "token", 0.3, NAMES, np.random.default_rng(0))
    wrong = np.mean([a != b for a, b in zip(found, LABELS, strict=True)])
    assert 0.27 < wrong < 0.33
    assert damaged(LABELS, "token", 0.0, NAMES, np.random.default_rng(0)) == LABELS


@pytest.mark.parametrize("kind", ["missing", "type"])
def test_the_gold_sentences_are_those_of_a_seed(tmp_path: Path, kind: str) -> None:
    sample = Sample(toy_dataset("spans", train=40), labeled=10, text=20)
    for name, share, seed in (("a", 0.0, 0), ("b", 0.9, 0), ("c", 0.0, 1)):
        sample.write(tmp_path / name, seed, kind, share)

    def read(name: str, file: str, *columns: int) -> list[list[str]]:
        rows = (tmp_path / name / file).read_text().splitlines()
        return [[row.split("\t")[c] for c in columns] for row in rows if row]

    assert read("a", "train.txt", 0, 1) == read("b", "train.txt", 0, 1)
    assert read("a", "train.txt", 0) != read("c", "train.txt", 0)
    assert read("a", "train.txt", 1) == read("a", "train.txt", 2)  # no noise: the gold labels
    assert read("b", "train.txt", 1) != read("b", "train.txt", 2)
    text = (tmp_path / "a" / "unlabeled.txt").read_text()
    assert text.count("\n\n") == 20


def test_a_curve(tmp_path: Path) -> None:
    sample = Sample(toy_dataset("spans", train=60), labeled=8, text=30)
    table = scores(sample, tmp_path, [0, 90], ["missing"], 1)
    assert set(table["method"]) == set(METHODS)
    means = table.pivot_table("score", "method", "share")
    assert means.loc["weak_vote", 0] > means.loc["weak_vote", 90]
    assert means.loc["supervised", 0] == means.loc["supervised", 90]
