"""One chain: worked numbers, and every primitive against enumeration of all label sequences.

Source: docs/specs/crf_engine.md, section 14.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from sslbench.crf import InfeasibleSentenceError, Potentials
from sslbench.crf.first_order.chain import (
    additive_covariance,
    constrained_log_z,
    infer,
    kl_divergence,
    max_expected_accuracy,
    negative_entropy,
    posterior_decode,
    viterbi,
)
from support.crf_oracle import (
    INF,
    Enumeration,
    Model,
    block_of,
    long_log_z,
    random_mask,
    random_model,
    random_models,
    same_up_to,
    slopes,
    varying,
)

# data E1 of docs/specs/crf_engine.md, section 14
U = np.array([[0.5, -0.2], [0.1, 0.3], [-0.4, 0.6]])
W = np.array([[0.2, -0.1], [-0.3, 0.4], [0.05, -0.05]])
E = np.array([0.1, -0.1])
V = np.zeros((3, 3, 2))
V[1, 0, 1], V[1, 1, 0] = 0.25, -0.15
E1 = Model(U, W, E, V)
PSI = Model(np.zeros((3, 2)), W, E)  # docs/specs/crf_engine.md, oracle 4


def close(x: object, y: object) -> None:
    """Equal to the ten printed digits."""
    np.testing.assert_allclose(x, y, rtol=0, atol=1e-10)


# -- docs/specs/crf_engine.md, oracle 1 --------------------------------------------------------


def test_e1_scores_and_partition() -> None:
    p = E1.potentials()
    scores = [p.score(np.array(y)) for y in product(range(2), repeat=3)]
    close(scores, [0.75, 1.25, 0.40, 1.90, -0.70, -0.20, -0.15, 1.35])
    close(E1.enumerate().scores, scores)
    posterior = infer(p)
    close(posterior.log_z, 2.9866164342)
    close(np.exp(posterior.log_probability(np.array([0, 1, 1]))), 0.3373560311)
    close(infer(E1.head(1).potentials()).log_z, 0.9632616875)
    close(infer(E1.head(2).potentials()).log_z, 1.9559893229)


def test_e1_marginals_and_decoding() -> None:
    p = E1.potentials()
    posterior = infer(p)
    close(
        posterior.node,
        [[0.6955649515, 0.3044350485], [0.3493026693, 0.6506973307], [0.2505797648, 0.7494202352]],
    )
    assert not posterior.edges()[0].any()
    close(posterior.edges()[1], [[0.2829346151, 0.4126303364], [0.0663680542, 0.2380669943]])
    close(posterior.edges()[2], [[0.1318759634, 0.2174267059], [0.1187038014, 0.5319935293]])
    score, path = viterbi(p)
    close(score, 1.9)
    assert path.tolist() == posterior_decode(p).tolist() == [0, 1, 1]


def test_e1_entropy_and_moments_of_the_score() -> None:
    p = E1.potentials()
    close(negative_entropy(p).mean, -1.7848273784)
    cov = additive_covariance(p, p.node, p.edge)
    close(cov.mean, 1.2017890557)
    variance = (cov.node * p.node).sum() + (cov.edge[1:] * p.edge[1:]).sum()
    close(variance, 0.4905024531)
    close(infer(p).log_z - cov.mean, 1.7848273784)  # H = log Z - E[S]


# -- docs/specs/crf_engine.md, oracle 2 --------------------------------------------------------


def test_e1_entropy_gradient() -> None:
    p = E1.potentials()
    gradient = negative_entropy(p)
    du = [0.1354224420, -0.1453314487, -0.2149738760]
    close(gradient.node, np.transpose([du, np.negative(du)]))
    close(gradient.edge[1], [[-0.0397691169, 0.1751915589], [-0.1055623318, -0.0298601102]])
    close(gradient.edge[2], [[-0.0959122443, -0.0494192044], [-0.1190616317, 0.2643930804]])
    of_phi = additive_covariance(p, p.node, p.edge)
    same_up_to(of_phi.node, gradient.node, 1e-13)
    same_up_to(of_phi.edge, gradient.edge, 1e-13)
    assert abs(gradient.node.sum(axis=1)).max() < 1e-14
    assert abs(gradient.edge.sum(axis=(1, 2))).max() < 1e-14
    by_node = slopes(lambda x: negative_entropy(replace(p, node=x)).mean, p.node)
    by_edge = slopes(lambda x: negative_entropy(replace(p, edge=x)).mean, p.edge)
    same_up_to(by_node, gradient.node, 1e-8)
    same_up_to(by_edge, gradient.edge, 1e-8)


# -- docs/specs/crf_engine.md, oracle 3 --------------------------------------------------------


def test_e1_constraint() -> None:
    p = E1.potentials()
    allowed = np.array([[True, True], [False, True], [True, True]])
    log_z = constrained_log_z(p, allowed)
    close(log_z, 2.5569057594)
    close(log_z - infer(p).log_z, -0.4297106747)
    inside = infer(p.restrict(allowed))
    close(inside.node, [[0.6341355910, 0.3658644090], [0, 1], [0.1824255238, 0.8175744762]])
    assert inside.node[1, 0] == 0.0


# -- docs/specs/crf_engine.md, oracle 4 --------------------------------------------------------


def test_e1_divergence() -> None:
    phi, psi = E1.potentials(), PSI.potentials()
    close(infer(psi).log_z, 2.2463220615)
    close(kl_divergence(phi, psi), 0.2193631708)
    close(kl_divergence(psi, phi), 0.2315618535)
    cross_entropy = kl_divergence(psi, phi) - negative_entropy(psi).mean
    close(cross_entropy, 2.2465633031)
    assert abs(kl_divergence(phi, phi)) < 1e-12
    shifted = replace(phi, node=phi.node + np.array([[7.0], [-3.0], [11.0]]))
    same_up_to(kl_divergence(shifted, psi), kl_divergence(phi, psi), 1e-13)
    same_up_to(kl_divergence(psi, shifted), kl_divergence(psi, phi), 1e-13)


def test_e1_divergence_gradient() -> None:
    """With respect to p: Cov_p(1_c, S_p - S_q); with respect to q: xi^q - xi^p."""
    phi, psi = E1.potentials(), varying(PSI.potentials())
    by_p = additive_covariance(phi, phi.node - psi.node, phi.edge - psi.edge)
    slope = slopes(lambda x: kl_divergence(replace(phi, node=x), psi), phi.node)
    same_up_to(slope, by_p.node, 1e-8)
    slope = slopes(lambda x: kl_divergence(replace(phi, edge=x), psi), phi.edge)
    same_up_to(slope, by_p.edge, 1e-8)
    p, q = infer(phi), infer(psi)
    slope = slopes(lambda x: kl_divergence(phi, replace(psi, node=x)), psi.node)
    same_up_to(slope, q.node - p.node, 1e-8)
    slope = slopes(lambda x: kl_divergence(phi, replace(psi, edge=x)), psi.edge)
    same_up_to(slope, q.edges() - p.edges(), 1e-8)


# -- docs/specs/crf_engine.md, oracles 5 and 6 -------------------------------------------------


def test_e1_additive_score() -> None:
    ones = np.tile([0.0, 1.0], (3, 1))
    cov = additive_covariance(E1.potentials(), ones)
    close(cov.mean, 1.7045526144)
    close(cov.node[:, 1], [0.2595253978, 0.3116100181, 0.2399364561])
    close(cov.node[:, 1].sum(), 0.8110718719)


def test_e1_soft_token_targets() -> None:
    rho = np.array([[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]])
    p = E1.potentials()
    mu = infer(p).node
    close((rho * np.log(mu)).sum(), -1.9808433179)
    cov = additive_covariance(p, rho / mu)
    du = [0.1061232652, 0.0293133578, 0.2436469863]
    close(cov.node, np.transpose([du, np.negative(du)]))

    def target(x: np.ndarray) -> float:
        return (rho * np.log(infer(replace(p, edge=x)).node)).sum()

    same_up_to(slopes(target, p.edge), cov.edge, 1e-8)


# -- docs/specs/crf_engine.md, oracle 8 --------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "log_z", "entropy", "slope"),
    [
        (0.7, -0.4, 4936.3824374326, 2810.3771427756, 1030.3282306439),
        (700.0, -700.0, 3499300.6931471806, 0.6931471806, 0.0),
    ],
)
def test_long_chain_closed_form(
    a: float, b: float, log_z: float, entropy: float, slope: float
) -> None:
    T = 5000
    p = Potentials(np.zeros((T, 2)), np.array([[[a, b], [b, a]]]))
    posterior, gradient = infer(p), negative_entropy(p, per_position=False)
    assert posterior.log_z == pytest.approx(log_z, rel=1e-12)
    assert posterior.log_z == pytest.approx(np.log(2) + (T - 1) * np.logaddexp(a, b), rel=1e-14)
    assert -gradient.mean == pytest.approx(entropy, abs=1e-10 * (1 + entropy))
    assert np.trace(gradient.edge[0]) == pytest.approx(slope, abs=1e-8)
    assert abs(posterior.node.sum(axis=1) - 1).max() < 1e-9
    same_up_to(posterior.node, 0.5, 1e-9)
    per_position = negative_entropy(p)
    same_up_to(per_position.edge.sum(axis=0), gradient.edge[0], 1e-9)
    check_sums(per_position.node, per_position.edge, 1e-11)


# -- docs/specs/crf_engine.md, oracle 9 --------------------------------------------------------


def test_illegal_posterior_path() -> None:
    transition_mask = np.ones((4, 3), bool)
    transition_mask[0, 2] = transition_mask[3, 2] = False
    u = np.array([[1.2, 0, 0], [0, 0, 1.5]])
    p = Model(u, np.zeros((4, 3)), np.zeros(3), transition_mask=transition_mask).potentials()
    posterior = infer(p)
    close(posterior.log_z, 2.5742843365)
    close(posterior.node[0], [0.5060412173, 0.4939587827, 0])
    close(posterior.node[1], [0.3292289515, 0.3292289515, 0.3415420971])
    gradient = negative_entropy(p)
    close(gradient.mean, -1.4547217301)
    assert posterior_decode(p).tolist() == [0, 2]
    score, path = viterbi(p)
    assert (score, path.tolist()) == (1.5, [1, 2])
    legal = max_expected_accuracy(p)
    assert legal.tolist() == [1, 2]
    close(posterior.node[[0, 1], legal].sum(), 0.8355008798)
    close(posterior.node[[0, 1], [0, 0]].sum(), 0.8352701687)
    for array in (posterior.node, posterior.edges(), gradient.node, gradient.edge):
        assert np.isfinite(array).all()
    for array in (posterior.edges(), gradient.edge):
        assert array[1, 0, 2] == 0.0
    for array in (posterior.node, gradient.node):
        assert array[0, 2] == 0.0


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

    def chain(arcs: list[list[list[int]]]) -> Potentials:
        node = np.zeros((len(arcs) + 1, 2))
        node[0] = start
        return Potentials(node, np.array([np.zeros((2, 2)), *arcs], dtype=np.float64))

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
def test_silent_failures_in_a_block(name: str) -> None:
    p, log_z, _, best = silent_failures()[name]
    harmless = E1.potentials()
    posterior = block_of([harmless, p, harmless]).posterior()
    close(posterior.log_z(), [2.9866164342, log_z, 2.9866164342])
    middle = slice(3, 3 + len(p.node))
    same_up_to(posterior.node[middle], infer(p).node, 1e-12)
    same_up_to(posterior.edge[middle], infer(p).edges(), 1e-12)
    if best is not None:
        assert block_of([harmless, p]).viterbi()[3:].tolist() == best


# -- docs/specs/crf_engine.md, oracle 12 -------------------------------------------------------


def test_uniform() -> None:
    p = Potentials(np.zeros((7, 150)), np.zeros((1, 150, 150)))
    gradient = negative_entropy(p)
    close(infer(p).log_z, 35.0744470587)
    close(-gradient.mean, 35.0744470587)
    assert max(abs(gradient.node).max(), abs(gradient.edge).max()) <= 1e-12
    close(block_of([p]).posterior().log_z(), [35.0744470587])


# -- docs/specs/crf_engine.md, oracle 14: every primitive against enumeration ------------------

MODELS = 240


def test_random_models_partition_and_marginals() -> None:
    masked = lengths = 0
    for model, truth in random_models(MODELS):
        p = model.potentials()
        posterior = infer(p)
        same_up_to(posterior.log_z, truth.log_z, 1e-12)
        same_up_to(posterior.node, truth.node, 1e-10)
        same_up_to(posterior.edges(), truth.edge, 1e-10)
        assert (posterior.node[truth.node == 0] == 0).all()
        assert (posterior.edges()[truth.edge == 0] == 0).all()
        scores = [p.score(y) for y in truth.paths]
        same_up_to(scores, truth.scores, 1e-12)
        masked += model.transition_mask is not None
        lengths |= 1 << len(p.node)
    assert masked > MODELS // 4
    assert lengths == 0b11110  # lengths 1 to 4 all occur


def test_random_models_probabilities_of_sequences() -> None:
    for model, truth in random_models(MODELS):
        posterior = infer(model.potentials())
        found = np.array([posterior.log_probability(y) for y in truth.paths])
        assert not np.isnan(found).any()
        assert (found <= 1e-12).all()
        same_up_to(np.exp(found), truth.p, 1e-10)
        possible = truth.scores > -INF
        assert (np.isneginf(found) == ~possible).all()
        same_up_to(found[possible], truth.scores[possible] - truth.log_z, 1e-10)


def test_random_models_decoding() -> None:
    for model, truth in random_models(MODELS):
        p = model.potentials()
        score, path = viterbi(p)
        same_up_to(score, truth.scores.max(), 1e-12)
        same_up_to(model.score(path), score, 1e-12)
        marginal = np.sort(truth.node, axis=1)
        if truth.node.shape[1] == 1 or (marginal[:, -1] - marginal[:, -2] > 1e-9).all():
            assert posterior_decode(p).tolist() == truth.node.argmax(axis=1).tolist()
        legal = max_expected_accuracy(p)
        assert model.score(legal) > -INF
        gain = truth.node[np.arange(len(legal)), legal].sum()
        same_up_to(gain, truth.most_expected_labels(), 1e-10)


def test_random_models_entropy_and_gradient() -> None:
    for model, truth in random_models(MODELS):
        p = model.potentials()
        gradient, summed = negative_entropy(p), negative_entropy(p, per_position=False)
        mean, node, edge = truth.covariance(truth.scores - truth.log_z)
        assert gradient.mean <= 0.0
        same_up_to(gradient.mean, mean, 1e-10)
        same_up_to(gradient.node, node, 1e-10)
        same_up_to(gradient.edge, edge, 1e-10)
        same_up_to(summed.node, node, 1e-10)
        same_up_to(summed.edge[0], edge.sum(axis=0), 1e-10)
        check_sums(gradient.node, gradient.edge, 1e-10 * (1 + abs(truth.log_z)))
        assert (gradient.edge[truth.edge == 0] == 0).all()


def test_random_models_additive_scores() -> None:
    rng = np.random.default_rng(1)
    for model, truth in random_models(MODELS):
        p = model.potentials()
        T, L = p.node.shape
        r_node = rng.normal(size=(T, L))
        r_edge = rng.normal(size=(1 if rng.random() < 0.5 else T, L, L))
        mean, node, edge = truth.covariance(truth.additive(r_node, r_edge))
        cov = additive_covariance(p, r_node, r_edge)
        same_up_to(cov.mean, mean, 1e-10)
        same_up_to(cov.node, node, 1e-10)
        same_up_to(cov.edge, edge, 1e-10)
        summed = additive_covariance(p, r_node, r_edge, per_position=False)
        same_up_to(summed.edge[0], edge.sum(axis=0), 1e-10)
        check_sums(cov.node, cov.edge, 1e-10 * (1 + abs(r_node).max()))
        alone = additive_covariance(p, r_node)
        mean, node, edge = truth.covariance(truth.additive(r_node))
        same_up_to(alone.mean, mean, 1e-10)
        same_up_to(alone.node, node, 1e-10)
        same_up_to(alone.edge, edge, 1e-10)


def check_sums(node: np.ndarray, edge: np.ndarray, bound: float) -> None:
    """The covariances of the cliques of one position sum to zero."""
    assert abs(node.sum(axis=1)).max() <= bound
    assert abs(edge.sum(axis=(1, 2))).max() <= bound


def test_random_models_constraints() -> None:
    rng = np.random.default_rng(2)
    impossible = 0
    for model, truth in random_models(MODELS):
        p = model.potentials()
        allowed = random_mask(rng, p.node.shape, 0.3)
        inside = truth.scores[allowed[np.arange(len(p.node)), truth.paths].all(axis=1)]
        if not len(inside) or inside.max() == -INF:
            impossible += 1
            with pytest.raises(InfeasibleSentenceError):
                constrained_log_z(p, allowed)
            continue
        top = inside.max()
        log_z = top + np.log(np.exp(inside - top).sum())
        same_up_to(constrained_log_z(p, allowed), log_z, 1e-10)
        assert (infer(p.restrict(allowed)).node[~allowed] == 0).all()
    assert impossible > 10


def test_random_models_divergence() -> None:
    rng = np.random.default_rng(3)
    infinite = 0
    for model, p_truth in random_models(MODELS):
        T, L = model.u.shape
        other = random_model(rng, T, L)
        q_truth = other.enumerate()
        if not q_truth.possible:
            continue
        p, q = model.potentials(), other.potentials()
        found = kl_divergence(p, q)
        keep = p_truth.p > 0
        gaps = (p_truth.scores[keep] - p_truth.log_z) - (q_truth.scores[keep] - q_truth.log_z)
        truth = float(p_truth.p[keep] @ gaps)
        infinite += truth == INF
        same_up_to(found, truth, 1e-10)
        assert found >= -1e-12 * (1 + abs(p_truth.log_z) + abs(q_truth.log_z))
        assert abs(kl_divergence(p, p)) <= 1e-12 * (1 + abs(p_truth.log_z))
    assert infinite > 5


def test_random_models_gradients_are_central_differences() -> None:
    for model, _ in random_models(25, seed=4):
        p = varying(replace(model, transition_mask=None).potentials())
        if abs(p.node).max() > 20:
            continue  # too flat for differences
        posterior = infer(p)
        same_up_to(slopes(lambda x: infer(replace(p, node=x)).log_z, p.node), posterior.node, 1e-7)  # noqa: B023
        same_up_to(
            slopes(lambda x: infer(replace(p, edge=x)).log_z, p.edge),  # noqa: B023
            posterior.edges(),
            1e-7,
        )
        gradient = negative_entropy(p)
        node = slopes(lambda x: negative_entropy(replace(p, node=x)).mean, p.node)  # noqa: B023
        edge = slopes(lambda x: negative_entropy(replace(p, edge=x)).mean, p.edge)  # noqa: B023
        same_up_to(node, gradient.node, 1e-6)
        same_up_to(edge, gradient.edge, 1e-6)


def test_no_possible_sequence() -> None:
    rng = np.random.default_rng(5)
    seen = 0
    while seen < 20:
        model = random_model(rng, L=2)
        if model.transition_mask is None or model.enumerate().possible:
            continue
        seen += 1
        p = model.potentials()
        functions = (infer, viterbi, negative_entropy, posterior_decode, max_expected_accuracy)
        for function in functions:
            with pytest.raises(InfeasibleSentenceError):
                function(p)


def test_ties_go_to_the_smallest_labels() -> None:
    rng = np.random.default_rng(6)
    tied = 0
    for _ in range(MODELS):
        T, L = int(rng.integers(1, 5)), int(rng.integers(1, 4))
        edge = rng.integers(0, 2, (int(rng.choice([1, T])), L, L)).astype(float)
        edge[rng.random(edge.shape) < 0.2] = -INF
        p = Potentials(rng.integers(0, 2, (T, L)).astype(float), edge)
        truth = Enumeration.of(p)
        if truth.possible:
            tied += (truth.scores == truth.scores.max()).sum() > 1
            score, path = viterbi(p)
            assert (score, path.tolist()) == truth.best()
    assert tied > 50


def test_label_permutation_of_one_chain() -> None:
    """docs/specs/crf_engine.md, oracle 17 on one chain: all is permuted, log Z and H stay."""
    rng = np.random.default_rng(7)
    for model, truth in random_models(50, seed=8):
        L = len(model.e)
        order = rng.permutation(L)
        rows = np.append(order, L)
        swapped = Model(
            model.u[:, order],
            model.w[rows][:, order],
            model.e[order],
            None if model.v is None else model.v[:, rows][:, :, order],
            None if model.transition_mask is None else model.transition_mask[rows][:, order],
        )
        p, q = infer(model.potentials()), infer(swapped.potentials())
        same_up_to(q.log_z, p.log_z, 1e-12)
        same_up_to(q.node, p.node[:, order], 1e-12)
        same_up_to(q.edges(), p.edges()[:, order][:, :, order], 1e-12)
        a, b = negative_entropy(model.potentials()), negative_entropy(swapped.potentials())
        same_up_to(b.mean, a.mean, 1e-12)
        same_up_to(b.node, a.node[:, order], 1e-12 * (1 + abs(truth.log_z)))


def test_a_constant_changes_the_partition_only() -> None:
    rng = np.random.default_rng(9)
    for model, truth in random_models(50, seed=10):
        p = model.potentials()
        by_token, by_arc = 5 * rng.normal(size=len(p.node)), float(rng.normal())
        q = Potentials(p.node + by_token[:, None], p.edge + by_arc)
        shift = by_token.sum() + by_arc * (len(p.node) - 1)
        same_up_to(infer(q).log_z, truth.log_z + shift, 1e-12)
        same_up_to(infer(q).node, truth.node, 1e-10)
        same_up_to(negative_entropy(q).mean, -truth.entropy(), 1e-10)


# -- docs/specs/crf_engine.md, section 8: numerical requirements -------------------------------


@pytest.mark.parametrize(("size", "bound"), [(700.0, 1e-12), (1e5, 1e-10)])
@pytest.mark.parametrize("length", [100, 5000])
def test_large_potentials(size: float, bound: float, length: int) -> None:
    rng = np.random.default_rng(11)
    p = Potentials(rng.uniform(-size, size, (length, 3)), rng.uniform(-size, size, (1, 3, 3)))
    posterior = infer(p)
    assert posterior.log_z == pytest.approx(float(long_log_z(p)), rel=bound)
    assert abs(posterior.node.sum(axis=1) - 1).max() <= 1e-14  # renormalized at every step
    gradient = negative_entropy(p, per_position=False)
    assert np.isfinite(gradient.node).all()
    assert np.isfinite(gradient.edge).all()
    assert gradient.mean <= 0.0
    _, path = viterbi(p)
    assert -INF < posterior.log_probability(path) <= 0.0


# -- known chains ------------------------------------------------------------------------------


def test_crfsuite_debug_lattice() -> None:
    states = [[0.4, 0.5, 0.1], [0.4, 0.1, 0.5], [0.4, 0.1, 0.5]]
    arcs = [[0.3, 0.1, 0.4], [0.6, 0.2, 0.1], [0.5, 0.2, 0.1]]
    p = Potentials(np.log(states), np.log([arcs]))
    posterior = infer(p)
    close(posterior.log_z, -2.336141876523)
    close(negative_entropy(p).mean, -2.380402178272)
    same_up_to(
        posterior.node,
        [
            [0.4, 0.51137539, 0.08862461],
            [0.64157187, 0.05129266, 0.30713547],
            [0.50051706, 0.04550155, 0.45398139],
        ],
        1e-8,
    )
    same_up_to(posterior.edges()[1, 0], [0.16380558, 0.01282316, 0.22337125], 1e-8)
    best = {
        (1, 0, 2): 0.24819028,
        (0, 2, 0): 0.16546019,
        (1, 0, 0): 0.14891417,
        (0, 0, 2): 0.09927611,
    }
    for y, probability in best.items():
        same_up_to(np.exp(posterior.log_probability(np.array(y))), probability, 1e-8)
    assert viterbi(p)[1].tolist() == [1, 0, 2]
    assert posterior_decode(p).tolist() == [1, 0, 0]


def test_umbrella_hidden_markov_model() -> None:
    seen = np.array([[0.9, 0.2], [0.9, 0.2], [0.1, 0.8], [0.9, 0.2], [0.9, 0.2]])
    node = np.log(seen)
    node[0] += np.log(0.5)
    p = Potentials(node, np.log([[[0.7, 0.3], [0.3, 0.7]]]))
    posterior = infer(p)
    close(posterior.log_z, -3.372502044332)
    close(negative_entropy(p).mean, -2.216928831329)
    same_up_to(
        posterior.node[:, 0], [0.86733889, 0.82041905, 0.30748358, 0.82041905, 0.86733889], 1e-8
    )
    score, path = viterbi(p)
    close(score, -4.459028291035)
    assert path.tolist() == [0, 0, 1, 0, 0]


# -- docs/specs/crf_engine.md, oracle 18 -------------------------------------------------------

MEMORY = """
import json, re
import numpy as np
from sslbench.crf import Potentials
from sslbench.crf.first_order.chain import infer, negative_entropy

def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

def potentials(T):
    rng = np.random.default_rng(0)
    return Potentials(rng.normal(size=(T, 150)), rng.normal(size=(1, 150, 150)))

negative_entropy(potentials(2), per_position=False)
p = potentials(5000)
before = peak()
found = negative_entropy(p, per_position=False)
print(json.dumps([before, peak(), found.mean, abs(found.node.sum(axis=1)).max()]))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads the peak from /proc")
def test_memory_of_the_entropy_gradient() -> None:
    """The peak of a process of its own: kernels allocate where tracemalloc does not look."""
    run = subprocess.run(
        [sys.executable, "-c", MEMORY],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_NUM_THREADS": "1"},
    )
    before, after, mean, sums = json.loads(run.stdout)
    assert after - before < 100e6
    assert mean < 0
    assert sums < 1e-10
