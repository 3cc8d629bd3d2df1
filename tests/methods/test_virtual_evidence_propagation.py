"""Unnormalized propagation: docs/specs/graph.md, oracles G11 and G12; L-BFGS-B; invariances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.graph.propagation.solver import EdgeCount
from sslbench_methods.virtual_evidence.kernels import shared_threshold
from sslbench_methods.virtual_evidence.propagation import Penalty, propagate_unnormalized
from support.propagation_oracle import (
    LABELED,
    distributions,
    penalized,
    random_graph,
    rows_at,
    six,
    unnormalized_objective,
)

R = rows_at({0: (1, 0, 0), 3: (0, 0.25, 0.75)})
MU, LAM = 0.5, 0.3
PENALTIES: list[Penalty] = ["l2sq", "l1sq", "l1"]
DIGITS = {"rtol": 0, "atol": 6e-11}
PRINTED: dict[Penalty, tuple[list[list[float]], float]] = {
    "l2sq": (
        [
            [0.6015026561, 0.0132069380, 0.0396208141],
            [0.3592287148, 0.0322836263, 0.0968508790],
            [0.1386728495, 0.0859918410, 0.2579755231],
            [0.0528277522, 0.1518064156, 0.4554192469],
        ],
        0.6439813048,
    ),
    "l1sq": (
        [
            [0.5903415387, 0, 0],
            [0.3319459834, 0, 0.0003132305],
            [0.0661895123, 0, 0.2002325736],
            [0, 0.0583204126, 0.4250904453],
        ],
        0.7012605242,
    ),
    "l1": (
        [
            [0.5702702703, 0, 0],
            [0.2594594595, 0, 0],
            [0, 0, 0.1235294118],
            [0, 0.0555555556, 0.3882352941],
        ],
        0.9592218689,
    ),
}


@pytest.mark.parametrize("penalty", PENALTIES)
def test_g11_g12_each_edge_twice(penalty: Penalty) -> None:
    rows, value = PRINTED[penalty]
    result = propagate_unnormalized(six(), R, LABELED, MU, LAM, penalty, tolerance=1e-12)
    np.testing.assert_allclose(result[:4], rows, **DIGITS)
    np.testing.assert_array_equal(result[4:], 0)  # no path to a label: exactly no mass
    np.testing.assert_array_equal(result[:4] == 0, np.array(rows) == 0)
    objective = unnormalized_objective(six(), result, R, LABELED, MU, LAM, penalty)
    assert objective == pytest.approx(value, abs=6e-11)


def test_g11_each_edge_once() -> None:
    result = propagate_unnormalized(six(), R, LABELED, MU, LAM, edge_count="once")
    np.testing.assert_allclose(result[0], [0.6529342709, 0.0054461617, 0.0163384850], **DIGITS)
    np.testing.assert_allclose(result[3], [0.0217846467, 0.1646858775, 0.4940576325], **DIGITS)


def test_closed_form_of_one_vertex() -> None:
    b = np.array([0.8, 0.3, 0.1])
    np.testing.assert_allclose(
        np.maximum(b - shared_threshold(b, 0.5), 0), [0.525, 0.025, 0], atol=1e-15
    )


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.1, 0.25, 0.5, 0.9, 1.7]), min_size=1, max_size=9),
    st.sampled_from([0.01, 0.3, 1.0, 20.0]),
)
def test_threshold_equals_that_of_sorted_entries(values: list[float], ratio: float) -> None:
    b = np.array(values)
    result = shared_threshold(b, ratio)
    ordered = np.sort(b)[::-1]
    sums = ratio * np.cumsum(ordered) / (1 + ratio * np.arange(1, len(b) + 1))
    fitting = [t for a, t in enumerate(sums) if ordered[a] > t and t >= (*ordered, 0)[a + 1]]
    assert result == pytest.approx(fitting[0] if fitting else 0.0, abs=1e-15)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("count", ["once", "twice"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_optimum_equals_lbfgsb_from_random_starts(
    penalty: Penalty, count: EdgeCount, seed: int
) -> None:
    """Two random starts, graphs with isolated vertices and components without labels."""
    V, K = 14, 4
    W, labeled = random_graph(seed, V, 0.12), np.arange(V) % 5 == seed % 5
    r = np.where(labeled[:, None], distributions(seed, V, K), np.nan)
    result = propagate_unnormalized(W, r, labeled, 0.4, 0.2, penalty, count, tolerance=1e-12)
    value = unnormalized_objective(W, result, r, labeled, 0.4, 0.2, penalty, count)
    known, c = np.where(labeled[:, None], r, 0.0), 0.4 * (1 + (count == "twice"))
    for start in range(2):
        rows = np.random.default_rng(start).random((V, K))
        other, lowest = penalized(W, known, labeled, c, 0.2, penalty, rows)
        np.testing.assert_allclose(result, other, rtol=0, atol=2e-6)
        assert value == pytest.approx(lowest, abs=1e-11)
        assert value <= lowest + 1e-13


@pytest.mark.parametrize("penalty", PENALTIES)
def test_vertices_without_a_path_to_a_label_have_no_mass(penalty: Penalty) -> None:
    W = csr_array(np.pad(six().toarray(), (0, 2)))
    labeled = np.append(LABELED, [False, True])
    r = np.vstack([R, [[0, 0, 0], [0, 0.6, 0.4]]])
    result = propagate_unnormalized(W, r, labeled, MU, LAM, penalty)
    np.testing.assert_array_equal(result[4:7], 0)
    assert result[7, 1] > result[7, 2] > 0  # a labeled vertex without edges keeps some of its own
    nothing = propagate_unnormalized(W, r, np.zeros(8, dtype=np.bool_), MU, LAM, penalty)
    np.testing.assert_array_equal(nothing, 0)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_permuted_vertices_and_labels(penalty: Penalty) -> None:
    W, labeled = random_graph(3, 40, 0.15), np.arange(40) % 4 == 0
    r, order = distributions(4, 40, 5), np.random.default_rng(6).permutation(40)
    labels = np.array([3, 0, 4, 1, 2])
    result = propagate_unnormalized(W, r, labeled, MU, LAM, penalty, tolerance=1e-13)
    moved = propagate_unnormalized(
        W[order][:, order].tocsr(),
        r[order][:, labels],
        labeled[order],
        MU,
        LAM,
        penalty,
        tolerance=1e-13,
    )
    np.testing.assert_allclose(moved, result[order][:, labels], rtol=0, atol=1e-11)


def test_lam_must_be_positive() -> None:
    with pytest.raises(ValueError, match="lam must be positive"):
        propagate_unnormalized(six(), R, LABELED, MU, 0.0)


def test_too_few_sweeps_raise() -> None:
    with pytest.raises(ArithmeticError, match="after 2 sweeps"):
        propagate_unnormalized(six(), R, LABELED, MU, LAM, "l1sq", max_steps=2)


@pytest.mark.parametrize("penalty", ["l2sq", "l1sq"])
def test_results_are_independent_of_threads(penalty: Penalty) -> None:
    W, labeled = random_graph(1, 1200, 0.01), np.arange(1200) % 9 == 0
    r, results = distributions(3, 1200, 7), []
    for threads in (1, 2, 3):
        with using_threads(threads):
            results.append(propagate_unnormalized(W, r, labeled, MU, LAM, penalty))
    assert np.isfinite(results[0]).all()
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
