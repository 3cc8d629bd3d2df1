"""Ascent on the dual of a supervised training, beside enumeration and L-BFGS."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.crf import STRICT, ChainCRF, HardLabels, Options, TrainingParams
from sslbench.engine.crf.dual import ascent as dual
from sslbench.engine.crf.first_order import scaled
from sslbench.engine.crf.objective import Objective
from sslbench.engine.types import F64
from support.crf_oracle import Enumeration, Potentials
from support.objective_toys import CASES, Case, L, N, case, evaluate
from support.threads import THREADS
from support.weights_oracle import dense_potentials

MASKED = {"masked": {"mask": True}, "masked, observed": {"mask": True, "state_support": "observed"}}
LIVE = ["edges", "all transitions", "observed, no start"]
NAMES = ["state", "observed", "bare", *MASKED, *LIVE]
SIGMA2 = 2.0


@pytest.fixture(autouse=True)
def _short_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dual, "FEWEST_TOKENS", 0)
    monkeypatch.setattr(dual, "BLOCK_TOKENS", 4)
    for name, options in MASKED.items():
        monkeypatch.setitem(CASES, name, options)


def problem(name: str, *, forced: bool = False) -> tuple[Case, Objective]:
    """A toy, and its objective with attributes that stand for one to three."""
    c = case(name)
    data = c.encode()
    if forced:
        only = np.full(N, -1, np.int32)
        only[::3] = c.labels[::3]
        data = replace(data, forced_labels=only)
    copies = np.ones(c.layout.size, np.float32)
    copies[c.layout.span("state")] = c.layout.of_weights(np.arange(c.layout.n_node) % 3 + 1.0)
    term = HardLabels(c.labels)
    mask = c.transition_mask
    return c, Objective(c.layout, [(data, term)], SIGMA2, transition_mask=mask, copies=copies)


def features(c: Case) -> list[F64]:
    """float64[P, n] of every sentence: the features of each of its label sequences."""
    units = np.eye(c.layout.size)
    chains = [dense_potentials(c.layout, unit, c.attributes) for unit in units]
    return [
        np.stack([Enumeration.of(each).scores for each in own], axis=1)
        for own in zip(*chains, strict=True)
    ]


def distributions(c: Case, objective: Objective, ascent: dual.Ascent) -> list[Enumeration]:
    """u of every sentence from theta."""
    text, variables = ascent.text, ascent.dual
    block = np.searchsorted(text.sentence, np.arange(len(c.attributes.offsets) - 1), "right") - 1
    forced = objective.parts[0][0].forced_labels
    found = []
    for i, (lo, hi) in enumerate(zip(text.offsets[:-1], text.offsets[1:], strict=True)):
        node = variables.node[lo:hi].astype(np.float64)
        edge = np.repeat(variables.edge[block[i]][None], hi - lo, axis=0)
        if ascent.live is not None:
            edge[:, ascent.live.left, ascent.live.right] += ascent.live.theta[lo:hi]
        if c.transition_mask is not None:
            node[0, ~c.transition_mask[L]] = -np.inf
            edge[:, ~c.transition_mask[:L]] = -np.inf
        for t, n in enumerate(range(lo, hi)):
            if forced is not None and forced[n] >= 0:
                node[t, np.arange(L) != forced[n]] = -np.inf
        found.append(Enumeration.of(Potentials(node, edge)))
    return found


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_dual_and_weights_by_enumeration(name: str, forced: bool) -> None:
    c, objective = problem(name, forced=forced)
    ascent = dual.Ascent.build(objective)
    for number in range(4):
        before = ascent.value
        assert ascent.one_pass(number, peak=0.0 if number else 3.0) == scaled.OK
        assert ascent.value > before  # every visit raises it
    slope, entropy = np.zeros(c.layout.size), 0.0
    gold = c.sentences(c.labels)
    for f, u, y in zip(features(c), distributions(c, objective, ascent), gold, strict=True):
        slope += f[(u.paths == y).all(axis=1)][0] - u.p @ f
        entropy += u.entropy()
    precision = 1.0 / (objective.sigma2 * objective.weight_copies.astype(np.float64))
    weights = slope / precision
    assert ascent.flat_weights() == pytest.approx(weights, abs=1e-5)  # marginals are float32
    value = entropy - 0.5 * (precision * weights) @ weights
    assert ascent.value == pytest.approx(value, rel=1e-6)
    loss = -evaluate(objective, weights)[0]
    assert loss >= value


@pytest.mark.parametrize("name", NAMES)
def test_gap_closes_and_is_never_negative(name: str) -> None:
    _, objective = problem(name)
    gaps = []
    for limit in (2, 6, 200):
        point = dual.maximize(objective, 1e-6, limit)
        assert point is not None
        loss = -evaluate(objective, point.weights)[0]
        gaps.append((loss - point.bound) / loss)
    assert min(gaps) > -1e-9
    assert gaps[-1] < 1e-5 < gaps[0]


@pytest.mark.parametrize("ftol", [0.0, 1e-4])
@pytest.mark.parametrize("name", ["state", "observed", "bare", "masked", *LIVE])
def test_training_ends_at_the_same_optimum(
    name: str, ftol: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = case(name)

    def objective_of(fewest: int) -> float:
        monkeypatch.setattr(dual, "FEWEST_TOKENS", fewest)
        crf = ChainCRF(("x", "y", "z"), None, c.layout, np.zeros(c.layout.size), c.transition_mask)
        options = replace(STRICT, ftol=ftol)
        parts = [(c.encode(), HardLabels(c.labels))]
        result = crf.train(parts, TrainingParams(sigma2=SIGMA2), options=options)
        assert result.converged
        return result.objective

    assert objective_of(0) == pytest.approx(objective_of(10**9), rel=1e-9 + ftol)


def test_weights_of_factor_features_that_the_text_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    c = case("factors")
    parts = [(replace(c.encode(), factors=None), HardLabels(c.labels))]
    found = []
    for fewest in (N, N + 1):
        monkeypatch.setattr(dual, "FEWEST_WITH_FACTORS", fewest)
        assert dual.suits(Objective(c.layout, parts, SIGMA2), Options()) == (fewest == N)
        crf = ChainCRF(("x", "y", "z"), None, c.layout, np.zeros(c.layout.size), c.transition_mask)
        found.append(crf.train(parts, TrainingParams(sigma2=SIGMA2), options=STRICT).objective)
        assert not crf.weights[crf.factor_indices].any()
    assert found[0] == pytest.approx(found[1], rel=1e-9)


@pytest.mark.parametrize("name", ["observed", "edges"])
def test_same_bits_for_any_number_of_threads(name: str) -> None:
    found = []
    for threads in THREADS:
        with using_threads(threads):
            point = dual.maximize(problem(name)[1], 1e-4, 100)
            assert point is not None
            found.append((point.bound, point.weights.tobytes()))
    assert len(set(found)) == 1


@pytest.mark.parametrize("name", ["state", "edges"])
def test_potentials_that_cannot_be_scaled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dual, "MORE_PEAK", 500.0)
    assert dual.maximize(problem(name)[1], 1e-4, 100) is None


def test_scores_by_position_that_cannot_be_scaled() -> None:
    _, objective = problem("edges")
    ascent = dual.Ascent.build(objective)
    assert ascent.live is not None
    ascent.live.own.table[:] = 400.0
    ascent.live.own.table[:, 1::2] = -400.0
    assert ascent.one_pass(0, peak=3.0) == scaled.REDO


def test_few_bytes_for_transitions_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    _, objective = problem("edges")
    needed = 8 * N * objective.layout.inner_transitions
    monkeypatch.setattr(dual, "MOST_LIVE_BYTES", needed)
    assert dual.suits(objective, Options())
    monkeypatch.setattr(dual, "MOST_LIVE_BYTES", needed - 1)
    assert not dual.suits(objective, Options())


def test_other_objectives_do_not_suit() -> None:
    assert dual.suits(problem("state")[1], Options())
    for name in ("columns", "factors", "node factors"):
        c = case(name)
        assert not dual.suits(c.objective(HardLabels(c.labels), 1.0), Options())
    c = case("state")
    weighted = HardLabels(c.labels, np.ones(len(c.attributes.offsets) - 1))
    assert not dual.suits(c.objective(weighted, 1.0), Options())
    with_tags = replace(problem("state")[1], tags=["tag"] * L)  # a prior that is not diagonal
    assert not dual.suits(with_tags, Options())
    assert not dual.suits(problem("state")[1], Options(max_iterations=20))
    assert not dual.suits(problem("state")[1], Options(share=0.1))
    assert not dual.suits(replace(problem("state")[1], tags=("x", "x", "y")), Options())
