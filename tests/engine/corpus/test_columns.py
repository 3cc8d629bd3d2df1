"""Vocabularies, columns, corpora: coding, selection, sharing."""

from __future__ import annotations

import gc
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import Column, Corpus, Vocabulary, first_tokens, sentence_ids
from sslbench.engine.errors import UserError

SENTENCES = [["the", "cat", "sat"], ["no"], ["the", "end"]]


def corpus_of(sentences: list[list[str]], **vocabularies: Vocabulary) -> Corpus:
    """A corpus with the columns "word" and "length" (of the word)."""
    words = [word for sentence in sentences for word in sentence]
    offsets = np.cumsum([0, *map(len, sentences)])
    word = vocabularies.get("word") or Vocabulary()
    size = vocabularies.get("length") or Vocabulary()
    columns = {
        "word": Column(word, word.encode(words)),
        "length": Column(size, size.encode(str(len(w)) for w in words)),
    }
    return Corpus(columns, offsets)


def text_of(corpus: Corpus, name: str = "word") -> list[list[str]]:
    return [corpus.sentence(i, name) for i in range(corpus.n_sentences)]


def test_vocabulary_is_append_only_and_exact() -> None:
    vocabulary = Vocabulary(["a", "b"])
    codes = vocabulary.encode(["b", "c", "a", "c"])
    assert codes.dtype == np.int32
    assert codes.tolist() == [1, 2, 0, 2]
    assert vocabulary.strings == ["a", "b", "c"]
    assert (vocabulary.lookup("c"), vocabulary.lookup("d"), len(vocabulary)) == (2, -1, 3)
    assert vocabulary.add("d") == 3 == vocabulary.add("d")
    assert "d" in vocabulary
    assert "e" not in vocabulary
    assert len(vocabulary) == 4  # neither lookup nor `in` adds
    assert Vocabulary()  # `given or Vocabulary()` keeps an empty one
    with pytest.raises(ValueError, match="twice"):
        Vocabulary(["a", "a"])


def test_text_to_columns_and_back() -> None:
    vocabularies = {"word": Vocabulary(["end"])}
    lengths = [[str(len(word)) for word in sentence] for sentence in SENTENCES]
    corpus = Corpus.from_sentences({"word": SENTENCES, "length": lengths}, vocabularies)
    assert corpus.column("word").vocabulary is vocabularies["word"]
    assert corpus.column("length").vocabulary is vocabularies["length"]
    assert corpus.column("word").codes.tolist() == [1, 2, 3, 4, 1, 0]
    assert corpus.offsets.tolist() == [0, 3, 4, 6]
    assert (corpus.sentences("word"), corpus.sentences("length")) == (SENTENCES, lengths)
    assert Corpus.from_sentences({"word": []}).n_sentences == 0
    for columns in ({}, {"word": SENTENCES, "length": [*lengths[:2], ["3"]]}):
        with pytest.raises(ValueError, match="columns"):
            Corpus.from_sentences(columns)


def test_a_vocabulary_is_freed_with_its_last_reference() -> None:
    """Not by the garbage collector later: text is tagged in parts, each with its vocabulary."""
    vocabulary = Vocabulary(["one", "two"])
    vocabulary.derived("suffix", lambda string: string[-1]).codes()
    known = weakref.ref(vocabulary)
    gc.disable()
    try:
        del vocabulary
        assert known() is None
    finally:
        gc.enable()


def test_derived_is_called_once_per_entry_and_grows_with_its_base() -> None:
    calls: list[str] = []

    def lower(string: str) -> str:
        calls.append(string)
        return string.lower()

    vocabulary = Vocabulary(["A", "a", "B"])
    derived = vocabulary.derived("lower", lower)
    assert derived.codes().tolist() == [0, 0, 1]
    vocabulary.encode(["A", "b", "C"])
    assert derived.codes().tolist() == [0, 0, 1, 1, 2]
    assert derived.vocabulary.strings == ["a", "b", "c"]
    assert calls == ["A", "a", "B", "b", "C"]
    assert vocabulary.derived("lower", str.upper) is derived


def test_pickle_keeps_strings_and_sharing() -> None:
    corpus = corpus_of(SENTENCES)
    corpus.column("word").vocabulary.derived("lower", lambda s: s.lower())  # not picklable itself
    one, two = pickle.loads(pickle.dumps((corpus, corpus.select([0]))))  # noqa: S301  (our own)
    assert text_of(one) == SENTENCES
    assert one.column("word").vocabulary is two.column("word").vocabulary


def test_corpus_shape() -> None:
    corpus = corpus_of(SENTENCES)
    assert (corpus.n_sentences, corpus.n_tokens) == (3, 6)
    assert corpus.lengths.tolist() == [3, 1, 2]
    assert corpus.sentence(-1, "word") == ["the", "end"]
    assert corpus.column("length").strings() == ["3", "3", "3", "2", "3", "3"]
    with pytest.raises(IndexError):
        corpus.sentence(3, "word")


