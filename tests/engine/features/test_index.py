"""Attributes against the slow per-token strings of features_oracle."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from sslbench.engine.corpus import CorpusShards, read_conll
from sslbench.engine.errors import UserError
from sslbench.engine.features import AttributeIndex, Template, TemplateFeaturizer, coded_column
from sslbench_methods.featurizers.suzuki2008 import basic, chunk39, ner79, pos47
from support.features_oracle import WORDS, corpus_of, counts, fired, random_sentences, text

ODD = [
    *("bias", "word[-3]", "word[1]|pos[-2]", "pos[2]|word[-1]|word[0]|pos[0]"),
    *("word[-1]|word[0]|word[1]|word[2]|word[3]", "word.lower.suffix2[1]"),
    "bag: word[-2..2]",
    "edge: bag: pos[1..3]",
    "edge: pos[0]|pos[-1]",
    "edge: word.shape[2]",
]
SETS = {
    "odd": TemplateFeaturizer(ODD).templates,
    **{make.__name__: make().templates for make in (pos47, chunk39, ner79, basic)},
}


def check_encoding(index, corpus, sentences, known):
    """The encoded matrix holds exactly the oracle's known values, one id per value and back."""
    attributes = index.encode(corpus)
    kinds = (
        (attributes.node, index.node_templates, index.node_start, index.node_text),
        (attributes.edge, index.edge_templates, index.edge_start, index.edge_text),
    )
    for matrix, templates, start, text_of in kinds:
        row = 0
        assert matrix.dtype == np.int32
        assert matrix.flags.c_contiguous
        assert matrix.shape[1] == corpus.n_tokens
        for template, low, high in zip(templates, start, start[1:], strict=False):
            ids: dict = {}
            n = 0
            for sentence in sentences:
                for t in range(len(sentence)):
                    for slot, value in enumerate(fired(template, sentence, t)):
                        got = int(matrix[row + slot, n])
                        if value is None or value not in known[template]:
                            assert got == -1
                        else:
                            assert low <= got < high
                            assert ids.setdefault(value, got) == got
                            label = f"{template}={text(value)}" if template.atoms else "bias"
                            assert text_of(got) == label
                    n += 1
            assert len(set(ids.values())) == len(ids)
            assert high - low == len(known[template])
            row += len(template.offsets)
        assert row == len(matrix)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("min_count", [1, 2, 4])
def test_encoding_equals_strings(name, min_count):
    templates = SETS[name]
    train = random_sentences(1)
    test = random_sentences(2, 10, [*WORDS, "unseen", "An"])
    corpus = corpus_of(train)
    index = AttributeIndex.fit(templates, corpus, min_count)
    known = {t: {v for v, c in counts(t, train).items() if c >= min_count} for t in templates}
    assert index.n_node == sum(len(known[t]) for t in templates if not t.edge)
    assert index.n_edge == sum(len(known[t]) for t in templates if t.edge)
    check_encoding(index, corpus, train, known)
    # the same vocabularies, grown after the fit
    shared = {name: corpus.column(name).vocabulary for name in ("word", "pos")}
    check_encoding(index, corpus_of(test, shared), test, known)
    # other vocabularies in another order
    check_encoding(index, corpus_of(test[::-1]), test[::-1], known)


@pytest.mark.parametrize("name", SETS)
def test_save_and_load(name, tmp_path):
    train, test = random_sentences(3), random_sentences(4, 10, [*WORDS, "unseen"])
    index = AttributeIndex.fit(SETS[name], corpus_of(train), 2)
    arrays, metadata = index.arrays()
    np.savez(tmp_path / "index.npz", **arrays)
    with np.load(tmp_path / "index.npz", allow_pickle=False) as stored:
        loaded = AttributeIndex.from_arrays(dict(stored), json.loads(json.dumps(metadata)))
    for sentences in (train, test):
        corpus = corpus_of(sentences)
        old, new = index.encode(corpus), loaded.encode(corpus)
        np.testing.assert_array_equal(old.node, new.node)
        np.testing.assert_array_equal(old.edge, new.edge)
    assert [loaded.node_text(i) for i in range(index.n_node)] == [
        index.node_text(i) for i in range(index.n_node)
    ]
    assert loaded.edge_templates == index.edge_templates
    np.testing.assert_array_equal(loaded.node_start, index.node_start)


