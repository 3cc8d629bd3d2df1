"""The figures of the sentences in docs/weak.md are those of the board of weak labels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.markdown import Rows, numbers, table

ROOT = Path(__file__).parents[2]
CORPORA = ("wikigold_distant", "twitter_distant")
LEARNERS = ("weak_vote", "fuzzy_crf", "noisy_channel", "weak_soft")
SAME_TEXT = ("self_training", "jess_cm")  # without the labels of the dictionary

Scores = dict[tuple[str, str, str], float]


@pytest.fixture(scope="module")
def scores() -> Scores:
    """F1 by method, corpus and number of gold sentences."""
    text = (ROOT / "leaderboards/weak.md").read_text(encoding="utf-8")
    found: Scores = {}
    for labeled in ("20", "100", "all"):
        part = text[text.index(f"## {labeled} labeled") :]
        rows: Rows = table([each for each in part.split("\n\n") if each.startswith("|")][1])
        for method, row in rows.items():
            for corpus in CORPORA:
                if row.get(corpus):
                    found[method, corpus, labeled] = float(row[corpus])
    return found


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    text = (ROOT / "docs/weak.md").read_text(encoding="utf-8")
    part = text[text.index("## The board in ten sentences") : text.index("## Wrong labels")]
    items = re.split(r"\n\d+\. ", part)[1:]
    return [" ".join(each.split("\n\n")[0].split()) for each in items]


def gain(scores: Scores, method: str, corpus: str, labeled: str) -> float:
    return scores[method, corpus, labeled] - scores["supervised", corpus, labeled]


def test_there_are_ten(sentences: list[str]) -> None:
    assert len(sentences) == 10


def test_few_gold_sentences_and_all(scores: Scores, sentences: list[str]) -> None:
    ahead = [
        max(scores[m, corpus, labeled] for m in LEARNERS)
        - max(scores[m, corpus, labeled] for m in SAME_TEXT)
        for corpus in CORPORA
        for labeled in ("20", "100")
    ]
    assert numbers(sentences[0]) == pytest.approx([min(ahead), max(ahead)], abs=0.051)
    whole = sorted(gain(scores, m, "wikigold_distant", "all") for m in LEARNERS)
    tweets = sorted(gain(scores, m, "twitter_distant", "all") for m in LEARNERS)
    expected = [-whole[2], -whole[0], whole[3], tweets[0], tweets[3]]
    assert numbers(sentences[1]) == pytest.approx(expected, abs=0.051)
    assert whole[2] < 0 < whole[3]
    best = [whole[3], gain(scores, "jess_cm", "wikigold_distant", "all")]
    assert numbers(sentences[2]) == pytest.approx(best, abs=0.051)


def test_what_the_dictionary_is_worth(scores: Scores, sentences: list[str]) -> None:
    assert numbers(sentences[3]) == [
        scores["fuzzy_crf", "wikigold_distant", "20"],
        scores["supervised", "wikigold_distant", "100"],
        scores["fuzzy_crf", "twitter_distant", "100"],
        scores["supervised", "twitter_distant", "all"],
    ]


def test_sentences_of_single_methods(scores: Scores, sentences: list[str]) -> None:
    channel = gain(scores, "noisy_channel", "wikigold_distant", "100")
    assert numbers(sentences[4])[0] == pytest.approx(channel, abs=0.006)
    cells = [(corpus, labeled) for corpus in CORPORA for labeled in ("20", "100")]
    for corpus, labeled in cells:
        better = [
            m for m in LEARNERS if scores[m, corpus, labeled] > scores["fuzzy_crf", corpus, labeled]
        ]
        assert len(better) <= 1  # first or second
    vote = sorted(gain(scores, "weak_vote", *cell) for cell in cells)
    assert numbers(sentences[6]) == pytest.approx([vote[0], vote[-1]], abs=0.051)
    soft = sorted(gain(scores, "weak_soft", *cell) for cell in cells)
    assert numbers(sentences[7]) == pytest.approx([soft[0], soft[1], soft[-1]], abs=0.051)
    vectors = [
        scores[f"{m} + word_vectors, vectors", corpus, "100"] - scores[m, corpus, "100"]
        for m in ("noisy_channel", "fuzzy_crf")
        for corpus in CORPORA
    ]
    lost = [gain(scores, "self_training", *cell) for cell in cells]
    assert max(lost) <= 0
    expected = [min(vectors), max(vectors), -min(lost)]
    assert numbers(sentences[9]) == pytest.approx(expected, abs=0.051)


def test_what_is_trusted_with_all_gold_sentences(scores: Scores, sentences: list[str]) -> None:
    best = max(scores[m, "wikigold_distant", "all"] for m in LEARNERS)
    assert numbers(sentences[8]) == [scores["weak_trust", "wikigold_distant", "all"]] == [best]
