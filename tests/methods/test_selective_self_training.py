"""Selective self-training: which tokens are selected, and its ends: nothing, and everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sslbench.testing.cases import FittedCase, method_case
from sslbench.testing.toys import toy_dataset
from sslbench_methods.selective_self_training import label_thresholds, surest

EXACT = {"ftol": 1e-9, "weight": 1.0, "rounds": 1}
METHOD = "selective_self_training"


def fitted(method: str, **params: Any) -> FittedCase:
    data = toy_dataset(train=40, test=40)
    return method_case(method, params, ()).fit(data, labeled=12)


def weights(case: FittedCase) -> Any:
    return case.own_tagger.weights


@pytest.mark.parametrize("threshold", [0.5, 0.8, 0.99])
def test_thresholds_of_labels_by_loops(threshold: float) -> None:
    """Zhang et al. (2021): equation 5, the denominator of equation 11, the map x / (2 - x)."""
    rng = np.random.default_rng(0)
    codes, p = rng.choice(4, 200, p=[0.6, 0.3, 0.1, 0.0]).astype(np.int32), rng.random(200)
    pairs = [*zip(codes, p, strict=True)]
    sigma = [sum(c == label and q >= threshold for c, q in pairs) for label in range(4)]
    below = sum(q < threshold for q in p)
    beta = [each / max(*sigma, below) for each in sigma]
    expected = [threshold * b / (2 - b) for b in beta]
    np.testing.assert_allclose(label_thresholds(codes, p, 4, threshold), expected, rtol=1e-15)


def test_all_labels_learned_alike_have_the_threshold() -> None:
    codes = np.array([0, 1, 0, 1], np.int32)
    np.testing.assert_array_equal(label_thresholds(codes, np.ones(4), 2, 0.9), [0.9, 0.9])
    np.testing.assert_array_equal(label_thresholds(codes, np.zeros(4), 2, 0.9), [0.0, 0.0])


def test_the_surest_share_and_those_equal_to_the_last_one() -> None:
    p = np.array([0.2, 0.9, 0.5, 0.5, 1.0])
    assert surest(p, 0.0).tolist() == [False] * 5
    assert surest(p, 0.4).tolist() == [False, True, False, False, True]
    assert surest(p, 0.6).tolist() == [False, True, True, True, True]
    assert surest(p, 1.0).all()
    order = np.random.default_rng(1).permutation(5)
    assert (surest(p[order], 0.6) == surest(p, 0.6)[order]).all()


def test_with_nothing_selected_it_is_supervised() -> None:
    plain = fitted("supervised", ftol=1e-9)
    nothing = fitted(METHOD, **EXACT, select="threshold", threshold=1 - 1e-12)
    (first,) = nothing.trained.run.trace["rounds"]
    assert first["selected"] < 0.05  # posteriors of 1, to rounding
    np.testing.assert_allclose(weights(nothing), weights(plain), atol=1e-3)


@pytest.mark.parametrize("select", ["threshold", "share"])
def test_with_everything_selected_it_is_self_training(select: str) -> None:
    """share: of one round, all tokens."""
    plain = fitted("self_training", **EXACT, share=0.0)
    everything = fitted(METHOD, **EXACT, select=select, threshold=0.0)
    assert everything.trained.run.trace["rounds"][0]["selected"] == 1.0
    np.testing.assert_allclose(weights(everything), weights(plain), atol=1e-3)


def test_the_share_grows_to_all_tokens() -> None:
    case = fitted(METHOD, **{**EXACT, "rounds": 4}, select="share")
    shares = [each["selected"] for each in case.trained.run.trace["rounds"]]
    assert shares == pytest.approx([0.25, 0.5, 0.75, 1.0], abs=0.02)
