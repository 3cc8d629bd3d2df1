"""The scaled recursions at the ends of the range of floats, against chains in log space."""

from __future__ import annotations

import numpy as np
import pytest

from sslbench.engine.crf.first_order.batch import BatchPosterior
from sslbench.engine.types import F64
from support.chain_toys import (
    LENGTHS,
    check_against_chains,
    only_stay,
    possible,
    random_chains,
    sentences,
)
from support.compare import close
from support.crf_oracle import INF, Enumeration, batch_of, same_up_to, varying
from support.log_space_chain import Potentials, infer, negative_entropy, viterbi
from support.worked_chain import E1


def scaled(posterior: BatchPosterior) -> list[bool]:
    """Which sentences of two or more tokens took the fast path?  (Log space puts log Z in the first
    step and 0 in the others.)
    """
    steps = [posterior.log_scale[tokens] for tokens in sentences(posterior)]
    return [bool((s[1:] != 0).any()) for s in steps if len(s) > 1]


@pytest.mark.parametrize("per_position", [False, True])
def test_potentials_up_to_1e5(per_position: bool) -> None:
    rng = np.random.default_rng(1)
    for holes in (0.0, 0.3):
        chains = random_chains(rng, 4, 1.0, holes, per_position)
        biggest = [
            Potentials(1e5 * np.sign(p.node), 1e5 * np.sign(p.edge)) for p in chains
        ]  # many paths tie: 0 < mu < 1
        if not per_position:
            biggest = [Potentials(p.node, biggest[0].edge) for p in biggest]
        with np.errstate(invalid="raise"):
            check_against_chains(biggest, batch_of(biggest).posterior(), log_z=1e-10)


@pytest.mark.parametrize("per_position", [False, True])
def test_range_300_is_scaled_and_right(per_position: bool) -> None:
    """docs/specs/crf_engine.md, oracle 19, with the widest potentials inside the guard."""
    rng = np.random.default_rng(2)
    for L in (2, 3, 8):
        for _ in range(5):
            chains = []
            edge = rng.uniform(0, 150, (1, L, L))
            for T in LENGTHS:
                if per_position:
                    edge = rng.uniform(-75, 75, (T, L, L))
                chains.append(Potentials(rng.uniform(-1000, -850, (T, L)), edge))
            posterior = batch_of(chains).posterior()
            assert all(scaled(posterior))
            check_against_chains(chains, posterior)


@pytest.mark.parametrize("per_position", [False, True])
def test_beyond_the_guard_is_done_in_log_space(per_position: bool) -> None:
    rng = np.random.default_rng(3)
    chains = random_chains(rng, 3, 1.0, 0.0, per_position)
    chains[3].node[4, 1] -= 700
    chains[7].node[0, 2] += 650
    if not per_position:
        chains = [Potentials(p.node, chains[0].edge) for p in chains]
    posterior = batch_of(chains).posterior()
    long = [i for i, p in enumerate(chains) if len(p.node) > 1]
    expected = [i not in (3, 7) for i in long]
    assert scaled(posterior) == expected
    check_against_chains(chains, posterior)


# -- messages that leave the range of floats although every potential is harmless ------------------


def lost() -> F64:
    """Label 1 loses 150 nats a token to label 0, which the last token forbids."""
    node = np.tile([0.0, -150.0], (7, 1))
    node[6] = [-INF, 0.0]
    return node


def unreachable() -> F64:
    """Label 1 would gain 150 nats a token over label 0, but no sequence can start there."""
    node = np.tile([-150.0, 0.0], (9, 1))
    node[0] = [0.0, -INF]
    return node


