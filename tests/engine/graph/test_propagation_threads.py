"""Propagation gives the same bits for any number of threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.graph.propagation.harmonic import harmonic, harmonic_descent
from sslbench.engine.graph.propagation.quadratic import propagate_optimum, roughness
from sslbench.engine.types import F64, Bool
from sslbench_methods.graph_self_training.algorithm import propagate
from support.propagation_oracle import distributions

Solver = Callable[[csr_array, F64, F64, Bool], F64]

SOLVERS: dict[str, Solver] = {
    "steps": lambda W, q, r, s: propagate(W, q, r, s, 0.5, 0.01),
    "optimum": lambda W, q, r, s: propagate_optimum(W, r, s, 0.5, 0.01),
    "roughness": lambda W, q, r, s: np.array(roughness(W, q)),
    "harmonic": lambda W, q, r, s: harmonic(W, r, s),
    "descent": lambda W, q, r, s: harmonic_descent(W, r, s, max_steps=5, tolerance=0),
}


def sparse_graph(V: int, seed: int) -> csr_array:
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, V, (2, 3 * V))
    u, v = u[u != v], v[u != v]
    half = coo_array((rng.uniform(0.1, 1, len(u)), (u, v)), shape=(V, V)).tocsr()
    return (half + half.T).tocsr()


@pytest.mark.parametrize("name", list(SOLVERS))
def test_results_are_independent_of_threads(name: str) -> None:
    """With several chunks of the column sums."""
    V, K = 5000, 7
    W, labeled = sparse_graph(V, 1), np.arange(V) % 9 == 0
    q, r = distributions(2, V, K), distributions(3, V, K)
    result = []
    for threads in (1, 2, 3):
        with using_threads(threads):
            result.append(SOLVERS[name](W, q, r, labeled))
    assert np.isfinite(result[0]).all()
    for other in result[1:]:
        np.testing.assert_array_equal(other, result[0])
