"""Graph-based and type-level self-training: docs/specs/graph_self_training.md, section 8."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import STRICT, HardLabels, Objective, TrainingParams
from sslbench.engine.graph.tokens import type_means
from sslbench.engine.types import F64, I32
from sslbench.experiment.context.context import RunContext
from sslbench_methods.graph_self_training.algorithm import TypeTrainer, decode, mix
from support.compare import close
from support.graph_toys import (
    LABELED,
    UNLABELED,
    Y,
    corpus,
    crf_over,
    encoded,
    jacobi,
    pairs,
    symmetric,
    toy,
)
from support.self_training_toys import (
    GRAPH,
    GUESS,
    IN_LABELED,
    VERTEX_OF,
    WEIGHTS,
    Params,
    R,
    score,
    smoothing,
    three_tokens,
    trainer,
    vertices,
)


def test_means_over_the_tokens_of_a_type() -> None:
    p = np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5], [0.6, 0.4], [0.2, 0.8], [0.9, 0.1]])
    means, _ = type_means(np.array([0, 1, 0, 1, 2, -1], np.int32), p, 4)
    close(means, [[0.7, 0.3], [0.45, 0.55], [0.2, 0.8], [0, 0]], 1e-15)


P = np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])
MIXED = np.array([[0.86, 0.14], [0.26, 0.74], [0.62, 0.38]])


def test_mixing() -> None:
    q = np.array([[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]])
    close(mix(P, q, np.array([0, 1, 0], np.int32), 0.6), MIXED, 1e-15)
    close(mix(P, q, np.array([0, -1, 0], np.int32), 0.6)[1], P[1], 0)  # outside the graph
    vertex_of = np.array([0, 1, 2], np.int32)
    np.testing.assert_array_equal(mix(P, q, vertex_of, 1.0), P)
    np.testing.assert_array_equal(mix(P, q, vertex_of, 0.0), q)


def test_decoding_adds_transitions_to_log_mixed_posteriors() -> None:
    A = np.array([[0.4, -0.6], [-0.1, 0.3]])
    crf, data = three_tokens(A)
    assert decode(crf, data, MIXED).tolist() == [0, 0, 0]
    printed = [
        -1.1759323386,
        -2.6654805640,
        -1.6299637835,
        -1.7195120088,
        -3.4912223053,
        -4.9807705306,
        -2.5452537501,
        -2.6348019754,
    ]
    close([score(MIXED, A, y) for y in product((0, 1), repeat=3)], printed)


def test_decoding_is_the_best_of_all_sequences() -> None:
    rng = np.random.default_rng(0)
    for L, omega in product((2, 3), (0.5, 1.0, 2.0)):
        A = rng.normal(size=(L, L))
        crf, data = three_tokens(A, L)
        crf.weights[: -L * L] = rng.normal(size=3 * L)  # label scores must not enter
        mixed = rng.dirichlet(np.ones(L), size=3)
        best = max(product(range(L), repeat=3), key=lambda y: score(mixed, A, y, omega))
        assert decode(crf, data, mixed, omega).tolist() == list(best)


def test_impossible_labels_are_floored_and_forbidden_arcs_are_not() -> None:
    crf, data = three_tokens(np.zeros((2, 2)))
    mixed = np.array([[0.9, 0.1], [0, 1], [1, 0]])
    assert decode(crf, data, mixed).tolist() == [0, 1, 0]
    crf.transition_mask = np.array([[True, False], [True, True], [True, True]])  # no 0 -> 1
    assert decode(crf, data, mixed).tolist() == [1, 1, 0]


def test_the_raw_step_depends_on_the_gauge_and_the_centered_one_does_not() -> None:
    mixed = np.array([[0.6, 0.4], [0.45, 0.55], [0.55, 0.45]])
    A = np.array([[0.2, -0.2], [-0.2, 0.2]])
    for transitions, raw in ((A, [0, 0, 0]), (A + np.array([0, 0.9]), [0, 1, 1])):
        crf, data = three_tokens(transitions)
        assert decode(crf, data, mixed).tolist() == raw
        assert decode(crf, data, mixed, centered=True).tolist() == [0, 0, 0]


def test_one_round() -> None:
    found: dict[str, F64] = {}

    def smooth(q: F64) -> F64:
        found["before"], found["one"] = q, jacobi(GRAPH, q, R, IN_LABELED, steps=1)
        found["after"] = jacobi(GRAPH, q, R, IN_LABELED)
        return found["after"]

    one = trainer(toy(WEIGHTS), [UNLABELED], smooth=smooth)
    p = [
        0.8669626117,
        0.1330373883,
        0.5490440592,
        0.7310585786,
        0.3237631411,
        0.4116711196,
        0.4116711196,
    ]
    gold, text = one.marginals()
    close(np.concatenate([gold, text])[:, 0], p)
    assert one.relabel() == 1.0
    close(
        found["before"][:, 0],
        [0.7990105952, 0.2723542539, 0.5490440592, 0.3237631411, 0.4116711196],
    )
    close(
        found["one"][:, 0], [0.8719863050, 0.0953937989, 0.7893650921, 0.3617042411, 0.3305414818]
    )
    close(
        found["after"][:, 0], [0.9524693196, 0.0538012046, 0.9375746050, 0.1695576890, 0.1895665828]
    )
    mixed = mix(one.marginals()[1], found["after"], VERTEX_OF[2:], 0.6)
    close(mixed[:, 0], [0.7044562775, 0.8196228750, 0.2620809602, 0.2685231536, 0.3228293049])
    assert one.guesses[0].tolist() == [0, 0, 1, 0, 1]
    assert one.crf.decode(one.text.unlabeled[0]).tolist()[:3] == [1, 0, 1]
    assert one.relabel() == 0.0


def test_the_objective_of_retraining() -> None:
    crf = toy(WEIGHTS)
    parts = [
        (crf.encode(LABELED), HardLabels(Y)),
        (crf.encode(UNLABELED), HardLabels(GUESS, np.full(2, 0.1))),
    ]
    gradient = np.empty(12)
    value = Objective(crf.layout, parts, 50.0).value_and_gradient(crf.weights, gradient)
    close(-value, 0.5288649000)
    close(
        -gradient,
        [
            -0.1499315304,
            0.1499315304,
            0.0642045002,
            -0.0642045002,
            -0.0450955941,
            0.0450955941,
            0.0735434261,
            -0.0735434261,
            0.0518481885,
            -0.3057082010,
            0.1178384838,
            0.1360215288,
        ],
    )


def test_its_minimum() -> None:
    one = trainer(toy(WEIGHTS), [UNLABELED], eta=0.1)
    one.guesses = [GUESS]
    result = one.fit()
    close(-result.objective, 0.1825707813)
    minimum = [
        *pairs(0.8450985833, -0.5806735790, 0.5961951965, -0.5202538854),
        -0.2812337803,
        2.3428944262,
        -0.9890857162,
        -1.0725749297,
    ]
    # the printed point has a gradient of 1.1e-9, ours of 5e-11
    close(one.crf.weights, minimum, 3e-8)


def test_the_closed_form_of_a_bias() -> None:
    labeled, text = corpus([0], [0], [0], [0]), corpus(*([0] for _ in range(10)))
    labels = np.array([0, 0, 0, 1], np.int32)
    crf = crf_over(labeled, labels, text, template="bias")
    params = Params(eta=0.1, sigma2=10.0)
    one = TypeTrainer(
        crf,
        encoded(crf, [text], labeled, labels),
        vertices(np.zeros(14, np.int32), 1),
        lambda q: q,
        params.label,
        params,
        RunContext(),
    )
    one.guesses = [np.ones(10, np.int32)]
    close(-one.fit().objective, 3.3690041507)
    close(crf.weights[:2], pairs(0.1946356893), 1e-9)
    close(one.marginals()[0][0, 0], 0.5961072861, 1e-9)


def weights_after(unlabeled: list[Corpus], **options: Any) -> F64:
    one = trainer(toy(), unlabeled, **options)
    return one.train().weights


def test_limits() -> None:
    supervised = toy()
    supervised.train(
        [(supervised.encode(LABELED), HardLabels(Y))], TrainingParams(sigma2=50.0), options=STRICT
    )
    wild = symmetric(5, {(0, 4): 9.0, (1, 2): 9.0})
    for W in (GRAPH, wild):
        close(weights_after([UNLABELED], eta=0.0, smooth=smoothing(W)), supervised.weights, 1e-7)
    same = [
        weights_after([UNLABELED], alpha=1.0, eta=0.5, smooth=smoothing(W)) for W in (GRAPH, wild)
    ]
    np.testing.assert_array_equal(*same)
    assert abs(same[0] - supervised.weights).max() > 0.01
    types = weights_after([UNLABELED], eta=0.5, smooth=lambda q: q)
    no_steps = weights_after([UNLABELED], eta=0.5, smooth=smoothing(GRAPH, steps=0))
    np.testing.assert_array_equal(types, no_steps)
    without = weights_after([], vertex_of=VERTEX_OF[:2])
    np.testing.assert_array_equal(without, supervised.weights)


def test_attributes_of_unlabeled_text_change_nothing_for_the_supervised_crf() -> None:
    found = []
    for text in ([], [UNLABELED]):
        crf = crf_over(LABELED, Y, *text)
        crf.train(
            [(crf.encode(LABELED), HardLabels(Y))], TrainingParams(sigma2=50.0), options=STRICT
        )
        found.append(crf)
    alone, both = found
    assert (alone.index.n_node, both.index.n_node) == (2, 4)
    assert not both.weights[4:8].any()
    np.testing.assert_array_equal(alone.weights, np.delete(both.weights, range(4, 8)))
    np.testing.assert_array_equal(alone.predict(UNLABELED), both.predict(UNLABELED))


def test_vertices_and_sentences_in_any_order() -> None:
    one = trainer(toy(WEIGHTS), [UNLABELED])
    one.relabel()
    new = np.array([3, 0, 4, 1, 2])  # new number of each vertex
    W, r, S = (np.empty_like(a) for a in (GRAPH, R, IN_LABELED))
    W[np.ix_(new, new)], r[new], S[new] = GRAPH, R, IN_LABELED
    renamed = trainer(
        toy(WEIGHTS),
        [UNLABELED],
        vertex_of=new.astype(np.int32)[VERTEX_OF],
        smooth=lambda q: jacobi(W, q, r, S),
    )
    renamed.relabel()
    assert renamed.guesses[0].tolist() == one.guesses[0].tolist()
    # the sentences the other way round, each a part of its own
    shards = [UNLABELED.between(1, 2), UNLABELED.between(0, 1)]
    turned = trainer(toy(WEIGHTS), shards, vertex_of=VERTEX_OF[[0, 1, 5, 6, 2, 3, 4]])
    turned.relabel()
    assert [g.tolist() for g in turned.guesses] == [[0, 1], [0, 0, 1]]


def test_twice_the_text_at_half_the_weight() -> None:
    doubled = Corpus.concatenate([UNLABELED, UNLABELED])
    once = weights_after([UNLABELED], eta=0.4)
    twice = weights_after([doubled], eta=0.2, vertex_of=np.append(VERTEX_OF, VERTEX_OF[2:]))
    # the labeled vertices' means move a little with the copies, the labels do not
    close(twice, once, 1e-7)


def test_the_weight_of_all_self_labeled_sentences() -> None:
    """As a ratio, it is shared out among them, however many there are."""
    doubled = Corpus.concatenate([UNLABELED, UNLABELED])
    each = 0.4 * LABELED.n_sentences / UNLABELED.n_sentences
    known = weights_after([UNLABELED], eta=each)
    close(weights_after([UNLABELED], eta=0.4, eta_scale="ratio"), known, 1e-12)
    options = {"eta": 0.4, "eta_scale": "ratio", "vertex_of": np.append(VERTEX_OF, VERTEX_OF[2:])}
    close(weights_after([doubled], **options), known, 1e-7)


def test_retraining_stops_early_and_the_first_training_does_not() -> None:
    trained = trainer(toy(), [UNLABELED], rounds=2, retraining=3, eta=0.5)
    trained.train()
    trace = trained.run.trace
    assert trace["supervised"]["iterations"] > 3
    assert [found["iterations"] for found in trace["rounds"]] == [3, 3]


def test_the_best_round_on_dev_is_kept() -> None:
    wrong = np.array([1, 1, 0], np.int32)
    kept = []
    for keep in ("last", "best"):
        one = trainer(toy(), [UNLABELED], rounds=2, eta=5.0, keep=keep)
        dev = corpus([2, 0, 3])
        data = one.crf.encode(dev)
        one.text = replace(one.text, dev=(data, wrong))
        one.train()
        trace = one.run.trace
        entries = [trace["supervised"], *trace["rounds"]]
        scores = [entry["dev_accuracy"] for entry in entries]
        kept.append((np.mean(one.crf.decode(data) == wrong), trace.get("kept_round")))
    assert kept[0] == (scores[-1], None)
    assert kept[1] == (max(scores), int(np.argmax(scores)))


def test_the_record_of_the_rounds() -> None:
    one = trainer(toy(), [UNLABELED], eta=0.5, rounds=4)
    one.text = replace(one.text, dev=(one.text.labeled[0], Y))
    one.train()
    trace = one.run.trace
    assert trace["stopped"] == "converged"
    assert trace["rounds"][0]["changed"] == 1.0
    assert trace["rounds"][-1]["changed"] < 1e-3
    assert all(sum(entry["labels"]) == 5 for entry in trace["rounds"])
    assert all(entry["dev_accuracy"] == 1.0 for entry in [trace["supervised"], *trace["rounds"]])


def separable(connected: bool) -> I32:
    """Words 0 left, 1 w_a, 2 filler, 3 w_b (never labeled); labels 0 and 1.

    Types are the words themselves; w_b stands where w_a and the filler do.
    """
    labeled = corpus(*[[0, 1]] * 2, *[[0, 2]] * 3)
    labels = np.array([0, 1] * 2 + [0, 0] * 3, np.int32)
    text = corpus(*[[0, 3]] * 3)
    crf = crf_over(labeled, labels, text)
    W = symmetric(4, {(1, 3): 1.0} if connected else {})
    vertex_of = np.concatenate([c.column("x").codes for c in (labeled, text)])
    r = np.array([[1.0, 0], [0, 1], [1, 0], [0, 0]])
    S = np.array([True] * 3 + [False])
    params = Params(eta=1.0)
    one = TypeTrainer(
        crf,
        encoded(crf, [text], labeled, labels),
        vertices(vertex_of, 4),
        lambda q: jacobi(W, q, r, S),
        params.label,
        params,
        RunContext(),
    )
    one.train()
    return crf.predict(corpus([0, 3], [0, 1]))


def test_an_unseen_word_gets_the_label_of_the_one_it_is_joined_to() -> None:
    assert separable(connected=True).tolist() == [0, 1, 0, 1]
    assert separable(connected=False).tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("weights", [np.full(2, 0.3), np.array([0.3, 0.7])])
def test_weighted_sentences_are_scaled_one_by_one(weights: F64) -> None:
    """Sentences of one weight share their transitions, others do not: the same sums."""
    crf = toy(WEIGHTS)
    data = crf.encode(UNLABELED)
    together, apart = np.empty(12), np.empty(12)
    value = Objective(crf.layout, [(data, HardLabels(GUESS, weights))], 50.0)
    value_together = value.value_and_gradient(crf.weights, together)
    none = Objective(crf.layout, [(data, HardLabels(GUESS, np.zeros(2)))], 50.0)
    prior = none.value_and_gradient(crf.weights, apart)  # of the prior alone
    total = prior
    for i, weight in enumerate(weights):
        sentence = crf.encode(UNLABELED.between(i, i + 1))
        target = HardLabels(GUESS[:3] if i == 0 else GUESS[3:])
        gradient = np.empty(12)
        alone = Objective(crf.layout, [(sentence, target)], 1e300)
        total += weight * alone.value_and_gradient(crf.weights, gradient)
        apart += weight * gradient
    close(value_together, total, 1e-14)
    close(together, apart, 1e-14)