def test_one_word_sentence_sees_pads_everywhere():
    sentences = [[("Go", "VB")]]
    index = chunk39().index(corpus_of(sentences))
    attributes = index.encode(corpus_of(sentences))
    texts = {index.node_text(i) for i in attributes.node[:, 0]}
    assert {"word[-2]=_B-2", "word[-1]=_B-1", "word[0]=Go", "word[1]=_E+1", "word[2]=_E+2"} <= texts
    assert {"word[-2]|word[-1]=_B-2|_B-1", "word[1]|word[2]=_E+1|_E+2"} <= texts
    assert {"word[-1]|pos[-1]=_B-1|_B-1", "pos[-1]|pos[0]=_B-1|VB"} <= texts
    assert len(texts) == 24
    edges = {index.edge_text(i) for i in attributes.edge[:, 0]}
    assert "edge: pos[1]=_E+1" in edges
    assert len(edges) == 14


def test_a_word_that_looks_like_a_pad_is_no_pad():
    index = TemplateFeaturizer(["word[-1]"]).index(corpus_of([[("a", "x"), ("b", "x")]]))
    loaded = AttributeIndex.from_arrays(*index.arrays())
    corpus = corpus_of([[("_B-1", "x"), ("b", "x")]])
    for either in (index, loaded):
        first, second = either.encode(corpus).node[0]
        assert either.node_text(first) == "word[-1]=_B-1"
        assert second == -1


def test_bag_holds_each_value_once_and_stays_inside():
    sentences = [[("a", "x"), ("b", "x"), ("a", "x"), ("c", "x")], [("d", "x")]]
    index = TemplateFeaturizer(["bag: word[-2..1]"]).index(corpus_of(sentences))
    node = index.encode(corpus_of(sentences)).node
    seen = [[index.node_text(i)[-1] if i >= 0 else "-" for i in column] for column in node.T]
    expected = [["-", "-", "a", "b"], ["-", "a", "b", "-"], ["a", "b", "-", "c"]]
    assert seen == [*expected, ["b", "a", "c", "-"], ["-", "-", "d", "-"]]


def test_shards_give_the_index_of_the_whole():
    corpus = corpus_of(random_sentences(5))
    whole = AttributeIndex.fit(SETS["ner79"], corpus, 2)
    parts = AttributeIndex.fit(SETS["ner79"], CorpusShards(corpus, shard_tokens=7), 2)
    np.testing.assert_array_equal(whole.encode(corpus).node, parts.encode(corpus).node)
    np.testing.assert_array_equal(whole.encode(corpus).edge, parts.encode(corpus).edge)


def test_empty_corpora():
    empty, full = corpus_of([]), corpus_of(random_sentences(6))
    index = chunk39().index(empty)
    assert index.n_node == index.n_edge == 0
    assert (index.encode(full).node == -1).all()
    assert chunk39().index(full).encode(empty).node.shape == (24, 0)


@pytest.mark.corpus
def test_conll2000_attributes():
    """Node attributes and word types of the training set: docs/specs/jess_cm.md, section 5."""
    home = os.environ.get("SSLBENCH_DATA")
    path = Path(home or ".") / "nltk_data" / "conll2000.zip"
    if not home or not path.exists():
        pytest.skip(f"no {path}: set SSLBENCH_DATA to a data home with nltk_data/conll2000.zip")
    corpus = read_conll((path, "conll2000/train.txt"), columns=("word", "pos", "label"))
    index = chunk39().index(corpus)
    assert index.n_node == 613_701
    assert (index.encode(corpus).node >= 0).all()
    assert len(coded_column(corpus, "word.shape").vocabulary) == 24


def test_dense_columns():
    corpus = corpus_of(random_sentences(7))
    featurizer = TemplateFeaturizer(["bias"], dense=lambda c: np.ones((c.n_tokens, 3)))
    assert featurizer.index(corpus).encode(corpus).dense.shape == (corpus.n_tokens, 3)
    assert TemplateFeaturizer(["bias"]).index(corpus).encode(corpus).dense is None
    wrong = TemplateFeaturizer(["bias"], dense=lambda c: np.ones((2, 3))).index(corpus)
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        wrong.encode(corpus)


def test_errors():
    corpus = corpus_of(random_sentences(8))
    with pytest.raises(UserError, match="twice"):
        TemplateFeaturizer(["word[0]", Template.parse(" word[+0] ")])
    with pytest.raises(UserError, match="at least one"):
        TemplateFeaturizer([])
    with pytest.raises(UserError, match=r"'wrd'.*did you mean 'word'"):
        TemplateFeaturizer(["wrd[0]"]).index(corpus)
    with pytest.raises(UserError, match=r"'sufix2'.*suffix"):
        TemplateFeaturizer(["word.sufix2[0]"]).index(corpus)
    with pytest.raises(UserError, match="min_count"):
        chunk39().index(corpus, min_count=0)
    with pytest.raises(IndexError):
        chunk39().index(corpus).node_text(-1)
