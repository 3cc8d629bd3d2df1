"""Self-training with lift: docs/specs/graph_lift.md, section 4."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import pytest

from sslbench.engine.crf import ChainCRF
from sslbench.engine.types import F64
from sslbench.experiment.context.context import RunContext
from sslbench_methods.graph_lift.method import FLOOR, GraphLift, decode, lift
from sslbench_methods.graph_self_training.algorithm import TypeTrainer
from support.compare import close
from support.graph_toys import corpus, crf_over, encoded, jacobi, symmetric, toy
from support.self_training_toys import VERTEX_OF, WEIGHTS, smoothing, vertices

Q = np.array([[0.8, 0.2], [0.4, 0.6], [0.5, 0.5]])
AT = np.array([0, 0, 1, -1, 2], np.int32)


def test_lift_by_hand() -> None:
    scores = lift(Q, np.array([True, True, False]), AT)
    pi = (2 * Q[0] + Q[1]) / 3  # the tokens of informed vertices
    close(pi, [2 / 3, 1 / 3], 1e-15)
    close(scores, [np.log([1.2, 0.6]), np.log([0.6, 1.8]), [0, 0]], 1e-15)


def test_base_rates_have_no_lift() -> None:
    same = np.tile([0.7, 0.25, 0.05], (4, 1))
    at = np.array([3, 0, 1, 1, 2], np.int32)
    close(lift(same, np.ones(4, bool), at), np.zeros((4, 3)), 1e-15)


def test_small_probabilities_have_a_floor() -> None:
    q = np.array([[1.0, 0], [1.0, 0]])
    close(lift(q, np.ones(2, bool), np.array([0, 1], np.int32)), np.zeros((2, 2)), 0)
    q = np.array([[1.0, 0.0], [0.0, 1.0]])
    scores = lift(q, np.ones(2, bool), np.array([0, 1], np.int32))
    close(scores[0], np.log([2, 2 * FLOOR]), 1e-15)


def test_lift_without_an_informed_vertex_is_zero() -> None:
    assert not lift(Q, np.zeros(3, bool), AT).any()


def three_labels(rng: np.random.Generator) -> ChainCRF:
    crf = crf_over(corpus([0, 1, 2, 3]), np.zeros(4, np.int32), n_labels=3)
    crf.weights[:] = rng.normal(size=crf.weights.shape)
    return crf


@pytest.mark.parametrize("seed", range(20))
def test_the_path_is_that_of_an_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    crf, text = three_labels(rng), corpus([2, 0, 1, 3], [1])
    node, arcs = crf.weights[:12].reshape(4, 3), crf.weights[12:].reshape(3, 3)
    scores, at = rng.normal(size=(2, 3)), np.array([1, -1, 0, 1, 0], np.int32)
    found = decode(crf, crf.encode(text), np.empty((5, 3)), scores, at)
    own = node[text.column("x").codes] + np.where(at[:, None] >= 0, scores[at], 0)

    def value(y: Sequence[int]) -> float:
        return float(own[range(4), y].sum() + sum(arcs[a, b] for a, b in pairwise(y)))

    assert found.tolist() == [*max(product(range(3), repeat=4), key=value), own[4].argmax()]


def test_no_lift_is_the_path_of_the_crf() -> None:
    rng = np.random.default_rng(1)
    crf = three_labels(rng)
    data, at = crf.encode(corpus([2, 0, 1, 3], [1])), np.array([1, -1, 0, 1, 0], np.int32)
    for scores in (np.zeros((2, 3)), rng.normal(size=(2, 1)).repeat(3, axis=1)):
        path = decode(crf, data, np.empty((5, 3)), scores, at)
        assert path.tolist() == crf.decode(data).tolist()


def test_the_path_does_not_depend_on_how_scores_are_divided() -> None:
    """docs/specs/graph_self_training.md, oracle S4: the same CRF with A(., 1) + .9, U(1) - .9."""
    crf, scores = toy(WEIGHTS), np.log(Q[:, ::-1] / Q.mean(axis=0))
    text, at = corpus([2, 0, 3], [1, 3]), np.array([0, 1, 2, 1, 0], np.int32)
    before = decode(crf, crf.encode(text), np.empty((5, 2)), scores, at)
    shifted, c = toy(WEIGHTS), 0.9
    shifted.weights[8:] += np.tile([0, c], 2)
    shifted.weights[:8] -= np.tile([0, c], 4)
    first = np.array([True, False, False, True, False])  # no transition into these
    whole = [
        potentials.with_node(
            potentials.node + np.where(first[:, None], [0, c], 0) + scores[at]
        ).viterbi()
        for potentials in shifted.potentials(shifted.encode(text))
    ]
    assert np.concatenate(whole).tolist() == before.tolist()


def test_beta_zero_is_self_training() -> None:
    """Whatever the graph says, the labels are those of the CRF itself."""
    params = GraphLift.Params(beta=0.0, rounds=1, feature_pruning="none")
    text = [corpus([2, 0, 3], [1, 3])]
    crf = toy(WEIGHTS)
    own = [crf.decode(crf.encode(part)).tolist() for part in text]
    far = smoothing(symmetric(5, {(0, 1): 5.0, (2, 4): 5.0}))

    def smooth(means: F64) -> F64:
        return params.beta * lift(far(means), np.ones(5, bool), VERTEX_OF[2:])

    known = vertices(VERTEX_OF)
    one = TypeTrainer(crf, encoded(crf, text), known, smooth, decode, params, RunContext())
    assert one.relabel() == 1.0
    assert [guess.tolist() for guess in one.guesses] == own


def separable(connected: bool) -> list[int]:
    """docs/specs/graph_self_training.md, oracle S10: an unseen word in a seen word's contexts."""
    labeled = corpus(*[[0, 1]] * 2, *[[0, 2]] * 3)
    labels = np.array([0, 1] * 2 + [0, 0] * 3, np.int32)
    text = corpus(*[[0, 3]] * 3)
    crf = crf_over(labeled, labels, text)
    W = symmetric(4, {(1, 3): 1.0} if connected else {})
    vertex_of = np.concatenate([c.column("x").codes for c in (labeled, text)])
    r, S = np.array([[1.0, 0], [0, 1], [1, 0], [0, 0]]), np.array([True] * 3 + [False])
    informed = S | (W.sum(axis=1) > 0)
    params = GraphLift.Params(eta=1.0, eta_scale="sentence", feature_pruning="none")

    def smooth(means: F64) -> F64:
        return params.beta * lift(jacobi(W, means, r, S), informed, text.column("x").codes)

    one = TypeTrainer(
        crf,
        encoded(crf, [text], labeled, labels),
        vertices(vertex_of, 4),
        smooth,
        decode,
        params,
        RunContext(),
    )
    one.train()
    return crf.predict(corpus([0, 3], [0, 1])).tolist()


def test_an_unseen_word_gets_the_label_of_the_one_it_is_joined_to() -> None:
    assert separable(connected=True) == [0, 1, 0, 1]
    assert separable(connected=False) == [0, 0, 0, 1]
