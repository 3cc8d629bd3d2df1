"""Words as labels of characters, and back."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.crf import ChainModel
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.inputs.problem import without_labels
from sslbench_datasets.chinese.text import characters
from sslbench_methods.chinese.words import (
    BORDERS,
    GoldWords,
    border_mask,
    borders_of,
    character_class,
    class_pattern,
    length_class,
    read_borders,
    with_derived,
    word_labels,
    word_text,
)
from support.word_fakes import as_words, problem_of, sentences

WORD = st.text("天地人山", min_size=1, max_size=6)
TEXT = st.lists(
    st.lists(st.tuples(WORD, st.sampled_from(["NN", "VV", "P-X"])), min_size=1, max_size=6),
    min_size=1,
    max_size=5,
)


@given(TEXT)
def test_gold_words_come_back(text: list[list[tuple[str, str]]]) -> None:
    """Characters to words: their spelling, tags and sentences; words to characters: the labels."""
    corpus = characters(as_words(text), {})
    gold = GoldWords.of(problem_of(corpus))
    vocabulary = Vocabulary(["something else"])
    words = word_text(without_labels(corpus), gold.words, vocabulary)
    tags = [gold.tags[kind] for kind in gold.words.kind.tolist()]
    spelled = [words.sentence(i, "word") for i in range(words.n_sentences)]
    assert spelled == [[word for word, _ in line] for line in text]
    assert tags == [tag for line in text for _, tag in line]
    assert list(gold.tags) == sorted(set(tags))
    assert set(vocabulary.strings) == {
        "something else",
        *(word for line in spelled for word in line),
    }
    lengths = gold.words.last - gold.words.start + 1
    codes = 4 * np.repeat(gold.words.kind, lengths) + borders_of(gold.words, corpus.n_tokens)
    names = word_labels(gold.tags)
    assert [names[code] for code in codes.tolist()] == corpus.column("label").strings()


def test_words_that_are_spelled_alike_are_one() -> None:
    """Tokens of several characters cannot make two entries of one vocabulary."""
    column = Column(Vocabulary(["a", "ab", "bc", "c"]), np.array([0, 2, 1, 3], np.int32))
    text = Corpus({"word": column}, np.array([0, 4]))
    words = read_borders(np.array([0, 2, 0, 2], np.int32), text.offsets)
    assert word_text(text, words, Vocabulary()).sentence(0, "word") == ["abc", "abc"]


def test_labels_have_every_border_with_every_tag() -> None:
    assert word_labels(["NN", "P"]) == ("B-NN", "M-NN", "E-NN", "S-NN", "B-P", "M-P", "E-P", "S-P")
    assert word_labels([""]) == BORDERS


def test_legal_transitions() -> None:
    """With P tags 4 P + 4 P^2, 4,488 for the 33 of CTB."""
    transition_mask = border_mask()
    legal = {
        a: {b for j, b in enumerate(BORDERS) if transition_mask[i, j]}
        for i, a in enumerate(BORDERS)
    }
    start = {b for j, b in enumerate(BORDERS) if transition_mask[4, j]}
    assert legal == {"B": set("ME"), "M": set("ME"), "E": set("BS"), "S": set("BS")}
    assert start == set("BS")
    for P, wanted in ((1, 8), (33, 4488)):
        pairs = sum(P * P if b in "BS" else P for a in BORDERS for b in legal[a])
        assert pairs == wanted == 4 * P + 4 * P * P


@given(st.integers(0, 2**32 - 1))
def test_decoding_is_legal(seed: int) -> None:
    corpus = characters(as_words(sentences(3, seed % 7)), {})
    crf = ChainModel().prepare(
        TemplateFeaturizer(["word[0]"]),
        corpus,
        np.zeros(corpus.n_tokens, np.int32),
        BORDERS,
        transition_mask=border_mask(),
    )
    crf.weights[:] = np.random.default_rng(seed).normal(0, 5, crf.layout.size)
    found = crf.predict(corpus).tolist()
    for lo, hi in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True):
        line = [4, *found[lo:hi]]
        assert all(border_mask()[a, b] for a, b in pairwise(line))


@given(st.lists(st.lists(st.sampled_from(BORDERS), min_size=1, max_size=8), min_size=1))
def test_any_borders_are_words(lines: list[list[str]]) -> None:
    """A word starts at B and S, after E and S and where a sentence begins, and nowhere else."""
    offsets = np.cumsum([0, *map(len, lines)])
    flat = [border for line in lines for border in line]
    wanted, begin = [], 0
    for i, border in enumerate(flat):
        starts = i in offsets or border in "BS" or flat[i - 1] in "ES"
        if starts and i:
            wanted.append((begin, i - 1))
        begin = i if starts else begin
    wanted.append((begin, len(flat) - 1))
    codes = np.array([BORDERS.index(border) for border in flat], np.int32)
    words = read_borders(codes, offsets)
    assert list(zip(words.start.tolist(), words.last.tolist(), strict=True)) == wanted
    repaired = "".join(BORDERS[code] for code in borders_of(words, len(flat)).tolist())
    assert repaired == "".join(
        "S" if first == last else "B" + "M" * (last - first - 1) + "E" for first, last in wanted
    )


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        ("N", "0９一百〇万"),
        ("D", "年月日时分秒"),
        ("L", "aＺé"),
        ("P", "。，(《"),
        ("O", "的人あ+ "),
    ],
)
def test_classes_of_characters(kind: str, members: str) -> None:
    assert {character_class(c) for c in members} == {kind}


def test_classes_of_words() -> None:
    assert [length_class(word) for word in ("a", "ab", "abc", "abcd", "abcdef")] == [
        "1",
        "2",
        "3",
        "4+",
        "4+",
    ]
    assert class_pattern("1998年") == "ND"
    assert class_pattern("x3中国。y") == "LNOPL"


def test_derived_columns_are_made_once_per_word() -> None:
    called: list[str] = []

    def length(word: str) -> str:
        called.append(word)
        return str(len(word))

    vocabulary = Vocabulary(["a", "bb"])
    text = Corpus({"word": Column(vocabulary, np.array([1, 0, 1], np.int32))}, np.array([0, 3]))
    assert with_derived(text, "n", length).column("n").strings() == ["2", "1", "2"]
    vocabulary.add("ccc")
    with_derived(text, "n", length)
    assert called == ["a", "bb", "ccc"]


def test_what_has_no_words() -> None:
    corpus = characters(as_words(sentences(2, 0)), {})
    tokens = np.zeros(2, np.int32)
    columns = {
        "word": Column(corpus.column("word").vocabulary, tokens),
        "label": Column(Vocabulary(["O", "S-NN"]), np.array([0, 1], np.int32)),
    }
    with pytest.raises(UserError, match="a labeled character is in no word"):
        GoldWords.of(problem_of(Corpus(columns, np.array([0, 2])), task="joint"))
