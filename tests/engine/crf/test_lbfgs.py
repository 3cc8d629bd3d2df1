"""The optimizer: known optima, and SciPy on the same functions."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sslbench.engine.crf import STRICT, EncodedCorpus, HardLabels, Objective, Options
from sslbench.engine.crf.optim import lbfgs, steps
from sslbench.engine.crf.weights.layout import Layout, build_layout
from sslbench.engine.features import Attributes
from sslbench.engine.types import F64
from support.crf_oracle import INF, same_up_to
from support.objective_toys import case, scipy_optimum
from support.weights_oracle import places

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
    function = only(objective, [at.state[0, 0], at.state[1, 1], at.transition[0, 1]])
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
    assert found.finished
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


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_best_point_of_a_line_search_that_ends_early_has_its_own_value(most: int) -> None:
    for function, n in problems():
        found = lbfgs.minimize(
            function, np.full(n, 3.0), Options(max_evaluations=most, max_iterations=3, gtol=0.0)
        )
        assert found.value == value_at(function, found.weights) == min(found.history)


def test_why_it_stopped() -> None:
    function, n = problems()[3]
    start = np.full(n, 3.0)
    seen: list[tuple[int, float, float]] = []
    short = lbfgs.minimize(
        function,
        start.copy(),
        Options(max_iterations=3, gtol=0.0),
        callback=lambda *args: seen.append(args),
    )
    assert (short.status, short.iterations, short.finished) == ("max_iterations", 3, False)
    assert [i for i, _, _ in seen] == [0, 1, 2, 3]
    assert [v for _, v, _ in seen] == short.history
    assert short.evaluations >= 4
    flat = lbfgs.minimize(function, start.copy(), Options(gtol=0.0, ftol=0.5))
    assert (flat.status, flat.finished) == ("decrease", True)
    none = lbfgs.minimize(function, start.copy(), Options(gtol=1e9))
    assert none.iterations == 0
    same_up_to(none.weights, 3.0, 0)

    def cliff(x: F64, gradient: F64) -> float:
        gradient[:] = -1.0
        return float(abs(x).sum())  # the gradient lies: no step helps

    lost = lbfgs.minimize(cliff, np.zeros(2), Options())
    assert (lost.status, lost.finished) == ("line_search", False)


@pytest.mark.parametrize("scale", [1e-2, 1.0, 50.0])
def test_a_first_step_that_is_too_short_grows_to_the_minimum_at_once(scale: float) -> None:
    """On a quadratic: the start, a short step, and the minimum of its line."""

    def quadratic(x: F64, gradient: F64) -> float:
        gradient[:] = scale * (x - 1.0)
        return float(0.5 * scale * ((x - 1.0) ** 2).sum())

    found = lbfgs.minimize(quadratic, np.zeros(60), Options(gtol=1e-9))
    assert found.evaluations == 3
    same_up_to(found.weights, 1.0, 1e-9)


def test_growth_of_a_step() -> None:
    assert steps.growth(-1.0, -0.9) == pytest.approx(10)  # slope zero at ten times the step
    assert steps.growth(-1.0, -0.1) == 4.0
    assert steps.growth(-1.0, -1.0 + 1e-9) == steps.FARTHEST
    assert steps.growth(-1.0, -2.0) == 4.0  # it goes down ever faster


def test_steps_beyond_the_domain_are_shortened() -> None:
    def function(x: F64, gradient: F64) -> float:
        if x[0] <= 0:
            gradient[:] = np.nan
            return INF
        gradient[:] = 1 - 1 / x
        return float(x[0] - np.log(x[0]))

    found = lbfgs.minimize(function, np.array([50.0]), STRICT)
    assert found.weights[0] == pytest.approx(1.0, abs=1e-8)


def test_a_share_of_the_decrease() -> None:
    """The run is that of `STRICT`, cut at the first window that adds so little."""
    scale = np.geomspace(1.0, 1e4, 30)

    def function(x: F64, gradient: F64) -> float:
        gradient[:] = scale * (x - 1.0)
        return 5.0 + 0.5 * float(scale @ (x - 1.0) ** 2)

    whole = lbfgs.minimize(function, np.zeros(30), STRICT)
    cut = lbfgs.minimize(function, np.zeros(30), Options(gtol=0.0, ftol=0.0, share=0.01))
    assert cut.status == "decrease"
    assert cut.history == whole.history[: len(cut.history)]
    gain = cut.history[0] - np.array(cut.history)
    added = gain[5:] - gain[:-5]
    assert added[-1] <= 0.01 * gain[-1]
    assert (added[:-1] > 0.01 * gain[5:-1]).all()
    assert cut.iterations < whole.iterations


@pytest.mark.parametrize("bounded", [False, True])
def test_memory_does_not_grow_with_iterations(bounded: bool) -> None:
    """The pairs, and few vectors more, however many points a search has been at."""
    n, limits = 100_000, []
    scale = np.exp(np.random.default_rng(0).uniform(0, 4, n))
    target = np.full(n, 1e-9)  # where most steps could cross the bound

    def function(x: F64, gradient: F64) -> float:
        np.subtract(x, target, out=gradient)
        value = 0.0
        for i in range(0, n, 1000):  # without an array as long as x
            own = gradient[i : i + 1000]
            value += float(0.5 * (scale[i : i + 1000] * own) @ own)
            own *= scale[i : i + 1000]
        return value

    nonnegative = np.arange(0, n, 100) if bounded else None
    options = Options(memory=3, ftol=0, gtol=0)
    lbfgs.minimize(function, np.ones(n), Options(max_iterations=2), nonnegative=nonnegative)
    for iterations in (8, 40):
        few = replace(options, max_iterations=iterations)
        tracemalloc.start()
        found = lbfgs.minimize(function, np.ones(n), few, nonnegative=nonnegative)
        limits.append(tracemalloc.get_traced_memory()[1] / (8 * n))
        tracemalloc.stop()
        assert found.iterations == iterations
    assert limits[0] <= 2 * 3 + 10
    assert limits[1] <= limits[0] + 0.5
