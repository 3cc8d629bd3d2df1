"""Penalties of marginals: values by hand, gradients by differences, divergences by definition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sslbench.engine.graph.regularizers import AtLeastOnce, GraphLaplacian, Regularizer
from sslbench.engine.types import F64, I32

K = 3
KINDS = ("graph", "label")


def build(kind: str, seed: int) -> tuple[Regularizer, F64]:
    """A penalty, and marginals of its tokens, some of them outside its rows."""
    rng = np.random.default_rng(seed)
    if kind == "label":
        lengths = rng.integers(1, 4, size=5)
        return AtLeastOnce.build(1, lengths, K), rng.dirichlet(np.ones(K), size=lengths.sum())
    V, n = 6, 12
    W = np.triu(rng.uniform(0, 1, (V, V)) * (rng.random((V, V)) < 0.6), 1)
    known = rng.integers(-1, V, size=4).astype(np.int32)
    labels = rng.integers(0, K, size=4).astype(np.int32)
    free = rng.integers(-1, V, size=n).astype(np.int32)
    penalty = GraphLaplacian.build(csr_array(W + W.T), known, labels, free, K)
    return penalty, rng.dirichlet(np.ones(K), size=n)


def sums(penalty: Regularizer, marginals: F64) -> F64:
    result = np.zeros_like(penalty.rows.fixed)
    for row, p in zip(penalty.rows.row_of, marginals, strict=True):
        if row >= 0:
            result[row] += p
    return result


def value(penalty: Regularizer, marginals: F64) -> float:
    return penalty.value_and_gradient(penalty.rows.from_sums(sums(penalty, marginals)))[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_gradient_equals_finite_differences(kind: str, seed: int) -> None:
    penalty, p = build(kind, seed)
    _, G = penalty.value_and_gradient(penalty.rows.from_sums(sums(penalty, p)))
    for t, row in enumerate(penalty.rows.row_of):
        for k in range(K):
            step = np.zeros_like(p)
            step[t, k] = 1e-5
            slope = (value(penalty, p + step) - value(penalty, p - step)) / 2e-5
            assert slope == pytest.approx(G[row, k] if row >= 0 else 0.0, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10_000))
def test_divergence_equals_its_definition(kind: str, seed: int) -> None:
    penalty, p = build(kind, seed)
    q = np.random.default_rng(seed + 1).dirichlet(np.full(K, 0.3), size=len(p))
    old, new = (penalty.rows.from_sums(sums(penalty, x)) for x in (p, q))
    before, G = penalty.value_and_gradient(old)
    tangent = before + float((G * (sums(penalty, q) - sums(penalty, p))).sum())
    wanted = penalty.value_and_gradient(new)[0] - tangent
    assert penalty.divergence(new, old) == pytest.approx(wanted, abs=1e-12)
    assert penalty.divergence(new, old) >= -1e-15


def test_vertices_are_not_weighted_by_frequency() -> None:
    W = csr_array(np.array([[0, 0.5], [0.5, 0]]))
    known, labels = np.array([0, 1, -1], np.int32), np.array([0, 1, 1], np.int32)
    free: I32 = np.array([0, 0, 1, -1], np.int32)
    penalty = GraphLaplacian.build(W, known, labels, free, 2)
    p = np.array([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5], [1, 0]])
    m = penalty.rows.from_sums(sums(penalty, p))
    np.testing.assert_allclose(m, [[1.8 / 3, 1.2 / 3], [0.25, 0.75]], atol=1e-15)
    assert value(penalty, p) == pytest.approx(0.5 * 2 * 0.35**2)


def test_sentence_with_enough_of_the_label_has_no_penalty() -> None:
    penalty = AtLeastOnce.build(0, np.array([2, 1, 3]), 2)
    p = np.array([[0.6, 0.4], [0.5, 0.5], [0.3, 0.7], [0.1, 0.9], [0.1, 0.9], [0.2, 0.8]])
    h, G = penalty.value_and_gradient(penalty.rows.from_sums(sums(penalty, p)))
    assert h == pytest.approx(0.7**2 + 0.6**2)
    np.testing.assert_allclose(G, [[0, 0], [-1.4, 0], [-1.2, 0]], atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_penalty_is_convex(kind: str) -> None:
    for seed in range(10):
        penalty, p = build(kind, seed)
        q = np.random.default_rng(seed + 7).dirichlet(np.full(K, 0.3), size=len(p))
        path = [value(penalty, (1 - s) * p + s * q) for s in np.linspace(0, 1, 9)]
        slopes = np.diff(path)
        assert all(b >= a - 1e-12 for a, b in pairwise(slopes))
