"""Borrowed arguments of kernels: the same values, and no references lost or left."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.runtime import rtsys

from sslbench.engine.compilation.borrowed import borrowed
from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.types import F64


class Inner(NamedTuple):
    rows: F64
    factor: float


class Outer(NamedTuple):
    inner: Inner
    weights: F64


@kernel
def _sum(row: F64) -> float:
    total = 0.0
    for value in row:
        total += value
    return total


@kernel
def _totals(given: Outer, maybe: Inner | None, out: F64) -> None:
    (rows, factor), weights = borrowed(given)
    more = borrowed(maybe)
    for i in range(rows.shape[0]):
        out[i] = weights[i] * factor * _sum(rows[i])
        if more is not None:
            out[i] += _sum(more.rows[i])


@kernel
def _both(given: Outer, which: int, out: F64) -> None:
    """The second argument of `_totals` may be None or not when this runs."""
    maybe = given.inner if which > 0 else None
    _totals(given, maybe, out)


@pytest.mark.parametrize("which", [0, 1])
def test_views_of_borrowed_tuples(which: int) -> None:
    rng = np.random.default_rng(0)
    rows, weights, out = rng.normal(size=(5, 3)), rng.normal(size=5), np.empty(5)
    given = Outer(Inner(rows, 2.0), weights)
    expected = weights * 2.0 * rows.sum(axis=1) + which * rows.sum(axis=1)
    for _ in range(3):
        _both(given, which, out)
        np.testing.assert_allclose(out, expected)


@kernel
def _own_arrays(n: int, which: int, out: F64) -> float:
    """The sum of an array that has been borrowed, after another one was made."""
    rows = np.ones((n, 3))
    _both(Outer(Inner(rows, 1.0), np.ones(n)), which, out)
    other = np.full((n, 3), 7.0)
    return _sum(rows.reshape(3 * n)) + 0.0 * other[0, 0]


def test_references_are_neither_lost_nor_left() -> None:
    """A lost one would leave the memory to the next array; one that is left would keep it.

    numba counts arrays only if it is asked to before it starts.
    """
    counting = {**os.environ, "NUMBA_NRT_STATS": "1"}
    done = subprocess.run([sys.executable, __file__], env=counting, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["12.0 0", "12.0 0"], done.stderr
    rows, out = np.ones((4, 3)), np.empty(4)
    counted = sys.getrefcount(rows)
    _both(Outer(Inner(rows, 1.0), np.ones(4)), 1, out)
    assert sys.getrefcount(rows) == counted


def main() -> None:
    """Print, without and with the second argument, the sum, and how many arrays are left."""
    out = np.empty(4)
    for which in (0, 1):
        _own_arrays(4, which, out)
        before = rtsys.get_allocation_stats()
        total = _own_arrays(4, which, out)
        after = rtsys.get_allocation_stats()
        print(total, (after.alloc - before.alloc) - (after.free - before.free))


if __name__ == "__main__":
    main()
