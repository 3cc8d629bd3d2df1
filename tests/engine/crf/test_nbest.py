"""The K best label sequences, against the enumeration of all."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

from sslbench.engine.crf import InfeasibleSentenceError
from sslbench.engine.crf.data import batches
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.engine.crf.first_order.nbest import n_best
from sslbench.engine.types import F64


def enumerated(node: F64, edge: F64) -> list[tuple[float, tuple[int, ...]]]:
    """All possible sequences, best first."""
    T, L = node.shape
    found = []
    for y in product(range(L), repeat=T):
        score = sum(node[t, y[t]] for t in range(T))
        score += sum(edge[t if len(edge) > 1 else 0][y[t - 1], y[t]] for t in range(1, T))
        if score > -np.inf:
            found.append((score, y))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("number", [1, 3, 200])
@pytest.mark.parametrize("varying", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_sequences_and_probabilities_are_those_of_the_enumeration(
    number: int, varying: bool, masked: bool
) -> None:
    rng = np.random.default_rng(number)
    lengths, L = [4, 1, 5], 3
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    node = rng.normal(size=(offsets[-1], L))
    edge = rng.normal(size=(offsets[-1] if varying else 1, L, L))
    if masked:
        edge[rng.random(edge.shape) < 0.3] = -np.inf
        node[rng.random(node.shape) < 0.1] = -np.inf
    (batch,) = batches(offsets, 100)
    kept = node.copy(), edge.copy()
    found = n_best(BatchPotentials(batch, node, edge), number)
    np.testing.assert_array_equal(node, kept[0])
    np.testing.assert_array_equal(edge, kept[1])
    for i, best in enumerate(found):
        part = slice(offsets[i], offsets[i + 1])
        expected = enumerated(node[part], edge[part] if varying else edge)
        total = logsumexp([score for score, _ in expected])
        assert len(best.labels) == min(number, len(expected))
        for k, (score, y) in enumerate(expected[:number]):
            assert tuple(best.labels[k]) == y
            assert best.log_probability[k] == pytest.approx(score - total, abs=1e-9)


def test_the_first_is_that_of_viterbi_also_with_ties() -> None:
    offsets = np.array([0, 6], dtype=np.int64)
    (batch,) = batches(offsets, 100)
    node = np.random.default_rng(0).integers(0, 2, (6, 4)).astype(float)
    potentials = BatchPotentials(batch, node, np.zeros((1, 4, 4)))
    (best,) = n_best(potentials, 50)
    np.testing.assert_array_equal(best.labels[0], potentials.viterbi())
    assert len({tuple(y) for y in best.labels.tolist()}) == 50
    assert (np.diff(best.log_probability) <= 1e-12).all()


def test_a_sentence_without_a_labeling() -> None:
    (batch,) = batches(np.array([0, 2], dtype=np.int64), 100)
    potentials = BatchPotentials(batch, np.zeros((2, 2)), np.full((1, 2, 2), -np.inf))
    with pytest.raises(InfeasibleSentenceError):
        n_best(potentials, 2)
