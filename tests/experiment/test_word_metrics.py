"""Scores of words: segmentation and joint tagging, by hand and against their borders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import Column, Corpus, Task, Vocabulary
from sslbench.experiment.metrics import (
    Scores,
    SentenceCounts,
    coverage,
    metrics_from_counts,
    score,
)
from support.score_oracle import Sentences, coded, plain
from support.texts import corpus_of


def borders(tags: list[str]) -> list[tuple[int, int, str]]:
    """(first, last, tag) of each word, read from BMES as a loop: another way than the module's."""
    words: list[tuple[int, int, str]] = []
    before, before_tag = "E", ""
    for at, label in enumerate(tags):
        place, _, tag = label.partition("-")
        if place in "ME" and before in "BM" and tag == before_tag:
            words[-1] = (words[-1][0], at, tag)
        else:
            words.append((at, at, tag))
        before, before_tag = place, tag
    return words


def spelled(text: list[str], tags: Sentences, vocabulary: Vocabulary | None = None) -> Corpus:
    corpus = corpus_of([list(sentence) for sentence in text], vocabulary)
    names, codes = coded(tags)
    return corpus.with_column("label", Column(Vocabulary(names), codes))


def score_words(
    task: Task, text: list[str], gold: Sentences, predicted: Sentences, labeled: Corpus | None
) -> Scores:
    corpus = spelled(text, gold)
    cover = None if labeled is None else coverage(corpus, labeled)
    labels = corpus.column("label")
    return score(
        task,
        (labels.vocabulary.strings, labels.codes),
        coded(predicted, -1),
        corpus.offsets,
        encoding="BMES",
        coverage=cover,
    )


WORD_METRICS = ("precision", "recall", "f1", "seg_f1", "joint_f1", "oov_recall", "joint_oov_recall")


def test_segmentation_by_hand() -> None:
    """Gold ab|c|de and f|gh, predicted ab|cd|e and f|gh; labeled text holds ab, de and g, h."""
    labeled = spelled(["abdegh"], [["B", "E", "B", "E", "S", "S"]])
    gold, predicted = plain("B E S B E / S B E"), plain("B E B E S / S B E")
    scores = score_words("segmentation", ["abcde", "fgh"], gold, predicted, labeled)
    # 5 gold words, 5 predicted, 3 right; new words c (wrong), f and gh (right: its characters are
    # known, the word is not)
    found = {name: scores.metrics[name] for name in WORD_METRICS if name in scores.metrics}
    assert found == pytest.approx(
        {"precision": 3 / 5, "recall": 3 / 5, "f1": 3 / 5, "seg_f1": 3 / 5, "oov_recall": 2 / 3}
    )
    lists = scores.counts.to_lists()
    assert lists["correct_words"] == [1, 2]
    assert (lists["oov_words"], lists["oov_correct"]) == ([1, 2], [0, 2])
    assert "oov_tagged" not in lists


def test_joint_by_hand() -> None:
    """A word counts for seg_f1 with a wrong tag; a new tag for a known word is not a new word."""
    labeled = spelled(["ab"], [["B-V", "E-V"]])
    gold = plain("B-N E-N S-V B-N M-N E-N")
    predicted = plain("B-N E-N S-N B-N E-N S-N")
    scores = score_words("joint", ["abcdef"], gold, predicted, labeled)
    # gold ab/N c/V def/N; predicted ab/N c/N de/N f/N: borders right: ab, c; tag too: ab
    found = {name: scores.metrics[name] for name in WORD_METRICS if name in scores.metrics}
    assert found == pytest.approx(
        {
            "precision": 1 / 4,
            "recall": 1 / 3,
            "f1": 2 / 7,
            "seg_f1": 4 / 7,
            "joint_f1": 2 / 7,
            "oov_recall": 1 / 2,
            "joint_oov_recall": 0,
        }
    )


def test_words_without_labeled_text_or_without_new_words() -> None:
    gold = plain("B-N E-N S-V")
    labeled = spelled(["abc"], gold)
    known = score_words("joint", ["abc"], gold, gold, labeled)
    assert not [name for name in known.metrics if "oov" in name]  # nothing to find is not 0
    assert known.counts.to_lists()["oov_words"] == [0]  # so that rows of all seeds are equally long
    alone = score_words("joint", ["abc"], gold, gold, None)
    assert (alone.metrics["seg_f1"], alone.metrics["joint_f1"]) == (1, 1)
    assert "oov_words" not in alone.counts.to_lists()


@given(st.data(), st.sampled_from(["segmentation", "joint"]), st.booleans())
def test_word_counts_on_any_tags(data: st.DataObject, task: Task, covered: bool) -> None:
    kinds = ["-X", "-Y"] if task == "joint" else [""]
    tag = st.sampled_from([place + kind for place in "BMES" for kind in kinds])
    text, gold, predicted = [], [], []
    for length in data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=4)):
        text.append(data.draw(st.text("abc", min_size=length, max_size=length)))
        gold.append(data.draw(st.lists(tag, min_size=length, max_size=length)))
        # mostly right, or nothing would ever be correct
        predicted.append(
            [data.draw(tag) if data.draw(st.integers(0, 3)) == 0 else t for t in gold[-1]]
        )
    known = data.draw(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=4))
    tags = [["S"] if len(w) == 1 else ["B", *"M" * (len(w) - 2), "E"] for w in known]
    scores = score_words(task, text, gold, predicted, spelled(known, tags) if covered else None)
    expected: dict[str, list[int]] = {name: [] for name in scores.counts.to_lists()}
    for string, g_tags, p_tags in zip(text, gold, predicted, strict=True):
        g, p = set(borders(g_tags)), set(borders(p_tags))
        spans = {word[:2] for word in p}
        new = {word for word in g if string[word[0] : word[1] + 1] not in known}
        row = {
            "n_tokens": len(string),
            "correct_tokens": sum(map(str.__eq__, g_tags, p_tags)),
            "gold_chunks": len(g),
            "predicted_chunks": len(p),
            "correct_chunks": len(g & p),
            "correct_words": sum(word[:2] in spans for word in g),
            "correct_tagged": len(g & p),
            "oov_words": len(new),
            "oov_correct": sum(word[:2] in spans for word in new),
            "oov_tagged": len(new & p),
        }
        for name in expected:
            expected[name].append(row[name])
    assert scores.counts.to_lists() == expected
    assert len(expected) == 6 + (task == "joint") + covered * (2 + (task == "joint"))
    again = SentenceCounts.from_lists(expected)
    expected_metrics = {n: v for n, v in scores.metrics.items() if n in metrics_from_counts(again)}
    assert {n: metrics_from_counts(again)[n] for n in expected_metrics} == expected_metrics
