"""Taggers with the interface of scikit-learn."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import sslbench
from sslbench.sklearn import CRF, SequenceTagger
from support.synth_text import synth_text

TEXT = synth_text(60, 0)
X, Y = TEXT.sentences("word"), TEXT.sentences("label")


def features(sentence: list[str]) -> list[dict[str, Any]]:
    left = ["<", *sentence]
    return [
        {"word": word, "left": before, "long": len(word) > 3, "number": 0.5 * len(word)}
        for before, word in zip(left, sentence, strict=False)
    ]


F = [features(sentence) for sentence in X]


def test_a_fitted_tagger_labels_every_token() -> None:
    tagger = SequenceTagger().fit(X[:40], Y[:40])
    labels = tagger.predict([X[50], [], X[51]])
    assert list(map(len, labels)) == [len(X[50]), 0, len(X[51])]
    ours, gold = (np.concatenate(rows) for rows in (tagger.predict(X), Y))
    assert tagger.score(X, Y) == pytest.approx(np.mean(ours == gold))
    proba = tagger.predict_proba(X[50:52])
    np.testing.assert_allclose(np.concatenate(proba).sum(axis=1), 1.0)
    first = tagger.predict_marginals(X[50:51])[0][0]
    assert first == dict(zip(tagger.classes_, proba[0][0].tolist(), strict=True))


def test_it_is_the_method_of_a_run(tmp_path: Path) -> None:
    """The same weights as `train` gives for the same sentences in a file."""
    rows = zip(X, Y, strict=True)
    lines = ["".join(f"{w} {t}\n" for w, t in zip(*row, strict=True)) for row in rows]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    tagger = sslbench.train("supervised", data=tmp_path, columns=("word", "label"))
    ours = SequenceTagger().fit(X, Y)
    np.testing.assert_array_equal(ours.tagger_.tagger.weights, tagger.tagger.weights)


def test_unlabeled_sentences_are_used() -> None:
    plain = SequenceTagger("self_training", params={"rounds": 1})
    alone, more = clone(plain).fit(X[:10], Y[:10]), clone(plain).fit(X[:10], Y[:10], X[10:])
    a, b = alone.predict_proba(X[:5]), more.predict_proba(X[:5])
    assert any((p != q).any() for p, q in zip(a, b, strict=True))


def test_chunk_tags_come_back_in_their_scheme() -> None:
    words, tags = [["a", "b", "c", "d"]] * 3, [["I-X", "B-X", "I-X", "O"]] * 3  # IOB1
    tagger = SequenceTagger().fit(words, tags)
    assert tagger.tagger_.corpus.task == "spans"
    assert tagger.predict(words) == tags


def test_several_columns() -> None:
    pairs = [[(word, word[:1]) for word in sentence] for sentence in X]
    tagger = SequenceTagger(columns=("word", "pos")).fit(pairs, Y)
    assert tagger.tagger_.columns == ("word", "pos")
    assert tagger.score(pairs, Y) > 0.8


def test_scikit_learn_clones_searches_and_pickles() -> None:
    tagger = SequenceTagger("jess_cm", params={"rounds": 2}, random_state=3)
    assert clone(tagger).get_params() == tagger.get_params()
    with pytest.raises(NotFittedError):
        tagger.predict(X)
    assert len(cross_val_score(CRF(max_iterations=5), F, Y, cv=3)) == 3
    found = GridSearchCV(CRF(max_iterations=5), {"c2": [0.1, 10.0]}, cv=2).fit(F, Y)
    copy = pickle.loads(pickle.dumps(found.best_estimator_))  # noqa: S301  # our own
    assert copy.predict(F) == found.predict(F)


def test_it_can_be_saved(tmp_path: Path) -> None:
    tagger = SequenceTagger().fit(X, Y)
    tagger.save(tmp_path / "model")
    assert sslbench.load_tagger(tmp_path / "model").predict(X) == tagger.predict(X)
    with pytest.raises(sslbench.UserError, match="dicts of features"):
        CRF(max_iterations=2).fit(F, Y).save(tmp_path / "other")


@pytest.mark.parametrize("states", [False, True])
def test_crf_is_that_of_crfsuite(states: bool, tmp_path: Path) -> None:
    """The same objective: nearly the same probabilities, from an independent program."""
    texts = [[{"word": t["word"], "left": t["left"]} for t in row] for row in F]
    ours = CRF(c1=0.0, c2=0.5, all_possible_states=states).fit(texts, Y)
    trainer = pycrfsuite.Trainer(verbose=False)
    for row, labels in zip(texts, Y, strict=True):
        trainer.append([[f"{k}={v}" for k, v in token.items()] for token in row], labels)
    trainer.set_params(
        {
            "c1": 0.0,
            "c2": 0.5,
            "feature.possible_transitions": True,
            "feature.possible_states": states,
            "delta": 1e-9,
            "epsilon": 1e-8,
        }
    )
    trainer.train(str(tmp_path / "model"))
    peer = pycrfsuite.Tagger()
    peer.open(str(tmp_path / "model"))
    for row, found in zip(texts[:10], ours.predict_proba(texts[:10]), strict=True):
        peer.set([[f"{k}={v}" for k, v in token.items()] for token in row])
        theirs = [[peer.marginal(y, n) for y in ours.classes_] for n in range(len(row))]
        np.testing.assert_allclose(found, theirs, atol=0.01)


def test_what_does_not_fit_is_told() -> None:
    for X_, y, message in [
        (X, Y[:-1], "X and y differ"),
        ([["a"], []], [["A"], []], "sentence 2 has no token"),
        (["a b"], [["A", "B"]], "is one text"),
        ([[{"a": object()}]], [["A"]], "sentence 1, token 1: feature 'a' is a object"),
        ([[{"a": "b"}, "c"]], [["A", "B"]], "no dict of features"),
    ]:
        with pytest.raises(sslbench.UserError, match=message):
            SequenceTagger().fit(X_, y)
    with pytest.raises(sslbench.UserError, match="only lbfgs"):
        CRF(algorithm="arow").fit(F, Y)
    with pytest.raises(sslbench.UserError, match="c2 > 0"):
        CRF(c2=0.0).fit(F, Y)
