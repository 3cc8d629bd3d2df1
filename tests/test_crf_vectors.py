"""Sums over long vectors: right, and the same bits for any number of threads."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from sslbench.crf.kernels.vectors import CHUNK, axpy_dot, dot, max_abs, subtract_prior
from sslbench.crf.lbfgs import minimize

N = 99 * CHUNK + 13  # many partial sums: with a few, another order may round alike


def sums(threads: int) -> list[float]:
    rng = np.random.default_rng(0)
    x, y, z, precision = (rng.normal(size=N) for _ in range(4))
    before = numba.get_num_threads()
    numba.set_num_threads(threads)
    try:
        return [
            dot(x, y), axpy_dot(0.3, x, y, z), max_abs(y), subtract_prior(np.abs(precision), x, z),
            float(z.sum()),
        ]  # fmt: skip
    finally:
        numba.set_num_threads(before)


def test_values() -> None:
    rng = np.random.default_rng(0)
    x, y, z, precision = (rng.normal(size=N) for _ in range(4))
    found = sums(1)
    assert found[0] == pytest.approx(math.fsum(x * y))
    y += 0.3 * x
    assert found[1] == pytest.approx(math.fsum(z * y))
    assert found[2] == np.abs(y).max()
    assert found[3] == pytest.approx(math.fsum(0.5 * np.abs(precision) * x**2))
    assert found[4] == pytest.approx(float((z - np.abs(precision) * x).sum()))


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread only here")
def test_threads_change_no_bit() -> None:
    assert sums(1) == sums(2)


def test_bounds_and_l1_are_not_combined_silently() -> None:
    with pytest.raises(ValueError, match="cannot be combined"):
        minimize(lambda x, g: 0.0, np.zeros(2), nonnegative=np.array([0]), l1=1.0)
