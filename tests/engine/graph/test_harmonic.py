"""Harmonic propagation: docs/specs/graph_pr.md, oracle P11; a dense solve; descent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sslbench.engine.graph.propagation.harmonic import harmonic, harmonic_descent, release_rate
from sslbench.engine.types import F64, Bool
from support.propagation_oracle import (
    distributions,
    graph,
    harmonic_optimum,
    laplacian,
    random_graph,
    rows_at,
)

Scene = tuple[csr_array, F64, Bool]
DIGITS = {"rtol": 0, "atol": 6e-11}  # the oracles have ten digits after the point
FIVE = graph(5, [(0, 1, 0.9), (1, 2, 0.5), (2, 3, 0.8), (1, 4, 0.3)])
ENDS = np.array([True, False, False, True, False])
R5 = rows_at({0: (1, 0), 3: (0.25, 0.75)}, 5)


def scene(seed: int, V: int, density: float, K: int = 4) -> Scene:
    labeled = np.random.default_rng(seed).random(V) < 0.25
    r = np.where(labeled[:, None], distributions(seed, V, K), np.nan)
    return random_graph(seed, V, density), r, labeled


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from([0.0, 0.05, 0.1, 0.5]))
def test_harmonic_equals_a_dense_solve(seed: int, V: int, density: float) -> None:
    W, r, labeled = scene(seed, V, density)
    result, wanted = harmonic(W, r, labeled, tolerance=1e-13), harmonic_optimum(W, r, labeled)
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-10)
    np.testing.assert_allclose(result[labeled], r[labeled], rtol=0, atol=1e-15)  # clamped
    np.testing.assert_array_equal(result[wanted[:, 0] == 1 / 4], 1 / 4)  # islands: exactly uniform
    np.testing.assert_allclose(result.sum(axis=1), 1, rtol=0, atol=1e-10)


def test_permuted_vertices_and_labels() -> None:
    W, r, labeled = scene(3, 60, 0.06, 5)
    order, labels = np.random.default_rng(1).permutation(60), np.array([3, 0, 4, 1, 2])
    moved = W[order][:, order].tocsr(), r[order][:, labels], labeled[order]
    for solver in (harmonic, harmonic_descent):
        result = solver(W, r, labeled)
        np.testing.assert_allclose(
            solver(*moved), result[order][:, labels], rtol=0, atol=1e-9, err_msg=solver.__name__
        )


def test_harmonic_is_invariant_to_the_scale_of_weights() -> None:
    W, r, labeled = scene(5, 40, 0.1)
    np.testing.assert_allclose(
        harmonic(W * 37.5, r, labeled), harmonic(W, r, labeled), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_descent_approaches_the_harmonic_solution(seed: int) -> None:
    """The rates sum to about 0.1 sqrt(steps), so the graph needs large eigenvalues."""
    W, r, labeled = scene(seed, 30, 0.4)
    W, wanted = 3 * W, harmonic_optimum(W, r, labeled)
    first, release, last = (
        harmonic_descent(W, r, labeled, max_steps=steps, tolerance=tolerance)
        for steps, tolerance in ((1, 0.0), (3000, 1e-4), (5000, 0.0))
    )
    np.testing.assert_allclose(last, wanted, rtol=0, atol=1e-9)
    assert 1e-9 < np.abs(release - wanted).max() < 0.05 < np.abs(first - wanted).max()
    for q in (first, release, last):
        np.testing.assert_array_equal(q[labeled], r[labeled])
        assert q.min() >= 0


def test_p11_the_largest_constant_step() -> None:
    """A rate below 2 / lambda_max(L_uu) = 0.964... converges, one above does not."""
    wanted = harmonic(FIVE, R5, ENDS)
    for rate, converges in ((0.95, True), (0.98, False)):
        result = harmonic_descent(
            FIVE, R5, ENDS, rate=lambda step, rate=rate: rate, max_steps=3000, tolerance=0
        )
        assert (np.abs(result - wanted).max() < 1e-9) == converges


def test_p11_harmonic() -> None:
    result = harmonic(FIVE, R5, ENDS)
    np.testing.assert_allclose(
        result[[1, 2, 4], 0], [0.8089171975, 0.4649681529, 0.8089171975], **DIGITS
    )
    np.testing.assert_allclose(result.sum(axis=1), 1, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(result[[0, 3]], R5[[0, 3]])


def test_p11_steps() -> None:
    def constant(step: int) -> float:
        return 0.2

    def after(steps: int, rate: Callable[[int], float] = constant) -> F64:
        return harmonic_descent(FIVE, R5, ENDS, rate=rate, max_steps=steps, tolerance=0)

    np.testing.assert_allclose(after(1)[[1, 2, 4], 0], [0.59, 0.46, 0.5], atol=1e-15)
    np.testing.assert_allclose(
        after(10)[[1, 2, 4], 0], [0.7509151854, 0.4350873937, 0.5879112732], **DIGITS
    )
    np.testing.assert_allclose(after(3000), harmonic(FIVE, R5, ENDS), rtol=0, atol=1e-9)
    L = laplacian(FIVE)[np.ix_(~ENDS, ~ENDS)]
    assert 2 / np.linalg.eigvalsh(L).max() == pytest.approx(0.9644069073)
    assert [release_rate(t) for t in (0, 1, 4)] == pytest.approx([0.05, 0.025, 0.05 / 3])
    np.testing.assert_allclose(after(1, release_rate)[[1, 2, 4], 0], [0.5225, 0.49, 0.5])


def test_descent_stops_at_its_tolerance() -> None:
    far, near = (harmonic_descent(FIVE, R5, ENDS, tolerance=t) for t in (1e-2, 1e-4))
    best = harmonic(FIVE, R5, ENDS)
    assert np.abs(near - best).max() < np.abs(far - best).max() < 0.5


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 14), st.sampled_from([0.0, 0.15, 0.5]))
def test_harmonic_is_the_mean_of_neighbors_or_uniform(seed: int, V: int, density: float) -> None:
    W, labeled = random_graph(seed, V, density), np.random.default_rng(seed).random(V) < 0.3
    r = np.where(labeled[:, None], distributions(seed, V, 3), np.nan)
    result, degree = harmonic(W, r, labeled, tolerance=1e-13), np.asarray(W.sum(axis=1)).ravel()
    free = ~labeled & (degree > 0)
    mean = (W @ result)[free] / degree[free, None]
    np.testing.assert_allclose(result[free], mean, rtol=0, atol=1e-11)
    reach = np.linalg.matrix_power(np.eye(V) + W.toarray(), V) @ labeled > 0
    np.testing.assert_array_equal(result[~reach], 1 / 3)
