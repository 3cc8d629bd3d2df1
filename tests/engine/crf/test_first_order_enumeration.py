"""Every primitive of one chain against enumeration of all label sequences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sslbench.engine.crf import InfeasibleSentenceError
from support.chain_oracle import kl_divergence, max_expected_accuracy
from support.crf_oracle import (
    INF,
    Enumeration,
    Model,
    check_sums,
    random_mask,
    random_model,
    random_models,
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
        allowed = max_expected_accuracy(p)
        assert model.score(allowed) > -INF
        gain = truth.node[np.arange(len(allowed)), allowed].sum()
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
        by_token, by_edge = 5 * rng.normal(size=len(p.node)), float(rng.normal())
        q = Potentials(p.node + by_token[:, None], p.edge + by_edge)
        shift = by_token.sum() + by_edge * (len(p.node) - 1)
        same_up_to(infer(q).log_z, truth.log_z + shift, 1e-12)
        same_up_to(infer(q).node, truth.node, 1e-10)
        same_up_to(negative_entropy(q).mean, -truth.entropy(), 1e-10)
