"""Duplicate sentences: the counts equal those of comparing the text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import Column, Corpus, CorpusShards, Vocabulary
from sslbench.experiment.checks.audit import (
    audit_warnings,
    duplicates,
    sentence_hashes,
    unseen_labels,
)
from support.command import sslbench
from support.run_fakes import task
from support.texts import corpus_of

Sentences = list[list[str]]
# Few words and short sentences: most examples hold duplicates, and many near misses.
sentences = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), max_size=12)


def count(own: Sentences, other: Sentences) -> int:
    return sum(row in other for row in own)


@given(sentences, sentences, sentences, sentences, st.booleans())
def test_counts_are_those_of_the_text(
    labeled: Sentences, dev: Sentences, test: Sentences, raw: Sentences, shared: bool
) -> None:
    words = Vocabulary(["never", "c"])
    parts = [corpus_of(rows, words) for rows in (labeled, dev, test)]
    # Text from elsewhere has other codes, and words that the splits lack.
    text = corpus_of([*raw, ["zzz"]], words if shared else Vocabulary(["x", "b"]))
    found = duplicates(
        parts[0], CorpusShards(text, shard_tokens=4), {"dev": parts[1], "test": parts[2]}
    )
    assert found == {
        "dev_in_labeled": count(dev, labeled),
        "test_in_labeled": count(test, labeled),
        "test_in_dev": count(test, dev),
        "labeled_in_unlabeled": count(labeled, raw),
        "dev_in_unlabeled": count(dev, raw),
        "test_in_unlabeled": count(test, raw),
    }


def test_order_length_and_words_all_count() -> None:
    words = Vocabulary()
    rows = [["a"], ["b"], ["a", "b"], ["b", "a"], ["a", "a"], ["a", "a", "a"]]
    assert len(set(sentence_hashes(corpus_of(rows, words), words).tolist())) == len(rows)


def test_many_sentences_have_as_many_hashes() -> None:
    words = Vocabulary(str(i) for i in range(50))
    rows = np.unique(np.random.default_rng(0).integers(0, 50, size=(200_000, 4)), axis=0)
    text = Corpus({"word": Column(words, rows.ravel())}, np.arange(len(rows) + 1) * 4)
    assert len(np.unique(sentence_hashes(text, words))) == len(rows)


def test_without_words_or_text_there_is_less_to_say() -> None:
    words = Vocabulary()
    some, none = corpus_of([["a"]], words), CorpusShards(corpus_of([], words))
    assert duplicates(some, none, {"test": some}) == {"test_in_labeled": 1}
    pixels = Corpus({"pixel": some.column("word")}, some.offsets)
    assert duplicates(pixels, CorpusShards(pixels), {"test": pixels}) == {}


def test_the_record_tells_what_was_found() -> None:
    from sslbench.experiment.inputs.protocol import draw
    from sslbench.experiment.run.runner import execute
    from sslbench.plugins import registry

    dataset = registry().dataset("synth").load()(None)
    asked = task("supervised", dataset="synth", featurizer="basic", model="crf1", labeled=30)
    record = execute(asked)
    assert record.status == "ok", record.traceback
    # The baseline sees no unlabeled text: nothing to compare with.
    assert set(record.audit["duplicates"]) == {"dev_in_labeled", "test_in_labeled", "test_in_dev"}
    labeled = dataset.splits["train"].select(draw(dataset, asked.spec.protocol).labeled)
    wanted = duplicates(
        labeled,
        CorpusShards(labeled.select(np.empty(0, dtype=np.int64))),
        {name: dataset.splits[name] for name in ("dev", "test")},
    )
    assert record.audit["duplicates"] == wanted


def test_labels_that_no_labeled_sentence_has_are_counted() -> None:
    def tagged(*labels: str) -> Corpus:
        return Corpus.from_sentences({"word": [["a"] * len(labels)], "label": [labels]})

    assert unseen_labels(tagged("N", "V"), tagged("X", "N", "X", "A")) == {"A": 1, "X": 2}
    assert unseen_labels(tagged("N", "V"), tagged("N")) == {}


def test_findings_are_a_line_each() -> None:
    clean = {"duplicates": {"test_in_labeled": 1}, "unseen_labels": {}}
    sizes = {"labeled": 10, "unlabeled": 0, "test": 100}
    assert audit_warnings(clean, sizes, "m", needs_text=False) == []
    found = {
        "duplicates": {"test_in_labeled": 50, "test_in_unlabeled": 100},
        "unseen_labels": {"A": 1, **dict.fromkeys("BCDEF", 2)},
    }
    lines = audit_warnings(found, sizes, "m", needs_text=True)
    assert lines[0].startswith("50 of 100 test sentences (50 %) are also labeled sentences")
    assert lines[1].startswith("100 of 100 test sentences (100 %) are also in the unlabeled text")
    assert lines[2].endswith("A (1), B (2), C (2), D (2), E (2) and 1 more")
    assert lines[3] == "there is no unlabeled text, from which m would learn"


@pytest.mark.usefixtures("fake_plugin")
def test_a_test_that_was_trained_on_is_not_praised(tmp_path: Path) -> None:
    text = "the B-NP\ncat I-NP\nsat O\n\n" * 3 + "it B-NP\nran O\n\n" * 3
    for name in ("train.txt", "test.txt", "unlabeled.txt"):
        (tmp_path / name).write_text(text if name != "test.txt" else text + "a B-XP\n")
    words = ["--data", tmp_path, "--columns", "word,label", "--featurizer", "none", "--model"]
    store = ["--store", tmp_path / "runs", "--format", "json"]
    result = sslbench("run", "--method", "majority", *words, "nothing", *store)
    assert result.exit_code == 0, result.output
    assert "6 of 7 test sentences (86 %) are also labeled sentences" in result.stderr
    assert "labels of the test that no labeled sentence has (tokens): B-XP (1)" in result.stderr
    assert "a gain is expected" not in result.stderr
    (record,) = json.loads(result.stdout)
    assert record["audit"]["unseen_labels"] == {"B-XP": 1}
    assert record["audit"]["duplicates"]["test_in_unlabeled"] == 6