def test_unknown_column_names_the_near_ones() -> None:
    with pytest.raises(UserError, match=r"no column 'wrd'; did you mean 'word'.*word, length"):
        corpus_of(SENTENCES).column("wrd")


@pytest.mark.parametrize("offsets", [[], [1, 6], [0, 4, 3, 6], [0, 5], [[0, 6]]])
def test_bad_offsets_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError):
        Corpus(corpus_of(SENTENCES).columns, np.array(offsets))


def test_bad_codes_are_refused() -> None:
    for codes in (np.zeros(2), np.zeros((1, 2), dtype=np.int32)):
        with pytest.raises(ValueError, match="codes"):
            Column(Vocabulary(["a"]), codes)


sentence_lists = st.lists(st.lists(st.sampled_from("abcde"), max_size=4), max_size=8)


@given(sentence_lists, st.data())
def test_select_is_list_indexing(sentences: list[list[str]], data: st.DataObject) -> None:
    corpus = corpus_of(sentences)
    n = len(sentences)
    ids = data.draw(st.lists(st.integers(0, n - 1), max_size=6)) if n else []
    chosen = corpus.select(np.array(ids, dtype=np.int64))
    assert text_of(chosen) == [sentences[i] for i in ids]
    assert chosen.column("word").vocabulary is corpus.column("word").vocabulary
    mask = np.isin(np.arange(n), ids)
    assert text_of(corpus.select(mask)) == [s for i, s in enumerate(sentences) if i in ids]


@given(sentence_lists, sentence_lists)
def test_concatenate_and_between_are_list_operations(
    left: list[list[str]], right: list[list[str]]
) -> None:
    a = corpus_of(left)
    shared = {name: column.vocabulary for name, column in a.columns.items()}
    both = Corpus.concatenate([a, corpus_of(right, **shared)])
    assert text_of(both) == left + right
    assert text_of(both.between(len(left), both.n_sentences)) == right


def test_between_copies_nothing() -> None:
    corpus = corpus_of(SENTENCES)
    part = corpus.between(1, 3)
    assert np.shares_memory(part.column("word").codes, corpus.column("word").codes)


def test_concatenate_refuses_other_vocabularies() -> None:
    a, b = corpus_of(SENTENCES), corpus_of(SENTENCES)
    with pytest.raises(ValueError, match="share"):
        Corpus.concatenate([a, b])
    with pytest.raises(ValueError, match="differ"):
        Corpus.concatenate([a, a.drop("length")])
    with pytest.raises(ValueError, match="nothing"):
        Corpus.concatenate([])


def test_columns_are_dropped_and_added_without_touching_the_original() -> None:
    corpus = corpus_of(SENTENCES)
    assert list(corpus.drop("length", "label").columns) == ["word"]
    more = corpus.with_column("copy", corpus.column("word"))
    assert list(more.columns) == ["word", "length", "copy"]
    assert list(corpus.columns) == ["word", "length"]
    with pytest.raises(ValueError, match="6"):
        corpus.with_column("label", Column(Vocabulary(["a"]), np.zeros(5, dtype=np.int32)))


@given(st.lists(st.integers(0, 3), max_size=8))
def test_sentence_marks(lengths: list[int]) -> None:
    offsets = np.cumsum([0, *lengths])
    ids = [i for i, n in enumerate(lengths) for _ in range(n)]
    assert sentence_ids(offsets).tolist() == ids
    assert first_tokens(offsets).tolist() == [k == 0 for n in lengths for k in range(n)]


def test_arrays_of_a_corpus_are_read_only() -> None:
    """Trials of one tuning, splits and methods share them."""
    codes, offsets = np.array([0, 1, 0], np.int32), np.array([0, 2, 3])
    corpus = Corpus({"word": Column(Vocabulary("ab"), codes)}, offsets)
    pickled = pickle.loads(pickle.dumps(corpus))  # noqa: S301  (our own)
    copies = [corpus, pickled, corpus.select([0]), corpus.between(0, 1)]
    for each in copies:
        for array in (each.column("word").codes, each.offsets):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
    codes[0] = 1  # what the caller owns is neither copied nor changed
    assert corpus.column("word").codes.tolist() == [1, 1, 0]


@pytest.mark.parametrize("codes", [[0, 2], [-1, 0], [2**31 - 1], [2**40]])
def test_codes_that_the_vocabulary_lacks(codes: list[int]) -> None:
    with pytest.raises(ValueError, match="outside of a vocabulary of 2 strings"):
        Column(Vocabulary("ab"), np.array(codes))


def test_offsets_whose_differences_overflow() -> None:
    column = Column(Vocabulary("ab"), np.zeros(5, np.int32))
    with pytest.raises(ValueError, match="never decrease"):
        Corpus({"word": column}, np.array([0, 2**63 - 1, -(2**63), -1, 5]))