def both_ends() -> F64:
    """As docs/specs/crf_engine.md, oracle 11, with forbidden transitions: each end drops label 1
    from above 1e-200 to 0 in one step, and the middle would have made up for it.
    """
    steps = [-345.0, -500.0, 450.0, 450.0, 450.0, 450.0, -500.0, -345.0]
    return np.array([[min(0.0, -s), min(0.0, s)] for s in steps])


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize(
    ("node", "log_z"), [(lost(), -900), (unreachable(), -1200), (both_ends(), -1690)]
)
def test_messages_that_leave_the_range(node: F64, log_z: float, per_position: bool) -> None:
    p = Potentials(node, only_stay())
    chains = [varying(p) if per_position else p]
    posterior = batch_of(chains).posterior()
    assert posterior.log_z()[0] == pytest.approx(log_z, abs=1e-9)
    assert np.isfinite(posterior.node).all()
    assert np.isfinite(posterior.edge).all()
    check_against_chains(chains, posterior)


@pytest.mark.parametrize("per_position", [False, True])
def test_long_sentences_with_holes(per_position: bool) -> None:
    """Ranges just inside the guard for -inf, on long sentences: messages drift far apart."""
    rng = np.random.default_rng(4)
    for L in (2, 3, 4):
        for _ in range(20):
            lengths = [60, 1, 25]
            edge = rng.uniform(-90, 0, (1, L, L))
            edge[0][~np.eye(L, dtype=bool) & (rng.random((L, L)) < 0.7)] = -INF
            chains = []
            for T in lengths:
                node = rng.uniform(-90, 0, (T, L))
                node[rng.random(node.shape) < 0.05] = -INF
                p = Potentials(node, edge)
                chains.append(varying(p) if per_position else p)
            if all(map(possible, chains)):
                check_against_chains(chains, batch_of(chains).posterior())


# -- docs/specs/crf_engine.md, oracles 10 and 11 -----------------------------------------------


def silent_failures() -> dict[str, tuple[Potentials, float, float | None, list[int] | None]]:
    """Chains on which a max-shifted scaled pass is wrong without noticing."""
    start = [0.0, -700.0]
    one = [[[400, -400], [-700, -700]], *[[[-200, -700], [-700, 200]]] * 2]
    both = [
        [[400, -400], [-700, -700]],
        *[[[-350, -700], [-700, 350]]] * 4,
        [[400, -700], [-400, -700]],
        *[[[0, -700], [-700, -700]]] * 2,
    ]

    def chain(edges: list[list[list[int]]]) -> Potentials:
        node = np.zeros((len(edges) + 1, 2))
        node[0] = start
        return Potentials(node, np.array([np.zeros((2, 2)), *edges], dtype=np.float64))

    return {
        "one direction": (chain(one), np.log(2), np.log(2), None),
        "both directions": (chain(both), 600.0, None, [0, 1, 1, 1, 1, 1, 0, 0, 0]),
    }


@pytest.mark.parametrize("name", silent_failures())
def test_silent_failures_of_scaling(name: str) -> None:
    p, log_z, entropy, best = silent_failures()[name]
    truth = Enumeration.of(p)
    assert infer(p).log_z == pytest.approx(log_z, abs=1e-10)
    assert truth.log_z == pytest.approx(log_z, abs=1e-10)
    same_up_to(infer(p).node, truth.node, 1e-12)
    if entropy is not None:
        assert -negative_entropy(p).mean == pytest.approx(entropy, abs=1e-10)
        close(infer(p).node[1], [0.5, 0.5])
    if best is not None:
        assert viterbi(p)[1].tolist() == best


@pytest.mark.parametrize("name", silent_failures())
def test_silent_failures_in_a_batch(name: str) -> None:
    p, log_z, _, best = silent_failures()[name]
    harmless = E1.potentials()
    posterior = batch_of([harmless, p, harmless]).posterior()
    close(posterior.log_z(), [2.9866164342, log_z, 2.9866164342])
    middle = slice(3, 3 + len(p.node))
    same_up_to(posterior.node[middle], infer(p).node, 1e-12)
    same_up_to(posterior.edge[middle], infer(p).edges(), 1e-12)
    if best is not None:
        assert batch_of([harmless, p]).viterbi()[3:].tolist() == best
