"""Other answers that a task accepts: against counting span by span, in runs and paired tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench import Corpus, Dataset, Vocabulary
from sslbench.engine.corpus import Column
from sslbench.experiment.metrics import (
    Alternatives,
    Scores,
    SentenceCounts,
    metrics_from_counts,
    score,
)
from sslbench.experiment.run.runner import execute
from sslbench.report.leaderboard import leaderboard
from sslbench.report.significance import compare_taggers, count_table
from support import run_fakes
from support.chunks import spans_of
from support.run_fakes import task
from support.score_oracle import Spans, count_answers

LABELS = ("O", "B-X", "I-X")


def spans(tags: list[str]) -> Spans:
    return [(start, end - 1) for start, end, _ in spans_of(tags, "IOB2")]


def alternatives_of(sentences: list[Spans], offsets: np.ndarray) -> Alternatives:
    """Of the whole corpus, from those of each sentence."""
    pairs = [(o + a, o + b) for o, own in zip(offsets, sentences, strict=False) for a, b in own]
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Alternatives(both[:, 0], both[:, 1])


def scored(gold: list[list[str]], predicted: list[list[str]], others: list[Spans]) -> Scores:
    offsets = np.cumsum([0, *map(len, gold)])
    codes = [[LABELS.index(tag) for tags in side for tag in tags] for side in (gold, predicted)]
    return score(
        "spans",
        (LABELS, np.array(codes[0], dtype=np.int32)),
        (LABELS, np.array(codes[1], dtype=np.int32)),
        offsets,
        encoding="IOB2",
        alternatives=alternatives_of(others, offsets),
    )


def tags_of(text: str) -> list[list[str]]:
    return [[t if t == "O" else f"{t}-X" for t in part.split()] for part in text.split("/")]


@pytest.mark.parametrize(
    ("gold", "predicted", "others", "found", "false"),
    [
        ("O B I O", "O B I O", [], 1, 0),
        ("O B I O", "O B O O", [(1, 1)], 1, 0),  # inside
        ("O B I O", "B I I O", [(0, 2)], 1, 0),  # around
        ("O B I O", "O O B I", [(2, 3)], 1, 0),  # over the end
        ("O B I O", "B I O O", [(0, 1)], 1, 0),  # over the beginning
        ("O B I O", "O B O O", [(2, 2), (0, 1)], 0, 1),  # listed are others
        ("O B I O", "O O O B", [(3, 3)], 0, 0),  # listed, but no answer for any name
        ("O B I O", "O B B O", [(1, 1), (2, 2)], 1, 0),  # two answers for one name
        ("B B O", "B I O", [(0, 1)], 2, 0),  # one answer for two names
        ("B I O", "B O B", [(0, 0)], 1, 1),
        ("O O", "B I", [], 0, 1),
    ],
)
def test_by_hand(gold: str, predicted: str, others: Spans, found: int, false: int) -> None:
    scores = scored(tags_of(gold), tags_of(predicted), [others])
    lists = scores.counts.to_lists()
    assert (lists["correct_alternatives"], lists["false_positives"]) == ([found], [false])


def test_metrics() -> None:
    """4 names, 3 found of which 1 by another answer; 1 false positive; exactly right are 2 of 4."""
    scores = scored(tags_of("B I O B / B O B"), tags_of("B O O B / B B O"), [[(0, 0)], []])
    found = {name: scores.metrics[name] for name in ("alt_precision", "alt_recall", "alt_f1", "f1")}
    assert found == pytest.approx(
        {"alt_precision": 3 / 4, "alt_recall": 3 / 4, "alt_f1": 3 / 4, "f1": 2 / 4}
    )
    plain = score("spans", *[(LABELS, np.zeros(2, int))] * 2, np.array([0, 2]), encoding="IOB2")
    assert not [name for name in plain.metrics if name.startswith("alt")]
    assert "correct_alternatives" not in plain.counts.to_lists()


@given(st.data())
def test_counts_on_any_labels(data: st.DataObject) -> None:
    tag = st.sampled_from(["O", "B-X", "I-X"])
    gold, predicted, others = [], [], []
    for length in data.draw(st.lists(st.integers(0, 6), max_size=5)):
        gold.append(data.draw(st.lists(tag, min_size=length, max_size=length)))
        predicted.append(data.draw(st.lists(tag, min_size=length, max_size=length)))
        every = [(a, b) for a in range(length) for b in range(a, length)]
        others.append(data.draw(st.lists(st.sampled_from(every), max_size=8)) if every else [])
    lists = scored(gold, predicted, others).counts.to_lists()
    pairs = zip(lists["correct_alternatives"], lists["false_positives"], strict=True)
    sentences = zip(gold, predicted, others, strict=True)
    assert list(pairs) == [count_answers(spans(g), spans(p), o) for g, p, o in sentences]
    nothing = scored(gold, predicted, [[] for _ in gold]).metrics
    for name in ("precision", "recall", "f1"):
        assert nothing[f"alt_{name}"] == nothing[name]


@given(st.data())
def test_selected_sentences_keep_their_alternatives(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=6))
    own = [[(a, b) for a in range(n) for b in range(a, n) if (a + b) % 2] for n in lengths]
    offsets = np.cumsum([0, *lengths])
    some = st.lists(st.sampled_from(range(len(lengths))), unique=True)
    chosen = data.draw(some)
    found = alternatives_of(own, offsets).select(offsets, np.array(chosen, dtype=np.int64))
    new_offsets = np.cumsum([0, *(lengths[i] for i in chosen)])
    expected = alternatives_of([own[i] for i in chosen], new_offsets)
    pairs = [sorted(zip(x.first.tolist(), x.last.tolist(), strict=True)) for x in (found, expected)]
    assert pairs[0] == pairs[1]


# --- in runs --------------------------------------------------------------------------------------


def toy_names(*, dev: bool) -> Dataset:
    """The toy with a name wherever its label is not the first, and alternatives in all splits."""
    splits, others, labels = {}, {}, Vocabulary(LABELS)
    for name, corpus in run_fakes.toy_splits(dev=dev).items():
        codes = np.minimum(corpus.column("label").codes, 1).astype(np.int32)
        splits[name] = corpus.with_column("label", Column(labels, codes))
        others[name] = alternatives_of(
            [accepted(splits[name], i) for i in range(corpus.n_sentences)], corpus.offsets
        )
    return Dataset("toy", "spans", "alt_f1", "IOB2", splits, alternatives=others)


def accepted(corpus: Corpus, sentence: int) -> Spans:
    """Each token that is no name."""
    tags = corpus.sentence(sentence, "label")
    return [(i, i) for i, tag in enumerate(tags) if tag == "O"]


@pytest.mark.usefixtures("fake_plugin")
@pytest.mark.parametrize("dev", [True, False])
def test_a_run_tunes_and_scores_with_the_alternatives(
    dev: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = toy_names(dev=dev)
    exact = replace(data, metric="f1", alternatives={})
    records = []
    for given_data in (data, exact):
        monkeypatch.setattr(run_fakes, "load", lambda home, data=given_data, **options: data)
        records.append(execute(task(labeled=50, tune=3)))
        assert records[-1].status == "ok", records[-1].traceback
    with_them, without = records
    assert with_them.primary_metric == "alt_f1"
    for split in ("dev", "test") if dev else ("test",):
        found = with_them.metrics[split]
        assert found["f1"] == without.metrics[split]["f1"]
        counts = with_them.counts[split]
        # Here an alternative is no name: it spares a false positive and finds nothing.
        assert counts["correct_alternatives"] == counts["correct_chunks"]
        assert sum(counts["false_positives"]) < sum(counts["predicted_chunks"]) - sum(
            counts["correct_chunks"]
        )
        assert found["alt_precision"] > found["precision"]
        assert "alt_f1" not in without.metrics[split]
    assert with_them.protocol["dev"] == ("own" if dev else "folds")
    for ours, theirs in zip(with_them.tuning, without.tuning, strict=True):
        assert ours["error"] is None
        assert ours["metric"] == "alt_f1"
        assert ours["score"] >= theirs["score"]
    assert sum(trial["score"] for trial in with_them.tuning) > sum(
        trial["score"] for trial in without.tuning
    )


@pytest.mark.usefixtures("fake_plugin")
def test_paired_tests_and_leaderboards_take_them_as_the_primary_metric(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = toy_names(dev=False)
    monkeypatch.setattr(run_fakes, "load", lambda home, **options: data)
    runs = [
        execute(task(name, labeled=40, seed=seed, search="1", params={"weight": weight}))
        for name, weight in (("majority", 1.0), ("peeking", 100.0))
        for seed in (0, 1)
    ]
    assert [run.status for run in runs] == ["ok"] * 4, [run.error for run in runs]
    (table,) = leaderboard(runs, baselines=["majority"])
    assert table.metric == "alt_f1"
    paired = next(row.taggers for row in table.rows if row.method == "peeking")
    scores = [run.metrics["test"]["alt_f1"] for run in runs]
    assert paired is not None
    assert paired.difference == pytest.approx(np.mean(scores[2:]) - np.mean(scores[:2]))
    assert paired.difference != 0
    assert paired == compare_taggers(count_table(runs[2:]), count_table(runs[:2]), "alt_f1")
    counts = SentenceCounts.from_lists(runs[0].counts["test"])
    assert metrics_from_counts(counts)["alt_f1"] == scores[0]
