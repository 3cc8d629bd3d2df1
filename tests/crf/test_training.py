"""Weights, gradients, objectives and the optimizer, against sums written out weight by weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from sslbench.corpus import Column, Corpus, Vocabulary
from sslbench.crf import (
    STRICT,
    ChainCRF,
    EncodedCorpus,
    HardLabels,
    InfeasibleSentenceError,
    LogPartition,
    Objective,
    Options,
    PartialLabels,
    Potentials,
    SoftTargets,
    Term,
    TrainingParams,
)
from sslbench.crf.data import slot_groups
from sslbench.crf.optim import lbfgs
from sslbench.crf.weights import layout as layout_module
from sslbench.crf.weights.deduplicate import Deduplication
from sslbench.crf.weights.layout import Layout, Tables, build_layout
from sslbench.errors import UserError
from sslbench.features import Attributes, TemplateFeaturizer
from sslbench.types import F64, I32, Bool
from support.crf_oracle import (
    INF,
    Enumeration,
    Probe,
    RandomFactors,
    dense_potentials,
    places,
    random_attributes,
    same_up_to,
    slopes,
)

LENGTHS = [1, 2, 3, 1, 4, 2, 3]
N = sum(LENGTHS)
L = 3

CASES: dict[str, dict[str, object]] = {
    "state": {},
    "observed": {"state_support": "observed"},
    "bare": {"use_start": False, "use_stop": False},
    "observed, no start": {"state_support": "observed", "use_start": False, "n_edge": 4},
    "edges": {"n_edge": 4, "use_stop": False},
    "all arcs": {"n_edge": 2, "arc_support": "all", "mask": True},
    "columns": {"columns": 2, "mask": True},
    "factors": {"factors": 2},
    "node factors": {"factors": 2, "on_edges": False},
    "everything": {
        "state_support": "observed",
        "n_edge": 4,
        "columns": 2,
        "factors": 2,
        "mask": True,
    },
}


@dataclass(frozen=True)
class Case:
    """A small corpus, a layout for it, weights, and labels that obey the transition_mask."""

    layout: Layout
    attributes: Attributes
    labels: I32
    weights: F64
    transition_mask: Bool | None
    factors: RandomFactors | None

    def encode(self) -> EncodedCorpus:
        return EncodedCorpus.build(self.layout, self.attributes, self.factors)

    def objective(self, term: Term, sigma2: float = INF, **options: object) -> Objective:
        return Objective(
            self.layout,
            [(self.encode(), term)],
            sigma2,
            transition_mask=self.transition_mask,
            **options,
        )

    def potentials(self, weights: F64 | None = None) -> list[Potentials]:
        weights = self.weights if weights is None else weights
        return dense_potentials(
            self.layout, weights, self.attributes, self.transition_mask, self.factors
        )

    def sentences(self, array: np.ndarray) -> list[np.ndarray]:
        return np.split(array, self.attributes.offsets[1:-1])


def case(name: str, seed: int = 0, lengths: list[int] = LENGTHS) -> Case:
    options = dict(CASES[name])
    rng = np.random.default_rng([seed, *map(ord, name)])
    n_edge, columns = int(options.pop("n_edge", 0)), int(options.pop("columns", 0))
    masked, n_factors = options.pop("mask", False), int(options.pop("factors", 0))
    on_edges = bool(options.pop("on_edges", True))
    total = sum(lengths)
    attributes = random_attributes(rng, lengths, n_edge=n_edge, columns=columns)
    labels = rng.integers(0, L, total).astype(np.int32)
    transition_mask = None
    if masked:
        labels[(previous_of(attributes, labels) == 0) & (labels == 2)] = 1
        transition_mask = rng.random((L + 1, L)) < 0.3
        transition_mask[previous_of(attributes, labels), labels] = True
        transition_mask[0, 2] = False  # never in the labels
    sizes = {"n_node": 6, "n_edge": n_edge, "n_factors": n_factors}
    layout = build_layout(attributes, labels, L, **sizes, **options)
    factors = None
    if n_factors:
        factors = RandomFactors(
            rng.normal(size=(total, L, n_factors)),
            rng.normal(size=(total, L, L, n_factors)),
            on_edges,
        )
    return Case(layout, attributes, labels, rng.normal(size=layout.size), transition_mask, factors)


def previous_of(attributes: Attributes, labels: I32) -> I32:
    previous = np.roll(labels, 1)
    previous[attributes.offsets[:-1]] = L
    return previous


def evaluate(objective: Objective, weights: F64) -> tuple[float, F64]:
    gradient = np.full_like(weights, np.nan)
    return objective.value_and_gradient(weights, gradient), gradient


# -- layout ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_layout_has_a_place_for_every_weight(name: str) -> None:
    layout = case(name).layout
    at = places(layout)
    tables = [at.state, at.column, at.arc, at.stop, [], at.edge, at.factors]
    assert np.diff(layout.bounds).tolist() == [len(t) for t in tables]
    assert layout.size == sum(map(len, tables))


@pytest.mark.parametrize("name", CASES)
def test_layout_round_trip(name: str) -> None:
    layout = case(name).layout
    flat = np.random.default_rng(1).normal(size=layout.size)
    out = np.full(layout.size, np.nan)
    tables, gradient = Tables.unpack(layout, flat), Tables.gradient(layout, out)
    for field in ("table", "lists", "columns", "w", "e", "arc_table", "arc_lists", "factors"):
        assert not getattr(gradient, field).any()
        getattr(gradient, field)[:] = getattr(tables, field)
    gradient.pack(out)
    np.testing.assert_array_equal(out, flat)
    assert tables.w.shape == (L + 1, L)
    if not layout.use_start:
        assert not tables.w[L].any()
    if not layout.use_stop:
        assert not tables.e.any()


def test_observed_support_is_what_the_labels_show() -> None:
    for seed in range(20):
        c = case("observed, no start", seed)
        a, y = c.attributes, c.labels.copy()
        y[::4] = -1  # tokens without a label show nothing
        layout = build_layout(a, y, L, n_node=6, n_edge=4, state_support="observed")
        pairs = {(i, int(y[n])) for n in range(N) for i in a.node[:, n] if i >= 0 and y[n] >= 0}
        assert set(places(layout).state) == pairs
        arcs = set()
        for n in range(N):
            first = n in a.offsets[:-1]
            before = L if first else y[n - 1]
            if y[n] >= 0 and before >= 0:
                arcs |= {(i, int(before), int(y[n])) for i in a.edge[:, n] if i >= 0}
        assert set(places(layout).edge) == arcs
        assert list(places(layout).edge) == sorted(places(layout).edge)


def test_too_many_arc_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    c = case("all arcs")
    monkeypatch.setattr(layout_module, "MAX_ARC_WEIGHTS", 2 * (L + 1) * L - 1)
    with pytest.raises(UserError, match="arc_support=all needs 24 weights"):
        build_layout(c.attributes, c.labels, L, n_node=6, n_edge=2, arc_support="all")
    monkeypatch.setattr(layout_module, "MAX_ARC_WEIGHTS", 2 * (L + 1) * L)
    build_layout(c.attributes, c.labels, L, n_node=6, n_edge=2, arc_support="all")


# -- scores and their transpose ------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_scores(name: str) -> None:
    for seed in range(5):
        c = case(name, seed)
        probe = Probe(np.zeros((N, L)), np.zeros((N, L, L)))
        evaluate(c.objective(probe), c.weights)
        (seen,) = probe.seen
        for t, truth in zip(c.sentences(np.arange(N)), c.potentials(), strict=True):
            same_up_to(seen.node[t], truth.node, 1e-13)
            edge = np.broadcast_to(seen.edge, (N, L, L))[t[1:]]
            same_up_to(edge, truth.edge[1:], 1e-13)


@pytest.mark.parametrize("name", CASES)
def test_gradient_is_the_transpose_of_the_scores(name: str) -> None:
    """d(omega . scores)/d(weight i) = omega . scores(unit vector i)."""
    rng = np.random.default_rng(2)
    c = replace(case(name), transition_mask=None)
    omega_node, omega_edge = rng.normal(size=(N, L)), rng.normal(size=(N, L, L))
    omega_edge[c.attributes.offsets[:-1]] = 0.0
    _, gradient = evaluate(c.objective(Probe(omega_node, omega_edge)), c.weights)
    for i, unit in enumerate(np.eye(c.layout.size)):
        node = np.concatenate([p.node for p in c.potentials(unit)])
        edge = np.concatenate([p.edge for p in c.potentials(unit)])
        expected = (omega_node * node).sum() + (omega_edge * edge).sum()
        assert gradient[i] == pytest.approx(expected, abs=1e-12), i


def test_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cut into batches does not matter, with shared and with per-position transitions."""
    for name in ("observed", "everything"):
        lengths = LENGTHS * 5
        c = case(name, 3, lengths)
        term = HardLabels(c.labels)
        value, gradient = evaluate(c.objective(term, 2.0), c.weights)
        for size in (1, 10, 33):
            monkeypatch.setattr("sslbench.crf.objective.SHARED_BATCH", size)
            monkeypatch.setattr("sslbench.crf.objective.VARYING_BATCH", size)
            assert len(c.encode().batches) > 1
            again, other = evaluate(c.objective(term, 2.0), c.weights)
            assert again == pytest.approx(value, rel=1e-14)
            same_up_to(other, gradient, 1e-12)
        monkeypatch.undo()


