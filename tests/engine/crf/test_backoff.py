"""Weights of tags beside those of labels, against a training of all these weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

from sslbench.engine.crf import STRICT, HardLabels, TrainingParams
from sslbench.engine.crf.weights.backoff import BackOff
from sslbench.engine.types import F64
from support.graph_problems import random_problem
from support.objective_toys import CASES, case

TAGS = ("x", "y", "x")  # of three labels


@pytest.mark.parametrize("name", CASES)
def test_the_gradient(name: str) -> None:
    one = case(name)
    objective = one.objective(HardLabels(one.labels), 0.7, tags=TAGS)
    gradient = np.empty(one.layout.size)

    def slope(weights: F64) -> F64:
        objective.value_and_gradient(weights, gradient)
        return gradient.copy()

    def value(weights: F64) -> float:
        return objective.value_and_gradient(weights, np.empty(one.layout.size))

    assert check_grad(value, slope, one.weights) < 1e-5


def test_the_prior_is_that_of_both_kinds_of_weights_at_the_best_ones_of_tags() -> None:
    one = case("state")
    term, state = HardLabels(one.labels), one.layout.span("state")
    shared = one.objective(term, 0.7, tags=TAGS).value_and_gradient(
        one.weights, np.empty(one.layout.size)
    )
    alone = one.objective(term, 0.7).value_and_gradient(one.weights, np.empty(one.layout.size))
    v = one.weights[state].reshape(-1, 3)

    def squares(u: F64) -> float:
        tag = np.array([0, 1, 0])
        each = u.reshape(len(v), 2)
        return float(((v - each[:, tag]) ** 2).sum() + (each**2).sum()) / 1.4

    best = minimize(squares, np.zeros(2 * len(v)), tol=1e-12).fun
    assert alone - shared == pytest.approx(best - (v**2).sum() / 1.4, rel=1e-9)


def test_a_training_finds_the_optimum_of_both_kinds_of_weights() -> None:
    problem, params = random_problem(5), TrainingParams(sigma2=0.8)
    crf = replace(problem.crf(params), backoff_tags=("x", "y", "x", "y"))
    part = crf.encode(problem.labeled), HardLabels(problem.label_codes(problem.labeled))
    crf.train([part], params, options=STRICT)

    L, state = len(crf.labels), crf.layout.span("state")
    tag, n, n_tags = np.array([0, 1, 0, 1]), crf.layout.n_node, 2

    def loss(x: F64) -> tuple[float, F64]:
        w, u = x[: crf.layout.size], x[crf.layout.size :].reshape(n, n_tags)
        v = w.copy()
        v[state] = (w[state].reshape(n, L) + u[:, tag]).reshape(-1)
        found = crf.expect([part], v)
        by_tag = np.zeros((n, n_tags))
        np.add.at(by_tag.T, tag, found.counts[state].reshape(n, L).T)
        gradient = np.concatenate([found.counts, by_tag.reshape(-1)]) - x / 0.8
        return -(found.values.sum() - x @ x / 1.6), -gradient

    start = np.zeros(crf.layout.size + n * n_tags)
    best = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000})
    assert -best.fun == pytest.approx(crf.objective([part], params), rel=1e-7)
    u = best.x[crf.layout.size :].reshape(n, n_tags)
    v = best.x[state].reshape(n, L) + u[:, tag]
    np.testing.assert_allclose(crf.weights[state].reshape(n, L), v, atol=2e-3)


def test_only_pairs_with_a_weight_count() -> None:
    one = case("observed")
    backoff = BackOff.build(one.layout, TAGS)
    start, label = one.layout.state_start, one.layout.state_label
    for attribute in range(one.layout.n_node):
        labels = label[start[attribute] : start[attribute + 1]]
        groups = backoff.group[start[attribute] : start[attribute + 1]]
        for group in set(groups.tolist()):
            same = {TAGS[code] for code in labels[groups == group]}
            assert len(same) == 1
            assert backoff.size[group] == 1 + (groups == group).sum()
