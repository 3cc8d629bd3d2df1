"""Chains of which some transitions depend on the position, against chains in log space."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from sslbench.engine.compilation.threads import set_number_of_threads
from sslbench.engine.crf import (
    HardLabels,
    InfeasibleSentenceError,
    LogPartition,
    PartialLabels,
    PotentialGradient,
    Term,
    VirtualEvidence,
)
from sslbench.engine.crf.first_order.live import LivePotentials, LiveTransitions
from sslbench.engine.types import F64
from support.chain_toys import LENGTHS, only_stay, possible, random_chains, sentences
from support.compare import close
from support.crf_oracle import INF, batch_of, same_up_to
from support.log_space_chain import Potentials, infer, viterbi

#: columns of scores beyond those of transitions, as those from START are
MORE = 3


def chains(
    seed: int, L: int, scale: float = 1.0, holes: float = 0.0, share: float = 0.5
) -> LivePotentials:
    """Random chains, a share of whose transitions depends on the position."""
    rng = np.random.default_rng([seed, L])
    codes = np.flatnonzero(rng.random(L * L) < share).astype(np.int32)
    plain = batch_of(random_chains(rng, L, scale, holes, per_position=False))
    scores = np.zeros((len(plain.node), len(codes) + MORE))
    scores[:, : len(codes)] = scale * rng.normal(size=(len(scores), len(codes)))
    scores[plain.batch.first] = 0.0
    live = LiveTransitions.of(codes, L)
    return LivePotentials(plain.batch, plain.node, plain.edge, live, scores)


def by_position(potentials: LivePotentials) -> list[Potentials]:
    """The sentences, each with a matrix per position, by a loop over the transitions."""
    found, L, offsets = [], potentials.node.shape[1], potentials.batch.offsets
    for lo, hi in pairwise(offsets):
        edge = np.broadcast_to(potentials.edge, (hi - lo, L, L)).copy()
        for k, (a, b) in enumerate(zip(*potentials.live[:2], strict=True)):
            edge[1:, a, b] += potentials.scores[lo + 1 : hi, k]
        found.append(Potentials(potentials.node[lo:hi], edge))
    return found


def check(potentials: LivePotentials, weights: F64 | None = None, tolerance: float = 1e-12) -> None:
    """Posterior of all sentences against recursions in log space."""
    chains, live = by_position(potentials), potentials.live
    posterior = replace(potentials, scores=potentials.scores.copy()).posterior(weights)
    assert posterior.live is not None
    total = np.zeros(potentials.edge.shape[1:])
    factors = np.ones(len(chains)) if weights is None else weights
    for p, tokens, factor in zip(chains, sentences(posterior), factors, strict=True):
        found = infer(p)
        same_up_to(posterior.log_scale[tokens].sum(), found.log_z, tolerance)
        same_up_to(posterior.node[tokens], factor * found.node, tolerance)
        xi = factor * found.edges()
        same_up_to(
            posterior.live[tokens][1:, : len(live.left)], xi[1:, live.left, live.right], tolerance
        )
        assert not posterior.live[tokens][0].any()
        total += xi[1:].sum(axis=0)
    assert not posterior.live[:, len(live.left) :].any()
    same_up_to(posterior.edge[0], total, 10 * tolerance)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("L", [1, 2, 5, 8, 19])
def test_posterior(L: int, holes: float, share: float) -> None:
    potentials = chains(1, L, holes=holes, share=share)
    check(potentials)
    check(potentials, np.random.default_rng(0).uniform(0, 2, len(LENGTHS)))


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("scale", [40.0, 100.0, 1e4])
def test_wide_ranges_are_done_in_log_space(scale: float, holes: float) -> None:
    for seed in range(5):
        check(chains(seed, 4, scale, holes), np.linspace(0.5, 2.0, len(LENGTHS)), tolerance=1e-9)


def test_messages_that_underflow_leave_the_scores_as_they_were() -> None:
    """Labels never change, and one is e^10 times as likely at each position: 250 of them."""
    n, live = 252, LiveTransitions.of(np.array([0], np.int32), 2)
    batch = replace(chains(2, 2).batch, hi=10 + n, sentence_hi=2, offsets=np.array([0, 2, n]))
    node, scores = np.zeros((n, 2)), np.full((n, 1 + MORE), 10.0)
    scores[:, 1:] = scores[[0, 2]] = 0.0
    node[-1] = -150.0, 0.0
    check(LivePotentials(batch, node, only_stay(), live, scores), np.array([1.0, 2.0]), 1e-11)


@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_the_same_with_a_matrix_per_position(holes: float) -> None:
    potentials, rng = chains(3, 6, holes=holes), np.random.default_rng(0)
    plain = potentials.per_position()
    best = [viterbi(p)[1] for p in by_position(potentials)]
    close(potentials.viterbi(), np.concatenate(best), 0)
    labels = rng.integers(0, 6, len(potentials.node)).astype(np.int32)
    same_up_to(potentials.path_scores(labels), plain.path_scores(labels), 1e-13)
    other = potentials.with_node(potentials.node + 1.0)
    other.posterior()
    same_up_to(potentials.path_scores(labels), plain.path_scores(labels), 1e-13)  # not overwritten


def terms(potentials: LivePotentials, rng: np.random.Generator) -> list[Term]:
    batch = potentials.batch
    n, L = potentials.node.shape
    labels, weights = np.zeros(batch.hi, np.int32), rng.uniform(0, 2, batch.sentence_hi)
    labels[batch.lo :] = rng.integers(0, L, n)
    allowed = rng.random((batch.hi, L)) < 0.6
    allowed[np.arange(batch.hi), labels] = True
    q, vertex_of = rng.dirichlet(np.ones(L), 5), rng.integers(-1, 5, batch.hi).astype(np.int32)
    return [
        HardLabels(labels),
        HardLabels(labels, weights),
        LogPartition(0.7),
        PartialLabels(allowed, None, weights),
        VirtualEvidence(q, vertex_of, 0.5, 1.5),
    ]


@pytest.mark.parametrize("number", range(5))
def test_terms(number: int) -> None:
    """Values and derivatives are those of the same chains with a matrix per position."""
    potentials = chains(4, 5)
    term = terms(potentials, np.random.default_rng(1))[number]
    plain = term.evaluate(potentials.per_position())
    found = term.evaluate(replace(potentials, scores=potentials.scores.copy()))
    same_up_to(found.value, plain.value, 1e-12)
    same_up_to(found.node, plain.node, 1e-12)
    same_up_to(found.edge[0], plain.edge.sum(axis=0), 1e-11)
    assert found.live is not None
    left, right = potentials.live[:2]
    same_up_to(found.live[:, : len(left)], plain.edge[:, left, right], 1e-12)
    n, L = potentials.node.shape
    found.check(n, L, potentials.scores.shape[1])


@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_bits_do_not_depend_on_threads(holes: float) -> None:
    found = []
    for threads in (1, 2, 3):
        set_number_of_threads(threads)
        posterior = chains(5, 7, holes=holes).posterior()
        assert posterior.live is not None
        found.append([x.tobytes() for x in (posterior.node, posterior.edge, posterior.live)])
    set_number_of_threads(1)
    assert found[0] == found[1] == found[2]


def test_no_label_sequence_is_possible() -> None:
    potentials = chains(6, 3)
    potentials.node[4] = -INF
    assert not all(map(possible, by_position(potentials)))
    with pytest.raises(InfeasibleSentenceError, match="sentence 3"):
        potentials.posterior()


def test_arrays_that_do_not_fit() -> None:
    potentials = chains(7, 4)
    live, n = potentials.live, len(potentials.node)
    with pytest.raises(ValueError, match="edge potentials"):
        replace(potentials, edge=np.zeros((n, 4, 4)))
    for scores in (potentials.scores[1:], potentials.scores[:, :1].copy(), np.zeros(n)):
        with pytest.raises(ValueError, match=r"scores by position|columns"):
            replace(potentials, scores=scores)
    for wrong in (
        live._replace(left=live.left + np.int32(4)),
        live._replace(right=live.right[1:]),
        live._replace(column=live.column + np.int32(99)),
    ):
        with pytest.raises(ValueError, match=r"labels|columns|do not fit"):
            replace(potentials, live=wrong)
    with pytest.raises(ValueError, match="weights"):
        potentials.posterior(np.ones(2))
    with pytest.raises(ValueError, match="labels"):
        potentials.path_scores(np.full(n, 4, np.int32))
    slopes = PotentialGradient(np.zeros(1), potentials.node, np.zeros((1, 4, 4)))
    slopes.check(n, 4)
    with pytest.raises(ValueError, match="a term gave derivatives"):  # none for each position
        slopes.check(n, 4, 9)
    with pytest.raises(ValueError, match="a term gave derivatives"):
        replace(slopes, live=np.zeros((n, 8))).check(n, 4, 9)
