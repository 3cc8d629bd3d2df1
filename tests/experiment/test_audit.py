"""Duplicate sentences: the counts equal those of comparing the text."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import Column, Corpus, CorpusShards, Vocabulary
from sslbench.experiment.checks.audit import duplicates, sentence_hashes
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
