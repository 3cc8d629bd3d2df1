"""Training a CRF, and attributes that are copies of each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sslbench.engine.crf import (
    STRICT,
    HardLabels,
    LogPartition,
    Objective,
    Options,
    TrainingParams,
)
from sslbench.engine.crf.optim import lbfgs
from sslbench.engine.crf.weights.deduplicate import Deduplication
from sslbench.engine.crf.weights.layout import Layout
from sslbench.engine.types import F64
from support.crf_oracle import INF, Enumeration, same_up_to
from support.objective_toys import L, evaluate, scipy_optimum
from support.tagger_toys import tagger, text
from support.weights_oracle import dense_potentials, places


@pytest.mark.parametrize("state_support", ["all", "observed"])
@pytest.mark.parametrize("l1", [0.0, 0.05])
def test_training_reaches_the_optimum_of_all_weights(state_support: str, l1: float) -> None:
    templates = ("word[0]", "word[-1]", "word[1]", "edge: word[0]")
    crf, corpus, labels = tagger(18, state_support, templates)
    data = crf.encode(corpus)
    result = crf.train(
        [(data, HardLabels(labels))], TrainingParams(sigma2=1.5), l1=l1, options=STRICT
    )
    objective = Objective(crf.layout, [(data, HardLabels(labels))], 1.5)
    found = lbfgs.minimize(
        objective.scaled_loss, np.zeros(crf.layout.size), STRICT, l1=l1 / objective.n_tokens
    )
    value, gradient = evaluate(objective, crf.weights)
    penalty = l1 * abs(crf.weights).sum()
    assert result.objective == pytest.approx(value - penalty, rel=1e-12)
    assert result.objective == pytest.approx(-found.value * objective.n_tokens, rel=1e-11)
    assert result.n_weights == crf.layout.size == len(crf.weights)
    if not l1:
        assert abs(gradient).max() < 1e-6
        same_up_to(crf.weights, found.weights, 1e-6)
    else:
        assert (abs(gradient) <= l1 + 1e-6).all()
        assert (crf.weights == 0).any()


@pytest.mark.parametrize("state_support", ["all", "observed"])
def test_copies_are_found_and_get_equal_weights(state_support: str) -> None:
    crf, corpus, labels = tagger(19, state_support)
    attributes = crf.index.encode(corpus)
    deduplication = Deduplication.build(crf.layout, [attributes])
    rows = [(attributes.node == a).any(axis=0) for a in range(crf.index.n_node)]
    where = [frozenset(np.flatnonzero(row)) for row in rows]
    assert deduplication.reduced.n_node == len(set(where)) < len(where)
    for a, tokens in enumerate(where):
        same = [b for b, other in enumerate(where) if other == tokens]
        assert (deduplication.group[same] == deduplication.group[a]).all()
        assert deduplication.copies[deduplication.group[a]] == len(same)
        assert (deduplication.keep[same] >= 0).sum() == 1
    crf.train(
        [(crf.encode(corpus), HardLabels(labels))], TrainingParams(sigma2=1.5), options=STRICT
    )
    at = places(crf.layout).state
    for (a, b), i in at.items():
        for c in range(crf.index.n_node):
            if where[c] == where[a]:
                assert crf.weights[at[c, b]] == pytest.approx(crf.weights[i], abs=1e-12)


@pytest.mark.parametrize("state_support", ["all", "observed"])
def test_an_m_step_on_summed_counts(state_support: str) -> None:
    """The counts of the labels as a linear part, and -log Z: the likelihood of the labels."""
    crf, corpus, labels = tagger(21, state_support)
    data = crf.encode(corpus)
    weighted = HardLabels(labels, np.full(corpus.n_sentences, 0.7))
    counts, free = np.empty(crf.layout.size), np.empty(crf.layout.size)
    none = np.zeros(crf.layout.size)
    Objective(crf.layout, [(data, LogPartition(0.7))], INF).value_and_gradient(none, free)
    Objective(crf.layout, [(data, weighted)], INF).value_and_gradient(none, counts)
    found = crf.train(
        [(data, LogPartition(0.7))],
        TrainingParams(sigma2=1.5),
        options=STRICT,
        expected_counts=counts - free,
    )
    by_counts = crf.weights
    crf.weights = none
    wanted = crf.train([(data, weighted)], TrainingParams(sigma2=1.5), options=STRICT)
    assert found.objective == pytest.approx(wanted.objective, rel=1e-12)
    same_up_to(by_counts, crf.weights, 1e-7)
    assert abs(by_counts).max() > 0.1


@pytest.mark.parametrize("support", ["all", "observed"])
@pytest.mark.parametrize("piece", [3, 1 << 14])
def test_weights_of_copies(support: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums, shares and common coefficients, against a loop over attributes."""
    monkeypatch.setattr("sslbench.engine.crf.weights.deduplicate.PIECE", piece)
    crf, corpus, _ = tagger(20, support)
    attributes = crf.encode(corpus).attributes
    node = np.where(attributes.node % 5, attributes.node, -1).astype(np.int32)  # some never occur
    found = Deduplication.build(crf.layout, [replace(attributes, node=node)])
    full, reduced = found.full, found.reduced
    rng = np.random.default_rng(20)
    weights, own = rng.normal(size=full.size), rng.normal(size=reduced.size)
    merged, split = np.zeros(reduced.size), np.zeros(full.size)
    tail, own_tail = full.span("state").stop, reduced.span("state").stop
    merged[own_tail:], split[tail:] = weights[tail:], own[own_tail:]
    given = split.copy()  # equal coefficients of copies
    for attribute, group in enumerate(found.group):
        if group >= 0:
            here, there = state_weights(full, attribute), state_weights(reduced, int(group))
            merged[there] += weights[here]
            split[here] = own[there] / found.copies[group]
            given[here] = own[there]
    assert (found.copies > 1).any()
    assert (found.group < 0).any()
    np.testing.assert_array_equal(found.merge(weights), merged)
    np.testing.assert_array_equal(found.split(own), split)
    np.testing.assert_array_equal(found.project(given), own)


