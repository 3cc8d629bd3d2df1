"""Second-order chains against every label sequence of small ones, spelled out weight by weight."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from sslbench.engine.crf import InfeasibleSentenceError
from sslbench.engine.crf.data import Batch, LabelTriples
from sslbench.engine.crf.entropy import Entropy
from sslbench.engine.crf.first_order.batch import BatchPosterior, BatchPotentials
from sslbench.engine.crf.second_order.batch import SecondOrderPotentials
from sslbench.engine.crf.weights.tables import SecondOrder
from sslbench.engine.types import F64
from support.nested_entropy import as_pairs, nested_entropy
from support.second_order_toys import LENGTHS, Chain, chains, check_sums, close, potentials_of
from support.worked_chain import E, U, W

KINDS = [
    pytest.param(L, scale, options, id=f"{L} labels, {scale:g}, {' '.join(options) or 'plain'}")
    for L, scale, options in [
        (3, 1.0, {}),
        (4, 5.0, {}),
        (2, 25.0, {}),
        (3, 30.0, {}),
        (2, 60.0, {}),
        (3, 200.0, {}),
        (1, 1.0, {}),
        (3, 1.0, {"varying": True}),
        (3, 1.0, {"masked": True}),
        (3, 30.0, {"masked": True}),
        (4, 1.0, {"masked": True, "varying": True}),
        (3, 900.0, {"masked": True}),
    ]
]


@pytest.mark.parametrize(("L", "scale", "options"), KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_posteriors_are_sums_over_all_sequences(
    L: int, scale: float, options: dict[str, bool], weighted: bool
) -> None:
    rng = np.random.default_rng([L, int(scale), len(options)])
    for _ in range(4):
        potentials = potentials_of(rng, LENGTHS, L, scale, **options)
        weights = rng.uniform(0.1, 3.0, len(LENGTHS)) if weighted else np.ones(len(LENGTHS))
        found = potentials.posterior(weights if weighted else None)
        close(found.log_z(), [c.log_z for c in chains(potentials)])
        check_sums(found, potentials, [c.p for c in chains(potentials)], weights)


@pytest.mark.parametrize(("L", "scale", "options"), KINDS)
def test_entropy_and_its_derivatives(L: int, scale: float, options: dict[str, bool]) -> None:
    rng = np.random.default_rng([L, int(scale), len(options)])
    potentials = potentials_of(rng, LENGTHS, L, scale, **options)
    weights = rng.uniform(0.1, 3.0, len(LENGTHS))
    found = Entropy(weights=weights).batch_entropy(potentials)
    every = chains(potentials)
    close(found.entropy, [c.entropy for c in every])
    posterior = BatchPosterior(potentials.batch, np.zeros(0), found.node, found.edge, found.triples)
    check_sums(posterior, potentials, [c.entropy_slopes for c in every], weights)
    close(found.labels, sum(c.expected(c.p)[0].sum(axis=0) for c in every))


@pytest.mark.parametrize(("L", "scale", "options"), [k for k in KINDS if k.values[1] < 100])
def test_the_nested_program_on_pairs_agrees(L: int, scale: float, options: dict[str, bool]) -> None:
    rng = np.random.default_rng([L, int(scale), len(options), 1])
    potentials = potentials_of(rng, LENGTHS, L, scale, **options)
    weights = rng.uniform(0.1, 3.0, len(LENGTHS))
    found = Entropy(weights=weights).batch_entropy(potentials)
    nested = nested_entropy(potentials, weights)
    for name in ("entropy", "node", "edge", "labels"):
        close(getattr(nested, name), getattr(found, name), 1e-8)
    assert nested.triples is not None
    assert found.triples is not None
    for mine, other in zip(nested.triples, found.triples, strict=True):
        close(mine, other, 1e-8)
    pairs = as_pairs(potentials).posterior()
    close(pairs.log_z(), potentials.posterior().log_z())


@pytest.mark.parametrize(("L", "scale", "options"), KINDS)
def test_best_sequences(L: int, scale: float, options: dict[str, bool]) -> None:
    rng = np.random.default_rng([L, int(scale), len(options)])
    potentials = potentials_of(rng, LENGTHS, L, scale, **options)
    wanted = [c.paths[c.scores.argmax()] for c in chains(potentials)]
    np.testing.assert_array_equal(potentials.viterbi(), np.concatenate(wanted))


def rounded(potentials: SecondOrderPotentials) -> SecondOrderPotentials:
    """The same, with whole numbers: many labelings are equally good, in any order of the sums."""
    for part in (potentials.node, potentials.edge, *potentials.triples):
        part.round(out=part)
    return potentials


@pytest.mark.parametrize("options", [{}, {"varying": True}, {"masked": True}])
def test_among_equal_sequences_the_last_label_decides_first(options: dict[str, bool]) -> None:
    potentials = rounded(potentials_of(np.random.default_rng(4), LENGTHS, 3, **options))
    wanted = []
    for chain in chains(potentials):
        best = chain.paths[chain.scores == chain.scores.max()]
        wanted += min(best.tolist(), key=lambda labels: labels[::-1])
    assert potentials.viterbi().tolist() == wanted


@pytest.mark.parametrize("options", [{}, {"varying": True}, {"masked": True}])
@pytest.mark.parametrize("L", [9, 17])
def test_best_sequences_of_many_labels(L: int, options: dict[str, bool]) -> None:
    lengths = [7, 1, 12, 2, 3, 9, 30, 5, 8]
    potentials = potentials_of(np.random.default_rng(L), lengths, L, **options)
    for each in (potentials, rounded(potentials)):
        edge = np.broadcast_to(each.edge, (sum(lengths), L, L))
        wanted = []
        for lo, hi in pairwise(each.batch.offsets):
            wanted += best_labels(each.node[lo:hi], edge[lo:hi], each.triples)
        assert each.viterbi().tolist() == wanted


def best_labels(node: F64, edge: F64, of: LabelTriples) -> list[int]:
    """Best labels of a sentence, position by position, with whole arrays [a, b, c]."""
    if len(node) == 1:
        return [int(node[0].argmax())]
    best, back = node[0][:, None] + (node[1] + edge[1] + of.begin), []
    for t in range(2, len(node)):
        every = best[:, :, None] + (node[t] + edge[t] + of.inner)
        back.append(every.argmax(axis=0))
        best = every.max(axis=0)
    c, b = np.unravel_index((best + of.end).T.argmax(), best.shape)
    labels = [int(c), int(b)]
    for before in reversed(back):
        labels.append(int(before[labels[-1], labels[-2]]))
    return labels[::-1]


def test_sentences_that_have_no_labeling() -> None:
    rng = np.random.default_rng(1)
    potentials = potentials_of(rng, [3, 2], 3)
    potentials.triples.begin[:] = -np.inf
    for act in (
        potentials.posterior,
        potentials.viterbi,
        lambda: Entropy().batch_entropy(potentials),
    ):
        with pytest.raises(InfeasibleSentenceError, match="sentence 0"):
            act()
    weights = np.zeros(2)  # what has no weight may be impossible
    close(potentials.posterior(weights).node, 0.0)
    close(Entropy(weights=weights).batch_entropy(potentials).entropy, 0.0)


# -- worked numbers of docs/specs ------------------------------------------------------------------
E2 = np.array([[0.02, -0.03], [0.04, 0.01], [0.0, 0.0]])


def worked(T: int, zero: bool = False) -> SecondOrderPotentials:
    """The first T tokens of docs/specs/crf_engine.md, oracle 7."""
    w2 = np.array(
        [
            [
                [
                    0.1 * (z + 1) - 0.2 * (a + 1) * c + 0.05 * z * c - 0.07 * (z == c)
                    for c in range(2)
                ]
                for a in range(3)
            ]
            for z in range(3)
        ]
    )
    second = SecondOrder(w2, np.zeros((3, 2)), E2)
    if zero:
        second = SecondOrder(*(0.0 * part for part in second))
    node = U[:T].copy()
    node[0] += W[2] + second.first()
    node[T - 1] += E + (second.e2[2] if T == 1 else 0.0)
    batch = Batch(0, T, 0, 1, np.array([0, T]))
    return SecondOrderPotentials(batch, node, W[None, :2].copy(), second.potentials())


def test_oracle_7_of_the_engine() -> None:
    potentials = worked(3)
    close(chains(potentials)[0].scores, [1.40, 1.72, 0.72, 1.86, -0.23, 0.00, -0.11, 0.94])
    found = potentials.posterior()
    close(found.log_z(), 3.1513781594, 5e-11)
    close(found.node[:, 0], [0.7753212285, 0.4893076385, 0.3337863009], 5e-10)
    close(Entropy().batch_entropy(potentials).entropy, 1.8318479218, 5e-11)
    assert potentials.viterbi().tolist() == [0, 1, 1]
    close(worked(1).posterior().log_z(), 1.1514132780, 5e-11)
    close(worked(2).posterior().log_z(), 2.2880395693, 5e-11)


def test_oracle_p12_of_graph_pr() -> None:
    u = np.array([[0.3, -0.2], [0.1, 0.4], [-0.5, 0.2], [0.0, 0.25]])
    a = np.array([[[0.5, -0.3], [-0.2, 0.4]]])
    c = np.array([[[0.1, -0.4], [0.2, 0.0]], [[-0.3, 0.5], [0.15, -0.05]]])
    batch = Batch(0, 4, 0, 1, np.array([0, 4]))
    potentials = SecondOrderPotentials(
        batch, u, a, LabelTriples(np.zeros((2, 2)), c, np.zeros((2, 2)))
    )
    found = potentials.posterior()
    close(found.log_z(), 3.6206639379, 5e-11)
    close(found.node[:, 0], [0.5647057222, 0.4177430838, 0.3611443769, 0.4423997161], 5e-10)
    assert found.triples is not None
    first = Chain(u, a, potentials.triples)
    joint = np.zeros((2, 2, 2))
    np.add.at(joint, tuple(first.paths[:, :3].T), first.p)
    close(
        joint.ravel(),
        [
            0.1789577636,
            0.1164132868,
            0.0675609910,
            0.2017736807,
            0.0361309493,
            0.0862410840,
            0.0784946729,
            0.2344275715,
        ],
        5e-10,
    )
    last = np.zeros((2, 2, 2))
    np.add.at(last, tuple(first.paths[:, 1:].T), first.p)
    close(found.triples.inner, joint + last)
    assert potentials.viterbi().tolist() == [1, 1, 1, 1]
    close(first.scores.max(), 1.75)


def test_without_triples_it_is_the_first_order() -> None:
    """docs/specs/crf_engine.md, oracle 7, last sentence."""
    close(worked(1, zero=True).posterior().log_z(), 0.9632616875, 5e-11)
    rng = np.random.default_rng(3)
    for varying in (False, True):
        second = potentials_of(rng, LENGTHS, 4, varying=varying)
        none = LabelTriples(*(0.0 * part for part in second.triples))
        second = SecondOrderPotentials(second.batch, second.node, second.edge, none)
        first = BatchPotentials(second.batch, second.node.copy(), second.edge.copy()).posterior()
        found = second.posterior()
        close(found.log_z(), first.log_z())
        close(found.node, first.node)
        close(found.edge, first.edge)
