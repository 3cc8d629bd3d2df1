"""How far a training is from its maximum, against the maximum itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sslbench.engine.crf import STRICT, ChainCRF, HardLabels, Options, Parts, TrainingParams
from sslbench.engine.crf.optim.gap import to_come
from support.tagger_toys import tagger

TAGS = ("a", "a", "b")  # of the labels


def problem(**changes: object) -> tuple[ChainCRF, Parts]:
    crf, corpus, labels = tagger(18, "all")
    crf = replace(crf, **changes)
    return crf, [(crf.encode(corpus), HardLabels(labels))]


def maximum(crf: ChainCRF, parts: Parts, params: TrainingParams, l1: float = 0.0) -> float:
    return replace(crf).train(parts, params, options=STRICT, l1=l1).objective


@pytest.mark.parametrize("sigma2", [0.1, 1.0, 1e4])
@pytest.mark.parametrize("most", [0, 2, 5, 9])
@pytest.mark.parametrize(("changes", "l1"), [({}, 0.0), ({}, 0.3), ({"backoff_tags": TAGS}, 0.0)])
def test_a_training_is_no_further_than_the_gap_from_its_maximum(
    changes: dict[str, object], l1: float, most: int, sigma2: float
) -> None:
    crf, parts = problem(**changes)
    params = TrainingParams(sigma2=sigma2)
    result = crf.train(parts, params, options=Options(max_iterations=most), l1=l1)
    missing = maximum(crf, parts, params, l1) - result.objective
    assert result.gap is not None
    assert 0 <= missing <= result.gap * abs(result.objective) + 1e-9


@pytest.mark.parametrize(("sigma2", "converged"), [(0.1, True), (1.0, True), (1e4, False)])
def test_what_has_converged_is_close_to_the_maximum(sigma2: float, converged: bool) -> None:
    crf, parts = problem()
    params = TrainingParams(sigma2=sigma2)
    result = crf.train(parts, params, options=Options(gtol=1e-4, ftol=1e-4))
    assert result.status in ("gradient", "decrease")
    assert result.converged == converged
    close = abs(maximum(crf, parts, params) / result.objective - 1) <= 1e-4
    assert close == converged  # with a weak prior, the gradient is small far from the maximum


def test_a_coarse_tolerance_is_met_by_a_coarse_result() -> None:
    crf, parts = problem()
    options = Options(ftol=0.1, window=1)
    result = crf.train(parts, TrainingParams(sigma2=0.5), options=options)
    assert result.gap is not None
    assert 1e-4 < result.gap < options.ftol
    assert result.converged


def test_decreases_that_shrink_by_one_factor_say_what_is_to_come() -> None:
    history = [3.0 + 2.0 * 0.7**k for k in range(14)]
    assert to_come(history) == pytest.approx(history[-1] - 3.0)
    assert to_come(history[:10]) == np.inf  # too few
    assert to_come([*history[:11], history[0]]) == np.inf  # a rise
    assert to_come([5.0 - k for k in range(12)]) == np.inf  # no shrinking
    assert to_come([np.inf, *[1.0] * 10]) == np.inf
