"""Second-order chains in which most pairs of labels are forbidden, as by a label codec."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sslbench.engine.corpus.codecs import PreviousType
from sslbench.engine.crf import InfeasibleSentenceError
from sslbench.engine.crf.second_order.batch import SecondOrderPotentials
from sslbench.engine.types import Bool
from support.second_order_toys import LENGTHS, chains, check_sums, close, potentials_of


def codec(types: str) -> PreviousType:
    return PreviousType(["O", *(f"{border}-{kind}" for kind in types for border in "BI")])


def forbid(potentials: SecondOrderPotentials, pairs: Bool) -> SecondOrderPotentials:
    potentials.edge[:, ~pairs] = -np.inf
    return potentials


def in_log_space(potentials: SecondOrderPotentials) -> SecondOrderPotentials:
    """With a matrix for each position, which the reference recursions do."""
    edge = np.repeat(potentials.edge, len(potentials.node), axis=0)
    return replace(potentials, edge=edge)


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_posteriors_of_a_codec_are_sums_over_all_its_sequences(scale: float) -> None:
    mask = codec("A").transition_mask
    L = mask.shape[1]
    potentials = forbid(potentials_of(np.random.default_rng(5), LENGTHS, L, scale), mask[:L])
    starts = np.cumsum([0, *LENGTHS[:-1]])
    potentials.node[starts] += np.where(mask[L], 0.0, -np.inf)
    weights = np.random.default_rng(6).uniform(0.1, 3.0, len(LENGTHS))
    found, every = potentials.posterior(weights), chains(potentials)
    close(found.log_z(), [c.log_z for c in every])
    check_sums(found, potentials, [c.p for c in every], weights)


def test_oracle_20_the_29_labels_of_the_jess_cm_paper() -> None:
    pairs = codec("1234").transition_mask[:-1]
    assert (pairs.shape, int(pairs.sum())) == ((29, 29), 169)
    rng = np.random.default_rng(20)
    potentials = forbid(potentials_of(rng, [40, 1, 2, 25, 3, 17, 80], 29, 2.0), pairs)
    weights = rng.uniform(0.5, 2.0, 7)
    found, reference = (p.posterior(weights) for p in (potentials, in_log_space(potentials)))
    assert found.triples is not None
    assert reference.triples is not None
    close(found.log_z(), reference.log_z(), 1e-12)
    close(found.node, reference.node, 1e-12)
    close(found.edge, reference.edge.sum(axis=0, keepdims=True), 1e-12)
    for part, wanted in zip(found.triples, reference.triples, strict=True):
        close(part, wanted, 1e-12)
    assert not found.triples.inner[:, ~pairs].any()
    assert not found.triples.inner[~pairs].any()


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
    found, reference = potentials.posterior(), in_log_space(potentials).posterior()
    assert 0.01 < reference.node[0, 1] < 0.99
    close(found.log_z(), reference.log_z(), 1e-12)
    close(found.node, reference.node, 1e-10)


def test_dead_ends_and_sentences_without_a_labeling() -> None:
    rng = np.random.default_rng(3)
    pairs = np.zeros((3, 3), np.bool_)
    pairs[0, 1] = pairs[1, 2] = True  # 2 is a dead end
    potentials = forbid(potentials_of(rng, [3, 1, 2], 3), pairs)
    found = potentials.posterior()
    close(found.node[:3], np.eye(3))
    check_sums(found, potentials, [c.p for c in chains(potentials)], np.ones(3))
    for forbidden, lengths in ((pairs, [2, 4]), (np.zeros((3, 3), np.bool_), [1, 2])):
        with pytest.raises(InfeasibleSentenceError, match="sentence 1"):
            forbid(potentials_of(rng, lengths, 3), forbidden).posterior()
