"""Figures of graphs: docs/specs/graph.md, oracle G13, and graphs counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from sslbench.engine.graph.diagnostics import diagnostics, label_accuracy, purity, reach
from support.propagation_oracle import LABELED, graph, random_graph, rows_at, six


def test_g13() -> None:
    result = diagnostics(six(), LABELED)
    assert result["frac_unreachable"] == 0.5
    assert result["mean_hops"] == 1
    assert result["max_hops"] == 1
    assert result["mean_inverse_weight"] == pytest.approx(1.1805555556, abs=6e-11)
    assert result["mean_complement"] == pytest.approx((0.1 + 0.2) / 2)
    expected = {
        "vertices": 6,
        "edges": 4,
        "labeled": 2,
        "components": 2,
        "largest_component": pytest.approx(4 / 6),
        "degree_mean": pytest.approx(8 / 6),
        "degree_median": 1.0,
        "degree_max": 2,
        "isolated": 0.0,
        "labeled_edges": 0.0,
        "mean_weight": pytest.approx((0.9 + 0.5 + 0.8 + 0.7) / 4),
    }
    assert {name: result[name] for name in expected} == expected


def test_a_star_has_a_hub() -> None:
    star = graph(7, [(3, u, 0.5) for u in (0, 1, 2, 4)] + [(0, 1, 0.25)])
    labeled = np.array([True, True, False, False, False, False, False])
    result = diagnostics(star, labeled)
    assert result["degree_max"] == 4
    assert result["hub_edges"] == pytest.approx(4 / 5)  # all but the edge between the labeled ones
    assert result["labeled_edges"] == pytest.approx(1 / 5)
    assert result["isolated"] == pytest.approx(2 / 7)
    assert result["components"] == 3
    assert result["frac_unreachable"] == pytest.approx(2 / 5)
    assert result["mean_hops"] == pytest.approx((1 + 2 + 2) / 3)
    assert result["max_hops"] == 2


def test_path_lengths_are_minimal_under_each_measure() -> None:
    """The path with fewer edges is longer by weight; an edge of weight 1 has complement 0."""
    W = graph(4, [(0, 1, 0.1), (0, 2, 1.0), (2, 1, 0.8), (1, 3, 0.5)])
    result = reach(W, np.array([True, False, False, False]))
    assert result["mean_hops"] == pytest.approx((1 + 1 + 2) / 3)
    assert result["mean_inverse_weight"] == pytest.approx((2.25 + 1 + 4.25) / 3)
    assert result["mean_complement"] == pytest.approx((0.2 + 0.0 + 0.7) / 3)


def test_hops_are_those_of_a_search_in_rings() -> None:
    W, labeled = random_graph(5, 200, 0.008), np.arange(200) % 37 == 0
    far = np.where(labeled, 0.0, np.inf)
    for hops in range(1, 200):
        far[(W @ np.isfinite(far) > 0) & np.isinf(far)] = hops
    result, others = reach(W, labeled), far[~labeled]
    assert 0 < np.isinf(others).mean() == result["frac_unreachable"]
    assert result["mean_hops"] == pytest.approx(others[np.isfinite(others)].mean())
    assert result["max_hops"] == others[np.isfinite(others)].max() > 3


def test_figures_without_a_value_are_none() -> None:
    nothing = diagnostics(six(), np.zeros(6, dtype=np.bool_))
    assert nothing["frac_unreachable"] == 1
    assert nothing["mean_hops"] is nothing["max_hops"] is nothing["mean_inverse_weight"] is None
    everything = diagnostics(six(), np.ones(6, dtype=np.bool_))
    assert everything["frac_unreachable"] is None
    assert everything["labeled_edges"] == 1
    bare = diagnostics(csr_array((2, 2)), np.array([True, False]))
    assert (bare["isolated"], bare["mean_weight"], bare["hub_edges"]) == (1, None, None)
    empty = diagnostics(csr_array((0, 0)), np.zeros(0, dtype=np.bool_))
    assert (empty["vertices"], empty["components"], empty["isolated"]) == (0, 0, None)


def test_purity() -> None:
    """Vertex 2 has no gold labels, so its two edges are left out."""
    gold = rows_at({0: (0.8, 0.2), 1: (0.4, 0.6), 3: (0, 1), 4: (1, 0), 5: (1, 0)})
    result = purity(six(), gold, np.arange(6) != 2)
    assert result["gold_edges"] == 2
    assert result["edge_purity"] == 0.5
    assert result["weighted_purity"] == pytest.approx(0.7 / 1.6)
    assert result["agreement"] == pytest.approx((0.8 * 0.4 + 0.2 * 0.6 + 1) / 2)
    assert result["roughness"] == pytest.approx(0.9 * 2 * 0.4**2)
    nothing = purity(six(), gold, np.zeros(6, dtype=np.bool_))
    assert (nothing["gold_edges"], nothing["edge_purity"], nothing["weighted_purity"]) == (
        0,
        None,
        None,
    )


def test_accuracy_of_propagated_labels() -> None:
    q = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    labeled = np.array([True, False, False])
    vertex_of = np.array([0, 0, 1, 2, 2, -1, 1], np.int32)
    gold = np.array([0, 1, 1, 0, 1, 0, -1], np.int32)
    result = label_accuracy(q, labeled, vertex_of, gold)  # right: tokens 0, 2, 3 of the first five
    assert result == {"propagated_accuracy": 3 / 5, "propagated_accuracy_new": 2 / 3}
    nothing = label_accuracy(q, labeled, vertex_of[5:], gold[5:])
    assert set(nothing.values()) == {None}
