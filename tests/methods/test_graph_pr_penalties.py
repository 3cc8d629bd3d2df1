"""Penalties of marginals: values by hand, gradients by differences, divergences by definition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sslbench.engine.types import F64, I32
from sslbench_methods.graph_pr.penalties import AtLeastOnce, GraphLaplacian, Regularizer, Rows

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


PATH = csr_array(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))


def test_codes_of_a_penalty() -> None:
    def build(known: list[int], labels: list[int], free: list[int]) -> GraphLaplacian:
        codes = (np.array(part, np.int32) for part in (known, labels, free))
        return GraphLaplacian.build(PATH, *codes, n_labels=2)

    penalty = build([0], [1], [1, 2, -1])
    assert penalty.value_and_gradient(np.zeros((3, 2)))[0] == 0.0
    for codes in (
        ([3], [1], []),
        ([0], [2], []),
        ([0, 1], [1], []),
        ([0], [1], [3]),
        ([-2], [0], []),
    ):
        with pytest.raises(ValueError):
            build(*codes)


@pytest.mark.parametrize("labels", [2, 12])
def test_rows_of_a_penalty(labels: int) -> None:
    """Kernels take the number of labels from one array: the others must have it, too."""
    nobody, free = np.array([], np.int32), np.array([0, 1, 2, -1], np.int32)
    penalty = GraphLaplacian.build(PATH, nobody, nobody, free, labels)
    V, width = penalty.rows.shape
    rows = penalty.rows.from_sums(np.ones((V, labels)))
    assert rows.shape == (V, width)
    of_padded, of_plain = map(penalty.value_and_gradient, (rows, rows[:, :labels]))
    assert of_padded[0] == of_plain[0]
    np.testing.assert_array_equal(of_padded[1], of_plain[1])
    assert penalty.divergence(rows, 2 * rows) >= 0.0
    for wrong in ((V - 1, labels), (V + 1, labels), (V, labels - 1), (V, width + 1), (V,)):
        with pytest.raises(ValueError, match="sums must be"):
            penalty.rows.from_sums(np.ones(wrong))
        with pytest.raises(ValueError, match="out: "):
            penalty.rows.from_sums(np.ones((V, labels)), np.empty(wrong))
        with pytest.raises(ValueError, match="m must be"):
            penalty.value_and_gradient(np.ones(wrong))
        with pytest.raises(ValueError, match="m must be"):
            penalty.divergence(np.ones(wrong), np.ones(wrong))


def test_rows_that_do_not_fit_together() -> None:
    fixed, nobody = np.zeros((3, 2)), np.array([], np.int32)
    for scale, width in ((np.ones(2), None), (np.ones(3, np.float32), None), (np.ones(3), 1)):
        with pytest.raises(ValueError):
            Rows(nobody, scale, fixed, width)
    for wrong in (fixed[0], fixed.astype(int), np.zeros((2, 3)).T):
        with pytest.raises(ValueError, match="fixed"):
            Rows(nobody, np.ones(3), wrong)