def test_slots_that_threads_may_split_share_no_attribute() -> None:
    rng = np.random.default_rng(3)
    split = 0
    for _ in range(200):
        starts = rng.integers(-30, 30, int(rng.integers(0, 7)))
        codes = np.array([rng.integers(a, a + rng.integers(1, 30), 8) for a in starts], np.int32)
        codes = codes.reshape(-1, 8)
        codes[rng.random(codes.shape) < 0.2] = -1
        order, borders = slot_groups(codes)
        used = [set(row[row != -1].tolist()) for row in codes]
        assert sorted(order) == [s for s in range(len(codes)) if used[s]]
        groups = [order[a:b] for a, b in pairwise(borders)]
        assert sum(map(len, groups)) == len(order)
        owned = [set().union(*(used[s] for s in group)) for group in groups]
        assert sum(map(len, owned)) == len(set().union(*owned))
        split += len(groups) > 1
    assert split > 50


# -- terms ---------------------------------------------------------------------------------------


def random_rows(rng: np.random.Generator, n: int) -> F64:
    rows = rng.exponential(size=(n, L))
    rows[rng.random((n, L)) < 0.2] = 0.0
    rows[rows.sum(axis=1) == 0] = 1.0
    return rows / rows.sum(axis=1, keepdims=True)


