"""Vertices of new text, against strings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sslbench.engine.corpus import Vocabulary
from sslbench.engine.errors import UserError
from sslbench.engine.graph.lookup import NgramLookup
from sslbench.engine.graph.vertices import ngram_vertices
from support.graph_oracle import (
    CHARACTERS,
    WORDS,
    he2013_excludes,
    number,
    random_sentences,
    windows,
)
from support.texts import corpus_of

NEW = [*WORDS, "unseen", "7", ".."]


def grams(sentences: list[list[str]], derived: bool) -> list[tuple[str, ...]]:
    """The trigram of every token, with the pads of the oracle."""
    form = number if derived else str
    return [tuple(map(form, x[1:4])) for x in windows(sentences)]


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_new_text_with_a_vocabulary_of_its_own(seed: int, derived: bool, excluding: bool) -> None:
    known, new = random_sentences(seed), random_sentences(seed + 1, 30, NEW)
    text = corpus_of(known)
    excluded = np.array([excluding and he2013_excludes(w) for s in known for w in s], np.bool_)
    vertices = ngram_vertices(text, excluded=excluded, form="number" if derived else None)
    of_gram = {
        gram: vertex
        for gram, vertex in zip(grams(known, derived), vertices.vertex_of.tolist(), strict=True)
        if vertex >= 0
    }
    lookup = NgramLookup.from_text(text, vertices)
    assert len(lookup) == len(vertices)
    np.testing.assert_array_equal(lookup.vertices(text), vertices.vertex_of)
    result = lookup.vertices(corpus_of(new, Vocabulary(reversed(NEW))))
    assert result.dtype == np.int32
    assert result.tolist() == [of_gram.get(gram, -1) for gram in grams(new, derived)]


def test_pads_differ_from_words_that_look_like_them() -> None:
    text = corpus_of([["x"], ["y", "x", "z"]])
    lookup = NgramLookup.from_text(text, ngram_vertices(text))
    assert lookup.vertices(corpus_of([["<s1>", "x", "</s1>"], [], ["x"]])).tolist() == [-1] * 3 + [
        int(ngram_vertices(text).vertex_of[0])
    ]


def test_unknown_words_match_no_ngram() -> None:
    """Two unknown words must not share the code of a known one."""
    text = corpus_of([["a", "b"]])
    lookup = NgramLookup.from_text(text, ngram_vertices(text))
    assert lookup.vertices(corpus_of([["u", "b"], ["u", "v"], ["a", "b"]])).tolist() == [
        *(-1, -1, -1, -1),
        *ngram_vertices(text).vertex_of.tolist(),
    ]


@pytest.mark.parametrize("n", [1, 2, 4])
def test_other_lengths_and_characters(n: int) -> None:
    text = corpus_of(random_sentences(3, words=CHARACTERS))
    vertices = ngram_vertices(text, n=n)
    lookup = NgramLookup.from_text(text, vertices)
    np.testing.assert_array_equal(lookup.vertices(text), vertices.vertex_of)
    assert lookup.vertices(corpus_of([["€", "no", "€"]])).tolist()[1] == -1


def test_lookup_of_empty_text_and_missing_column() -> None:
    text = corpus_of([["a", "b"]])
    lookup = NgramLookup.from_text(text, ngram_vertices(text))
    assert lookup.vertices(text.select([])).shape == (0,)
    with pytest.raises(UserError, match="no column 'word'"):
        lookup.vertices(text.drop("word"))


def restored(**changes: Any) -> NgramLookup:
    text = corpus_of(random_sentences(4))
    arrays, metadata = NgramLookup.from_text(text, ngram_vertices(text, form="number")).arrays()
    arrays = {name: changes.pop(name, array) for name, array in arrays.items()}
    return NgramLookup.from_arrays(arrays, {**metadata, **changes})


def test_restored_lookup_finds_the_same_vertices() -> None:
    text = corpus_of(random_sentences(4))
    np.testing.assert_array_equal(
        restored().vertices(text), ngram_vertices(text, form="number").vertex_of
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grams": np.arange(4, dtype=np.int32)}, "4 codes are no 3-grams"),
        ({"grams": np.full(3, 10**6, np.int32)}, "outside of 0 to"),
        ({"grams": np.full(3, -1, np.int32)}, "outside of 0 to"),
        ({"grams": np.zeros((2, 3), np.int32)}, "not int32"),
        ({"n": 0}, "n-grams of 0 words"),
        ({"forms": ["a", "a"]}, "twice"),
        ({"form": "lower"}, "no form of words 'lower'"),
    ],
)
def test_damaged_lookups_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, UserError), match=message):
        restored(**changes)
