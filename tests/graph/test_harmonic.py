"""Harmonic propagation against a dense solve: clamped ends, islands, order, the release's steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sparse_propagation import ENDS, FIVE, R5

from sslbench.graph.propagation.sparse import harmonic, harmonic_descent
from sslbench.types import F64, Bool
from support.propagation_oracle import distributions, laplacian, random_graph

Scene = tuple[object, F64, Bool]


def dense(W: object, r: F64, labeled: Bool) -> F64:
    """L_uu q_u = W_ul r_l on the vertices with a way to a labeled one; uniform elsewhere."""
    V = len(r)
    walks = np.linalg.matrix_power(np.eye(V) + (W.toarray() > 0), V)
    u = np.flatnonzero(~labeled & (walks @ labeled > 0))
    q = np.where(labeled[:, None], r, 1 / r.shape[1])
    L = laplacian(W)
    q[u] = np.linalg.solve(L[np.ix_(u, u)], -L[np.ix_(u, labeled)] @ r[labeled])
    return q


def scene(seed: int, V: int, density: float, K: int = 4) -> Scene:
    labeled = np.random.default_rng(seed).random(V) < 0.25
    r = np.where(labeled[:, None], distributions(seed, V, K), np.nan)
    return random_graph(seed, V, density), r, labeled


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from([0.0, 0.05, 0.1, 0.5]))
def test_it_is_the_dense_solution(seed: int, V: int, density: float) -> None:
    W, r, labeled = scene(seed, V, density)
    found, wanted = harmonic(W, r, labeled, tolerance=1e-13), dense(W, r, labeled)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found[labeled], r[labeled], rtol=0, atol=1e-15)  # clamped
    np.testing.assert_array_equal(found[wanted[:, 0] == 1 / 4], 1 / 4)  # islands: exactly uniform
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-10)


def test_permuted_vertices_and_labels() -> None:
    W, r, labeled = scene(3, 60, 0.06, 5)
    order, labels = np.random.default_rng(1).permutation(60), np.array([3, 0, 4, 1, 2])
    moved = W[order][:, order].tocsr(), r[order][:, labels], labeled[order]
    for solver in (harmonic, harmonic_descent):
        found = solver(W, r, labeled)
        np.testing.assert_allclose(
            solver(*moved), found[order][:, labels], rtol=0, atol=1e-9, err_msg=solver.__name__
        )


def test_weights_in_another_unit_change_nothing() -> None:
    W, r, labeled = scene(5, 40, 0.1)
    np.testing.assert_allclose(
        harmonic(W * 37.5, r, labeled), harmonic(W, r, labeled), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_the_steps_of_the_release_lead_there(seed: int) -> None:
    """Their rates sum to about 0.1 sqrt(steps): it takes a graph whose eigenvalues are large."""
    W, r, labeled = scene(seed, 30, 0.4)
    W, wanted = 3 * W, dense(W, r, labeled)
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
    """2 / lambda_max(L_uu) = 0.964...: a step below it converges, one above does not."""
    wanted = harmonic(FIVE, R5, ENDS)
    for rate, converges in ((0.95, True), (0.98, False)):
        found = harmonic_descent(
            FIVE, R5, ENDS, rate=lambda step, rate=rate: rate, max_steps=3000, tolerance=0
        )
        assert (np.abs(found - wanted).max() < 1e-9) == converges
