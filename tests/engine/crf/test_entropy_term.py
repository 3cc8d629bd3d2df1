"""The entropy term by enumeration, the nested program, differences, and chain by chain."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.crf import InfeasibleSentenceError
from sslbench.engine.crf.entropy import BatchEntropy, Entropy
from sslbench.engine.types import F64
from support.chain_toys import LENGTHS, only_stay, random_chains
from support.crf_oracle import INF, Enumeration, batch_of, random_models, same_up_to, slopes
from support.log_space_chain import Potentials, negative_entropy
from support.nested_entropy import NestedEntropy, nested_entropy
from support.objective_toys import CASES, case, evaluate, select

#: the chain of docs/specs/virtual_evidence.md, oracle V9
V9 = Potentials(
    np.array([[0.3, -0.2], [0.1, 0.4], [-0.5, 0.2]]), np.array([[[0.5, -0.3], [-0.2, 0.4]]])
)
#: the engine and the oracle
COMPUTE = {False: BatchEntropy.build, True: nested_entropy}
BOTH = pytest.mark.parametrize("nested", [False, True])
EDGES = pytest.mark.parametrize("position", [False, True], ids=["shared", "per position"])


def found_for(
    chains: list[Potentials], weights: F64 | None = None, nested: bool = False
) -> BatchEntropy:
    return COMPUTE[nested](batch_of(chains), _ones(chains, weights))


def _ones(chains: list[Potentials], weights: F64 | None) -> F64:
    return np.ones(len(chains)) if weights is None else weights


def check_against_chains(
    chains: list[Potentials],
    tolerance: float = 1e-11,
    weights: F64 | None = None,
) -> None:
    """Entropy and derivatives against the recursion in log space on one chain at a time."""
    found, w = found_for(chains, weights), _ones(chains, weights)
    wanted = [negative_entropy(p) for p in chains]
    same_up_to(found.entropy, np.where(w > 0, [-x.mean for x in wanted], 0.0), tolerance)
    node = [x.node * factor for x, factor in zip(wanted, w, strict=True)]
    same_up_to(found.node, np.concatenate(node), tolerance)
    edges = np.concatenate([x.edge * factor for x, factor in zip(wanted, w, strict=True)])
    if found.edge.shape[0] > 1:
        same_up_to(found.edge, edges, tolerance)
    same_up_to(found.edge.sum(axis=0), edges.sum(axis=0), 10 * tolerance)
    assert not np.isnan(found.edge).any()
    assert (found.node[np.isneginf(np.concatenate([p.node for p in chains]))] == 0).all()


# -- values known beforehand -----------------------------------------------------------------------


@BOTH
@EDGES
def test_v9(nested: bool, position: bool) -> None:
    potentials = batch_of([V9])
    found = COMPUTE[nested](potentials.per_position() if position else potentials, np.ones(1))
    np.testing.assert_allclose(found.entropy, [1.9053070488], rtol=0, atol=1e-10)
    wanted = [
        [-0.0466656762, 0.0466656762],
        [0.0633537745, -0.0633537745],
        [0.1306574240, -0.1306574240],
    ]
    np.testing.assert_allclose(-found.node, wanted, rtol=0, atol=1e-10)
    wanted = [[-0.0235222391, 0.0402103374], [0.2175334376, -0.2342215359]]
    np.testing.assert_allclose(-found.edge.sum(axis=0), wanted, rtol=0, atol=1e-10)


@BOTH
@EDGES
@pytest.mark.parametrize("L", [1, 2, 9, 40])
def test_uniform_chains_have_no_slope(nested: bool, position: bool, L: int) -> None:
    """The entropy is at its maximum: T log L."""
    chains = [Potentials(np.full((T, L), 0.7), np.full((1, L, L), -2.0)) for T in (1, 2, 7)]
    potentials = batch_of(chains)
    found = COMPUTE[nested](potentials.per_position() if position else potentials, np.ones(3))
    same_up_to(found.entropy, np.array([1, 2, 7]) * np.log(L), 1e-13)
    assert max(abs(found.node).max(), abs(found.edge).max()) < 1e-12
    same_up_to(found.labels, np.full(L, 10 / L), 1e-13)


@EDGES
@pytest.mark.parametrize(("a", "b"), [(0.7, -0.4), (100.0, -100.0), (700.0, -700.0)])
def test_a_long_chain(a: float, b: float, position: bool) -> None:
    """docs/specs/crf_engine.md, oracle 8, inside the guard and beyond: H and its slope."""
    T = 5000
    edge = np.array([[[a, b], [b, a]]])
    potentials = batch_of([Potentials(np.zeros((T, 2)), edge)])
    found = BatchEntropy.build(potentials.per_position() if position else potentials, np.ones(1))
    p = 1 / (1 + np.exp(max(b - a, -700)))
    entropy = np.log(2) - (T - 1) * (p * np.log(p) + (1 - p) * np.log1p(-p) if p < 1 else 0)
    assert found.entropy[0] == pytest.approx(entropy, abs=1e-10 * (1 + entropy))
    slope = (T - 1) * p * (1 - p) * (a - b)
    assert np.trace(found.edge.sum(axis=0)) == pytest.approx(slope, abs=1e-10 * (1 + slope))
    assert abs(found.node).max() < 1e-11


def test_slopes_of_nearly_certain_labels() -> None:
    """Tokens on their own, of two labels l apart: d(-H)/dl = l p (1 - p), to many digits."""
    gaps = np.array([1.0, 10.0, 20.0, 25.0])
    node = np.stack([gaps, np.zeros(4)], axis=1)
    found = found_for([Potentials(node, np.zeros((1, 2, 2))), V9])
    p = 1 / (1 + np.exp(gaps))  # of the unlikely label
    np.testing.assert_allclose(found.node[:4, 0], gaps * p * (1 - p), rtol=1e-6)


# -- enumeration -----------------------------------------------------------------------------------


@BOTH
def test_random_models(nested: bool) -> None:
    """Start and stop scores, forbidden transitions, edges that depend on the position."""
    for model, truth in random_models(150, seed=3):
        p = model.potentials()
        mean, node, edge = truth.covariance(truth.scores)
        found = found_for([p], nested=nested)
        tolerance = 1e-11 * (1 + abs(mean)) ** 2
        same_up_to(found.entropy, np.array([truth.entropy()]), tolerance)
        same_up_to(found.node, node, tolerance)
        if found.edge.shape[0] == 1:
            edge = edge.sum(axis=0, keepdims=True)
        same_up_to(found.edge, edge, tolerance)
        same_up_to(found.labels, truth.node.sum(axis=0), 1e-12)


@BOTH
@EDGES
def test_positions_sum_to_zero_and_what_is_forbidden_has_no_slope(
    nested: bool, position: bool
) -> None:
    rng = np.random.default_rng(1)
    for holes in (0.0, 0.3):
        chains = random_chains(rng, 4, 3.0, holes, position)
        found = found_for(chains, nested=nested)
        tolerance = 1e-11 if nested else 1e-13
        assert abs(found.node.sum(axis=1)).max() < tolerance
        if position:
            assert abs(found.edge.sum(axis=(1, 2))).max() < tolerance
            edges = np.concatenate([p.edge for p in chains])
            assert (found.edge[np.isneginf(edges)] == 0).all()
        else:
            assert abs(found.edge.sum()) < 10 * tolerance
            assert (found.edge[np.isneginf(chains[0].edge)] == 0).all()


# -- through the weights of a model ----------------------------------------------------------------

SIX = [1, 2, 3, 4, 5, 6, 1]


WEIGHTS = np.array([1.0, 0.5, 2.0, 1.0, 0.0, 1.5, 1.0])


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_the_objective(name: str) -> None:
    """Both against each other, against enumeration and against central differences."""
    c = case(name, 21, SIX)
    objective = c.objective(Entropy(0.7, WEIGHTS), 1.7)
    value, gradient = evaluate(objective, c.weights)
    slow, other = evaluate(c.objective(NestedEntropy(0.7, WEIGHTS), 1.7), c.weights)
    assert slow == pytest.approx(value, abs=1e-10)
    same_up_to(other, gradient, 1e-8)
    same_up_to(gradient, slopes(lambda x: evaluate(objective, x)[0], c.weights), 1e-6)
    bare, _ = evaluate(c.objective(Entropy(0.7, WEIGHTS)), c.weights)
    entropies = [Enumeration.of(p).entropy() for p in c.potentials()]
    assert bare == pytest.approx(-0.7 * (WEIGHTS * entropies).sum(), abs=1e-11)
    factor = 0.7 * (WEIGHTS * SIX).sum()
    loss = np.empty_like(gradient)
    assert objective.scaled_loss(c.weights, loss) == pytest.approx(-value / factor, rel=1e-14)


@pytest.mark.parametrize("name", ["observed", "everything"])
def test_sentence_weights(name: str) -> None:
    c = case(name, 13)
    w = np.array([1.0, 2, 1, 1, 0, 1, 2])
    value, gradient = evaluate(c.objective(Entropy(1.0, w), 5.0), c.weights)
    again, _ = select(c, np.array([0, 1, 1, 2, 3, 5, 6, 6]))
    twice, other = evaluate(again.objective(Entropy(), 5.0), c.weights)
    assert twice == pytest.approx(value, rel=1e-13)
    same_up_to(other, gradient, 1e-12)
    kept = np.array([0, 1, 2, 3, 5, 6])
    again, _ = select(c, kept)
    absent = again.objective(Entropy(1.0, w[kept]), 5.0)
    without, other = evaluate(absent, c.weights)
    assert without == value  # the very same bits
    np.testing.assert_array_equal(other, gradient)
    lengths = np.array([2.0, 3.0])
    assert Entropy(0.5).n_tokens(lengths) == 2.5
    assert Entropy(0.5, np.array([3.0, 0.0])).n_tokens(lengths) == 3.0


@EDGES
def test_unequal_weights_need_no_transitions_of_their_own(position: bool) -> None:
    rng = np.random.default_rng(5)
    chains = random_chains(rng, 3, 2.0, 0.2, position)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], len(chains))
    check_against_chains(chains, weights=weights)
    assert found_for(chains, weights).edge.shape[0] == (sum(LENGTHS) if position else 1)


# -- numbers that leave the range of floats --------------------------------------------------------


@EDGES
@pytest.mark.parametrize("holes", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("scale", [0.5, 10.0, 60.0, 300.0, 3e3, 3e4])
def test_batch_equals_chains(scale: float, holes: float, position: bool) -> None:
    rng = np.random.default_rng([int(scale), int(10 * holes), position])
    for L in (1, 2, 3, 4, 5, 9):
        if L > 1 or not holes:
            check_against_chains(random_chains(rng, L, scale, holes, position))


@EDGES
@pytest.mark.parametrize("L", [8, 15, 16, 17, 23, 24, 25, 40, 41, 49])
def test_every_width_of_rows(L: int, position: bool) -> None:
    rng = np.random.default_rng(L)
    check_against_chains(random_chains(rng, L, 1.0, 0.0, position, [1, 2, 5]))


@EDGES
def test_both_sides_of_the_guard(position: bool) -> None:
    rng = np.random.default_rng(2)
    edge = rng.uniform(0, 150, (1, 3, 3))
    chains = []
    for T in LENGTHS:
        if position:
            edge = rng.uniform(-75, 75, (T, 3, 3))
        chains.append(Potentials(rng.uniform(-1000, -850, (T, 3)), edge))
    check_against_chains(chains)
    chains[3].node[4, 1] -= 700
    chains[7].node[0, 2] += 650
    check_against_chains(chains)


@EDGES
@pytest.mark.parametrize(
    "node",
    [
        np.vstack([np.tile([0.0, -150.0], (6, 1)), [[-INF, 0.0]]]),
        np.vstack([[[0.0, -INF]], np.tile([-150.0, 0.0], (8, 1))]),
        [
            [min(0.0, -s), min(0.0, s)]
            for s in (-345.0, -500.0, 450.0, 450.0, 450.0, 450.0, -500.0, -345.0)
        ],
    ],
    ids=["underflow", "overflow", "both ends"],
)
def test_messages_beyond_the_range_of_floats(node: F64, position: bool) -> None:
    p = Potentials(np.array(node), only_stay())
    if position:
        p = replace(p, edge=np.broadcast_to(p.edge, (len(p.node), 2, 2)).copy())
    check_against_chains([p, p], 1e-12)


@BOTH
@EDGES
def test_infeasible_sentences_are_named(nested: bool, position: bool) -> None:
    rng = np.random.default_rng(5)
    chains = random_chains(rng, 3, 1.0, 0.0, position)
    chains[7].node[11] = -INF
    potentials = batch_of(chains, first_sentence=100)
    weights = np.ones(len(chains))
    with pytest.raises(InfeasibleSentenceError, match=r"\b107\b"):
        COMPUTE[nested](potentials, weights)
    weights[7] = 0.0
    found = found_for(chains, weights, nested)
    assert found.entropy[7] == 0
    assert np.isfinite(found.node).all()
    assert np.isfinite(found.edge).all()


# -- what changes nothing --------------------------------------------------------------------------


@BOTH
@EDGES
def test_potentials_that_are_left_alone(nested: bool, position: bool) -> None:
    rng = np.random.default_rng(9)
    potentials = batch_of(random_chains(rng, 3, 1.0, 0.2, position))
    node, edge = potentials.node.copy(), potentials.edge.copy()
    COMPUTE[nested](potentials, np.ones(len(LENGTHS)))
    np.testing.assert_array_equal(potentials.node, node)
    if nested or not position:
        np.testing.assert_array_equal(potentials.edge, edge)


@EDGES
def test_label_permutation_and_shifts(position: bool) -> None:
    rng = np.random.default_rng(11)
    chains = random_chains(rng, 5, 2.0, 0.2, position)
    found, order = found_for(chains), rng.permutation(5)
    swapped = [
        Potentials(p.node.take(order, 1) - 31.0, p.edge.take(order, 1).take(order, 2) + 17.0)
        for p in chains
    ]
    other = found_for(swapped)
    same_up_to(other.entropy, found.entropy, 1e-12)
    same_up_to(other.node, found.node[:, order], 1e-12)
    same_up_to(other.edge, found.edge[:, order][..., order], 1e-12)
    same_up_to(other.labels, found.labels[order], 1e-12)


@EDGES
def test_cuts_into_batches_change_nothing(position: bool) -> None:
    rng = np.random.default_rng(6)
    chains = random_chains(rng, 3, 2.0, 0.3, position, LENGTHS * 3)
    whole = found_for(chains)
    parts = [found_for(chains[i:j]) for i, j in pairwise([0, 1, 2, 14, 33])]
    np.testing.assert_array_equal(np.concatenate([p.entropy for p in parts]), whole.entropy)
    np.testing.assert_array_equal(np.concatenate([p.node for p in parts]), whole.node)
    same_up_to(sum(p.edge.sum(axis=0) for p in parts), whole.edge.sum(axis=0), 1e-12)
    same_up_to(sum(p.labels for p in parts), whole.labels, 1e-12)


@EDGES
def test_threads_change_no_bit(position: bool) -> None:
    rng = np.random.default_rng(12)
    chains = random_chains(rng, 5, 2.0, 0.2, position, LENGTHS * 8)
    chains[5].node[0] -= [1000.0, 0.0, 0.0, 0.0, 0.0]  # one in log space
    results = []
    for threads in (1, 2):
        with using_threads(threads):
            results.append(found_for(chains))
    for name in ("entropy", "node", "edge", "labels"):
        np.testing.assert_array_equal(*(getattr(found, name) for found in results))
