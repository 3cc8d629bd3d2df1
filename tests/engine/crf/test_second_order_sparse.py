"""Second-order chains over lists of allowed pairs: against all sequences, and the dense kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.corpus.codecs import PreviousType
from sslbench.engine.crf import InfeasibleSentenceError
from sslbench.engine.crf.first_order.batch import BatchPosterior
from sslbench.engine.crf.second_order import sparse
from sslbench.engine.crf.second_order.batch import SecondOrderPotentials
from sslbench.engine.types import Bool
from support.second_order_toys import LENGTHS, chains, check_sums, close, potentials_of
from support.threads import THREADS

#: labels in the encoding of Suzuki & Isozaki (2008): docs/specs/jess_cm.md, section 6
TYPES = ("LOC", "MISC", "ORG", "PER")
CODEC = PreviousType(["O", *(f"{p}-{kind}" for kind in TYPES for p in "BI")])


@pytest.fixture
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "is_faster", lambda pairs: True)


def by(potentials: SecondOrderPotentials, few: bool, weights: object = None) -> BatchPosterior:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "is_faster", lambda pairs: few)
        return potentials.posterior(weights)  # type: ignore[arg-type]


def forbid(potentials: SecondOrderPotentials, pairs: Bool) -> SecondOrderPotentials:
    potentials.edge[:, ~pairs] = -np.inf
    return potentials


CASES = [
    (L, scale, masked)
    for masked in (True, False)
    for L, scale in [(3, 1.0), (4, 5.0), (2, 25.0), (3, 30.0), (3, 200.0), (1, 1.0), (3, 900.0)]
]


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize(("L", "scale", "masked"), CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_posteriors_are_sums_over_all_sequences(
    L: int, scale: float, masked: bool, weighted: bool
) -> None:
    rng = np.random.default_rng([L, int(scale), masked])
    potentials = potentials_of(rng, LENGTHS, L, scale, masked=masked)
    if L == 4:  # labels that are impossible at some tokens, triples at all
        potentials.node[3, 1] = potentials.node[7, 2] = -np.inf
        potentials.triples.inner[1, 2, :] = -np.inf
    weights = rng.uniform(0.1, 3.0, len(LENGTHS)) if weighted else np.ones(len(LENGTHS))
    if weighted:
        weights[2] = 0.0
    found = potentials.posterior(weights if weighted else None)
    every = chains(potentials)
    close(found.log_z()[weights > 0], np.array([c.log_z for c in every])[weights > 0])
    check_sums(found, potentials, [c.p for c in every], weights)


def test_oracle_20_the_29_labels_of_the_jess_cm_paper() -> None:
    pairs = CODEC.transition_mask[:-1]
    assert (pairs.shape, int(pairs.sum())) == ((29, 29), 169)
    assert sparse.is_faster(pairs)
    rng = np.random.default_rng(20)
    potentials = forbid(potentials_of(rng, [40, 1, 2, 25, 3, 17, 80], 29, 2.0), pairs)
    weights = rng.uniform(0.5, 2.0, 7)
    found, dense = (by(potentials, few, weights) for few in (True, False))
    assert found.triples is not None
    assert dense.triples is not None
    close(found.log_z(), dense.log_z(), 1e-12)
    close(found.node, dense.node, 1e-12)
    close(found.edge, dense.edge, 1e-12)
    for mine, other in zip(found.triples, dense.triples, strict=True):
        close(mine, other, 1e-12)
    assert not found.triples.inner[:, ~pairs].any()
    assert not found.triples.inner[~pairs].any()


def test_lists_are_for_few_allowed_pairs() -> None:
    assert not sparse.is_faster(np.ones((29, 29), np.bool_))
    # nothing is possible: log space decides
    assert not sparse.is_faster(np.zeros((5, 5), np.bool_))


def test_the_chosen_kernel_is_the_one_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    shared = sparse.shared

    def counted(*args: object) -> None:
        called.append(1)
        shared(*args)

    monkeypatch.setattr(sparse, "shared", counted)
    rng = np.random.default_rng(1)
    potentials_of(rng, [3, 2], 29).posterior()
    assert not called
    forbid(potentials_of(rng, [3, 2], 29), CODEC.transition_mask[:-1]).posterior()
    assert called


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize(("early", "late"), [([104.7] * 7, [106.1] * 7), ([733.0], [367.0, 368.1])])
def test_what_leaves_the_range_is_done_in_log_space(early: list[float], late: list[float]) -> None:
    """A label that no other leads to or follows, far below the others at first, far above later: it
    ends beside them, but its messages lose their digits between, step by step or at once.
    """
    n = len(early) + len(late)
    potentials = potentials_of(np.random.default_rng(2), [n], 3, 0.1)
    potentials.node[: len(early), 1] -= early
    potentials.node[len(early) :, [0, 2]] -= np.array(late)[:, None]
    pairs = np.ones((3, 3), np.bool_)
    pairs[1] = pairs[:, 1] = False
    pairs[1, 1] = True
    forbid(potentials, pairs)
    found = potentials.posterior()
    edge = np.repeat(potentials.edge, n, axis=0)  # of all positions: done in log space anyway
    reference = replace(potentials, edge=edge).posterior()
    assert 0.01 < reference.node[0, 1] < 0.99
    close(found.log_z(), reference.log_z(), 1e-12)
    close(found.node, reference.node, 1e-10)


@pytest.mark.usefixtures("_always")
def test_dead_ends_and_sentences_without_a_labeling() -> None:
    rng = np.random.default_rng(3)
    pairs = np.zeros((3, 3), np.bool_)
    pairs[0, 1] = pairs[1, 2] = True  # 2 is a dead end
    potentials = forbid(potentials_of(rng, [3, 1, 2], 3), pairs)
    found = potentials.posterior()
    close(found.node[:3], np.eye(3))
    check_sums(found, potentials, [c.p for c in chains(potentials)], np.ones(3))
    longer = forbid(potentials_of(rng, [2, 4], 3), pairs)
    with pytest.raises(InfeasibleSentenceError, match="sentence 1"):
        longer.posterior()
    nothing = forbid(potentials_of(rng, [1, 2], 3), np.zeros((3, 3), np.bool_))
    with pytest.raises(InfeasibleSentenceError, match="sentence 1"):
        nothing.posterior()


@pytest.mark.skipif(len(THREADS) < 2, reason="one thread only here")
def test_threads_change_no_bit() -> None:
    found = []
    for n in THREADS[:3]:
        rng = np.random.default_rng(4)
        lengths = rng.integers(1, 30, 80).tolist()
        potentials = forbid(potentials_of(rng, lengths, 29), CODEC.transition_mask[:-1])
        with using_threads(n):
            found.append(potentials.posterior())
    for other in found[1:]:
        assert other.triples is not None
        np.testing.assert_array_equal(found[0].node, other.node)
        np.testing.assert_array_equal(found[0].triples.inner, other.triples.inner)