def hard(c: Case, rng: np.random.Generator) -> Term:
    return HardLabels(c.labels, rng.choice([0.0, 0.5, 1.0, 3.0], len(LENGTHS)))


def soft_arcs(c: Case, rng: np.random.Generator) -> Term:
    """The marginals of another chain."""
    other = [Enumeration.of(p) for p in c.potentials(rng.normal(size=c.layout.size))]
    node, edge = np.concatenate([e.node for e in other]), np.concatenate([e.edge for e in other])
    return SoftTargets(node, edge, rng.uniform(0, 2, len(LENGTHS)))


def soft_tokens(c: Case, rng: np.random.Generator) -> Term:
    """Independent targets; where transitions are forbidden, the labels themselves."""
    rows = np.eye(L)[c.labels] if c.transition_mask is not None else random_rows(rng, N)
    return SoftTargets(rows, None, rng.uniform(0, 2, len(LENGTHS)))


def partial(c: Case, rng: np.random.Generator) -> Term:
    allowed = rng.random((N, L)) < 0.5
    allowed[np.arange(N), c.labels] = True
    return PartialLabels(allowed, None, rng.uniform(0, 2, len(LENGTHS)))


def evidence(c: Case, rng: np.random.Generator) -> Term:
    log_psi = rng.normal(size=(N, L))
    log_psi[rng.random((N, L)) < 0.2] = -INF
    log_psi[np.arange(N), c.labels] = 0.3
    return PartialLabels(np.ones((N, L), bool), log_psi, rng.uniform(0, 2, len(LENGTHS)))


