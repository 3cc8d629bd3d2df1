"""Lists of allowed transitions beside whole matrices: a message, and second-order chains.

Label sets whose codec forbids most transitions: the 29 labels of Suzuki & Isozaki 2008 (169 of 841
are allowed) and 60 labels of border and tag (960 of 3,600).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from numba import njit
from problem import OUT, Figure

from sslbench.engine.corpus import PreviousType
from sslbench.engine.crf.data import Batch, LabelTriples
from sslbench.engine.crf.second_order import sparse
from sslbench.engine.crf.second_order.batch import SecondOrderPotentials
from sslbench.engine.crf.simd import rows
from sslbench.engine.types import F64, I32, I64, Bool

MESSAGES = 20_000 if OUT else 10
SENTENCES = 100 if OUT else 2


@njit
def by_list(v: F64, start: I64, previous: I32, value: F64, out: F64, times: int) -> None:
    for _ in range(times):
        for b in range(len(start) - 1):
            total = 0.0
            for k in range(start[b], start[b + 1]):
                total += v[previous[k]] * value[k]
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


@pytest.mark.parametrize(("labels", "transitions"), [(29, 169), (60, 960)])
def test_a_message(figure: Figure, labels: int, transitions: int) -> None:
    rng, width = np.random.default_rng(0), -(-labels // 8) * 8
    M, v = np.zeros((labels, width)), rng.random(width)
    at = rng.choice(labels * labels, transitions, replace=False)
    M[at // labels, at % labels] = rng.random(transitions)
    into = M[:, :labels].T
    start = np.concatenate([[0], np.cumsum((into > 0).sum(axis=1))])
    previous, value = np.nonzero(into > 0)[1].astype(np.int32), into[into > 0]
    whole, listed = np.zeros(width), np.zeros(labels)
    figure(
        f"a message through {transitions} of {labels**2} transitions",
        "ns",
        ours=nanoseconds(lambda times: by_matrix(v, M, whole, times)),
        lists=nanoseconds(lambda times: by_list(v, start, previous, value, listed, times)),
    )
    np.testing.assert_allclose(whole[:labels], listed)


def bordered(tags: int) -> Bool:
    """Allowed pairs of (border, tag) labels: B, M, E, S of words with tags."""
    labels = [(border, tag) for border in "BMES" for tag in range(tags)]
    return np.array(
        [
            [
                follow in "ME" and t == tag if border in "BM" else follow in "BS"
                for follow, t in labels
            ]
            for border, tag in labels
        ]
    )


def some(labels: int, share: float) -> Bool:
    """Random allowed pairs, up to where lists stop being faster."""
    return np.random.default_rng(1).random((labels, labels)) < share


TYPED = PreviousType(["O", *(f"{p}-{kind}" for kind in "1234" for p in "BI")]).transition_mask[:-1]
PAIRS = {"names": TYPED, "borders and tags": bordered(15)} | {
    f"{share:.0%} of {labels} labels": some(labels, share)
    for labels in (12, 26, 45)
    for share in (0.2, 0.35, 0.5)
}


@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
def test_second_order(figure: Figure, pairs: Bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, L = np.random.default_rng(0), len(pairs)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(5, 45, SENTENCES))])
    n = int(offsets[-1])
    triples = LabelTriples(*(rng.normal(size=(L,) * k) for k in (2, 3, 2)))
    edge = np.where(pairs, rng.normal(size=(1, L, L)), -np.inf)
    chains = SecondOrderPotentials(
        Batch(0, n, 0, SENTENCES, offsets), rng.normal(size=(n, L)), edge, triples
    )

    def by(few: bool) -> tuple[float, F64]:
        monkeypatch.setattr(sparse, "is_faster", lambda _: few)
        chains.posterior()
        best = np.inf
        for _ in range(5):
            begin = time.perf_counter()
            found = chains.posterior()
            best = min(best, time.perf_counter() - begin)
        return 1e6 * best / n, found.node

    (ours, node), (all_triples, other) = by(True), by(False)
    figure(
        f"forward-backward, second order, {int(pairs.sum())} of {L**2} transitions",
        "us/token",
        ours=ours,
        all_triples=all_triples,
    )
    np.testing.assert_allclose(node, other, atol=1e-11)
