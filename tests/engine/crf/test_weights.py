"""Where weights sit; scores and gradients against sums written out weight by weight."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from sslbench.engine.crf import HardLabels
from sslbench.engine.crf.data import slot_groups
from sslbench.engine.crf.weights import layout as layout_module
from sslbench.engine.crf.weights.layout import build_layout
from sslbench.engine.crf.weights.tables import WeightTables
from sslbench.engine.errors import UserError
from support.crf_oracle import same_up_to
from support.objective_toys import CASES, LENGTHS, L, N, case, evaluate
from support.weights_oracle import Probe, places

# -- layout ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_layout_has_a_place_for_every_weight(name: str) -> None:
    layout = case(name).layout
    at = places(layout)
    tables = [at.state, at.column, at.transition, at.stop, [], at.edge, at.factors]
    assert np.diff(layout.bounds).tolist() == [len(t) for t in tables]
    assert layout.size == sum(map(len, tables))


@pytest.mark.parametrize("name", CASES)
def test_layout_round_trip(name: str) -> None:
    layout = case(name).layout
    flat = np.random.default_rng(1).normal(size=layout.size)
    out = np.full(layout.size, np.nan)
    tables, gradient = WeightTables.unpack(layout, flat), WeightTables.gradient(layout, out)
    for name in ("table", "lists", "columns", "transitions", "stop", "factors"):
        assert not getattr(gradient, name).any()
        getattr(gradient, name)[:] = getattr(tables, name)
    for name in ("table", "lists"):
        assert not getattr(gradient.edges, name).any()
        getattr(gradient.edges, name)[:] = getattr(tables.edges, name)
    gradient.pack(out)
    np.testing.assert_array_equal(out, flat)
    assert tables.transitions.shape == (L + 1, L)
    if not layout.use_start:
        assert not tables.transitions[L].any()
    if not layout.use_stop:
        assert not tables.stop.any()


def test_observed_support_is_what_the_labels_show() -> None:
    for seed in range(20):
        c = case("observed, no start", seed)
        a, y = c.attributes, c.labels.copy()
        y[::4] = -1  # tokens without a label show nothing
        layout = build_layout(a, y, L, n_node=6, n_edge=4, state_support="observed")
        pairs = {(i, int(y[n])) for n in range(N) for i in a.node[:, n] if i >= 0 and y[n] >= 0}
        assert set(places(layout).state) == pairs
        triples = set()
        for n in range(N):
            first = n in a.offsets[:-1]
            before = L if first else y[n - 1]
            if y[n] >= 0 and before >= 0:
                triples |= {(i, int(before), int(y[n])) for i in a.edge[:, n] if i >= 0}
        assert set(places(layout).edge) == triples
        assert list(places(layout).edge) == sorted(places(layout).edge)


def test_too_many_arc_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    c = case("all transitions")
    monkeypatch.setattr(layout_module, "MAX_EDGE_WEIGHTS", 2 * (L + 1) * L - 1)
    with pytest.raises(UserError, match="transition_support=all needs 24 weights"):
        build_layout(c.attributes, c.labels, L, n_node=6, n_edge=2, transition_support="all")
    monkeypatch.setattr(layout_module, "MAX_EDGE_WEIGHTS", 2 * (L + 1) * L)
    build_layout(c.attributes, c.labels, L, n_node=6, n_edge=2, transition_support="all")


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
    """d(slope . scores)/d(weight i) = slope . scores(unit vector i)."""
    rng = np.random.default_rng(2)
    c = replace(case(name), transition_mask=None)
    node_slope, edge_slope = rng.normal(size=(N, L)), rng.normal(size=(N, L, L))
    edge_slope[c.attributes.offsets[:-1]] = 0.0
    _, gradient = evaluate(c.objective(Probe(node_slope, edge_slope)), c.weights)
    for i, unit in enumerate(np.eye(c.layout.size)):
        node = np.concatenate([p.node for p in c.potentials(unit)])
        edge = np.concatenate([p.edge for p in c.potentials(unit)])
        expected = (node_slope * node).sum() + (edge_slope * edge).sum()
        assert gradient[i] == pytest.approx(expected, abs=1e-12), i


def test_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cut into batches does not matter, with shared and with per-position transitions."""
    for name in ("observed", "everything"):
        lengths = LENGTHS * 5
        c = case(name, 3, lengths)
        term = HardLabels(c.labels)
        value, gradient = evaluate(c.objective(term, 2.0), c.weights)
        for size in (1, 10, 33):
            for kind in ("SHARED_BATCH", "VARYING_BATCH", "LIVE_BATCH"):
                monkeypatch.setattr(f"sslbench.engine.crf.encoded_corpus.{kind}", size)
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
