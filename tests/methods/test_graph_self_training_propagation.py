"""Label propagation on the simplex, and the properties of the update.

Source: docs/specs/graph.md, oracles G6 to G10 and G15.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sslbench.engine.graph.propagation.quadratic import propagate_optimum, roughness
from sslbench.engine.graph.propagation.solver import EdgeCount, Edges
from sslbench.engine.types import F64, Bool
from sslbench_methods.graph_self_training.algorithm import propagate
from sslbench_methods.graph_self_training.kernels import jacobi_step
from support.propagation_oracle import (
    LABELED,
    distributions,
    graph,
    laplacian,
    propagation_objective,
    quadratic_optimum,
    random_graph,
    rows_at,
    six,
)

R = rows_at({0: (1, 0), 3: (0.25, 0.75)})
MU, NU = 0.5, 0.01
DIGITS = {"rtol": 0, "atol": 6e-11}  # the oracles have ten digits after the point


def two(column: list[float]) -> F64:
    first = np.array(column)
    return np.stack([first, 1 - first], axis=1)


START = two([0.8, 0.6, 0.3, 0.4, 0.9, 0.2])
OPTIMUM: dict[EdgeCount, list[float]] = {
    "once": [0.9245334364, 0.7662640381, 0.4920296826, 0.3204339525, 0.5, 0.5],
    "twice": [0.8774381450, 0.7454520633, 0.5127861575, 0.3675297934, 0.5, 0.5],
}
AFTER = {
    1: [0.8732876712, 0.6197183099, 0.4772727273, 0.2659574468, 0.2083333333, 0.8888888889],
    2: [0.8793652325, 0.7285882167, 0.4035038730, 0.3162475822, 0.8780864198, 0.2164351852],
    10: [0.9231696052, 0.7653189275, 0.4891961099, 0.3200264411, 0.8017973536, 0.2736519848],
}


@pytest.mark.parametrize("count", ["once", "twice"])
def test_g6_the_optimum(count: EdgeCount) -> None:
    result = propagate_optimum(six(), R, LABELED, MU, NU, count)
    np.testing.assert_allclose(result, two(OPTIMUM[count]), **DIGITS)
    steps = propagate(six(), START, R, LABELED, MU, NU, 2000, count)
    np.testing.assert_allclose(steps, result, rtol=0, atol=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 10])
def test_g7_after_some_steps(steps: int) -> None:
    result = propagate(six(), START, R, LABELED, MU, NU, steps)
    np.testing.assert_allclose(result, two(AFTER[steps]), **DIGITS)


def test_default_is_ten_steps_and_zero_steps_copy_the_start() -> None:
    np.testing.assert_array_equal(
        propagate(six(), START, R, LABELED, MU, NU),
        propagate(six(), START, R, LABELED, MU, NU, 10),
    )
    before = START.copy()
    result = propagate(six(), START, R, LABELED, MU, NU, 0)
    np.testing.assert_array_equal(result, before)
    result[:] = 0
    np.testing.assert_array_equal(START, before)  # a copy, not the caller's array


def test_g7_convergence_rate() -> None:
    """The ratio of late steps is the spectral radius; bound (iii) holds."""
    best = propagate_optimum(six(), R, LABELED, MU, NU, tolerance=1e-14)
    gaps = [np.abs(propagate(six(), START, R, LABELED, MU, NU, m) - best).max() for m in (200, 201)]
    assert gaps[1] / gaps[0] == pytest.approx(0.9722222222, abs=1e-9)
    degree = np.asarray(six().sum(axis=1)).ravel()
    assert (MU * degree / (LABELED + NU + MU * degree)).max() == pytest.approx(0.9859154930)


def test_g8_the_objective_falls() -> None:
    values = [
        propagation_objective(
            six(), propagate(six(), START, R, LABELED, MU, NU, m), R, LABELED, MU, NU
        )
        for m in range(60)
    ]
    printed = [0.5650000000, 0.4694722352, 0.4329739161, 0.3087970333]
    np.testing.assert_allclose([values[m] for m in (0, 1, 2, 10)], printed, **DIGITS)
    assert all(b <= a for a, b in pairwise(values))
    best = propagate_optimum(six(), R, LABELED, MU, NU)
    lowest = propagation_objective(six(), best, R, LABELED, MU, NU)
    assert lowest == pytest.approx(0.1106835399, abs=6e-11)


def test_g9_rows_keep_their_sum_unlike_the_printed_update() -> None:
    q = START.copy()
    W, degree = six().toarray(), six().toarray().sum(axis=1)
    for _ in range(10):  # as printed: no mu before the sum over neighbors
        q = (LABELED[:, None] * R + W @ q + NU / 2) / (LABELED + NU + MU * degree)[:, None]
    printed = [18.7038791317, 38.3821914152, 38.0377740295, 17.0627909333, *[795.2953787928] * 2]
    np.testing.assert_allclose(q.sum(axis=1), printed, rtol=1e-11)
    ours = propagate(six(), START, R, LABELED, MU, NU, 10)
    np.testing.assert_allclose(ours.sum(axis=1), 1, rtol=0, atol=1e-14)


def test_g10_vertices_without_neighbors() -> None:
    W = graph(3, [(0, 1, 0.4)])
    W = csr_array(np.pad(W.toarray(), (0, 1)))
    labeled = np.array([True, False, True, False])
    r = rows_at({0: (1, 0), 2: (0.2, 0.8)}, 4)
    result = propagate(W, distributions(1, 4, 2), r, labeled, MU, NU, 1)
    np.testing.assert_allclose(result[2], (r[2] + NU / 2) / (1 + NU), rtol=1e-15)
    np.testing.assert_array_equal(result[3], [0.5, 0.5])
    best = propagate_optimum(W, r, labeled, MU, NU)
    np.testing.assert_allclose(best[2:], result[2:], rtol=1e-14)


def test_isolated_vertices_and_components_without_prior() -> None:
    W = csr_array(np.pad(six().toarray(), (0, 1)))
    labeled, r = np.append(LABELED, False), np.pad(R, ((0, 1), (0, 0)))
    start = distributions(2, 7, 2)
    np.testing.assert_array_equal(propagate(W, start, r, labeled, MU, 0.0, 3)[6], start[6])
    best = propagate_optimum(W, r, labeled, MU, 0.0)
    np.testing.assert_array_equal(best[4:], np.full((3, 2), 0.5))
    S, L = np.diag(LABELED[:4].astype(float)), laplacian(six())[:4, :4]
    np.testing.assert_allclose(best[:4], np.linalg.solve(S + MU * L, S @ R[:4]), atol=1e-9)


@st.composite
def problems(draw: st.DrawFn) -> tuple[csr_array, F64, F64, Bool, float, float]:
    V, K = draw(st.integers(1, 14)), draw(st.integers(2, 5))
    seed, density = draw(st.integers(0, 10_000)), draw(st.sampled_from([0.0, 0.1, 0.3, 0.9]))
    labeled = np.random.default_rng(seed).random(V) < draw(st.sampled_from([0.0, 0.2, 0.7, 1.0]))
    r = distributions(seed + 1, V, K)
    r[~labeled] = np.nan  # must not be read
    mu, nu = draw(st.sampled_from([0.05, 0.5, 3.0])), draw(st.sampled_from([0.001, 0.01, 0.5]))
    return random_graph(seed, V, density), distributions(seed + 2, V, K), r, labeled, mu, nu


@settings(max_examples=60)
@given(problems(), st.sampled_from(["once", "twice"]))
def test_properties_of_the_update(
    given_: tuple[csr_array, F64, F64, Bool, float, float], count: EdgeCount
) -> None:
    """(i) distributions, (ii) a falling objective, (iii) contraction, against a dense solve."""
    W, start, r, labeled, mu, nu = given_
    c = {"once": mu, "twice": 2 * mu}[count]
    known = np.where(labeled[:, None], r, 0.0)
    best = quadratic_optimum(W, known, labeled, np.full_like(start, 1 / start.shape[1]), c, nu)
    result = propagate_optimum(W, r, labeled, mu, nu, count, tolerance=1e-13)
    np.testing.assert_allclose(result, best, rtol=0, atol=1e-10)
    degree = np.asarray(W.sum(axis=1)).ravel()
    bound = (c * degree / (labeled + nu + c * degree)).max()
    q = start
    for _ in range(6):
        step = propagate(W, q, r, labeled, mu, nu, 1, count)
        assert step.min() >= 0
        np.testing.assert_allclose(step.sum(axis=1), 1, rtol=0, atol=1e-13)
        before, after = (
            propagation_objective(W, rows, r, labeled, mu, nu, count) for rows in (q, step)
        )
        assert after <= before + 1e-12
        assert np.abs(step - best).max() <= bound * np.abs(q - best).max() + 1e-12
        q = step


@settings(max_examples=30)
@given(st.integers(0, 6), st.integers(1, 4))
def test_labels_move_one_edge_per_step(steps: int, seed: int) -> None:
    """(v), on a path: a label has no influence beyond `steps` edges."""
    rng = np.random.default_rng(seed)
    W = graph(9, [(u, u + 1, float(rng.uniform(0.1, 1))) for u in range(8)])
    labeled = np.arange(9) == 0
    start = distributions(seed, 9, 2)
    one, other = (
        propagate(W, start, rows_at({0: row}, 9), labeled, MU, NU, steps)
        for row in ((1, 0), (0, 1))
    )
    far = np.abs(one - other).max(axis=1) > 0
    np.testing.assert_array_equal(far, np.arange(9) < steps)


def test_g15_permuted_vertices_and_labels() -> None:
    W, labeled = random_graph(3, 40, 0.15), np.arange(40) % 4 == 0
    r, start = distributions(4, 40, 5), distributions(5, 40, 5)
    order, labels = np.random.default_rng(6).permutation(40), np.array([3, 0, 4, 1, 2])
    for solved in (
        lambda W, q, r, s: propagate(W, q, r, s, MU, NU),
        lambda W, q, r, s: propagate_optimum(W, r, s, MU, NU, tolerance=1e-14),
    ):
        result = solved(W, start, r, labeled)
        moved = solved(
            W[order][:, order].tocsr(),
            start[order][:, labels],
            r[order][:, labels],
            labeled[order],
        )
        np.testing.assert_allclose(moved, result[order][:, labels], rtol=0, atol=1e-13)


def test_single_label_has_probability_one() -> None:
    ones = np.ones((6, 1))
    np.testing.assert_allclose(propagate(six(), ones, ones, LABELED, MU, NU), 1, rtol=1e-15)
    np.testing.assert_array_equal(propagate_optimum(six(), ones, LABELED, MU, NU), ones)


def test_roughness_equals_the_trace() -> None:
    W, q = random_graph(8, 30), distributions(9, 30, 4)
    assert roughness(W, q) == pytest.approx(np.trace(q.T @ laplacian(W) @ q), rel=1e-13)


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"start must be float64\[6, K\]"):
        propagate(six(), START[:5], R, LABELED, MU, NU)
    with pytest.raises(ValueError, match=r"W must be csr\[6, 6\]"):
        propagate(graph(5, [(0, 1, 0.5)]), START, R, LABELED, MU, NU)
    with pytest.raises(ValueError, match="start has 2 labels, r has 1"):
        propagate(six(), START, R[:, :1], LABELED, MU, NU)
    with pytest.raises(ValueError, match="W must be csr"):
        propagate(six().tocsc(), START, R, LABELED, MU, NU)


def test_too_few_steps_raise() -> None:
    with pytest.raises(ArithmeticError, match="2 of 2 labels did not reach"):
        propagate_optimum(
            random_graph(1, 60), distributions(1, 60, 2), np.arange(60) < 5, 5.0, 1e-4, max_steps=2
        )


@pytest.mark.parametrize("K", [1, 3, 8, 12, 17, 40])
def test_a_jacobi_step(K: int) -> None:
    rng, V = np.random.default_rng(K), 30
    W = random_graph(2, V)
    q, r, labeled = distributions(1, V, K), distributions(2, V, K), rng.random(V) < 0.3
    scale = rng.uniform(0.1, 1, V)
    scale[0] = 0.0
    wanted = scale[:, None] * (labeled[:, None] * r + 0.4 * W.toarray() @ q + 0.01)
    wanted[0] = q[0]
    edges = Edges.from_matrix(W, V)
    out = np.empty_like(q)
    jacobi_step(*edges.csr, q, r, labeled, 0.4, 0.01, scale, out)
    np.testing.assert_allclose(out, wanted, rtol=0, atol=1e-13)