def value_of(term: Term, c: Case, weights: F64) -> float:
    """The term by enumeration."""
    factors = np.ones(len(LENGTHS)) if term.weights is None else term.weights
    total = 0.0
    for i, p in enumerate(c.potentials(weights)):
        truth, t = Enumeration.of(p), c.sentences(np.arange(N))[i]
        rows = np.arange(len(t))
        if isinstance(term, HardLabels):
            value = p.score(term.labels[t]) - truth.log_z
        elif isinstance(term, SoftTargets):
            q = term.node[t]
            arcs = np.zeros((len(t), L, L))
            arcs[1:] = q[:-1, :, None] * q[1:, None, :] if term.edge is None else term.edge[t][1:]
            used = arcs > 0
            value = (q * np.where(q > 0, p.node, 0)).sum() - truth.log_z
            value += (arcs[used] * p.edge[used]).sum()
        else:
            bonus = np.where(term.allowed[t], 0.0, -INF)
            if term.log_evidence is not None:
                bonus = bonus + term.log_evidence[t]
            inside = truth.scores + bonus[rows, truth.paths].sum(axis=1)
            value = np.log(np.exp(inside - truth.log_z).sum())
        total += factors[i] * value
    return total


TERMS: list[Callable[[Case, np.random.Generator], Term]] = [
    hard,
    soft_arcs,
    soft_tokens,
    partial,
    evidence,
]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("make", TERMS, ids=lambda f: f.__name__)
def test_objective_and_gradient(make: Callable[..., Term], name: str) -> None:
    rng = np.random.default_rng(4)
    c = case(name, 5)
    term = make(c, rng)
    objective = c.objective(term, 1.7, sigma2_factors=0.6)
    value, gradient = evaluate(objective, c.weights)
    cut = c.layout.size - c.layout.n_factors
    prior = (c.weights[:cut] ** 2).sum() / 3.4 + (c.weights[cut:] ** 2).sum() / 1.2
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


def select(c: Case, keep: np.ndarray) -> tuple[Case, np.ndarray]:
    """The sentences `keep` in that order, and their tokens."""
    tokens = np.concatenate([c.sentences(np.arange(N))[i] for i in keep])
    a = c.attributes
    dense = None if a.dense is None else a.dense[tokens]
    offsets = np.cumsum([0, *np.diff(a.offsets)[keep]])
    attributes = Attributes(
        np.ascontiguousarray(a.node[:, tokens]),
        np.ascontiguousarray(a.edge[:, tokens]),
        dense,
        offsets,
    )
    factors = c.factors
    if factors is not None:
        factors = RandomFactors(factors.h_node[tokens], factors.h_edge[tokens], factors.on_edges)
    return replace(c, attributes=attributes, labels=c.labels[tokens], factors=factors), tokens


def restrict(term: Term, tokens: np.ndarray, weights: F64) -> Term:
    parts = {k: None if v is None else v[tokens] for k, v in vars(term).items() if k != "weights"}
    return replace(term, **parts, weights=weights)


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
    labels[4:6] = 0, 2  # a forbidden arc inside sentence 2
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
            arc_support=CASES[name].get("arc_support", "observed"),
            use_start=layout.use_start,
            use_stop=layout.use_stop,
        )
    before, after = places(c.layout), places(layout)
    target = np.empty(c.layout.size, int)
    for (attribute, b), i in before.state.items():
        target[i] = after.state[attribute, old_of[b]]
    for (column, b), i in before.column.items():
        target[i] = after.column[column, old_of[b]]
    for (a, b), i in before.arc.items():
        target[i] = after.arc[old_of[a], old_of[b]]
    for b, i in before.stop.items():
        target[i] = after.stop[old_of[b]]
    for (attribute, a, b), i in before.edge.items():
        target[i] = after.edge[attribute, old_of[a], old_of[b]]
    for k, i in before.factors.items():
        target[i] = after.factors[k]
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


# -- docs/specs/crf_engine.md, oracle 13: one weight -----------------------------------------------


def one_weight() -> tuple[Layout, EncodedCorpus, HardLabels]:
    """Ten one-token sentences, eight with label 1; only (attribute, label 1) has a weight."""
    layout = Layout(
        2,
        1,
        0,
        0,
        np.array([0, 1]),
        np.array([1], np.int32),
        np.zeros(1, np.int64),
        np.zeros(0, np.int32),
        use_start=False,
        use_stop=False,
    )
    attributes = Attributes(
        np.zeros((1, 10), np.int32), np.empty((0, 10), np.int32), None, np.arange(11)
    )
    labels = np.array([1] * 8 + [0] * 2, np.int32)
    return layout, EncodedCorpus.build(layout, attributes), HardLabels(labels)


