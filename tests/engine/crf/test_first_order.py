"""One chain: worked numbers, and every primitive against enumeration of all label sequences.

Source: docs/specs/crf_engine.md, section 14.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from support.chain_oracle import kl_divergence, max_expected_accuracy
from support.compare import close
from support.crf_oracle import (
    INF,
    Model,
    batch_of,
    check_sums,
    long_log_z,
    same_up_to,
    slopes,
    varying,
)
from support.log_space_chain import (
    Potentials,
    additive_covariance,
    constrained_log_z,
    infer,
    negative_entropy,
    posterior_decode,
    viterbi,
)
from support.worked_chain import E1, PSI

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
    allowed = max_expected_accuracy(p)
    assert allowed.tolist() == [1, 2]
    close(posterior.node[[0, 1], allowed].sum(), 0.8355008798)
    close(posterior.node[[0, 1], [0, 0]].sum(), 0.8352701687)
    for array in (posterior.node, posterior.edges(), gradient.node, gradient.edge):
        assert np.isfinite(array).all()
    for array in (posterior.edges(), gradient.edge):
        assert array[1, 0, 2] == 0.0
    for array in (posterior.node, gradient.node):
        assert array[0, 2] == 0.0


# -- docs/specs/crf_engine.md, oracle 12 -------------------------------------------------------


def test_uniform() -> None:
    p = Potentials(np.zeros((7, 150)), np.zeros((1, 150, 150)))
    gradient = negative_entropy(p)
    close(infer(p).log_z, 35.0744470587)
    close(-gradient.mean, 35.0744470587)
    assert max(abs(gradient.node).max(), abs(gradient.edge).max()) <= 1e-12
    close(batch_of([p]).posterior().log_z(), [35.0744470587])


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


def test_crfsuite_debug_chain() -> None:
    states = [[0.4, 0.5, 0.1], [0.4, 0.1, 0.5], [0.4, 0.1, 0.5]]
    edges = [[0.3, 0.1, 0.4], [0.6, 0.2, 0.1], [0.5, 0.2, 0.1]]
    p = Potentials(np.log(states), np.log([edges]))
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


def test_the_entropy_gradient_of_a_long_sentence_sums_to_zero() -> None:
    rng = np.random.default_rng(0)
    p = Potentials(rng.normal(size=(5000, 150)), rng.normal(size=(1, 150, 150)))
    found = negative_entropy(p, per_position=False)
    assert found.mean < 0
    assert abs(found.node.sum(axis=1)).max() < 1e-10
