"""Sums over long vectors: right, and the same bits for any number of threads."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.crf.optim.inverse_hessian import MOST_LONG, InverseHessian
from sslbench.engine.crf.optim.lbfgs import Options, minimize
from sslbench.engine.crf.optim.vectors import CHUNK, dot, max_abs, subtract_prior
from sslbench.engine.types import F64

N = 99 * CHUNK + 13  # many partial sums: with a few, another order may round alike
COPIES = np.random.default_rng(1).integers(1, 9, N).astype(np.float32)


def direction(pairs: list[tuple[F64, F64]], preconditioner: F64 | None, gradient: F64) -> F64:
    inverse_hessian = InverseHessian(3, len(gradient), preconditioner)
    zero = np.zeros_like(gradient)
    inverse_hessian.direction(gradient)
    for s, y in pairs:
        inverse_hessian.add(s, zero, y, zero)
        out = inverse_hessian.direction(gradient)  # takes the pair in
    return out


def sums(threads: int) -> list[float]:
    rng = np.random.default_rng(0)
    x, y, z, precision = (rng.normal(size=N) for _ in range(4))
    with using_threads(threads):
        return [
            dot(x, y),
            max_abs(y),
            subtract_prior(2.0, COPIES, x, z),
            float(z.sum()),
            *direction([(x, x + 0.1 * y)], np.abs(precision), z)[::CHUNK],
        ]


def test_values() -> None:
    rng = np.random.default_rng(0)
    x, y, z = (rng.normal(size=N) for _ in range(3))
    precision = 2.0 / COPIES.astype(np.float64)
    found = sums(1)
    assert found[0] == pytest.approx(math.fsum(x * y))
    assert found[1] == np.abs(y).max()
    assert found[2] == pytest.approx(math.fsum(0.5 * precision * x**2))
    assert found[3] == pytest.approx(float((z - precision * x).sum()))


def test_threads_change_no_bit() -> None:
    assert sums(1) == sums(2)


@pytest.mark.parametrize("n", [1, 7, 40, 3000, 9001])  # the last one has three chunks
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_direction_is_that_of_the_two_loops(
    n: int, scaled: bool, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against algorithm 7.4 as printed, on the last three of five pairs; one has no curvature.

    Pairs of long vectors have single precision.
    """
    tolerance = 1e-9
    if precision == "single":
        monkeypatch.setattr("sslbench.engine.crf.optim.inverse_hessian.LONG", 0)
        tolerance = 1e-4
    rng = np.random.default_rng(n)
    preconditioner = rng.uniform(0.5, 2.0, n) if scaled else None
    pairs = []
    for i in range(5):
        s = rng.normal(size=n)
        pairs.append((s, -s if i == 3 else s * rng.uniform(0.5, 2.0, n)))
    gradient = rng.normal(size=n)
    kept = [pairs[1], pairs[2], pairs[4]]
    q, alphas = gradient.copy(), []
    for s, y in reversed(kept):
        alphas.append(s @ q / (s @ y))
        q -= alphas[-1] * y
    s, y = kept[-1]
    D = np.ones(n) if preconditioner is None else preconditioner
    q *= D * (s @ y) / (y @ (D * y))
    for (s, y), alpha in zip(kept, reversed(alphas), strict=True):
        q += s * (alpha - y @ q / (s @ y))
    np.testing.assert_allclose(
        direction(pairs, preconditioner, gradient), -q, rtol=tolerance, atol=tolerance / 100
    )


def test_pairs_of_long_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer of them, in single precision; the optimum is the same to double precision."""
    scale = np.logspace(0, 2, 40)

    def bowl(x: F64, gradient: F64) -> float:
        gradient[:] = scale * (x - 1) + (x - 1) ** 3
        return float((scale * (x - 1) ** 2 / 2 + (x - 1) ** 4 / 4).sum())

    monkeypatch.setattr("sslbench.engine.crf.optim.inverse_hessian.LONG", 0)
    pairs = InverseHessian(10, 40, None)
    assert pairs.pairs.shape == (MOST_LONG, 1, 2, 40)
    assert pairs.pairs.dtype == np.float32
    found = minimize(bowl, np.zeros(40), Options(gtol=1e-11, ftol=0.0))
    assert found.status == "gradient"
    np.testing.assert_allclose(found.weights, 1.0, atol=1e-10)


def test_bounds_and_l1_are_not_combined_silently() -> None:
    with pytest.raises(ValueError, match="cannot be combined"):
        minimize(lambda x, g: 0.0, np.zeros(2), nonnegative=np.array([0]), l1=1.0)
