"""Scores against conlleval itself, written out as a loop, and its table of known results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import SCHEMES, CorpusShards, Scheme, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.experiment.metrics import (
    Coverage,
    Scores,
    SentenceCounts,
    coverage,
    metrics_from_counts,
    ratio,
    ratios,
    score,
)
from sslbench.experiment.metrics.anatomy import added
from support.chunks import to_iob2
from support.score_oracle import Sentences, coded, conlleval, plain
from support.texts import corpus_of

# --- helpers ------------------------------------------------------------------------------------


def score_text(gold: Sentences, predicted: Sentences, encoding: Scheme | None = "IOB2") -> Scores:
    task = "spans" if encoding else "tagging"
    offsets = np.cumsum([0, *map(len, gold)])
    # the two vocabularies differ in content and order
    return score(task, coded(gold), coded(predicted, -1), offsets, encoding=encoding)


def sums(scores: Scores) -> tuple[int, int, int]:
    lists = scores.counts.to_lists()
    return tuple(sum(lists[f"{which}_chunks"]) for which in ("gold", "predicted", "correct"))


def typed(text: str) -> Sentences:
    """'B I O / O B' -> two sentences with the type X where none is written."""
    return [
        [tag if tag == "O" or "-" in tag else f"{tag}-X" for tag in sentence.split()]
        for sentence in text.split("/")
    ]


# --- counts of perl conlleval: gold/found/correct --------------------------------------------

TABLE = [
    (typed("B I O"), typed("I I O"), (1, 1, 1)),
    (typed("B I O"), typed("B I-Y O"), (1, 2, 0)),
    (typed("O B / I O"), typed("O B / I O"), (2, 2, 2)),
    (plain("B I O B"), plain("B I O O"), (2, 1, 1)),
    (plain("O O O O"), plain("O O B O"), (0, 1, 0)),
    (plain("O O"), plain("O O"), (0, 0, 0)),
    (typed("I I B O"), typed("I I I O"), (2, 1, 0)),
    (plain("B-a-b"), plain("I-a-c"), (1, 1, 0)),
    (plain("B-a-b I-a-b"), plain("I-a-b I-a-c"), (1, 2, 0)),
    (plain("B-Y I-X I-X"), plain("B-Y I-X I-X"), (2, 2, 2)),
]
# conlleval itself on E, S and M; after conversion to IOB2 (ours); where seqeval knows the tags its
# default F1 agrees with ours: 0, 0, .667
IOBES_TABLE = [
    ("B I E", "B E S", "IOBES", (1, 1, 1), (1, 2, 0)),
    ("B E B E", "B I I E", "IOBES", (1, 1, 1), (2, 1, 0)),
    ("S S O", "S O O", "IOBES", (1, 1, 0), (2, 1, 1)),
    ("B M E O", "B E M O", "BMES", (1, 1, 1), (1, 2, 0)),
]


@pytest.mark.parametrize(("gold", "predicted", "expected"), TABLE)
def test_conlleval_table(
    gold: Sentences, predicted: Sentences, expected: tuple[int, int, int]
) -> None:
    assert conlleval(gold, predicted)[:3] == expected
    for scheme in ("IOB1", "IOB2"):
        scores = score_text(gold, predicted, scheme)
        assert sums(scores) == expected
        both = expected[0] + expected[1]
        assert scores.metrics["f1"] == pytest.approx(2 * expected[2] / both if both else 0)


@pytest.mark.parametrize(("gold", "predicted", "scheme", "raw", "converted"), IOBES_TABLE)
def test_iobes_is_converted_first(
    gold: str,
    predicted: str,
    scheme: Scheme,
    raw: tuple[int, int, int],
    converted: tuple[int, int, int],
) -> None:
    assert conlleval(typed(gold), typed(predicted))[:3] == raw
    assert sums(score_text(typed(gold), typed(predicted), scheme)) == converted


@given(st.data(), st.sampled_from(SCHEMES))
def test_counts_are_conllevals_on_any_tags(data: st.DataObject, scheme: Scheme) -> None:
    prefixes = {"IOBES": "BIES", "BMES": "BMES"}.get(scheme, "BI")
    tag = st.sampled_from(["O"] + [p + t for p in prefixes for t in ("", "-X", "-Y")])
    lengths = data.draw(st.lists(st.integers(0, 6), max_size=5))
    gold = [data.draw(st.lists(tag, min_size=n, max_size=n)) for n in lengths]
    # mostly right, or nothing would ever be correct
    predicted = [
        [data.draw(tag) if data.draw(st.integers(0, 4)) == 0 else t for t in tags] for tags in gold
    ]
    scores = score_text(gold, predicted, scheme)
    rows = scores.counts.table().rows
    for i, (g, p) in enumerate(zip(gold, predicted, strict=True)):
        chunks = conlleval([to_iob2(g, scheme)], [to_iob2(p, scheme)])[:3]
        right = sum(a == b for a, b in zip(g, p, strict=True))
        assert rows[i].tolist() == [1, g == p, len(g), right, *chunks]
    if scheme in ("IOB1", "IOB2"):  # read by conlleval as they are, mixed and ill-formed
        assert (*sums(scores), int(rows[:, 3].sum())) == conlleval(gold, predicted)


def test_worked_example() -> None:
    gold = typed("B I O / B-Y O B / O")
    predicted = typed("B I O / B-Y O O / B-Z")
    scores = score_text(gold, predicted)
    assert scores.metrics == pytest.approx(
        {
            "accuracy": 5 / 7,
            "sentence_accuracy": 1 / 3,
            "precision": 2 / 3,
            "recall": 2 / 3,
            "f1": 2 / 3,
        }
    )


def test_tagging_has_no_chunks() -> None:
    scores = score_text([["DT", "NN"], ["B-X"]], [["DT", "VB"], ["B-X"]], None)
    assert scores.metrics == pytest.approx({"accuracy": 2 / 3, "sentence_accuracy": 1 / 2})
    assert scores.counts.gold_chunks is None


def test_nothing_to_score() -> None:
    metrics = score_text([], []).metrics
    assert set(metrics.values()) == {0.0}


def test_wrong_arguments() -> None:
    offsets = np.array([0, 2])
    good = (["O"], np.zeros(2, dtype=np.int32))
    with pytest.raises(ValueError, match="encoding"):
        score("spans", good, good, offsets)
    with pytest.raises(ValueError, match=r"int\[2\]"):
        score("tagging", good, (["O"], np.zeros(3, dtype=np.int32)), offsets)
    for code in (-1, 1):
        with pytest.raises(ValueError, match="for 1 labels"):
            score("tagging", (["O"], np.array([0, code])), good, offsets)
    with pytest.raises(UserError, match="label 'NN' does not fit IOB2"):
        score("spans", good, (["O", "NN"], np.array([0, 1])), offsets, encoding="IOB2")


counts_strategy = st.lists(st.tuples(*[st.integers(0, 5)] * 5), max_size=6)


@given(counts_strategy, st.data())
def test_metrics_are_functions_of_summed_counts(
    rows: list[tuple[int, ...]], data: st.DataObject
) -> None:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5)
    columns[:, 1] = np.minimum(columns[:, 1], columns[:, 0])
    counts = SentenceCounts(*columns.T)
    weights = np.array(
        data.draw(
            st.lists(
                st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)),
                min_size=2,
                max_size=2,
            )
        ),
        dtype=np.int64,
    ).reshape(2, len(rows))
    table = counts.table()
    sums = weights @ table.rows  # as a bootstrap does it
    batch = ratios(sums, table.fields)
    for name, value in batch.items():
        assert np.array_equal(ratio(sums, table.fields, name), value)
    for i, weight in enumerate(weights):
        drawn = metrics_from_counts(counts, np.repeat(np.arange(len(rows)), weight))
        assert {name: value[i] for name, value in batch.items()} == drawn
    again = SentenceCounts.from_lists(counts.to_lists())
    assert metrics_from_counts(again) == metrics_from_counts(counts)


# --- by vocabulary ----------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
def test_coverage(shared: bool) -> None:
    vocabulary = Vocabulary() if shared else None
    test = corpus_of([["a", "b"], ["a", "C"], ["d"], ["c", "a"]], vocabulary)
    labeled = corpus_of([["a"], ["b", "c", "later"]], vocabulary)
    text = CorpusShards(corpus_of([["x", "a"], ["C"], ["d", "b"]], vocabulary), 2)
    found = coverage(test, labeled, text)
    assert found.unseen.tolist() == [False, False, False, True, True, False, False]
    assert found.app.tolist() == [True, False, False, True]
    assert found.u_app is not None
    assert found.u_app.tolist() == [True, True, True, False]
    assert coverage(test, labeled).u_app is None


def test_anatomy_against_a_count_by_hand() -> None:
    vocabulary = Vocabulary()
    test = corpus_of([["a", "b"], ["a", "C"], ["d"], ["c", "a"]], vocabulary)
    labeled = corpus_of([["a"], ["b", "c"]], vocabulary)
    text = CorpusShards(corpus_of([["C"]], vocabulary), 2)
    gold, predicted = typed("B-X I-X / O O / B-Y / O O"), typed("B-X I-X / O B-X / O / O O")
    offsets = np.array([0, 2, 4, 5, 7])
    found = score(
        "spans",
        coded(gold),
        coded(predicted),
        offsets,
        encoding="IOB2",
        coverage=coverage(test, labeled, text),
    ).anatomy
    assert found == {
        "words": {"labeled text": [5, 5], "unlabeled text only": [1, 0], "neither": [1, 0]},
        "labels": {"X": [2, 2], "O": [4, 3], "Y": [1, 0]},
        "length": {"1 to 5": [7, 5]},
    }
    assert added([found, found])["labels"] == {"X": [4, 4], "O": [8, 6], "Y": [2, 0]}
    assert set(added([found, {"labels": {"Z": [1, 1]}}])) == {"labels"}


def test_metrics_by_vocabulary() -> None:
    gold = typed("B I / O B / B-Y / O O")
    predicted = typed("B I / O O / B-Y / O B")
    cover = Coverage(
        unseen=np.array([0, 0, 0, 1, 1, 0, 0], dtype=bool),
        app=np.array([1, 0, 0, 1], dtype=bool),
        u_app=np.array([1, 1, 1, 0], dtype=bool),
    )
    offsets = np.array([0, 2, 4, 5, 7])
    metrics = score(
        "spans", coded(gold), coded(predicted), offsets, encoding="IOB2", coverage=cover
    ).metrics
    expected = {
        "sentence_accuracy_app": 1 / 2,
        "sentence_accuracy_notapp": 1 / 2,
        "f1_app": 2 / 3,
        "f1_notapp": 2 / 3,
        "share_app": 1 / 2,
        "u_app": 3 / 4,
        "u_app_app": 1 / 2,
        "u_app_notapp": 1,
        "unseen_accuracy": 1 / 2,
    }
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)
    assert len(metrics) == len(expected) + 5


def test_empty_groups_have_no_metric() -> None:
    gold = typed("B I")
    cover = Coverage(np.zeros(2, dtype=bool), np.ones(1, dtype=bool))
    metrics = score(
        "spans", coded(gold), coded(gold), np.array([0, 2]), encoding="IOB2", coverage=cover
    ).metrics
    assert set(metrics) == {
        *("accuracy", "sentence_accuracy", "precision", "recall", "f1"),
        *("sentence_accuracy_app", "f1_app", "share_app"),
    }
    assert all(value == 1 for value in metrics.values())