@pytest.mark.parametrize(
    ("sigma2", "c1", "weight", "value"),
    [
        (INF, 0.0, 1.3862943611, None),
        (INF, 1.0, 0.8472978604, -6.1086430205),
        (1.0, 0.0, 0.8968933436, -5.6165239963),
        (INF, 3.0, 0.0, 10 * np.log(0.5)),
        (INF, 3.5, 0.0, 10 * np.log(0.5)),
    ],
)
def test_one_dimensional_logistic(
    sigma2: float, c1: float, weight: float, value: float | None
) -> None:
    layout, data, labels = one_weight()
    objective = Objective(layout, [(data, labels)], sigma2)
    found = lbfgs.minimize(objective.scaled_loss, np.zeros(layout.size), STRICT, l1=c1 / 10)
    assert found.weights[0] == pytest.approx(weight, abs=1e-9)
    assert not found.weights[1:].any()  # transitions never fire
    if weight == 0:
        assert found.weights[0] == 0.0
    if value is not None:
        assert -10 * found.value == pytest.approx(value, abs=1e-9)
    # from the other side, too: an L1 optimum of 0 is reached exactly
    found = lbfgs.minimize(objective.scaled_loss, np.full(layout.size, 2.0), STRICT, l1=c1 / 10)
    if c1 > 0 or sigma2 < INF:
        assert found.weights[0] == pytest.approx(weight, abs=1e-9)
        assert (weight == 0) == (found.weights[0] == 0)


# -- fits ------------------------------------------------------------------------------------------


def only(objective: Objective, coordinates: list[int]) -> lbfgs.Function:
    """The loss (not per token) as a function of some weights; the others are 0."""
    full = np.zeros(objective.layout.size)

    def function(x: F64, gradient: F64) -> float:
        full[coordinates] = x
        slope = np.empty_like(full)
        value = objective.value_and_gradient(full, slope)
        gradient[:] = -slope[coordinates]
        return -value

    return function


def test_crfsuite_issue_3() -> None:
    """x -> a, y -> b; weights (x, a), (y, b) and a -> b; penalty |w|^2 = |w|^2 / (2 sigma^2)."""
    attributes = Attributes(
        np.array([[0, 1]], np.int32), np.empty((0, 2), np.int32), None, np.array([0, 2])
    )
    labels = np.array([0, 1], np.int32)
    layout = build_layout(
        attributes,
        labels,
        2,
        n_node=2,
        n_edge=0,
        state_support="observed",
        use_start=False,
        use_stop=False,
    )
    objective = Objective(
        layout, [(EncodedCorpus.build(layout, attributes), HardLabels(labels))], sigma2=0.5
    )
    at = places(layout)
    function = only(objective, [at.state[0, 0], at.state[1, 1], at.arc[0, 1]])
    found = lbfgs.minimize(function, np.zeros(3), STRICT)
    assert found.value == pytest.approx(1.1665925, abs=1e-7)
    same_up_to(found.weights, [0.202242, 0.202242, 0.313555], 1e-6)


@pytest.mark.parametrize("c2", [0.1, 1.0])
def test_optimum_of_python_crfsuite(c2: float, tmp_path: Path) -> None:
    """CRFsuite penalizes c2 |w|^2 (no 1/2): sigma^2 = 1 / (2 c2).  It has no START or stop."""
    pycrfsuite = pytest.importorskip("pycrfsuite")
    c = case("bare", 16, [3, 1, 2, 4, 5, 2, 3, 6])
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params(
        {
            "c1": 0.0,
            "c2": c2,
            "epsilon": 1e-10,
            "delta": 0.0,
            "max_iterations": 2000,
            "feature.possible_states": True,
            "feature.possible_transitions": True,
        }
    )
    for tokens in np.split(np.arange(len(c.labels)), c.attributes.offsets[1:-1]):
        items = [[f"a{i}" for i in c.attributes.node[:, n] if i >= 0] for n in tokens]
        trainer.append(items, [f"L{y}" for y in c.labels[tokens]])
    trainer.train(str(tmp_path / "model"))
    theirs = trainer.logparser.last_iteration["loss"]
    objective = c.objective(HardLabels(c.labels), 1 / (2 * c2))
    found = lbfgs.minimize(objective.scaled_loss, np.zeros(c.layout.size), STRICT)
    ours = found.value * objective.n_tokens
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert ours <= theirs + 1e-6


