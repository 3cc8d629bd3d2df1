"""From tokens to vertices, tokens outside the graph, vertices without tokens.

Source: docs/specs/graph_self_training.md, oracle S1.
"""

from __future__ import annotations

import numpy as np
import pytest

from sslbench.engine.graph.tokens import empirical, type_means
from sslbench.engine.types import I32


def ids(*numbers: int) -> I32:
    return np.array(numbers, dtype=np.int32)


def test_s1_type_means() -> None:
    p = np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5], [0.6, 0.4], [0.2, 0.8]])
    q, n = type_means(ids(0, 1, 0, 1, 2), p, 3)
    np.testing.assert_allclose(q, [[0.7, 0.3], [0.45, 0.55], [0.2, 0.8]], rtol=1e-15)
    np.testing.assert_array_equal(n, [2, 2, 1])
    assert n.dtype == np.int64


def test_tokens_outside_and_vertices_without_tokens() -> None:
    p = np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])
    q, n = type_means(ids(-1, 2, 2), p, 4)
    np.testing.assert_array_equal(n, [0, 0, 2, 0])
    np.testing.assert_allclose(q, [[0, 0], [0, 0], [0.4, 0.6], [0, 0]], rtol=1e-15)


def test_single_precision() -> None:
    rng = np.random.default_rng(1)
    p, of = rng.random((50, 3)).astype(np.float32), rng.integers(-1, 6, 50).astype(np.int32)
    q, n = type_means(of, p, 6)
    assert q.dtype == np.float64
    np.testing.assert_allclose(q[4], p[of == 4].astype(np.float64).mean(axis=0), rtol=1e-14)
    sums = np.zeros((6, 3))
    for vertex, row in zip(of, p, strict=True):
        if vertex >= 0:
            sums[vertex] += row
    np.testing.assert_array_equal(n, np.bincount(of[of >= 0], minlength=6))
    np.testing.assert_array_equal(sums / n[:, None], q)


def test_empirical_distributions() -> None:
    r, labeled = empirical(ids(0, 0, 2, 0, 2, -1, 3), ids(1, 1, 0, 2, -1, 2, -1), 4, 3)
    np.testing.assert_allclose(r, [[0, 2 / 3, 1 / 3], [0, 0, 0], [1, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(labeled, [True, False, True, False])


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="2 tokens, rows"):
        type_means(ids(0, 1), np.ones((3, 2)), 2)
    with pytest.raises(ValueError, match=r"a vertex is outside -1 \.\. 1"):
        type_means(ids(0, 2), np.ones((2, 2)), 2)
    with pytest.raises(ValueError, match=r"a label is outside -1 \.\. 2"):
        empirical(ids(0, 1), ids(0, 3), 2, 3)
    with pytest.raises(ValueError, match="2 tokens, 1 labels"):
        empirical(ids(0, 1), ids(0), 2, 3)
