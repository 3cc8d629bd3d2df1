"""Posterior regularization: worked numbers (docs/specs/graph_pr.md, section 11), enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from sslbench.engine.crf import LogPartition, Objective, TrainingParams
from sslbench.engine.graph.propagation.harmonic import harmonic, harmonic_descent
from sslbench.engine.types import F64
from sslbench_methods.graph_pr.e_step import Backtracking, Posterior, RegularizedPosterior, Release
from support.compare import close
from support.graph_toys import Y, corpus, crf_over, symmetric
from support.regularization_toys import (
    A_OPTIMUM,
    L_A,
    SCORES,
    SOLVED,
    VERTICES,
    W_A,
    W_B,
    Params,
    dense_h,
    em_b,
    enumerated,
    laplacian,
    means,
    problem_a,
    sequence_scores,
    stepped,
    token_marginals,
)

# -- toy A -----------------------------------------------------------------------------------------


def test_p1_the_start() -> None:
    problem = problem_a()
    model = problem.model(problem.crf.weights)
    close(model.log_z, [2.6232426990, 2.2464597328])
    marginals = [0.5910047242, 0.4423899387, 0.3516660788, 0.4220805983, 0.6689385526]
    close(problem.crf.marginals(problem.parts[0])[:, 0], marginals)
    close(model.rows[:, 0], [0.7955023621, 0, 0.4322352685, 0.3516660788])
    close(problem.value(model, model), (0.6195251160, 0.0, 0.6195251160))
    G = np.array([0.4860408567, -0.6698670236, -0.2947127084, 0.2872107270])
    close(model.gradient, np.stack([G, -G], axis=1))
    edges = sum(
        W_A[a, b] * ((model.rows[a] - model.rows[b]) ** 2).sum() for a in range(4) for b in range(a)
    )
    close([edges, dense_h(model.rows)], 0.6195251160)


def test_p2_one_step_in_three_spaces() -> None:
    q, model = stepped(problem := problem_a(), 0.5)
    close(q.offset[:, 0], [-0.2430204283, 0.3349335118, 0.1473563542, -0.1436053635, 0])
    close(q.offset[:, 1], -q.offset[:, 0])
    close(q.rows[:, 0], [0.7438855951, 0, 0.4747807517, 0.2986370294])
    close(problem.value(q, model), (0.5109863115, 0.0452832859, 0.4657030256))
    sequences, kl, h = enumerated([0.5])
    q1 = [
        0.1382922079,
        0.1667639971,
        0.0310207454,
        0.1516942397,
        0.0677219094,
        0.0816645888,
        0.0616021667,
        0.3012401450,
    ]
    close(sequences[0], q1)
    close(sequences[1], [0.4119479445, 0.0831708556, 0.2776008483, 0.2272803516])
    close(problem.value(q, model)[1:], (kl, h), 1e-15)
    # the CRF with offsets, spelled out sequence by sequence
    scores = sequence_scores(SCORES + q.offset[VERTICES])
    for found, p in zip(scores, sequences, strict=True):
        close(np.exp(found) / np.exp(found).sum(), p, 1e-15)


@pytest.mark.parametrize(("steps", "R"), [(2, 0.5038048309), (3, 0.5026469999)])
def test_p2_more_steps(steps: int, R: float) -> None:
    q, model = stepped(problem := problem_a(), *[0.5] * steps)
    value = problem.value(q, model)
    close(value.r, R)
    close(value[1:], enumerated([0.5] * steps)[1:], 1e-14)


def test_p2_moving_weights_are_the_same_step() -> None:
    """With theta~ other than theta: against all sequences, from a posterior of another model."""
    problem = problem_a()
    theta = problem.crf.weights
    other = problem.posterior(theta + 0.1 * np.arange(16), np.zeros((5, 2)), counted=True)
    model = problem.model(theta)
    q = problem.step(problem.step(other, model, 0.5), model, 0.25)
    a = 0.75 * -0.5 * other.gradient
    first = problem.step(other, model, 0.5)
    a -= 0.25 * first.gradient
    close(q.offset[:-1], a, 1e-15)
    close(q.weights, theta + 0.5 * 0.75 * 0.1 * np.arange(16), 1e-15)
    u, A = q.weights[2:12].reshape(5, 2), q.weights[12:].reshape(2, 2)
    found = [
        np.exp(s - np.log(np.exp(s).sum())) for s in sequence_scores(u + q.offset[VERTICES], A)
    ]
    p = [np.exp(s - np.log(np.exp(s).sum())) for s in sequence_scores()]
    kl = sum(float(x @ np.log(x / y)) for x, y in zip(found, p, strict=True))
    close(problem.divergence(q, model), kl, 1e-14)
    u, A = first.weights[2:12].reshape(5, 2), first.weights[12:].reshape(2, 2)
    before = [
        np.exp(s - np.log(np.exp(s).sum())) for s in sequence_scores(u + first.offset[VERTICES], A)
    ]
    kl = sum(float(x @ np.log(x / y)) for x, y in zip(found, before, strict=True))
    close(problem.divergence(q, first), kl, 1e-14)


def test_p3_gradient() -> None:
    problem = problem_a()
    model = problem.model(problem.crf.weights)
    q, _ = problem.minimize(model, model, SOLVED)
    rows = problem.penalty.rows
    close(q.gradient[0, 0], 0.3652647989)

    def h(marginals: F64) -> float:
        sums = np.zeros((4, 2))
        for vertex, row in zip(VERTICES, marginals, strict=True):
            if vertex >= 0:
                sums[vertex] += row
        return problem.penalty.value_and_gradient(rows.from_sums(sums))[0]

    free = token_marginals(enumerated([0.5, 0.3])[0])
    sums = np.zeros((5, 2))
    np.add.at(sums, VERTICES, free)
    G = np.vstack(
        [problem.penalty.value_and_gradient(rows.from_sums(sums[:-1]))[1], np.zeros((1, 2))]
    )
    for t in range(5):
        for k in range(2):
            step = np.zeros((5, 2))
            step[t, k] = 1e-4
            close((h(free + step) - h(free - step)) / 2e-4, G[VERTICES[t], k], 1e-9)


def test_p4_the_optimum() -> None:
    problem = problem_a()
    model = problem.model(problem.crf.weights)
    q, found = problem.minimize(model, model, SOLVED)
    assert found["stopped"] == "converged"
    close(problem.value(q, model), (0.5023552140, 0.0792207439, 0.4231344701))
    close(q.offset[:-1, 0], A_OPTIMUM)
    close(q.offset[:-1], -q.gradient)
    close(q.rows[:, 0], [0.7138263577, 0, 0.4666046607, 0.2908378120])

    def objective(logits: F64) -> float:
        q = [np.exp(x - np.log(np.exp(x).sum())) for x in (logits[:8], logits[8:])]
        prior = [s - np.log(np.exp(s).sum()) for s in sequence_scores()]
        kl = sum(float(x @ (np.log(x) - s)) for x, s in zip(q, prior, strict=True))
        return kl + dense_h(means(token_marginals(q)))

    best = minimize(objective, np.zeros(12), method="BFGS", options={"gtol": 1e-9})
    close(problem.value(q, model).r, best.fun, 1e-12)


def test_p4_the_default_ends_near_it() -> None:
    problem = problem_a()
    model = problem.model(problem.crf.weights)
    q, found = problem.minimize(model, model, Backtracking())
    close(problem.value(q, model).r, 0.5023552140, 1e-6)
    assert found["residual"] < 1e-3
    close(q.offset[:-1, 0], A_OPTIMUM, 1e-3)
    assert found["stopped"] == "converged"


@pytest.mark.parametrize(
    ("lam", "eta", "left", "right"),
    [
        (1, 0.8, 0.0688572166, 0.0287757165),
        (1, 0.5, 0.0271451422, 0.0452832859),
        (5, 0.5, 2.8519288119, 0.9508987967),
        (5, 0.25, 0.8178626859, 0.8215363275),
    ],
)
def test_p5_the_test_of_a_step(lam: float, eta: float, left: float, right: float) -> None:
    q, model = stepped(problem := problem_a(lam), eta)
    gap = problem.divergence(q, model)
    close(lam * problem.penalty.divergence(q.rows, model.rows), left)
    close((1 / eta - 1) * gap, right)
    assert problem.descends(q, model, eta, gap) == (left <= right)


def test_p6_the_safe_step() -> None:
    largest = np.linalg.eigvalsh(L_A)[-1]
    close(largest, 2.2198510335)
    eta = 1 / (1 + 2 * largest)
    close(eta, 0.1838335974)
    problem = problem_a()
    model = problem.model(problem.crf.weights)
    optimum, _ = problem.minimize(model, model, SOLVED)
    distance = problem.divergence(optimum, model)
    for steps, wanted, bound in (
        (1, 0.0605780490, 0.3517165005),
        (5, 0.0054275529, 0.1560657471),
        (20, 4.374e-6, 0.0074129026),
    ):
        q, _ = stepped(problem, *[eta] * steps)
        gap = problem.value(q, model).r - problem.value(optimum, model).r
        close(gap, wanted, 1e-9)
        close((1 - eta) ** steps * distance / eta, bound, 1e-9)


def test_p6_a_constant_step_may_fail_and_backtracking_does_not() -> None:
    problem = problem_a(5.0)
    q, model = stepped(problem, *[0.5] * 60)
    close(problem.value(model, model).r, 3.0976, 5e-5)
    close(problem.value(q, model).r, 4.8857, 5e-5)
    best, _ = problem.minimize(model, model, SOLVED)
    close(problem.value(best, model).r, 1.7326912150)
    close(best.rows[:, 0], [0.5647825, 0, 0.4292228, 0.2214953], 1e-7)
    problem = problem_a(20.0)
    model = problem.model(problem.crf.weights)
    close(problem.value(problem.minimize(model, model, SOLVED)[0], model).r, 4.7367494979)


def test_p6_a_rise_is_noticed() -> None:
    """Steps that are not checked end when R rises, and the best q is given back."""
    problem = problem_a(20.0)
    model = problem.model(problem.crf.weights)
    best, found = problem.minimize(model, model, Release(first=0.9))
    assert found["stopped"] == "rise"
    assert problem.value(best, model).r <= found["start"]


@pytest.mark.parametrize(
    ("lam", "x", "R"), [(1, 0.5254357061, 0.3352340909), (5, 0.7854806350, 0.7324205397)]
)
def test_p7_one_token(lam: float, x: float, R: float) -> None:
    crf = crf_over(corpus([0]), np.zeros(1, np.int32), corpus([1]))
    crf.weights[2:4] = np.log([0.3, 0.7])
    W = symmetric(2, {(0, 1): 0.5})
    penalty = laplacian(W, np.array([0], np.int32), Y[:1], np.array([1], np.int32))
    problem = RegularizedPosterior(crf, [crf.encode(corpus([1]))], penalty, lam)
    model = problem.model(crf.weights)
    q, _ = problem.minimize(model, model, SOLVED)
    close(q.rows[1, 0], x)
    close(problem.value(q, model).r, R)
    close(np.log(x / (1 - x)), np.log(0.3 / 0.7) + 4 * lam * 0.5 * (1 - x), 1e-9)


# -- toy B -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lam", "W"), [(0.0, W_B), (1.0, 0.0 * W_B)])
def test_p10_nothing_to_regularize(lam: float, W: F64) -> None:
    em = em_b(Params(lam=lam), W)
    em.crf.train([em.text.labeled], TrainingParams(sigma2=4.0), options=em.params.options())
    supervised = em.crf.weights.copy()
    model = em.posterior.model(supervised)
    q, _ = em.posterior.minimize(model, model, Backtracking())
    assert not q.offset.any()
    close(q.rows, model.rows, 1e-16)
    counts = em.posterior.counted(q).counts
    gradient = np.empty(12)
    parts = [em.text.labeled, (em.posterior.parts[0], LogPartition())]
    Objective(em.crf.layout, parts, 4.0, expected_counts=counts).value_and_gradient(
        supervised, gradient
    )
    close(gradient, 0, 1e-9)
    em.train(3, 0.0)
    close(em.crf.weights, supervised, 1e-8)


# -- baselines and invariances ---------------------------------------------------------------------


def test_p11_graph_propagation() -> None:
    W = csr_array(symmetric(5, {(0, 1): 0.9, (1, 2): 0.5, (2, 3): 0.8, (1, 4): 0.3}))
    labeled = np.array([True, False, False, True, False])
    r = np.zeros((5, 2))
    r[0], r[3] = (1, 0), (0.25, 0.75)
    rows = [0.8089171975, 0.4649681529, 0.8089171975]
    close(harmonic(W, r, labeled)[[1, 2, 4], 0], rows)
    wanted = {1: [0.59, 0.46, 0.5], 10: [0.7509151854, 0.4350873937, 0.5879112732], 2000: rows}
    for steps, row in wanted.items():
        q = harmonic_descent(W, r, labeled, rate=lambda _: 0.2, max_steps=steps, tolerance=0.0)
        close(q[[1, 2, 4], 0], row)
    inner = np.diag(W.sum(axis=0)) - W.toarray()
    close(2 / np.linalg.eigvalsh(inner[np.ix_([1, 2, 4], [1, 2, 4])])[-1], 0.9644069073)


def solved(problem: RegularizedPosterior) -> Posterior:
    model = problem.model(problem.crf.weights)
    return problem.minimize(model, model, SOLVED)[0]


def test_p13_scale_of_the_graph() -> None:
    close(solved(problem_a(0.25, 4 * W_A)).offset[:-1, 0], A_OPTIMUM)


def test_p13_numbers_of_the_vertices() -> None:
    order = np.array([2, 0, 3, 1])  # vertex order[v] becomes v
    number = np.append(np.argsort(order), -1).astype(np.int32)
    problem = problem_a()
    penalty = laplacian(W_A[np.ix_(order, order)], number[:2], Y, number[VERTICES])
    moved = RegularizedPosterior(problem.crf, problem.parts, penalty, 1.0)
    close(solved(moved).offset[:-1, 0], np.array(A_OPTIMUM)[order])


def test_p13_a_huge_penalty() -> None:
    """Connected tokens share one marginal, that of their neighbors with labels too."""
    W = symmetric(4, {(2, 3): 1.0})
    q = solved(problem_a(3000.0, W))
    close(q.rows[2], q.rows[3], 1e-3)
    assert abs(problem_a().model(problem_a().crf.weights).rows[2, 0] - q.rows[2, 0]) > 0.01


def test_p13_an_isolated_vertex() -> None:
    W = W_A.copy()
    W[3] = W[:, 3] = 0.0
    q = solved(problem_a(1.0, W))
    assert not q.offset[3].any()
    assert q.offset[2].any()


def test_p13_order_of_the_sentences() -> None:
    one, other = (
        em_b(),
        em_b(text=corpus([1, 3], [2, 0, 3]), vertices=np.array([1, -1, 2, 0, 3], np.int32)),
    )
    one.train(2, 0.0)
    other.train(2, 0.0)
    close(one.crf.weights, other.crf.weights, 1e-9)
    close(one.path, other.path, 1e-12)