# -- the optimizer ---------------------------------------------------------------------------------


def logistic(rng: np.random.Generator, n: int, m: int = 60) -> lbfgs.Function:
    """A strictly convex function of float64[n] with known gradient."""
    X, y = rng.normal(size=(m, n)) * rng.exponential(size=n), rng.choice([-1.0, 1.0], m)

    def function(x: F64, gradient: F64) -> float:
        margin = y * (X @ x)
        gradient[:] = -(X.T @ (y / (1 + np.exp(margin)))) / m + 0.01 * x
        return float(np.logaddexp(0, -margin).mean() + 0.005 * x @ x)

    return function


def crf_loss(name: str, seed: int) -> tuple[lbfgs.Function, int]:
    c = case(name, seed)
    return c.objective(HardLabels(c.labels), 2.0).scaled_loss, c.layout.size


def scipy_optimum(function: lbfgs.Function, n: int, nonnegative: np.ndarray | None = None) -> F64:
    bounds = [(None, None)] * n
    for i in [] if nonnegative is None else nonnegative:
        bounds[i] = (0, None)

    def both(x: F64) -> tuple[float, F64]:
        gradient = np.empty_like(x)
        return function(x, gradient), gradient

    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 0.0, "gtol": 1e-9, "maxcor": 20}
    return scipy_minimize(
        both, np.zeros(n), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x


def value_at(function: lbfgs.Function, x: F64) -> float:
    return function(x, np.empty_like(x))


def problems() -> list[tuple[lbfgs.Function, int]]:
    rng = np.random.default_rng(17)
    return [
        *((logistic(rng, n), n) for n in (1, 2, 10, 30)),
        crf_loss("observed", 1),
        crf_loss("edges", 2),
        crf_loss("columns", 3),
    ]


@pytest.mark.parametrize("i", range(7))
def test_optimum_without_constraints(i: int) -> None:
    function, n = problems()[i]
    found = lbfgs.minimize(function, np.full(n, 0.5), STRICT)
    theirs = scipy_optimum(function, n)
    gradient = np.empty(n)
    function(found.weights, gradient)
    assert abs(gradient).max() <= 1e-8
    assert found.gradient == pytest.approx(abs(gradient).max(), abs=1e-15)
    assert found.value == pytest.approx(value_at(function, theirs), rel=1e-12)
    same_up_to(found.weights, theirs, 1e-5)
    assert found.converged
    assert found.history[-1] == found.value
    assert (np.diff(found.history) <= 1e-14).all()


@pytest.mark.parametrize("i", range(1, 7))
def test_optimum_with_bounds(i: int) -> None:
    function, n = problems()[i]
    nonnegative = np.arange(0, n, 2)
    found = lbfgs.minimize(function, np.full(n, 0.5), STRICT, nonnegative=nonnegative)
    theirs = scipy_optimum(function, n, nonnegative)
    assert (found.weights[nonnegative] >= 0).all()
    assert found.value == pytest.approx(value_at(function, theirs), rel=1e-11)
    gradient = np.empty(n)
    function(found.weights, gradient)
    at_bound = np.zeros(n, bool)
    at_bound[nonnegative] = found.weights[nonnegative] == 0
    assert at_bound.any() or n == 2
    assert (gradient[at_bound] >= -1e-8).all()
    assert abs(gradient[~at_bound]).max(initial=0) <= 1e-8
    same_up_to(found.weights, theirs, 1e-5)


@pytest.mark.parametrize("i", range(7))
@pytest.mark.parametrize("c1", [1e-3, 0.02, 0.1])
def test_optimum_with_l1(i: int, c1: float) -> None:
    """Against x = p - n with p, n >= 0, which is smooth."""
    function, n = problems()[i]

    def split(pn: F64, gradient: F64) -> float:
        own = np.empty(n)
        value = function(pn[:n] - pn[n:], own)
        gradient[:] = np.concatenate([own, -own]) + c1
        return value + c1 * float(pn.sum())

    pn = scipy_optimum(split, 2 * n, np.arange(2 * n))
    theirs = pn[:n] - pn[n:]
    found = lbfgs.minimize(function, np.zeros(n), STRICT, l1=c1)
    value = value_at(function, theirs) + c1 * float(abs(theirs).sum())
    assert found.value == pytest.approx(value, rel=1e-10)
    gradient = np.empty(n)
    function(found.weights, gradient)
    zero = found.weights == 0
    assert (abs(gradient[zero]) <= c1 + 1e-8).all()
    assert abs(gradient[~zero] + c1 * np.sign(found.weights[~zero])).max(initial=0) <= 1e-8
    clear = abs(gradient) < 0.99 * c1  # strictly inside: the optimum is 0, and 0 exactly
    assert (found.weights[clear] == 0).all()
    same_up_to(found.weights, theirs, 1e-5)


def test_l1_zeros_occur() -> None:
    function, n = problems()[3]
    found = lbfgs.minimize(function, np.zeros(n), STRICT, l1=0.02)
    assert 0 < (found.weights == 0).sum() < n


def test_why_it_stopped() -> None:
    function, n = problems()[3]
    start = np.full(n, 3.0)
    seen: list[tuple[int, float, float]] = []
    short = lbfgs.minimize(
        function,
        start,
        Options(max_iterations=3, gtol=0.0),
        callback=lambda *args: seen.append(args),
    )
    assert (short.status, short.iterations, short.converged) == ("max_iterations", 3, False)
    assert [i for i, _, _ in seen] == [0, 1, 2, 3]
    assert [v for _, v, _ in seen] == short.history
    assert short.evaluations >= 4
    flat = lbfgs.minimize(function, start, Options(gtol=0.0, ftol=0.5))
    assert (flat.status, flat.converged) == ("decrease", True)
    assert lbfgs.minimize(function, start, Options(gtol=1e9)).iterations == 0
    same_up_to(start, 3.0, 0)

    def cliff(x: F64, gradient: F64) -> float:
        gradient[:] = -1.0
        return float(abs(x).sum())  # the gradient lies: no step helps

    lost = lbfgs.minimize(cliff, np.zeros(2), Options())
    assert (lost.status, lost.converged) == ("line_search", False)


def test_steps_beyond_the_domain_are_shortened() -> None:
    def function(x: F64, gradient: F64) -> float:
        if x[0] <= 0:
            gradient[:] = np.nan
            return INF
        gradient[:] = 1 - 1 / x
        return float(x[0] - np.log(x[0]))

    found = lbfgs.minimize(function, np.array([50.0]), STRICT)
    assert found.weights[0] == pytest.approx(1.0, abs=1e-8)


# -- training a CRF, and attributes that are copies of each other ----------------------------------

WORDS = ["a", "b", "c", "d", "e", "f", "g", "h"]


def text(rng: np.random.Generator, lengths: list[int], words: Vocabulary) -> Corpus:
    codes = rng.integers(0, len(words), sum(lengths)).astype(np.int32)
    return Corpus({"word": Column(words, codes)}, np.cumsum([0, *lengths]))


def tagger(
    seed: int,
    state_support: str,
    templates: tuple[str, ...] = ("word[0]", "word[-1]", "word[1]"),
) -> tuple[ChainCRF, Corpus, I32]:
    """A CRF over text in which many attributes occur once, in the same place as others."""
    rng = np.random.default_rng(seed)
    words = Vocabulary([f"{w}{i}" for w in WORDS for i in range(3)])
    corpus = text(rng, [1, 2, 5, 3, 4, 6, 2], words)
    labels = rng.integers(0, L, corpus.n_tokens).astype(np.int32)
    index = TemplateFeaturizer(templates).index(corpus)
    layout = build_layout(
        index.encode(corpus),
        labels,
        L,
        n_node=index.n_node,
        n_edge=index.n_edge,
        state_support=state_support,
    )
    return ChainCRF(("x", "y", "z"), index, layout, np.zeros(layout.size)), corpus, labels


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
        copies=deduplication.copies_per_weight(),
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
    a = lbfgs.minimize(slight(full), start, few)
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
