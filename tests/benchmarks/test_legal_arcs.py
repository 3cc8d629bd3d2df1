"""Why there is no kernel over legal arcs: a message through a whole matrix, and through a list.

Label sets whose codec forbids most arcs: the 29 labels of Suzuki & Isozaki 2008 (169 of 841 arcs)
and 60 labels of border and tag (960 of 3,600).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from numba import njit
from problem import OUT, Figure

from sslbench.crf.kernels import rows
from sslbench.types import F64, I32, I64

MESSAGES = 20_000 if OUT else 10


@njit
def by_list(v: F64, start: I64, arc: I32, value: F64, out: F64, times: int) -> None:
    for _ in range(times):
        for b in range(len(start) - 1):
            total = 0.0
            for k in range(start[b], start[b + 1]):
                total += v[arc[k]] * value[k]
            out[b] = total


@njit
def by_matrix(v: F64, M: F64, out: F64, times: int) -> None:
    for _ in range(times):
        rows.vector_matrix(v, M, out)


def nanoseconds(work: Callable[[int], None]) -> float:
    work(1)
    best = np.inf
    for _ in range(5):
        begin = time.perf_counter()
        work(MESSAGES)
        best = min(best, time.perf_counter() - begin)
    return 1e9 * best / MESSAGES


@pytest.mark.parametrize(("labels", "legal"), [(29, 169), (60, 960)])
def test_a_message(figure: Figure, labels: int, legal: int) -> None:
    rng, width = np.random.default_rng(0), -(-labels // 8) * 8
    M, v = np.zeros((labels, width)), rng.random(width)
    at = rng.choice(labels * labels, legal, replace=False)
    M[at // labels, at % labels] = rng.random(legal)
    into = M[:, :labels].T
    start = np.concatenate([[0], np.cumsum((into > 0).sum(axis=1))])
    arc, value = np.nonzero(into > 0)[1].astype(np.int32), into[into > 0]
    whole, listed = np.zeros(width), np.zeros(labels)
    figure(
        f"a message through {legal} of {labels**2} arcs", "ns",
        ours=nanoseconds(lambda times: by_matrix(v, M, whole, times)),
        legal_arcs=nanoseconds(lambda times: by_list(v, start, arc, value, listed, times)),
    )  # fmt: skip
    np.testing.assert_allclose(whole[:labels], listed)
