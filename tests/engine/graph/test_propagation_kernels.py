"""Passes over a graph against dense matrices, for rows of one strip, of several and of a part."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from sslbench.engine.graph.propagation import kernels
from sslbench.engine.graph.propagation.solver import Edges, on_lines, solve
from support.propagation_oracle import distributions

V = 2500  # three chunks of rows
LABELS = (1, 7, 8, 12, 16, 17, 24, 33, 44)


@pytest.fixture(scope="module")
def graph() -> csr_array:
    """Vertices without an edge at both ends, and one with many."""
    rng = np.random.default_rng(0)
    dense = np.triu(rng.uniform(0.1, 1, (V, V)) * (rng.random((V, V)) < 2e-3), 1)
    dense[70] = np.where(rng.random(V) < 0.2, 0.5, dense[70])
    dense[[0, V - 1]] = 0.0
    dense[:, [0, V - 1]] = 0.0
    dense[:, 70] = 0.0
    return csr_array(np.triu(dense, 1) + np.triu(dense, 1).T)


@pytest.mark.parametrize("K", LABELS)
def test_against_dense_products(graph: csr_array, K: int) -> None:
    rng, dense = np.random.default_rng(K), graph.toarray()
    q, diagonal = rng.normal(size=(V, K)), rng.uniform(1, 2, V)
    out, dots, energy = np.empty_like(q), np.empty(K), np.empty(V)
    edges = Edges.from_matrix(graph, V)
    kernels.system_product(*edges.csr, 0.3, diagonal, q, out, dots)
    wanted = diagonal[:, None] * q - 0.3 * dense @ q
    np.testing.assert_allclose(out, wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(dots, np.einsum("uk,uk->k", q, wanted), rtol=1e-12)
    padded, scale, scaled = on_lines(q), rng.uniform(size=V), np.empty_like(q)
    padded[:, K:] = np.nan  # not used
    kernels.system_product(*edges.csr, 0.3, diagonal, padded, scaled, energy[:K], scale=scale)
    np.testing.assert_array_equal(scaled, out * scale[:, None])
    np.testing.assert_array_equal(energy[:K], dots)
    kernels.row_energy(*edges.csr, q, energy)
    square = (q**2).sum(axis=1)
    gaps = square[:, None] + square[None] - 2 * q @ q.T
    np.testing.assert_allclose(energy, (dense * gaps).sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("K", [2, 12])
def test_a_system_that_is_solved_by_the_last_step(K: int) -> None:
    """Of a diagonal matrix, whose preconditioner is exact: one step."""
    edges = Edges.from_matrix(csr_array((5, 5)), 5)
    b, diagonal = distributions(1, 5, K), np.arange(1.0, 6.0)
    for steps in (1, 2):
        x = solve(edges, 1.0, diagonal, b, max_steps=steps)
        np.testing.assert_allclose(x, b / diagonal[:, None], rtol=1e-12)


@pytest.mark.parametrize("K", [1, 2, 3, *LABELS])
def test_rows_on_lines_of_the_cache(K: int) -> None:
    rows = np.random.default_rng(K).normal(size=(5, K))
    found = on_lines(rows)
    np.testing.assert_array_equal(found[:, :K], rows)
    assert not found[:, K:].any()
    assert found.flags.c_contiguous
    assert found.ctypes.data % 64 == 0
    assert found.shape[1] == (16 if 8 < K <= 16 else K)
