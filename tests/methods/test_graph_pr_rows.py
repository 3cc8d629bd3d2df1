"""Scores from rows and sums to rows, against loops over tokens."""

from __future__ import annotations

import numpy as np
import pytest

from sslbench.engine.compilation.threads import using_threads
from sslbench_methods.graph_pr.rows import BatchRows, scale_rows

ROWS = 50


@pytest.mark.parametrize("K", [1, 2, 8, 12, 17, 44])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_equals_loops(K: int, threads: int) -> None:
    rng = np.random.default_rng(K)
    row_of = rng.integers(-1, ROWS, 1100).astype(np.int32)
    row_of[row_of == 7] = 3  # a row without a token
    node, table, sums = (rng.normal(size=(n, K)) for n in (1100, ROWS + 1, ROWS))
    table[ROWS] = 0.0
    wanted = sums.copy()
    for t, row in enumerate(row_of):
        if row >= 0:
            wanted[row] += node[t]
    rows = BatchRows.build(row_of, ROWS)
    with using_threads(threads):
        np.testing.assert_array_equal(rows.shifted(node, table), node + table[row_of])
        rows.add_sums(node, sums)
    np.testing.assert_array_equal(sums, wanted)


def test_no_token_has_a_row() -> None:
    rows = BatchRows.build(np.full(3, -1, np.int32), 0)
    node = np.ones((3, 2))
    np.testing.assert_array_equal(rows.shifted(node, np.zeros((1, 2))), node)
    rows.add_sums(node, np.zeros((0, 2)))


def test_arrays_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="a row is outside"):
        BatchRows.build(np.array([0, 5], np.int32), 5)
    rows = BatchRows.build(np.array([0, 4], np.int32), 5)
    with pytest.raises(ValueError, match="do not fit 2 tokens"):
        rows.shifted(np.zeros((3, 2)), np.zeros((5, 2)))
    with pytest.raises(ValueError, match="do not fit 2 tokens"):
        rows.add_sums(np.zeros((2, 2)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match="do not fit 2 tokens"):
        rows.add_sums(np.zeros((2, 2)), np.zeros((5, 3)))


@pytest.mark.parametrize("labels", [1, 7, 8, 12, 20])
@pytest.mark.parametrize("more", [0, 4])
def test_scaled_rows(labels: int, more: int) -> None:
    """As numpy has them, bit for bit; 0 beyond the labels."""
    rng = np.random.default_rng(labels)
    x, plus, scale = rng.normal(size=(300, labels)), rng.normal(size=(300, labels)), rng.random(300)
    out = np.full((300, labels + more), np.nan)
    scale_rows(x, scale, plus, out)
    np.testing.assert_array_equal(out[:, :labels], scale[:, None] * x + plus)
    assert not out[:, labels:].any()
