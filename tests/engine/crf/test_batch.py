"""Many chains at once: the scaled path against the chain form, and the exponential under it."""

from __future__ import annotations

import numpy as np
import pytest

from sslbench.engine.crf import InfeasibleSentenceError
from sslbench.engine.crf.data import batches
from sslbench.engine.crf.first_order import shared
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.engine.crf.simd.exp import exp_shifted
from sslbench.engine.types import F64
from support.chain_toys import LENGTHS, check_against_chains, random_chains, sentences
from support.crf_oracle import INF, batch_of, log_sum, same_up_to, varying
from support.log_space_chain import Potentials, infer, viterbi


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("holes", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("scale", [0.5, 10.0, 60.0, 300.0, 3e3, 3e4])
def test_batch_equals_chains(scale: float, holes: float, per_position: bool) -> None:
    rng = np.random.default_rng([int(scale), int(10 * holes), per_position])
    for L in (1, 2, 3, 4, 5, 9):
        if L == 1 and holes:
            continue
        chains = random_chains(rng, L, scale, holes, per_position)
        check_against_chains(chains, batch_of(chains).posterior())


# -- infeasible sentences -----------------------------------------------------------------------


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("scale", [1.0, 2000.0])
def test_infeasible_sentences_are_named(per_position: bool, scale: float) -> None:
    rng = np.random.default_rng(5)
    chains = random_chains(rng, 3, scale, 0.0, per_position)
    bad = 7
    broken = chains.copy()
    node = chains[bad].node.copy()
    node[11] = -INF
    broken[bad] = Potentials(node, chains[bad].edge)
    potentials = batch_of(broken, first_sentence=100)
    with pytest.raises(InfeasibleSentenceError, match=r"\b107\b"):
        potentials.viterbi()
    with pytest.raises(InfeasibleSentenceError, match=r"\b107\b"):
        potentials.posterior()
    allowed = np.ones((sum(LENGTHS), 3), bool)
    allowed[3] = False  # the fourth token alone is sentence 3's first
    with pytest.raises(InfeasibleSentenceError, match=r"\b102\b"):
        batch_of(chains, first_sentence=100).restrict(allowed).posterior()


@pytest.mark.parametrize("per_position", [False, True])
def test_infeasible_through_arcs_only(per_position: bool) -> None:
    edge = np.array([[[-INF, 0.0], [-INF, -INF]]])
    fine, dead = Potentials(np.zeros((2, 2)), edge), Potentials(np.zeros((3, 2)), edge)
    chains = [varying(p) if per_position else p for p in (fine, fine, dead, fine)]
    check_against_chains(chains[:2], batch_of(chains[:2]).posterior())
    for function in (BatchPotentials.posterior, BatchPotentials.viterbi):
        with pytest.raises(InfeasibleSentenceError, match=r"\b2\b"):
            function(batch_of(chains))


@pytest.mark.parametrize("per_position", [False, True])
def test_no_arc_is_legal(per_position: bool) -> None:
    edge = np.full((1, 2, 2), -INF)
    one, two = Potentials(np.zeros((1, 2)), edge), Potentials(np.zeros((2, 2)), edge)
    chains = [varying(p) if per_position else p for p in (one, one, two)]
    check_against_chains(chains[:2], batch_of(chains[:2]).posterior())
    with pytest.raises(InfeasibleSentenceError, match=r"\b2\b"):
        batch_of(chains).posterior()


# -- what the cut into batches may not change -----------------------------------------------------


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_cuts_into_batches_change_nothing(per_position: bool, holes: float) -> None:
    rng = np.random.default_rng(6)
    chains = random_chains(rng, 3, 20.0, holes, per_position, LENGTHS * 3)
    whole = batch_of(chains)
    path = whole.viterbi()
    offsets, node = whole.batch.offsets, whole.node
    edge = whole.edge.copy()
    reference = whole.posterior()
    log_z = reference.log_z()
    for size in (1, 2, 9, 64, 10_000):
        pieces = []
        for batch in batches(offsets, size):
            own = edge if len(edge) == 1 else edge[batch.tokens].copy()
            piece = BatchPotentials(batch, node[batch.tokens], own)
            np.testing.assert_array_equal(piece.viterbi(), path[batch.tokens])
            pieces.append(piece.posterior())
        # a single token, with a matrix that it does not use, is done as if all positions shared it
        off = 1e-14 if per_position and size == 1 else 0.0
        same_up_to(np.concatenate([p.node for p in pieces]), reference.node, off)
        same_up_to(np.concatenate([p.log_z() for p in pieces]), log_z, off)
        if per_position:
            xi = np.concatenate([p.edge.reshape(-1, 3, 3) for p in pieces])
            np.testing.assert_array_equal(xi, reference.edge)
        else:
            same_up_to(sum(p.edge for p in pieces), reference.edge, 1e-12)


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0])
@pytest.mark.parametrize("L", [2, 9, 32, 40])
def test_long_sentences(L: int, scale: float, per_position: bool) -> None:
    """Products of scales over many tokens are beyond the range of numbers."""
    lengths = [1, 700, 30, 1500, 400, 2]
    rng = np.random.default_rng(L)
    chains = random_chains(rng, L, scale, 0.0, per_position, lengths)
    posterior = batch_of(chains).posterior()
    check_against_chains(chains, posterior)
    if scale == 0.0:
        np.testing.assert_allclose(posterior.log_z(), np.array(lengths) * np.log(L), rtol=1e-12)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("L", [1, 2, 3, 4, 5, 8, 9, 16, 17, 25])
