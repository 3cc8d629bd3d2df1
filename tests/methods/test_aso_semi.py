"""ASO: its predictors against dense solves, its subspace, and what it may not depend on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from sslbench import TrainingParams
from sslbench.engine.features import Template
from sslbench.experiment.inputs.text_features import on_features
from sslbench.testing.cases import method_case
from sslbench.testing.toys import toy_dataset
from sslbench_methods.aso_semi.method import AsoCRF, AsoSemi
from sslbench_methods.aso_semi.subspace import (
    Subspace,
    attribute_matrix,
    ridge,
    seen_without,
    shared_directions,
    word_targets,
)


def fit(**params: Any) -> Any:
    few = {"aso_words": 10, "aso_size": 3, "aso_min_count": 1, "max_iterations": 50, **params}
    return method_case(AsoCRF, few, ()).fit(toy_dataset())


def test_ridge_is_the_dense_solution() -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((60, 12)) < 0.3).astype(np.float32)
    X[:, 5] = 0.0  # an attribute that does not occur
    Y = (rng.random((60, 4)) < 0.2).astype(np.float32)
    Y[:, 2] = 0.0  # a word that does not occur
    for weight in (1e-4, 0.1):
        found = ridge(sparse.csr_array(X), Y, weight, 200, 1e-6)
        gram = X.astype(float).T @ X / 60 + weight * np.eye(12)
        expected = np.linalg.solve(gram, X.T.astype(float) @ Y / 60)
        assert np.allclose(found, expected, atol=2e-4)
        assert not found[:, 2].any()
        assert not found[5].any()


def test_directions_are_left_singular_vectors_of_the_positive_part() -> None:
    rng = np.random.default_rng(1)
    parts = [rng.normal(size=(9, 3)).astype(np.float32) for _ in range(2)]
    found = shared_directions(parts, 4).astype(float)
    U, S, _ = np.linalg.svd(np.maximum(np.hstack(parts), 0.0).astype(float))
    assert np.allclose(found @ found.T, U[:, :4] @ U[:, :4].T, atol=1e-5)
    assert np.allclose(found.T @ found, np.eye(4), atol=1e-5)
    assert (found.sum(axis=0) >= 0).all()
    assert S[3] > 0
    assert shared_directions([np.zeros((5, 2), np.float32)], 3).shape == (5, 0)


def test_matrices_by_hand() -> None:
    node = np.array([[0, 2, -1], [1, 1, 1]], np.int32)
    whole = attribute_matrix(node, np.array([True, True]), 3).toarray().tolist()
    assert whole == [[1, 1, 0], [0, 1, 1], [0, 1, 0]]
    one = attribute_matrix(node, np.array([True, False]), 3).toarray().tolist()
    assert one == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    number, sentence = np.array([0, 1, 5, -1, 1], np.int32), np.array([0, 0, 0, 1, 1])
    last = word_targets(number, -1, sentence, 2).toarray().tolist()
    assert last == [[0, 0], [1, 0], [0, 1], [0, 0], [0, 0]]
    following = word_targets(number, 1, sentence, 2).toarray().tolist()
    assert following == [[0, 1], [0, 0], [0, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("text", "offset", "expected"),
    [
        ("word[0]", 0, False),
        ("word[0]", 1, True),
        ("word.suffix2[0]", 0, False),
        ("word[-1]|pos[0]", -1, False),
        ("word[-1]|pos[0]", 0, True),
        ("pos[0]", 0, True),
        ("bag: word[-2..-1]", -1, False),
        ("bag: word[-2..-1]", 0, True),
        ("bias", 0, True),
    ],
)
def test_attributes_that_tell_the_word_are_left_out(text: str, offset: int, expected: bool) -> None:
    assert seen_without(Template.parse(text), "word", offset) is expected


def rotated(learned: Subspace, seed: int) -> Subspace:
    h = learned.theta.shape[1]
    turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(h, h)))
    return replace(learned, theta=(learned.theta @ turn).astype(np.float32))


def test_rotation_of_the_subspace_changes_nothing() -> None:
    fitted = fit()
    learned = fitted.own_tagger.learned["aso_semi"]
    assert learned.theta.any()
    test, params = toy_dataset().splits["test"], TrainingParams(ftol=1e-10, max_iterations=2000)
    found = []
    for each in (learned, rotated(learned, 3)):
        problem = on_features(fitted.problem, [each], text=False)
        crf = problem.crf(params)
        crf.train([problem.encode(crf).labeled], params)
        found.append(crf.predict_marginals(test))
    assert np.abs(found[0] - found[1]).max() < 1e-3
    assert (found[0].argmax(axis=1) == found[1].argmax(axis=1)).all()


def test_no_columns_is_supervised() -> None:
    fitted = fit(aso_size=0)
    params = TrainingParams(max_iterations=50)
    crf = fitted.problem.crf(params)
    crf.train([fitted.problem.encode(crf).labeled], params)
    assert fitted.own_tagger.tagger.weights.tolist() == crf.weights.tolist()


def test_columns_have_the_standard_deviation_that_was_asked_for() -> None:
    fitted = fit(aso_scale=2.0)
    learned = fitted.own_tagger.learned["aso_semi"]
    (shard,) = fitted.problem.unlabeled
    columns = learned.dense(shard)
    assert columns.shape == (shard.n_tokens, len(learned.dense_columns))
    assert np.sqrt(np.mean(columns**2)) == pytest.approx(2.0, rel=1e-5)


def test_saved_subspaces_are_checked() -> None:
    learned = fit().own_tagger.learned["aso_semi"]
    arrays, facts = learned.arrays()
    again = AsoSemi.restore(arrays, facts)
    test = toy_dataset().splits["test"]
    assert again.dense(test).tolist() == learned.dense(test).tolist()
    for name, wrong in (
        ("theta", arrays["theta"][:-1]),
        ("theta", arrays["theta"] * np.nan),
        ("group", arrays["group"][:-1]),
        ("group", arrays["group"] - 1),
    ):
        with pytest.raises(ValueError, match=r"."):
            AsoSemi.restore({**arrays, name: wrong}, facts)
