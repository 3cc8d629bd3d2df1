"""Whole rounds of EM: toy B of docs/specs/graph_pr.md."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from sslbench.engine.crf import HardLabels, LogPartition, Objective, TrainingParams
from sslbench_methods.graph_pr.e_step import Release
from support.compare import close
from support.graph_toys import corpus, pairs
from support.regularization_toys import SOLVED, SUPERVISED_B, Params, all_sequences, em_b


def test_p8_em() -> None:
    em = em_b()
    em.train(3, 0.0)
    trace = em.run.trace
    first = trace["rounds"][0]
    close(trace["J"], -0.6982274452)
    close([first[key] for key in ("R", "KL", "h")], [0.1392925031, 0.0392306126, 0.1000618905])
    J = [-0.6281449143, -0.6002373146, -0.5885327853, -0.5832834126, -0.5807705973, -0.5794844401]
    close(em.path[1:], J)
    assert trace["falls"] == []
    model = em.posterior.model(em.crf.weights)
    assert model.log_z.shape == (2,)


def test_p8_the_parts() -> None:
    em = em_b()
    em.crf.train([em.text.labeled], TrainingParams(sigma2=4.0), options=em.params.options())
    close(em.crf.weights, SUPERVISED_B, 1e-9)
    model = em.posterior.model(em.crf.weights)
    value = em.posterior.value(model, model)
    close(em.objective(value) + value.r, -0.4888524112)
    q, _ = em.e_step(model, value, model)
    close(q.rows[:, 0], [0.8238350104, 0.2269647847, 0.6525508724, 0.3223614404])
    em.m_step(q)
    wanted = [
        *pairs(0.4233835534, -0.4753232602, 0.1221843748, 0.0221768701),
        -0.3614483402,
        0.9273294350,
        -0.2304364124,
        -0.3354446825,
    ]
    close(em.crf.weights, wanted, 1e-9)


def test_p8_the_limit() -> None:
    em = em_b()
    em.train(200, 1e-13)
    assert em.run.trace["stopped"] == "converged"
    close(em.path[-1], -0.5778251520)


def test_p8_truncated() -> None:
    em = em_b(Params(warm="carry"))
    em.schedule = Release(most_steps=2, tolerance=-np.inf)
    em.train(4, 0.0)
    trace = em.run.trace
    assert [entry["etas"] for entry in trace["rounds"]] == [[0.2, 0.1]] * 4
    close(em.path[2::2], [-0.6411250632, -0.6126017070, -0.5979878024, -0.5901853796], 2e-10)
    assert trace["falls"] == []


def weighted_sequences(em: Any, q: Any, beta: float) -> list[Any]:
    """Hard training on every sequence of the text, weighted by q."""
    codes = [2, 0, 3], [1, 3]
    u, T = q.weights[:8].reshape(4, 2), q.weights[8:].reshape(2, 2)
    a = q.offset[em.posterior.penalty.rows.row_of]
    parts, lo = [], 0
    for sentence in codes:
        hi = lo + len(sentence)
        paths = all_sequences(len(sentence))
        scores = np.array(
            [
                sum(
                    u[x, b] + a[lo + t, b] for t, (x, b) in enumerate(zip(sentence, y, strict=True))
                )
                + sum(T[b, c] for b, c in itertools.pairwise(y))
                for y in paths
            ]
        )
        weights = beta * np.exp(scores) / np.exp(scores).sum()
        copies = em.crf.encode(corpus(*[sentence] * len(paths)))
        parts.append((copies, HardLabels(np.ravel(paths).astype(np.int32), weights)))
        lo = hi
    return parts


def test_p9_the_objective_of_the_m_step() -> None:
    em = em_b()
    em.crf.weights[:] = 0.3 * np.sin(np.arange(12))
    model = em.posterior.model(em.crf.weights)
    q, _ = em.posterior.minimize(model, model, SOLVED)
    counts = em.posterior.counted(q).counts
    data, beta = em.posterior.parts[0], 0.7
    objective = Objective(
        em.crf.layout,
        [em.text.labeled, (data, LogPartition(beta))],
        4.0,
        expected_counts=beta * counts,
    )
    theta, gradient = np.cos(np.arange(12)), np.empty(12)
    value = objective.value_and_gradient(theta, gradient)
    for i, step in enumerate(1e-5 * np.eye(12)):
        up = objective.value_and_gradient(theta + step, np.empty(12))
        down = objective.value_and_gradient(theta - step, np.empty(12))
        close((up - down) / 2e-5, gradient[i], 1e-8)
    parts = [em.text.labeled, *weighted_sequences(em, q, beta)]
    wanted = np.empty(12)
    close(Objective(em.crf.layout, parts, 4.0).value_and_gradient(theta, wanted), value, 1e-12)
    close(gradient, wanted, 1e-12)