def state_weights(layout: Layout, attribute: int) -> slice:
    """Where the weights of an attribute and the labels are."""
    if layout.state_start is None:
        return slice(attribute * layout.n_labels, (attribute + 1) * layout.n_labels)
    return slice(*layout.state_start[attribute : attribute + 2])


def test_collapsing_takes_the_same_steps() -> None:
    """A few iterations with the preconditioner end at the same weights as without collapsing."""
    crf, corpus, labels = tagger(20, "all")
    data, term = crf.encode(corpus), HardLabels(labels)
    deduplication = Deduplication.build(crf.layout, [data.attributes])
    full = Objective(crf.layout, [(data, term)], 1.5)
    reduced = Objective(
        deduplication.reduced,
        [(data.deduplicated(deduplication), term)],
        1.5,
        copies=deduplication.weight_copies,
    )

    def slight(objective: Objective) -> lbfgs.Function:
        def function(x: F64, gradient: F64) -> float:
            value = objective.scaled_loss(x, gradient)
            gradient *= 0.05  # else the first step depends on the number of weights
            return 0.05 * value

        return function

    few = Options(max_iterations=6, gtol=0.0)
    start = 0.1 * np.random.default_rng(20).normal(size=crf.layout.size)
    start = deduplication.split(deduplication.merge(start))
    a = lbfgs.minimize(slight(full), start.copy(), few)
    b = lbfgs.minimize(
        slight(reduced),
        deduplication.merge(start),
        few,
        preconditioner=deduplication.preconditioner(),
    )
    assert a.evaluations == b.evaluations
    np.testing.assert_allclose(a.history, b.history, rtol=1e-11)
    same_up_to(deduplication.split(b.weights), a.weights, 1e-9)
    assert abs(a.weights - start).max() > 0.1


def test_training_starts_at_the_weights_it_has() -> None:
    crf, corpus, labels = tagger(21, "all")
    parts = [(crf.encode(corpus), HardLabels(labels))]
    first = crf.train(parts, TrainingParams(sigma2=1.5), options=Options(gtol=1e-9, ftol=0.0))
    optimum = crf.weights.copy()
    again = crf.train(parts, TrainingParams(sigma2=1.5), options=Options(gtol=1e-8))
    assert (again.iterations, again.status) == (0, "gradient")
    assert again.objective == pytest.approx(first.objective, rel=1e-13)
    same_up_to(crf.weights, optimum, 1e-12)


@pytest.mark.parametrize("state_support", ["all", "observed"])
def test_training_on_other_text_than_the_index(state_support: str) -> None:
    """Attributes may coincide there although the labels that they were seen with differ."""
    crf, corpus, _ = tagger(22, state_support)
    rng = np.random.default_rng(23)
    other = text(rng, [3, 2, 4], corpus.columns["word"].vocabulary)
    labels = rng.integers(0, L, other.n_tokens).astype(np.int32)
    data = crf.encode(other)
    crf.train([(data, HardLabels(labels))], TrainingParams(sigma2=1.5), options=STRICT)
    objective = Objective(crf.layout, [(data, HardLabels(labels))], 1.5)
    found = lbfgs.minimize(objective.scaled_loss, np.zeros(crf.layout.size), STRICT)
    same_up_to(crf.weights, found.weights, 1e-6)


def test_nonnegative_weights_of_a_crf() -> None:
    crf, corpus, labels = tagger(24, "observed")
    start = int(crf.layout.bounds[2])
    transitions = np.arange(start, start + L * L)
    parts = [(crf.encode(corpus), HardLabels(labels))]
    result = crf.train(parts, TrainingParams(sigma2=1.5), options=STRICT, nonnegative=transitions)
    objective = Objective(crf.layout, parts, 1.5)
    theirs = scipy_optimum(objective.scaled_loss, crf.layout.size, transitions)
    assert (crf.weights[transitions] >= 0).all()
    assert (crf.weights[transitions] == 0).any()
    assert (crf.weights[: crf.layout.bounds[1]] < 0).any()
    value = evaluate(objective, theirs)[0]
    assert result.objective == pytest.approx(value, rel=1e-10)


def test_decoding_and_marginals_of_a_corpus() -> None:
    rng = np.random.default_rng(25)
    for state_support in ("all", "observed"):
        crf, corpus, _ = tagger(26, state_support, ("word[0]", "edge: word[0]"))
        crf.weights[:] = rng.normal(size=crf.layout.size)
        crf.transition_mask = np.ones((L + 1, L), bool)
        crf.transition_mask[0, 1] = crf.transition_mask[L, 2] = False
        attributes = crf.index.encode(corpus)
        chains = [
            Enumeration.of(p)
            for p in dense_potentials(crf.layout, crf.weights, attributes, crf.transition_mask)
        ]
        data = crf.encode(corpus)
        same_up_to(crf.marginals(data), np.concatenate([e.node for e in chains]), 1e-10)
        best = [label for e in chains for label in e.best()[1]]
        assert crf.decode(data).tolist() == crf.predict(corpus).tolist() == best
