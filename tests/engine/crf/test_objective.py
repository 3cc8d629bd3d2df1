"""Terms and their sums: values by enumeration, gradients by differences, weights of sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sslbench.engine.crf import (
    HardLabels,
    InfeasibleSentenceError,
    Objective,
    Observed,
    PartialLabels,
    SoftTargets,
    Term,
)
from sslbench.engine.crf.weights.layout import Layout, build_layout
from support.crf_oracle import INF, same_up_to, slopes
from support.objective_toys import (
    CASES,
    LENGTHS,
    TERMS,
    Case,
    L,
    N,
    case,
    evaluate,
    evidence,
    restrict,
    select,
    value_of,
)
from support.weights_oracle import RandomFactors, places

# -- terms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("make", TERMS, ids=lambda f: f.__name__)
def test_objective_and_gradient(make: Callable[..., Term], name: str) -> None:
    rng = np.random.default_rng(4)
    c = case(name, 5)
    term = make(c, rng)
    objective = c.objective(term, 1.7)
    value, gradient = evaluate(objective, c.weights)
    prior = (c.weights**2).sum() / 3.4
    assert value == pytest.approx(value_of(term, c, c.weights) - prior, rel=1e-11)
    numeric = slopes(lambda x: evaluate(objective, x)[0], c.weights)
    same_up_to(gradient, numeric, 1e-7)
    loss = np.empty_like(gradient)
    tokens = (np.array(LENGTHS) * term.weights).sum()
    assert objective.scaled_loss(c.weights, loss) == pytest.approx(-value / tokens, rel=1e-14)
    same_up_to(loss, -gradient / tokens, 1e-14)


def test_unweighted_terms_are_terms_with_weight_one() -> None:
    rng = np.random.default_rng(6)
    for name in ("observed", "everything"):
        c = case(name, 7)
        for make in TERMS:
            term = make(c, rng)
            ones = replace(term, weights=np.ones(len(LENGTHS)))
            value, gradient = evaluate(c.objective(replace(term, weights=None)), c.weights)
            again, other = evaluate(c.objective(ones), c.weights)
            assert value == pytest.approx(again, rel=1e-13)
            same_up_to(gradient, other, 1e-12)


def test_hard_labels_are_the_special_case_of_every_target() -> None:
    for name in ("observed", "columns", "everything"):
        c = case(name, 8)
        value, gradient = evaluate(c.objective(HardLabels(c.labels)), c.weights)
        one_hot = np.eye(L)[c.labels]
        with np.errstate(divide="ignore"):
            psi = np.log(one_hot)
        everything = np.ones((N, L), bool)
        for term in (
            SoftTargets(one_hot),
            PartialLabels(one_hot > 0),
            PartialLabels(everything, psi),
        ):
            again, other = evaluate(c.objective(term), c.weights)
            assert again == pytest.approx(value, rel=1e-12)
            same_up_to(other, gradient, 1e-12)
        free, nothing = evaluate(c.objective(PartialLabels(everything)), c.weights)
        assert free == pytest.approx(0.0, abs=1e-12)
        same_up_to(nothing, 0.0, 1e-12)


@pytest.mark.parametrize("name", ["all transitions", "columns"])
def test_independent_targets_leave_out_forbidden_transitions(name: str) -> None:
    c = case(name, 12)
    targets = np.random.default_rng(12).dirichlet(np.ones(L), size=N)  # all transitions have mass
    objective = c.objective(SoftTargets(targets))
    value, gradient = evaluate(objective, c.weights)
    assert np.isfinite(value)
    same_up_to(gradient, slopes(lambda x: evaluate(objective, x)[0], c.weights), 1e-7)


def test_scaling_the_evidence_of_a_token_changes_no_gradient() -> None:
    rng = np.random.default_rng(9)
    c = case("edges", 9)
    term = evidence(c, rng)
    factors = rng.normal(size=N)
    scaled = replace(term, log_evidence=term.log_evidence + factors[:, None])
    value, gradient = evaluate(c.objective(term), c.weights)
    again, other = evaluate(c.objective(scaled), c.weights)
    shift = (np.add.reduceat(factors, c.attributes.offsets[:-1]) * term.weights).sum()
    assert again == pytest.approx(value + shift, abs=1e-11)
    same_up_to(other, gradient, 1e-11)


def test_several_parts_add_up() -> None:
    rng = np.random.default_rng(10)
    c = case("edges", 11)
    terms = [make(c, rng) for make in TERMS]
    whole = Objective(c.layout, [(c.encode(), t) for t in terms], 2.0)
    value, gradient = evaluate(whole, c.weights)
    single = [evaluate(c.objective(t), c.weights) for t in terms]
    assert value == pytest.approx(sum(v for v, _ in single) - (c.weights**2).sum() / 4, rel=1e-13)
    same_up_to(gradient, sum(g for _, g in single) - c.weights / 2, 1e-12)


# -- docs/specs/crf_engine.md, oracle 15: sentence weights -----------------------------------------


@pytest.mark.parametrize("name", ["observed", "everything"])
@pytest.mark.parametrize("make", TERMS, ids=lambda f: f.__name__)
def test_sentence_weights(make: Callable[..., Term], name: str) -> None:
    rng = np.random.default_rng(12)
    c = case(name, 13)
    term = replace(make(c, rng), weights=np.array([1.0, 2, 1, 1, 0, 1, 2]))
    value, gradient = evaluate(c.objective(term, 5.0), c.weights)

    repeated = np.array([0, 1, 1, 2, 3, 5, 6, 6])
    again, tokens = select(c, repeated)
    twice, other = evaluate(again.objective(restrict(term, tokens, np.ones(8)), 5.0), c.weights)
    assert twice == pytest.approx(value, rel=1e-13)
    same_up_to(other, gradient, 1e-12)

    kept = np.array([0, 1, 2, 3, 5, 6])
    again, tokens = select(c, kept)
    absent = again.objective(restrict(term, tokens, term.weights[kept]), 5.0)
    without, other = evaluate(absent, c.weights)
    assert without == value  # the very same bits
    np.testing.assert_array_equal(other, gradient)
    assert absent.n_tokens == c.objective(term).n_tokens


def test_a_sentence_of_weight_zero_may_break_the_constraints() -> None:
    c = case("columns", 14)
    labels = c.labels.copy()
    labels[4:6] = 0, 2  # a forbidden transition inside sentence 2
    weights = np.ones(len(LENGTHS))
    weights[2] = 0.0
    value, gradient = evaluate(c.objective(HardLabels(labels, weights)), c.weights)
    expected = evaluate(c.objective(HardLabels(c.labels, weights)), c.weights)
    assert value == expected[0]
    np.testing.assert_array_equal(gradient, expected[1])
    for term in (HardLabels(labels), HardLabels(labels, np.ones(len(LENGTHS)))):
        with pytest.raises(InfeasibleSentenceError, match="sentence 2"):
            evaluate(c.objective(term), c.weights)


def test_a_sentence_of_weight_zero_may_have_no_label_allowed() -> None:
    c = case("columns", 14)
    sentence = slice(*c.attributes.offsets[2:4])
    allowed, psi = np.ones((len(c.labels), L), bool), np.zeros((len(c.labels), L))
    weights = np.ones(len(LENGTHS))
    weights[2] = 0.0
    expected = evaluate(c.objective(PartialLabels(allowed, psi, weights)), c.weights)
    closed, ruled_out = allowed.copy(), psi.copy()
    closed[sentence], ruled_out[sentence] = False, -INF
    for term in (PartialLabels(closed, psi, weights), PartialLabels(allowed, ruled_out, weights)):
        value, gradient = evaluate(c.objective(term), c.weights)
        assert value == expected[0]
        np.testing.assert_array_equal(gradient, expected[1])
    with pytest.raises(InfeasibleSentenceError, match="sentence 2"):
        evaluate(c.objective(PartialLabels(closed)), c.weights)


def test_without_a_sentence_the_prior_is_left() -> None:
    c = case("state")
    value, gradient = evaluate(Objective(c.layout, [], 2.0), c.weights)
    assert value == pytest.approx(-(c.weights @ c.weights) / 4)
    np.testing.assert_allclose(gradient, -c.weights / 2)


# -- docs/specs/crf_engine.md, oracle 17 -----------------------------------------------------------


def moved_places(old: Layout, layout: Layout, old_of: dict[int, int]) -> np.ndarray:
    """int[W]: the place of each weight after its labels have other numbers."""
    before, after = places(old), places(layout)
    target = np.empty(old.size, int)
    for (attribute, b), i in before.state.items():
        target[i] = after.state[attribute, old_of[b]]
    for (column, b), i in before.column.items():
        target[i] = after.column[column, old_of[b]]
    for (a, b), i in before.transition.items():
        target[i] = after.transition[old_of[a], old_of[b]]
    for b, i in before.stop.items():
        target[i] = after.stop[old_of[b]]
    for (attribute, a, b), i in before.edge.items():
        target[i] = after.edge[attribute, old_of[a], old_of[b]]
    for k, i in before.factors.items():
        target[i] = after.factors[k]
    return target


@pytest.mark.parametrize("name", CASES)
def test_label_permutation(name: str) -> None:
    c = case(name, 15)
    order = np.array([2, 0, 1])  # the new label k is the old label order[k]
    new = np.argsort(order)
    rows, old_of = np.append(order, L), {b: int(new[b]) for b in range(L)} | {L: L}
    labels = new[c.labels].astype(np.int32)
    layout = c.layout
    if layout.state_start is not None or layout.n_edge:
        a = c.attributes
        layout = build_layout(
            a,
            labels,
            L,
            n_node=6,
            n_edge=layout.n_edge,
            n_factors=layout.n_factors,
            state_support="all" if layout.state_start is None else "observed",
            transition_support=CASES[name].get("transition_support", "observed"),
            use_start=layout.use_start,
            use_stop=layout.use_stop,
        )
    target = moved_places(c.layout, layout, old_of)
    assert sorted(target) == list(range(layout.size))
    weights = np.empty_like(c.weights)
    weights[target] = c.weights
    factors = c.factors
    if factors is not None:
        factors = RandomFactors(
            factors.h_node[:, order], factors.h_edge[:, order][:, :, order], factors.on_edges
        )
    transition_mask = None if c.transition_mask is None else c.transition_mask[rows][:, order]
    swapped = Case(layout, c.attributes, labels, weights, transition_mask, factors)
    value, gradient = evaluate(c.objective(HardLabels(c.labels), 2.0), c.weights)
    again, other = evaluate(swapped.objective(HardLabels(labels), 2.0), weights)
    assert again == pytest.approx(value, rel=1e-12)
    same_up_to(other[target], gradient, 1e-12)


def test_an_observed_term_sums_statistics_of_its_last_pass_alone() -> None:
    c = case("everything", 8)
    plain = HardLabels(c.labels)
    term = Observed(plain, lambda p: (plain.evaluate(p), {"tokens": p.batch.n_tokens}))
    objective = c.objective(term)
    assert Observed.total([term], "tokens") == 0
    for _ in range(2):
        value, gradient = evaluate(objective, c.weights)
        assert Observed.total([term], "tokens") == N
    wanted, other = evaluate(c.objective(plain), c.weights)
    assert value == wanted
    np.testing.assert_array_equal(gradient, other)
    assert term.n_tokens(np.array(LENGTHS, float)) == N
