"""The CRF and the encoded text of a learning problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Column, Corpus, CorpusShards, LabelConstraint, Vocabulary
from sslbench.engine.crf import (
    ChainCRF,
    ChainModel,
    HardLabels,
    InfeasibleSentenceError,
    TrainingParams,
)
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem
from sslbench.method import GraphParams
from support.texts import corpus_of

#: A may not follow B; no sentence begins with B
MASK = np.array([[True, True, True], [False, True, True], [True, True, True], [True, False, True]])
#: all text
WORDS = ["a", "b", ".", "a", "c", "a", "new", "a", ".", "b", "."]
FORMS = Vocabulary(sorted(set(WORDS)))
#: "." is C
CONSTRAINT = LabelConstraint("word", ".", "C")


def with_labels(sentences: list[list[str]], labels: str) -> Corpus:
    vocabulary = Vocabulary(sorted(set(labels)))
    column = Column(vocabulary, vocabulary.encode(labels))
    return corpus_of(sentences, FORMS).with_column("label", column)


def problem(**changes: Any) -> Problem:
    """Three labels; "new" is in the text alone, "a" occurs three times in the sample."""
    labeled = with_labels([["a", "b", "."], ["a"], ["c", "a"]], "ABCAAB")
    text = CorpusShards(corpus_of([["new", "a", "."], ["b"], ["."]], FORMS), 3)
    assert len(list(text)) == 2
    dev = with_labels([["a", "b"]], "AX")
    featurizer = TemplateFeaturizer(["word[0]"])
    whole = Problem("tagging", None, ("A", "B", "C"), labeled, text, dev, featurizer, ChainModel())
    return replace(whole, **changes)


def names(crf: ChainCRF) -> set[str]:
    return {crf.index.node_text(i) for i in range(crf.index.n_node)}


def test_the_crf_has_the_labels_and_no_weights_yet() -> None:
    crf = problem().crf(TrainingParams())
    assert crf.labels == ("A", "B", "C")
    assert crf.layout.n_factors == 0
    assert not crf.weights.any()
    assert crf.transition_mask is None
    assert crf.label_constraint is None
    assert problem().crf(TrainingParams(), n_factors=4).layout.n_factors == 4


def test_whose_attributes_have_weights() -> None:
    sample = problem().crf(TrainingParams())
    both = problem().crf(TrainingParams(), features_from="labeled+unlabeled")
    assert len(names(both) - names(sample)) == 1
    assert names(sample) < names(both)
    frequent = problem().crf(TrainingParams(min_count=3))
    assert len(names(frequent)) == 1
    observed = problem().crf(TrainingParams(state_support="observed"))
    # a-A, a-B, b-B, c-A, .-C
    assert observed.layout.bounds[1] == 5
    assert sample.layout.bounds[1] == 4 * 3


def test_the_transition_mask_holds_in_training_and_decoding() -> None:
    whole = problem(transition_mask=MASK)
    crf = whole.crf(TrainingParams())
    text = whole.encode(crf)
    crf.train([text.labeled], TrainingParams())
    crf.weights += 5.0 * np.random.default_rng(0).normal(size=len(crf.weights))
    for shard, data in zip(whole.unlabeled, text.unlabeled, strict=True):
        y, p = crf.decode(data), crf.marginals(data)
        np.testing.assert_array_equal(p[shard.offsets[:-1], 1], 0.0)
        for lo, hi in zip(shard.offsets[:-1], shard.offsets[1:], strict=True):
            transitions = zip([3, *y[lo : hi - 1]], y[lo:hi], strict=True)
            assert all(MASK[transition] for transition in transitions)
    wrong = HardLabels(np.array([0, 1, 0, 0, 0, 1], np.int32))  # A follows B
    with pytest.raises(InfeasibleSentenceError, match="break the constraints"):
        crf.train([(text.labeled[0], wrong)], TrainingParams())


def test_the_label_constraint_holds_in_training_and_decoding() -> None:
    whole = problem(label_constraint=CONSTRAINT)
    crf = whole.crf(TrainingParams())
    text = whole.encode(crf)
    crf.train([text.labeled], TrainingParams())
    crf.weights[:] = 0.0
    crf.weights[: crf.layout.bounds[1]].reshape(-1, 3)[:, 0] = 9.0  # all words are A
    found = [crf.decode(data).tolist() for data in text.unlabeled]
    assert found == [[0, 0, 2], [0, 2]]
    np.testing.assert_array_equal(crf.marginals(text.unlabeled[0])[2], [0.0, 0.0, 1.0])
    wrong = HardLabels(np.zeros(6, np.int32))
    with pytest.raises(InfeasibleSentenceError, match="break the constraints"):
        crf.train([(text.labeled[0], wrong)], TrainingParams())


def test_all_text_is_encoded() -> None:
    whole = problem()
    crf = whole.crf(TrainingParams())
    text = whole.encode(crf)
    assert text.labels.tolist() == [0, 1, 2, 0, 0, 1]
    assert [int(data.offsets[-1]) for data in text.corpora] == [6, 3, 2]
    assert text.dev is not None
    assert text.dev[1].tolist() == [0, -1]  # the sample has no X
    crf.weights[: crf.layout.bounds[1]].reshape(-1, 3)[:, 0] = 9.0
    assert text.dev_accuracy(crf) == {"dev_accuracy": 0.5}
    alone = replace(whole, dev=None).encode(crf)
    assert alone.dev is None
    assert alone.dev_accuracy(crf) == {}


def test_reading_development_labels_is_noted_and_encoding_is_not() -> None:
    whole = problem()
    crf = whole.crf(TrainingParams())
    text = whole.encode(crf)
    crf, text = text.pruned(crf, [])
    assert text.dev_accuracy(crf, record_only=True) == text.dev_accuracy(crf, record_only=True)
    assert not whole.dev_labels.seen
    text.dev_accuracy(crf)
    assert whole.dev_labels.seen
    for read in (lambda p: p.dev, lambda p: p.encode(crf).dev, lambda p: replace(p, labels=())):
        other = problem()
        assert not other.dev_labels.seen
        read(other)
        assert other.dev_labels.seen
    without = problem(dev=None)
    assert without.dev is None
    without.encode(crf).dev_accuracy(crf)
    assert not without.dev_labels.seen


def test_one_column_of_all_text() -> None:
    text = problem().text("word")
    assert text.column("word").strings() == [
        "a",
        "b",
        ".",
        "a",
        "c",
        "a",
        "new",
        "a",
        ".",
        "b",
        ".",
    ]
    assert text.offsets.tolist() == [0, 3, 4, 6, 9, 10, 11]
    assert set(text.columns) == {"word"}


def test_the_graph_knows_where_every_token_lies() -> None:
    """The labeled tokens come first; the templates leave punctuation out of the graph."""
    run = RunContext()
    graph = problem().graph(GraphParams(neighbors=2, symmetry="union"), run)
    of = graph.text.vertex_of
    assert (of == -1).tolist() == [word == "." for word in WORDS]
    assert of[graph.text.n_labeled :].tolist() == graph.text.unlabeled.tolist()
    gold = np.eye(3)[[0, 1, 2, 0, 0, 1]]
    for vertex in range(graph.text.n_vertices):
        rows = gold[of[:6] == vertex]
        assert graph.text.labeled[vertex] == bool(len(rows))
        mean = rows.mean(axis=0) if len(rows) else np.zeros(3)
        np.testing.assert_allclose(graph.text.distribution[vertex], mean)
    assert graph.W.shape == (graph.text.n_vertices,) * 2
    assert run.trace["graph"]["vertices"] == graph.text.n_vertices
    (shard, *_) = problem().unlabeled
    np.testing.assert_array_equal(graph.lookup.vertices(shard), graph.text.unlabeled[:3])