def test_packs_and_one_by_one(L: int, holes: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences in lanes, in packs that are full or not, and one after the other."""
    rng = np.random.default_rng(L)
    chains = random_chains(rng, L, 2.0, 0.0 if L == 1 else holes, False, LENGTHS * 2)
    potentials = batch_of(chains)
    in_packs = potentials.posterior()
    check_against_chains(chains, in_packs)
    monkeypatch.setattr(shared, "FEW", 0)
    one_by_one = potentials.posterior()
    check_against_chains(chains, one_by_one)
    same_up_to(in_packs.node, one_by_one.node, 1e-13)
    same_up_to(in_packs.log_z(), one_by_one.log_z(), 1e-12)
    same_up_to(in_packs.edge, one_by_one.edge, 1e-12)


def test_sentences_that_packs_cannot_scale_add_nothing_to_their_sums() -> None:
    rng = np.random.default_rng(1)
    chains = random_chains(rng, 3, 1.0, 0.0, False, [5, 4, 6, 5, 7, 5, 5, 5, 4])
    for i in (1, 4):
        chains[i].node[2, 1] -= 1e4  # log space
    check_against_chains(chains, batch_of(chains).posterior())


@pytest.mark.parametrize("way", ["packs", "one by one", "per position"])
def test_without_sums_of_edges(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest has the same bits, of sentences in log space, too."""
    if way == "one by one":
        monkeypatch.setattr(shared, "FEW", 0)
    varies = way == "per position"
    chains = random_chains(np.random.default_rng(2), 5, 2.0, 0.0, varies, LENGTHS * 2)
    chains[3].node[0, 1] -= 1e4
    whole = batch_of(chains).posterior()
    found = batch_of(chains).posterior(counted=False)
    np.testing.assert_array_equal(found.node, whole.node)
    np.testing.assert_array_equal(found.log_scale, whole.log_scale)
    assert found.edge.shape == (whole.edge.shape if varies else (0, 5, 5))


def test_the_way_depends_on_the_lengths_of_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """One long sentence would leave seven of eight lanes idle."""
    found: list[str] = []
    for name in ("_packs", "_one_by_one"):
        monkeypatch.setattr(shared, name, lambda *_, name=name: found.append(name))
    for lengths in ([3000], [300], [30] * 400, [3000, *[30] * 400], [3000, *[30] * 20]):
        n = sum(lengths)
        batch = next(batches(np.cumsum([0, *lengths]), n))
        arrays = np.zeros((n, 2)), np.zeros(n), np.zeros(len(lengths), np.int8)
        shared.shared(np.zeros((n, 2)), np.zeros((1, 2, 2)), batch, *arrays)
    assert found == ["_one_by_one", "_packs", "_packs", "_packs", "_one_by_one"]


def test_cut_into_batches() -> None:
    offsets = np.cumsum([0, *LENGTHS])
    for size in (1, 2, 5, 30, 61, 1000):
        found = list(batches(offsets, size))
        assert [b.lo for b in found] == [0, *(b.hi for b in found[:-1])]
        assert found[-1].hi == offsets[-1]
        assert found[-1].sentence_hi == len(LENGTHS)
        for i, b in enumerate(found):
            assert b.n_tokens >= size or i == len(found) - 1
            assert b.n_tokens - (b.offsets[-1] - b.offsets[-2]) < size  # no sentence too many
            np.testing.assert_array_equal(
                b.offsets + b.lo, offsets[b.sentence_lo : b.sentence_hi + 1]
            )
            assert np.flatnonzero(b.first).tolist() == b.offsets[:-1].tolist()
            groups = b.groups()
            assert (groups[0], groups[-1]) == (0, len(b.offsets) - 1)
            assert (np.diff(groups) > 0).all()
    assert list(batches(np.array([0]), 10)) == []


def test_sentences_without_tokens_are_refused() -> None:
    """They would make the kernels write outside their arrays."""
    with pytest.raises(ValueError, match="sentence 1 has no token"):
        list(batches(np.array([0, 2, 2, 4]), 10))


@pytest.mark.parametrize("per_position", [False, True])
def test_one_and_two_tokens(per_position: bool) -> None:
    rng = np.random.default_rng(7)
    for lengths in ([1], [2], [1, 1], [1, 2], [2, 1], [2, 2, 1]):
        chains = random_chains(rng, 3, 2.0, 0.0, per_position, lengths)
        potentials = batch_of(chains)
        path = potentials.viterbi()
        posterior = potentials.posterior()
        check_against_chains(chains, posterior)
        for p, tokens in zip(chains, sentences(posterior), strict=True):
            if len(p.node) == 1:
                same_up_to(infer(p).log_z, log_sum(p.node[0]), 1e-14)
            assert path[tokens].tolist() == viterbi(p)[1].tolist()


@pytest.mark.parametrize("per_position", [False, True])
def test_best_labels_and_scores_of_a_batch(per_position: bool) -> None:
    rng = np.random.default_rng(8)
    for holes in (0.0, 0.3):
        chains = random_chains(rng, 3, 1.0, holes, per_position)
        for p in chains:  # few distinct values: ties
            p.node[:] = np.round(p.node)
            p.edge[:] = np.round(p.edge)
        potentials = batch_of(chains)
        path = potentials.viterbi()
        best = [viterbi(p) for p in chains]
        assert path.tolist() == [label for _, labels in best for label in labels]
        steps = potentials.path_scores(path)
        totals = np.add.reduceat(steps, potentials.batch.offsets[:-1])
        assert totals.tolist() == [score for score, _ in best]


@pytest.mark.parametrize("size", [1.0, 700.0, 1e5])
def test_log_likelihood_of_a_long_sentence(size: float) -> None:
    """S(y) - log Z, step by step: the two sums alone are of size 1e5 * 5000."""
    T = 5000
    p = Potentials(np.zeros((T, 2)), size * np.array([[[1.0, -1.0], [-1.0, 1.0]]]))
    labels = np.zeros(T, np.int32)
    truth = np.log(0.5) - (T - 1) * np.log1p(np.exp(-2 * size))
    assert infer(p).log_probability(labels) == pytest.approx(truth, rel=1e-11)
    for chain in (p, varying(p)):
        potentials = batch_of([chain])
        gold = potentials.path_scores(labels)
        found = (gold - potentials.posterior().log_scale).sum()
        assert found == pytest.approx(truth, rel=1e-11, abs=1e-8)


@pytest.mark.parametrize("per_position", [False, True])
def test_potentials_are_left_alone(per_position: bool) -> None:
    """All but edge potentials per position, which the edge marginals replace."""
    rng = np.random.default_rng(9)
    for scale in (1.0, 1000.0):
        potentials = batch_of(random_chains(rng, 3, scale, 0.0, per_position))
        node, edge = potentials.node.copy(), potentials.edge.copy()
        inside = potentials.restrict(np.ones(node.shape, bool))
        inside.posterior()
        np.testing.assert_array_equal(potentials.edge, edge)
        potentials.viterbi()
        np.testing.assert_array_equal(potentials.edge, edge)
        potentials.posterior()
        np.testing.assert_array_equal(potentials.node, node)
        if not per_position:
            np.testing.assert_array_equal(potentials.edge, edge)


# -- the exponential ----------------------------------------------------------------------------


def errors_in_ulp(x: F64) -> F64:
    """Error of exp_shifted(x, 0) in units of the last place, against extended precision."""
    truth = np.exp(x.astype(np.longdouble))
    found = x.copy()
    exp_shifted(found, 0.0)
    return np.abs((found - truth) / np.spacing(truth.astype(np.float64))).astype(np.float64)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="needs an extended long double")
def test_exponential_to_two_units_in_the_last_place() -> None:
    rng = np.random.default_rng(10)
    x = np.concatenate(
        [
            -rng.uniform(0, 708, 400_000),
            -rng.uniform(0, 1, 200_000),
            -rng.exponential(1e-8, 10_000),
            -np.arange(0, 1021) * np.log(2),
            -(np.arange(0, 1020) + 0.5) * np.log(2),
            [0.0, -708.0, -1e-300],
        ]
    )
    assert errors_in_ulp(x).max() < 2.0


def test_exponential_at_the_ends() -> None:
    x = np.array([0.0, -INF, -708.5, -1e4, -1e308, -707.999])
    exp_shifted(x, 0.0)
    assert x[0] == 1.0
    assert x[1:5].tolist() == [0.0] * 4
    assert x[5] == pytest.approx(np.exp(-707.999), rel=1e-15)
    shifted = np.array([1e5, 1e5 - 1, -INF])
    exp_shifted(shifted, 1e5)
    same_up_to(shifted, [1.0, np.exp(-1), 0.0], 1e-15)
