"""Rows in vector registers against numpy, at widths around every border of a register."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numba import njit

from sslbench.engine.crf.first_order import varying
from sslbench.engine.crf.simd import lanes, rows
from sslbench.engine.crf.simd.transpose import gather, scatter
from sslbench.engine.crf.weights.occurrences import share_borders
from sslbench.engine.types import F64, I64

WIDTHS = [1, 2, 7, 8, 9, 15, 16, 17, 22, 23, 24, 25, 31, 32, 33, 40, 41, 45, 48, 49, 60]
EDGE = 1e300  # around what a kernel may read or write; would spoil any sum


def framed(array: F64) -> tuple[F64, F64]:
    """A C-contiguous copy between two cells that must stay as they are, and the whole of it."""
    whole = np.full(array.size + 2, EDGE)
    inside = whole[1:-1].reshape(array.shape)
    inside[:] = array
    return inside, whole


def untouched(whole: F64) -> bool:
    return bool(whole[0] == EDGE and whole[-1] == EDGE)


def padded(array: F64) -> F64:
    width = -(-array.shape[-1] // 8) * 8
    out = rows.aligned(len(array), width)
    out[:, : array.shape[-1]] = array
    assert out.ctypes.data % 64 == 0
    return out


@pytest.mark.parametrize("L", WIDTHS)
def test_sums_of_rows_and_back(L: int) -> None:
    rng = np.random.default_rng(L)
    column, K = 3, L + 5
    for picked in ([], [4], [4, 0, 2, 4, 4]):
        row = np.array(picked, np.int32)
        table, whole = framed(rng.normal(size=(6, K)))
        out, out_whole = framed(np.full(L, 7.0))
        other = rng.normal(size=(2, K))
        n, second = len(row), np.array([1, 0, 1], np.int32)
        rows.sum_rows(row, 0, n, table, second, 1, 3, other, column, L, out_whole, 1)
        summed = np.concatenate([table[row], other[second[1:]]])[:, column : column + L]
        np.testing.assert_allclose(out, summed.sum(axis=0), rtol=1e-14, atol=1e-14)
        expected = table.copy()
        for r in row:
            expected[r, column : column + L] += out
        rows.add_to_rows(row, 0, len(row), out_whole, 1, table, column, L)
        np.testing.assert_allclose(table, expected, rtol=1e-14)
        assert untouched(whole)
        assert untouched(out_whole)


@pytest.mark.parametrize("L", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weighted_rows_and_inner_products(L: int, dtype: type) -> None:
    rng = np.random.default_rng(L)
    table = rng.normal(size=(5, L + 4)).astype(dtype)
    row, factor = np.array([1, 3, 4, 0]), rng.normal(size=4)
    out, whole = framed(rng.normal(size=L))
    expected = out + factor[:3] @ table[row[:3], 2 : L + 2].astype(np.float64)
    rows.add_weighted_rows(row, factor, 3, table, 2, L, whole, 1)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
    assert untouched(whole)
    found = rows.inner(whole, 1, table, 2 * (L + 4) + 3, L)
    assert found == pytest.approx(out @ table[2, 3 : L + 3].astype(np.float64), rel=1e-10)


@pytest.mark.parametrize("L", WIDTHS)
def test_padded_products(L: int) -> None:
    rng = np.random.default_rng(L)
    M, v = rng.normal(size=(L, L)), rng.normal(size=L)
    out = padded(np.zeros((1, L)))[0]
    rows.vector_matrix(v, padded(M), out)
    np.testing.assert_allclose(out[:L], v @ M, rtol=1e-11, atol=1e-12)
    assert not out[L:].any()
    left, right, sums = rng.normal(size=(9, L)), rng.normal(size=(9, L)), rng.normal(size=(L, L))
    total = padded(sums)
    rows.add_outer(padded(left), padded(right), total)
    np.testing.assert_allclose(total[:, :L], sums + left.T @ right, rtol=1e-11, atol=1e-12)
    x, y = padded(rng.normal(size=(1, L)))[0], padded(rng.normal(size=(1, L)))[0]
    expected = x * y * 3.0
    assert rows.multiply_both(x, y, 3.0) == pytest.approx(expected.sum())
    np.testing.assert_allclose(x, expected, rtol=1e-14)
    result, whole = framed(np.empty(L))
    rows.product(x, y, result)
    np.testing.assert_allclose(result, (x * y)[:L], rtol=1e-15)
    assert untouched(whole)


@pytest.mark.parametrize("L", WIDTHS)
def test_matrices_at_their_own_width(L: int) -> None:
    rng = np.random.default_rng(L)
    values, x = rng.normal(size=(L, L)), rng.normal(size=L)
    M, whole = framed(values)
    assert varying.add_to_each(M, x) == ((values + x).max(), (values + x).min())
    np.testing.assert_array_equal(M, values + x)
    out, out_whole = framed(np.empty(L))
    varying.exp_product(M, 0.5, x, out)
    np.testing.assert_allclose(M, np.exp(values + x - 0.5), rtol=1e-14)
    np.testing.assert_allclose(out, x @ M, rtol=1e-11, atol=1e-12)
    before, g = M.copy(), rng.uniform(size=L)
    varying.edge_marginals(M, x, g, out)
    np.testing.assert_allclose(out, before @ g, rtol=1e-12)
    np.testing.assert_allclose(M, x[:, None] * before * g, rtol=1e-14)
    assert untouched(whole)
    assert untouched(out_whole)


@pytest.mark.parametrize("L", WIDTHS)
def test_rows_alone(L: int) -> None:
    rng = np.random.default_rng(L)
    x, whole = framed(rng.normal(size=L))
    assert rows.bounds(x) == (x.max(), x.min(), False)
    assert rows.total(x) == pytest.approx(x.sum())
    expected = 2.0 * x * x
    rows.multiply(x, x.copy())
    rows.scale(x, 2.0)
    np.testing.assert_allclose(x, expected, rtol=1e-15)
    assert untouched(whole)
    out = np.full(-(-L // 8) * 8, np.nan)
    rows.exp_padded(np.full(L, 2.0), 2.0, out)
    assert out.tolist() == [1.0] * L + [0.0] * (len(out) - L)
    x[L // 2] = -np.inf
    finite = x[x > -np.inf]
    low = finite.min() if len(finite) else np.inf
    assert rows.bounds(x) == (x.max(), low, True)


def test_lanes_refuse_other_arrays() -> None:
    @njit
    def read(array):  # type: ignore[no-untyped-def]
        return lanes.total(lanes.load(array, 0))

    assert read(np.ones(8)) == read(np.ones(8, np.float32)) == 8.0
    for array in (np.ones(8, np.int64), np.ones(16)[::2]):
        with pytest.raises(Exception, match="C-contiguous"):
            read(array)


def test_shares_have_equal_work_and_no_attribute_in_common() -> None:
    rng = np.random.default_rng(0)
    ids = np.concatenate([rng.integers(10 * s, 10 * s + 10, (1, 500)) for s in range(12)])
    ids[5:8] = rng.integers(50, 80, (3, 500))  # a bag: three slots, the same attributes
    ids[11, :400] = -1
    for shares in (1, 2, 3, 5, 40):
        borders = share_borders(ids.astype(np.int32), shares)
        assert borders[0] == 0
        assert borders[-1] == 12
        assert (np.diff(borders) >= 0).all()
        assert not {6, 7} & set(borders.tolist())
        if shares <= 3:
            work = [(ids[lo:hi] >= 0).sum() for lo, hi in pairwise(borders)]
            assert max(work) <= 1.3 * sum(work) / shares


@pytest.mark.parametrize("L", [1, 4, 7, 8])
def test_eight_rows_to_lanes_and_back(L: int) -> None:
    table = np.random.default_rng(L).normal(size=(9, 12))
    place = np.array([0, 12, -1, 30, 31, 60, -1, 96], np.int64)
    columns, columns_whole = framed(np.zeros((8, 8)))
    back, back_whole = framed(np.zeros((9, 12)))

    @njit
    def there(table: F64, place: I64, n: int, out: F64) -> None:
        gather(table, place, 2, lanes.first(n), out, 1)

    @njit
    def and_back(columns: F64, place: I64, n: int, out: F64) -> None:
        scatter(columns, 1, out, place, 3, lanes.first(n))

    there(table, place, L, columns_whole)
    expected, returned = np.full((8, 8), -np.inf), np.zeros(9 * 12)
    for s in np.flatnonzero(place >= 0):
        expected[:L, s] = table.reshape(-1)[place[s] + 2 : place[s] + 2 + L]
        returned[place[s] + 2 : place[s] + 2 + L] = expected[:L, s]
    np.testing.assert_array_equal(columns, expected)
    and_back(columns_whole, place, L, back_whole)
    np.testing.assert_array_equal(back.reshape(-1), returned)
    assert untouched(columns_whole)
    assert untouched(back_whole)
