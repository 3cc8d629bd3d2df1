"""Graph vertices: n-gram types, pads, excluded tokens, order."""

from __future__ import annotations

import numpy as np
import pytest

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.engine.graph import words
from sslbench.engine.graph.vertices import ngram_vertices
from support.graph_oracle import (
    he2013_excludes,
    random_sentences,
    trigram_names,
    vertex_text,
    windows,
)
from support.texts import corpus_of


def names_of(text, vertices):
    return [vertex_text(text, vertices, v) for v in range(len(vertices))]


def test_every_token_is_the_center_of_one_trigram():
    sentences = random_sentences(1)
    text = corpus_of(sentences)
    vertices = ngram_vertices(text)
    names = trigram_names(text, vertices)
    assert [names[v] for v in vertices.vertex_of] == [tuple(x[1:4]) for x in windows(sentences)]
    assert len(set(names)) == len(names) == len(vertices)
    assert vertices.vertex_of.dtype == np.int32
    assert vertices.count.sum() == text.n_tokens
    np.testing.assert_array_equal(vertices.count, np.bincount(vertices.vertex_of))
    for v, first in enumerate(vertices.first):
        assert np.flatnonzero(vertices.vertex_of == v)[0] == first


def test_a_sentence_of_one_word():
    text = corpus_of([["x"], [], ["x"], ["x", "x"]])
    vertices = ngram_vertices(text)
    assert names_of(text, vertices) == [
        ("<s1>", "x", "</s1>"),
        ("<s1>", "x", "x"),
        ("x", "x", "</s1>"),
    ]
    assert vertices.vertex_of.tolist() == [0, 0, 1, 2]
    assert vertices.count.tolist() == [2, 1, 1]


def test_pads_differ_from_words_that_look_like_them():
    text = corpus_of([["x"], ["<s1>", "x", "</s1>"]])
    assert len(ngram_vertices(text)) == 4


def test_pads_differ_by_side_and_distance():
    lay = words.Windows.from_sentences(np.array([5], np.int32), np.array([0, 1]), 2)
    codes = [int(lay.at(offset)[0]) for offset in range(-2, 3)]
    assert codes == [1, 0, 9, 2, 3]  # <s2> <s1> x </s1> </s2>


@pytest.mark.parametrize(
    ("n", "name"), [(1, ("b",)), (2, ("a", "b")), (4, ("<s1>", "a", "b", "c"))]
)
def test_other_lengths(n, name):
    text = corpus_of([["a", "b", "c"]])
    vertices = ngram_vertices(text, n=n)
    assert vertex_text(text, vertices, int(vertices.vertex_of[1])) == name


def test_excluded_tokens_are_neighbors_but_no_vertices():
    text = corpus_of([["a", ",", "b"]])
    excluded = np.array([he2013_excludes(w) for w in text.sentence(0, "word")])
    vertices = ngram_vertices(text, excluded=excluded)
    assert vertices.vertex_of.tolist() == [0, -1, 1]
    assert names_of(text, vertices) == [("<s1>", "a", ","), (",", "b", "</s1>")]


def test_forms():
    text = corpus_of([["In", "1996"], ["In", "1,200"], ["in", "2.5"]])
    vertices = ngram_vertices(text, form="number")
    assert vertices.vertex_of.tolist() == [0, 2, 0, 2, 1, 3]
    assert vertex_text(text, vertices, 2) == ("In", "<num>", "</s1>")


def test_order_depends_on_the_words_alone():
    sentences = random_sentences(2)
    text, other = corpus_of(sentences), Vocabulary(["zzz", *reversed(["x1", "the", "of"]), "a"])
    vertices = ngram_vertices(text)
    swapped = ngram_vertices(corpus_of(sentences, other))
    np.testing.assert_array_equal(vertices.vertex_of, swapped.vertex_of)
    order = np.random.default_rng(0).permutation(len(sentences))
    shuffled = corpus_of([sentences[i] for i in order])
    again = ngram_vertices(shuffled)
    assert names_of(text, vertices) == names_of(shuffled, again)
    np.testing.assert_array_equal(vertices.count, again.count)


@pytest.mark.parametrize("largest", [10**4, 10**9, 2**62])
def test_packing_in_several_steps(monkeypatch, largest):
    monkeypatch.setattr(words, "_LARGEST", largest)
    rng = np.random.default_rng(3)
    parts = [rng.integers(0, 90, 500).astype(np.int32) for _ in range(5)]
    parts[3][:] = 7
    parts[2:] = [part % 3 for part in parts[2:]]
    codes, n = words.packed([(part, 90) for part in parts])
    tuples = list(zip(*(part.tolist() for part in parts), strict=True))
    place = {t: i for i, t in enumerate(sorted(set(tuples)))}
    assert codes.tolist() == [place[t] for t in tuples]
    assert n == len(place)


def test_packing_with_large_bounds():
    codes = np.array([2**21, 2**22, 5], np.int32)
    parts = [(codes, 2**30), (codes[::-1], 2**30), (codes, 2**30), (codes, 2**30)]
    assert words.packed(parts)[0].tolist() == [1, 2, 0]


def test_digest_depends_on_the_text_not_the_vocabulary():
    def digest(sentences, vocabulary=None):
        text = corpus_of(sentences, vocabulary)
        return words.CodedForms.from_column(text.column("word")).digest(text.offsets)

    same = digest([["a", "b"], ["c"]])
    assert same == digest([["a", "b"], ["c"]], Vocabulary(["z", "c", "b"]))
    others = [[["a"], ["b", "c"]], [["a", "b"], ["d"]], [["b", "a"], ["c"]], [["ab", ""], ["c"]]]
    assert len({same, *map(digest, others)}) == 5


def test_invalid_arguments():
    text = corpus_of([["a"]])
    with pytest.raises(UserError, match="no column 'char'"):
        ngram_vertices(text, "char")
    with pytest.raises(UserError, match="lower_number"):
        ngram_vertices(text, form="lower")
    with pytest.raises(UserError, match="at least 1"):
        ngram_vertices(text, n=0)
    with pytest.raises(ValueError, match=r"bool \[1\]"):
        ngram_vertices(text, excluded=np.zeros(2, np.bool_))


def test_empty_text_has_no_vertices():
    text = Corpus({"word": Column(Vocabulary(), np.empty(0, np.int32))}, np.array([0]))
    assert len(ngram_vertices(text)) == 0
