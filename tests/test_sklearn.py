"""Taggers with the interface of scikit-learn."""

from __future__ import annotations

import copy
import enum
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import sslbench
from sslbench.experiment.run import saved
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


@pytest.fixture(scope="module")
def trained() -> SequenceTagger:
    return SequenceTagger().fit(X, Y)


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


@pytest.mark.parametrize(("tagger", "text"), [(SequenceTagger(), X), (CRF(max_iterations=5), F)])
def test_a_few_sentences_have_the_labels_of_a_corpus(
    tagger: Any, text: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tagger.fit(text[:40], Y[:40])
    with ThreadPoolExecutor(3) as pool:  # the first calls come from several threads
        labels = [row for (row,) in pool.map(lambda row: tagger.predict([row]), text)]
        probabilities = [row for (row,) in pool.map(lambda row: tagger.predict_proba([row]), text)]
    size = len(pickle.dumps(tagger))
    monkeypatch.setattr(saved, "FEW", 0)
    assert tagger.predict(text) == labels
    np.testing.assert_array_equal(
        np.concatenate(tagger.predict_proba(text)), np.concatenate(probabilities)
    )
    assert len(pickle.dumps(tagger.fit(text[:40], Y[:40]))) == pytest.approx(size, rel=0.01)


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


def test_several_columns() -> None:
    pairs = [[(word, word[:1]) for word in sentence] for sentence in X]
    tagger = SequenceTagger(columns=("word", "pos")).fit(pairs, Y)
    assert tagger.tagger_.columns == ("word", "pos")
    assert tagger.score(pairs, Y) > 0.8


def test_clones_and_copies() -> None:
    tagger = SequenceTagger("jess_cm", params={"rounds": 2}, random_state=3)
    assert clone(tagger).get_params() == tagger.get_params()
    for call in (tagger.predict, tagger.predict_single, tagger.predict_proba):
        with pytest.raises(NotFittedError):
            call(X)
    with pytest.raises(NotFittedError):
        tagger.score(X, Y)
    fitted = SequenceTagger().fit(X, Y)
    for other in (copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):  # noqa: S301  # our own
        assert other.predict(X) == fitted.predict(X)


def test_nested_parameters() -> None:
    tagger = SequenceTagger(params={"sigma2": 1.0, "max_iterations": 9})
    assert tagger.get_params()["params__sigma2"] == 1.0
    assert tagger.set_params(params__sigma2=2.0, tune=1).params == {
        "sigma2": 2.0,
        "max_iterations": 9,
    }
    assert SequenceTagger().set_params(params__sigma2=3).params == {"sigma2": 3}
    assert "params__sigma2" not in tagger.get_params(deep=False)
    with pytest.raises(ValueError, match="sigma"):
        tagger.set_params(sigma=1)
    with pytest.raises(sslbench.UserError, match="sigma3"):
        SequenceTagger().set_params(params__sigma3=1).fit(X, Y)


@pytest.mark.parametrize(
    ("tagger", "grid", "text"),
    [
        (SequenceTagger(), {"params__sigma2": np.logspace(-1, 1, 2)}, X),
        (SequenceTagger(), {"params": [{"sigma2": 1}, {"sigma2": 5}]}, X),
        (CRF(max_iterations=5), {"c2": [0.1, np.float32(10)]}, F),
    ],
)
def test_searches(tagger: Any, grid: dict[str, Any], text: list[Any]) -> None:
    search = GridSearchCV(tagger, grid, cv=2, error_score="raise").fit(text, Y)
    scores = cross_val_score(tagger.set_params(**search.best_params_), text, Y, cv=2)
    assert scores.mean() == pytest.approx(search.best_score_)


@pytest.mark.parametrize(("tagger", "text"), [(SequenceTagger(), X), (CRF(max_iterations=5), F)])
def test_predictions_of_cross_validation(tagger: Any, text: list[Any]) -> None:
    found = cross_val_predict(tagger, text, Y, cv=KFold(3, shuffle=True, random_state=0))
    assert list(map(len, found)) == list(map(len, Y))
    train, test = next(KFold(3, shuffle=True, random_state=0).split(text))
    tagger.fit([text[i] for i in train], [Y[i] for i in train])
    assert [found[i] for i in test] == tagger.predict([text[i] for i in test])
    equal = cross_val_predict(tagger, [["a", "b"]] * 6, [["A", "B"]] * 6, cv=2)
    assert equal.tolist() == [["A", "B"]] * 6


def test_a_step_of_a_pipeline() -> None:
    pipeline = make_pipeline(FunctionTransformer(lambda text: list(map(features, text))), CRF())
    pipeline.set_params(crf__max_iterations=5).fit(X, Y)
    assert pipeline.predict(X[:3]) == CRF(max_iterations=5).fit(F, Y).predict(F[:3])
    more = Pipeline([("tagger", SequenceTagger("self_training", params={"rounds": 1}))])
    more.set_params(tagger__params__rounds=2).fit(X[:10], Y[:10], tagger__unlabeled=X[10:])
    assert more["tagger"].params == {"rounds": 2}
    assert more.score(X, Y) > 0.5


def test_labels_may_be_missing_in_cross_validation() -> None:
    some = [None if i % 3 == 0 else row for i, row in enumerate(Y)]
    method = SequenceTagger("self_training", params={"rounds": 1})
    assert (cross_val_score(method, X, some, cv=2, error_score="raise") > 0.3).all()


def test_it_can_be_saved(tmp_path: Path) -> None:
    tagger = SequenceTagger().fit(X, Y)
    tagger.save(tmp_path / "model")
    assert sslbench.load_tagger(tmp_path / "model").predict(X) == tagger.predict(X)
    with pytest.raises(sslbench.UserError, match="dicts of features"):
        CRF(max_iterations=2).fit(F, Y).save(tmp_path / "other")


@pytest.mark.parametrize(
    ("X_", "y", "message"),
    [
        (X, Y[:-1], "X and y differ: 60 sentences, 59 rows"),
        ([["a"], ["b", "c"]], [["A"], ["B"]], "differ: sentence 2 has 2 tokens, 1 labels"),
        ([["a"], []], [["A"], []], "sentence 2 has no token"),
        (["a b"], [["A", "B"]], "sentence 1 is one text"),
        ("a b", [["A", "B"]], "X is one text"),
        (None, [["A"]], "X is a NoneType"),
        ([["a"], None], [["A"], ["B"]], "sentence 2 is a NoneType"),
        ([["a"], {"b"}], [["A"], ["B"]], "sentence 2 is a set"),
        ([{"w": "a"}], [["A"]], "sentence 1 is a dict"),
        (pd.DataFrame({"words": [["a"]]}), [["A"]], "X is a DataFrame"),
        ([["a", b"b"]], [["A", "B"]], "sentence 1, token 2: b'b' is not a text"),
        ([["a", float("nan")]], [["A", "B"]], "sentence 1, token 2: nan is not a text"),
        ([["a", 3]], [["A", "B"]], "sentence 1, token 2: 3 is not a text"),
        ([[{"a": object()}]], [["A"]], "sentence 1, token 1: feature 'a' is a object"),
        ([[{"a": float("nan")}]], [["A"]], "sentence 1, token 1: feature 'a' is nan"),
        ([[{"a": "b"}, "c"]], [["A", "B"]], "sentence 1, token 2: the token is a str"),
        ([["a"]], None, "y is None"),
        ([["a"]], [None], "no sentence has labels"),
        ([["a", "b"]], [["A", None]], "sentence 1, token 2 has no label"),
        ([["a", "b"]], [[3, -1]], "sentence 1, token 2 has no label"),
        ([["a", "b"]], [["A", b"B"]], "sentence 1, token 2: b'B' is bytes"),
        ([["a", "b"]], [["A", 1]], "several kinds: sentence 1, token 1: 'A'; .*token 2: 1"),
        ([["a", "b"]], [[True, 1]], "several kinds"),
        ([["a", "b"]], [["A", ["B"]]], "sentence 1, token 2: a list is no label"),
        ([["a"]], "A", "y is one text"),
    ],
)
def test_what_does_not_fit_has_a_place(X_: Any, y: Any, message: str) -> None:
    with pytest.raises(sslbench.UserError, match=message):
        SequenceTagger().fit(X_, y)


def test_parameters_that_do_not_fit() -> None:
    for tagger, message in [
        (SequenceTagger(tune=0.5), "tune=0.5"),
        (SequenceTagger(random_state="a"), "random_state='a'"),
        (SequenceTagger(n_threads=0), "n_threads=0"),
        (SequenceTagger(params={"sigma2": -1}), "sigma2"),
    ]:
        with pytest.raises(sslbench.UserError, match=message):
            tagger.fit(X, Y)


@pytest.mark.parametrize(
    "form",
    [
        lambda rows: (row for row in rows),
        lambda rows: map(iter, rows),
        lambda rows: tuple(map(tuple, rows)),
        lambda rows: [np.array(row) for row in rows],
        lambda rows: np.array([*map(np.array, rows), None], dtype=object)[:-1],
        lambda rows: pd.Series(rows, index=range(5, 5 + len(rows))),
        lambda rows: pd.DataFrame({"rows": rows})["rows"],
        lambda rows: [pd.Series(row) for row in rows],
        lambda rows: dict(enumerate(rows)).values(),
    ],
)
def test_any_iterable_is_read_once(form: Any, trained: SequenceTagger) -> None:
    tagger = SequenceTagger().fit(form(X), form(Y), unlabeled=form(X[:3]))
    assert tagger.predict(form(X)) == trained.predict(X)
    assert tagger.score(form(X), form(Y)) == trained.score(X, Y)
    for ours, theirs in zip(tagger.predict_proba(form(X)), trained.predict_proba(X), strict=True):
        np.testing.assert_array_equal(ours, theirs)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize(
    "values",
    [
        [0, 1],
        [np.int64(0), np.int64(1)],
        [False, True],
        [np.bool_(False), np.bool_(True)],
        [0.5, 1.5],
        [Color.RED, Color.BLUE],
        [("a", 1), ("b", 2)],
        ["0", "1"],
    ],
)
def test_labels_come_back_as_given(values: list[Any], tmp_path: Path) -> None:
    words, labels = [["the", "cat"], ["a", "dog"]] * 3, [list(values)] * 6
    tagger = SequenceTagger().fit(words, labels)
    assert tagger.predict(words) == labels
    assert {type(label) for row in tagger.predict(words) for label in row} == {type(values[0])}
    assert sorted(tagger.classes_, key=values.index) == values
    assert tagger.score(words, labels) == 1.0
    assert set(tagger.predict_marginals(words)[0][0]) == set(values)
    if not isinstance(values[0], str):
        with pytest.raises(sslbench.UserError, match="labels are no texts"):
            tagger.save(tmp_path / "model")
        with pytest.raises(sslbench.UserError, match="several kinds: in training"):
            tagger.score(words, [["0", "1"]] * 6)


@pytest.mark.parametrize("missing", [None, -1, float("nan"), [-1, -1, -1], [None, None, None]])
def test_sentences_without_labels_are_unlabeled(missing: Any) -> None:
    words = [["a", "b", "c"], ["b", "c", "d"], ["c", "d", "e"]]
    plain = SequenceTagger("self_training", params={"rounds": 1})
    tagger = clone(plain).fit(words, [[0, 1, 0], [1, 0, 1], missing])
    other = clone(plain).fit(words[:2], [[0, 1, 0], [1, 0, 1]], unlabeled=words[2:])
    np.testing.assert_array_equal(tagger.predict_proba(words), other.predict_proba(words))
    assert tagger.score(words, [[0, 1, 0], missing, missing]) == 1.0


@pytest.mark.parametrize(
    "tags",
    [
        ["I-X", "B-X", "I-X", "O"],
        ["B-X", "B-X", "I-X", "O"],
        ["S-X", "B-X", "E-X", "O"],
        ["S", "B", "E", "S"],
    ],
)
def test_chunk_tags_stay_in_their_scheme(tags: list[str], tmp_path: Path) -> None:
    words = [["a", "b", "c", "d"]] * 3
    tagger = SequenceTagger().fit(words, [tags] * 3)
    assert tagger.tagger_.corpus.task == ("segmentation" if "S" in tags else "spans")
    assert tagger.predict(words) == [tags] * 3
    assert set(tagger.classes_) == set(tags)
    assert tagger.score(words, [tags] * 3) == 1.0
    longer = [[*tags[:3], tags[0]]] * 3
    assert tagger.score(words, longer) == pytest.approx({"I-X": 0.5, "S": 1.0}.get(tags[0], 0.8))
    tagger.save(tmp_path / "model")
    assert sslbench.load_tagger(tmp_path / "model").predict(words) == [tags] * 3


def test_numpy_numbers_are_parameters(tmp_path: Path) -> None:
    params = {"sigma2": np.float64(3), "max_iterations": np.int64(7)}
    tagger = SequenceTagger(params=params, n_threads=np.int64(1), random_state=np.int32(2))
    ours = tagger.fit(X, Y).predict_proba(X[:1])
    plain = SequenceTagger(params={"sigma2": 3.0, "max_iterations": 7}).fit(X, Y)
    np.testing.assert_array_equal(ours, plain.predict_proba(X[:1]))
    CRF(c1=np.float32(0.5), c2=np.logspace(-1, 0, 2)[0], max_iterations=np.int64(2)).fit(F, Y)


def test_any_value_can_be_set_and_is_refused_by_fit_alone() -> None:
    tagger = SequenceTagger(params=3)  # type: ignore[arg-type]
    assert tagger.get_params()["params"] == 3
    assert tagger.set_params(columns=-1).columns == -1
