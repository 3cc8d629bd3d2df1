"""Worked numbers of docs/specs/entropy_regularization.md, section 12."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from sslbench.engine.crf import STRICT, EncodedCorpus, HardLabels, SoftTargets, Term, TrainingParams
from sslbench.engine.crf.entropy import Entropy
from sslbench.engine.crf.weights.layout import Layout
from sslbench.experiment.context.context import RunContext
from sslbench_methods.self_labeled import WeightScale
from sslbench_methods.self_training import SelfTraining
from support.entropy_toys import (
    FOR_2201,
    LABELED,
    LAMBDA,
    SLOPE,
    TEXT,
    Parts,
    Sequences,
    Y,
    close,
    entropy_at,
    evaluate,
    maximum,
    objective_at,
    one_bias,
    tokens,
    toy,
    toy_optimum,
    toy_problem,
    trainer,
)
from support.graph_toys import Strict, pairs
from support.nested_entropy import NestedEntropy

# -- 1 to 5: values and gradients ------------------------------------------------------------------


def test_likelihood() -> None:
    value, gradient = evaluate([(toy().encode(LABELED), HardLabels(Y))], LAMBDA)
    close(value, -2.7178205675)
    close(
        gradient,
        [
            *pairs(0.6928722176, -0.9512505576, -0.3435739705),
            -0.8973888707,
            0.2872036532,
            0.4637007043,
            0.1464845133,
            *pairs(-0.1682641440, 0.0082329071),
        ],
    )


@pytest.mark.parametrize("term", [Entropy(), NestedEntropy()], ids=["dual numbers", "nested"])
def test_entropies_and_their_gradient(term: Term) -> None:
    wanted = [2.6029042988, 0.6931471806, 1.2974673224]
    for i, entropy in enumerate(wanted):
        close(entropy_at(LAMBDA, TEXT.between(i, i + 1), term=term)[0], -entropy)
    value, gradient = entropy_at(LAMBDA, term=term)
    close(value, -4.5935188017)
    close(gradient, SLOPE)
    close(entropy_at(LAMBDA, TEXT.between(0, 1), term=term)[1], FOR_2201)


def test_the_covariance() -> None:
    """The first values come from counts and from pairs at one position.

    Source: docs/specs/entropy_regularization.md, oracles 3, 9 and 10.
    """
    one = Sequences([2, 2, 0, 1], LAMBDA)
    close(one.log_z, 2.9664205295)
    close(one.covariance @ LAMBDA, FOR_2201)
    close(np.trace(one.covariance), 5.4459020744)
    close(one.covariance[5, 7], -0.1581164390)
    close([one.mean[5], one.covariance[5, 5]], [1.3218935557, 0.5249890532])
    close(one.mean[5] - one.mean[5] ** 2, -0.4255090169)
    diagonal = one.covariance.copy()
    diagonal[np.diag_indices(14)] = one.mean - one.mean**2
    close((diagonal @ LAMBDA)[4], -0.1667292745)  # what must not be found
    assert abs(entropy_at(LAMBDA, TEXT.between(0, 1))[1][4] + 0.1667292745) > 0.1
    # nor without what two features have at one position
    apart = one.covariance - one.same_position
    apart[np.diag_indices(14)] = one.mean - one.mean**2
    close((apart @ LAMBDA)[0], 0.1104433218)


def test_the_objective() -> None:
    for gamma, value in ((0.0, -3.1178205675), (0.7, -6.3332837287), (5.0, -26.0854145760)):
        close(objective_at(LAMBDA, gamma)[0], value)
    close(
        objective_at(LAMBDA, 0.7)[1],
        [
            0.5092130696,
            -0.6092130696,
            -1.0605790165,
            0.5605790165,
            -0.1302095543,
            0.3802095543,
            -1.1460560407,
            0.3281523475,
            0.6657062816,
            0.2021974116,
            *pairs(-0.2512257421, -0.1636718080),
        ],
    )


def test_five_ways_to_one_gradient() -> None:
    rng, steps = np.random.default_rng(0), 1e-6 * np.eye(14)
    data = toy().encode(TEXT)
    for _ in range(20):
        weights = rng.normal(size=14)
        gradient = entropy_at(weights)[1]
        symbols = ([2, 2, 0, 1], [1], [0, 2])
        close(gradient, sum(Sequences(x, weights).covariance for x in symbols) @ weights, 1e-12)
        close(entropy_at(weights, term=NestedEntropy())[1], gradient, 1e-10)
        differences = [
            (entropy_at(weights + h)[0] - entropy_at(weights - h)[0]) / 2e-6 for h in steps
        ]
        close(gradient, differences, 1e-7)
        # the score is linear in the weights: scaling them all is the direction of the dual numbers
        up, down = (
            evaluate([(data, HardLabels(np.zeros(7, np.int32)))], scale * weights)[1]
            for scale in (1 + 1e-5, 1 - 1e-5)
        )
        close(gradient, (down - up) / 2e-5, 1e-8)


# -- 6 to 8: optima --------------------------------------------------------------------------------


def test_without_entropy_it_is_the_supervised_model() -> None:
    one = trainer(gamma=0.0)
    one.train()
    record = one.run.trace
    crf = toy()
    crf.train([(crf.encode(LABELED), HardLabels(Y))], TrainingParams(sigma2=1.0), options=STRICT)
    np.testing.assert_array_equal(one.crf.weights, crf.weights)
    close(record["after"]["RL"], -2.1673348647)
    close(record["after"]["log_likelihood"], -1.4913172574)
    close(one.crf.weights @ one.crf.weights, 1.3520352145, 1e-8)
    close(7 * record["after"]["entropy"], 4.0628072428, 1e-8)
    assert one.crf.predict(TEXT).tolist() == [1, 1, 0, 1, 1, 0, 1]
    without = trainer((), gamma=1.0)
    without.train()
    np.testing.assert_array_equal(without.crf.weights, crf.weights)


@pytest.mark.parametrize(
    ("gamma", "objective", "likelihood", "entropy"),
    [
        (0.5, -3.9446396818, -1.0824183949, 3.0205437225),
        (1.0, -5.2623366538, -0.8523586595, 2.3230112232),
        (5.0, -10.5878706481, -0.3789478776, 0.8554477605),
        (20.0, -17.7064253294, -0.1710364922, 0.2998310862),
    ],
)
def test_local_optimum_from_the_supervised_start(
    gamma: float, objective: float, likelihood: float, entropy: float
) -> None:
    one = trainer(gamma=gamma)
    one.train()
    record = one.run.trace
    close(record["after"]["RL"], objective, 1e-7)
    close(record["after"]["log_likelihood"], likelihood, 1e-7)
    close(7 * record["after"]["entropy"], entropy, 1e-7)
    close(record["after"]["negative_entropy"], -gamma * entropy, 1e-6)
    (stage,) = record["stages"]
    assert (np.diff(stage["loss"]) < 1e-14).all()
    close(stage["loss"][0] * (5 + 7 * gamma), -objective_at(toy_optimum(), gamma)[0], 1e-8)
    close(stage["objective"], objective, 1e-7)
    close(7 * stage["entropy"][0], 4.0628072428, 1e-7)
    close(7 * stage["entropy"][-1], entropy, 1e-6)
    close(abs(objective_at(one.crf.weights, gamma)[1]).max(), 0, 1e-7)


def test_zero_is_stationary() -> None:
    value, gradient = entropy_at(np.zeros(14))
    close(value, -7 * np.log(2), 1e-14)
    close(value, -4.8520302639)
    assert abs(gradient).max() <= 1e-14


# -- 11 to 13: small problems in closed form -------------------------------------------------------


def test_a_bias_collapses() -> None:
    layout = one_bias()
    labeled = EncodedCorpus.build(layout, tokens([0] * 10))
    gold = HardLabels(np.array([1] * 3 + [0] * 7, np.int32))
    text = EncodedCorpus.build(layout, tokens([0]))
    # a bias has w of L x L transitions beside it, which one-token sentences never use
    _, start = maximum([(labeled, gold)], 10.0, np.zeros(layout.size))
    close(start[0], -0.8090610761)
    wanted = {
        0: 0.3080906108,
        1: 0.2905252112,
        5: 0.2030411824,
        10: 0.1136405618,
        20: 0.0499385410,
        50: 0.0160567480,
    }
    for weight, p in wanted.items():
        value, found = maximum([(labeled, gold), (text, Entropy(weight))], 10.0, start)
        close(1 / (1 + np.exp(-found[0])), p, 1e-8)
        if weight == 10:
            close(found[0], -2.0540820545, 1e-8)
            close(value, -11.1201336866)


def test_neither_convex_nor_concave() -> None:
    text = EncodedCorpus.build(one_bias(), tokens([0]))

    def slope(score: float) -> float:
        weights = np.zeros(text.layout.size)
        weights[0] = score
        return float(evaluate([(text, Entropy())], weights)[1][0])

    for score, wanted in ((0.0, 0.25), (1.0, 0.1057541856), (4.0, -0.0504466375)):
        close((slope(score + 1e-5) - slope(score - 1e-5)) / 2e-5, wanted)


def test_labels_spread_to_words_that_occur_together() -> None:
    layout = Layout(
        2,
        4,
        0,
        0,
        None,
        None,
        np.zeros(1, np.int64),
        np.zeros(0, np.int32),
        use_start=False,
        use_stop=False,
    )
    labeled = EncodedCorpus.build(layout, tokens([0, 1], [-1, -1]))
    text = EncodedCorpus.build(layout, tokens([0] * 5 + [1] * 5, [2] * 5 + [3] * 5))
    gold = HardLabels(np.array([0, 1], np.int32))
    _, start = maximum([(labeled, gold)], 1.0, np.zeros(layout.size))
    close(start[:2], pairs(0.3374158), 1e-7)
    close(start[4:8], 0.0)
    value, found = maximum([(labeled, gold), (text, Entropy(0.1))], 1.0, start)
    close(value, -1.6642970339)
    close(1 / (1 + np.exp(found[5] - found[4])), 0.5492566070, 1e-8)
    value, found = maximum([(labeled, gold), (text, Entropy(1.0))], 1.0, start)
    close(value, -4.5323044597)
    close(found[:2], pairs(0.8323904821), 1e-7)
    close(found[4:6], pairs(0.6732692292), 1e-7)
    close(1 / (1 + np.exp(found[5] - found[4])), 0.7935631323, 1e-7)


# -- 14 and 15: self-training on the same toy ------------------------------------------------------


def test_hard_self_training_stops_after_one_round() -> None:
    class Options(Strict, SelfTraining.Params, frozen=True, kw_only=True):
        """Strict trainings, also of the rounds."""

        share: float = 0.0
        weight: float = 1.0
        weight_scale: WeightScale = "sentence"

    run = RunContext()
    crf = SelfTraining().fit(toy_problem(), Options(sigma2=1.0), run)
    trace = run.trace
    assert trace["stopped"] == "converged"
    close(trace["supervised"]["objective"], -2.1673348647)
    (only,) = trace["rounds"]
    close(only["objective"], -3.6404025095)
    likelihood, _ = evaluate([(toy().encode(LABELED), HardLabels(Y))], crf.weights)
    close(likelihood, -0.9880677193, 1e-8)
    close(entropy_at(crf.weights)[0], -2.8469747373, 1e-8)


def test_soft_self_training_never_moves() -> None:
    weights = toy_optimum()
    crf = toy(weights)
    q = crf.marginals(crf.encode(TEXT))
    edges = np.zeros((7, 2, 2))
    for lo, symbols in ((0, [2, 2, 0, 1]), (5, [0, 2])):
        one = Sequences(symbols, weights)
        for p, y in zip(one.p, product((0, 1), repeat=len(symbols)), strict=True):
            for t in range(1, len(y)):
                edges[lo + t, y[t - 1], y[t]] += p
    parts: Parts = [(crf.encode(LABELED), HardLabels(Y)), (crf.encode(TEXT), SoftTargets(q, edges))]
    assert abs(evaluate(parts, weights, 1.0)[1]).max() < 1e-8
