"""`CRF` is the estimator of sklearn-crfsuite, with the same model."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
import random
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pycrfsuite
import pytest
import scipy.stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import RandomizedSearchCV

import sslbench
from sslbench.sklearn import CRF, metrics, scorers

EXACT = {"delta": 1e-9, "epsilon": 1e-8}
#: names of sklearn_crfsuite.CRF 0.5, in the order of its arguments
ARGUMENTS = [
    "algorithm",
    "min_freq",
    "all_possible_states",
    "all_possible_transitions",
    "c1",
    "c2",
    "max_iterations",
    "num_memories",
    "epsilon",
    "period",
    "delta",
    "linesearch",
    "max_linesearch",
    "calibration_eta",
    "calibration_rate",
    "calibration_samples",
    "calibration_candidates",
    "calibration_max_trials",
    "pa_type",
    "c",
    "error_sensitive",
    "averaging",
    "variance",
    "gamma",
    "verbose",
    "model_filename",
    "keep_tempfiles",
    "trainer_cls",
]
OF_OTHERS = ARGUMENTS[ARGUMENTS.index("calibration_eta") : ARGUMENTS.index("verbose")]


def token(rng: random.Random) -> Any:
    """A token in one of the forms that python-crfsuite takes."""
    word, kind = f"w{rng.randrange(30)}", rng.randrange(5)
    if kind == 0:
        number = rng.choice([0, 1, 2.5, -1.0])
        return {"w": word, "len": number, "up": rng.random() < 0.5, "bias": 1.0}
    if kind == 1:
        return [f"w:{word}", "bias", *rng.choice([["x", "x"], []])]
    if kind == 2:
        inner = {"a": "b", "c": {"d": rng.choice("xy")}, "v": rng.random()}
        return {"w": word, "n": inner, "tags": ["p", "q"]}
    return {f"w={word}": 1, "bias": True, "set": {"s", "t"}}


def text(seed: int, n: int = 60) -> tuple[list[list[Any]], list[list[str]]]:
    """Sentences with labels; C never follows A."""
    rng = random.Random(seed)
    X = [[token(rng) for _ in range(rng.randrange(1, 8))] for _ in range(n)]
    y = [[rng.choice("ABC") for _ in row] for row in X]
    return X, [list("".join(row).replace("AC", "AB")) for row in y]


X, Y = text(0)


def peer(path: Path, **given: Any) -> pycrfsuite.Tagger:
    trainer = pycrfsuite.Trainer(verbose=False)
    for row, labels in zip(X, Y, strict=True):
        trainer.append(pycrfsuite.ItemSequence(row), labels)
    names = {"all_possible_states": "feature.possible_states"}
    names["all_possible_transitions"] = "feature.possible_transitions"
    trainer.set_params({names.get(name, name): value for name, value in given.items()})
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


@pytest.mark.parametrize(
    "given",
    [
        {"c2": 0.5},
        {"c2": 0.5, "all_possible_transitions": True},
        {"c2": 0.5, "all_possible_transitions": True, "all_possible_states": True},
        {"c1": 0.3, "c2": 0.1},
        {"c1": 1.0, "c2": 0.0},
    ],
)
def test_weights_and_probabilities_are_those_of_crfsuite(given: Any, tmp_path: Path) -> None:
    ours, theirs = CRF(**given, **EXACT).fit(X, Y), peer(tmp_path / "model", **given, **EXACT)
    for row, marginals in zip(X, ours.predict_marginals(X), strict=True):
        theirs.set(pycrfsuite.ItemSequence(row))
        for place, token in enumerate(marginals):
            for label, p in token.items():
                assert p == pytest.approx(theirs.marginal(label, place), abs=1e-3)
    info = theirs.info()
    assert ours.state_features_ == pytest.approx(info.state_features, abs=0.01)
    assert ours.transition_features_ == pytest.approx(info.transitions, abs=0.01)
    assert set(ours.attributes_) == set(info.attributes)
    assert ours.num_attributes_ == int(info.header["num_attrs"])


def test_the_constructor_is_that_of_sklearn_crfsuite() -> None:
    names = list(inspect.signature(CRF).parameters)
    assert names == [*ARGUMENTS, "n_threads"]
    defaults = CRF().get_params()
    assert {name for name, value in defaults.items() if value is not None} == {
        "verbose",
        "keep_tempfiles",
    }


def test_every_public_name_is_there() -> None:
    names = [
        "fit",
        "predict",
        "predict_single",
        "predict_marginals",
        "predict_marginals_single",
        "score",
        "tagger_",
        "classes_",
        "size_",
        "num_attributes_",
        "attributes_",
        "state_features_",
        "transition_features_",
        "training_log_",
        "get_params",
        "set_params",
    ]
    crf = CRF(max_iterations=3).fit(X, Y)
    assert [name for name in names if not hasattr(crf, name)] == []
    unfitted = CRF()
    assert not hasattr(unfitted, "state_features_")
    with pytest.raises(NotFittedError):
        unfitted.predict_single(X[0])
    assert crf.predict_single(X[0]) == crf.predict(X)[0]
    assert crf.predict_marginals_single(X[1]) == crf.predict_marginals(X)[1]
    assert crf.size_ > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *(({name: 1}, f"{name} is a parameter of") for name in OF_OTHERS),
        *(({"algorithm": a}, f"'{a}' is not there; use lbfgs") for a in ("ap", "pa", "arow")),
        ({"algorithm": "l2sgd"}, "lbfgs minimizes the same function"),
        ({"algorithm": "adam"}, "'adam' is not there; use lbfgs"),
        ({"linesearch": "Backtracking"}, "leave it out"),
        ({"model_filename": "m"}, "sslbench import"),
        ({"keep_tempfiles": True}, "keep_tempfiles"),
        ({"trainer_cls": object}, "training_log_"),
        ({"c1": -1}, "c1 -1; give a number from 0"),
        ({"c2": float("nan")}, "c2 nan"),
        ({"c2": "a"}, "c2 'a'"),
        ({"max_iterations": 0}, "max_iterations 0; give an integer from 1"),
        ({"period": 1.5}, "period 1.5"),
        ({"all_possible_states": "yes"}, "give true or false"),
    ],
)
def test_what_is_not_there_is_refused_in_words(given: Any, message: str) -> None:
    with pytest.raises(sslbench.UserError, match=message):
        CRF(**given).fit(X, Y)


def test_parameters_of_lbfgs_are_used() -> None:
    few = CRF(max_iterations=2).fit(X, Y).training_log_
    assert [entry["num"] for entry in few.iterations] == [0, 1, 2]
    assert few.last_iteration["loss"] < few.iterations[0]["loss"]
    loose = CRF(period=1, delta=0.5).fit(X, Y).training_log_
    assert (loose.status, len(loose.iterations) < 5) == ("decrease", True)
    assert CRF(epsilon=1.0).fit(X, Y).training_log_.status == "gradient"
    full = CRF().fit(X, Y)
    assert full.num_attributes_ > CRF(min_freq=5).fit(X, Y).num_attributes_
    one = CRF(num_memories=1, max_iterations=20).fit(X, Y)
    assert one.state_features_ != CRF(max_iterations=20).fit(X, Y).state_features_


def test_development_sentences_are_in_the_log() -> None:
    crf = CRF(max_iterations=5).fit(X, Y, X[:9], Y[:9])
    assert crf.training_log_.last_iteration["item_accuracy"] == crf.score(X[:9], Y[:9])
    with pytest.raises(sslbench.UserError, match="belong together"):
        CRF().fit(X, Y, X_dev=X)


def test_copies_predict_the_same() -> None:
    crf = CRF(max_iterations=5).fit(X, Y)
    file = io.BytesIO()
    joblib.dump(crf, file)
    file.seek(0)
    copies = [copy.deepcopy(crf), pickle.loads(pickle.dumps(crf)), joblib.load(file)]  # noqa: S301  # our own
    for other in copies:
        assert other.predict(X) == crf.predict(X)
        assert other.state_features_ == crf.state_features_
    assert clone(crf).get_params() == crf.get_params()


def test_the_search_of_the_tutorial() -> None:
    labels = ["A", "B"]
    scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=labels)
    space = {"c1": scipy.stats.expon(scale=0.5), "c2": scipy.stats.expon(scale=0.05)}
    crf = CRF(algorithm="lbfgs", max_iterations=5, all_possible_transitions=True)
    search = RandomizedSearchCV(
        crf, space, cv=2, n_iter=2, scoring=scorer, random_state=0, error_score="raise"
    ).fit(X, Y)
    assert 0 < search.best_score_ < 1
    assert {name for name, _ in search.best_estimator_.state_features_} <= set(
        search.best_estimator_.attributes_
    )


def test_metrics_are_those_of_scikit_learn() -> None:
    y, found = [["A", "B"], ["A"]], [["A", "A"], ["A"]]
    assert metrics.flat_accuracy_score(y, found) == pytest.approx(2 / 3)
    assert metrics.sequence_accuracy_score(y, found) == 0.5
    flat = ["A", "B", "A"], ["A", "A", "A"]
    for beta in (1, 2):
        ours = metrics.flat_fbeta_score(y, found, beta=beta, average=None, zero_division=0)
        assert ours[0] == pytest.approx((1 + beta**2) * 2 / (beta**2 * 2 + 3))
    ours = metrics.flat_f1_score(
        iter(y), np.array([*found, None], dtype=object)[:-1], average="macro"
    )
    assert ours == f1_score(*flat, average="macro")
    assert metrics.flat_precision_score(y, found, average="micro") == pytest.approx(2 / 3)
    assert metrics.flat_recall_score(y, found, average="micro") == pytest.approx(2 / 3)
    assert "weighted avg" in metrics.flat_classification_report(y, found, zero_division=0)
    with pytest.raises(sslbench.UserError, match="sentence 2 has 1 labels in y_true, 2"):
        metrics.flat_accuracy_score(y, [["A", "B"], ["A", "B"]])
    crf = CRF(max_iterations=2).fit(X, Y)
    assert scorers.flat_accuracy(crf, X, Y) == crf.score(X, Y)
    assert 0 <= scorers.sequence_accuracy(crf, X, Y) <= 1
