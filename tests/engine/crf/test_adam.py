"""Adam: its steps by an oracle, the order of batches, states of a killed training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sslbench.engine.crf import Entropy, HardLabels, Observed, Progress, TrainingParams
from sslbench.engine.crf.optim.adam import Schedule, descend
from support.synth_text import synth_text
from support.toy_model.sslbench_toy import Toy, ToyModel

PARAMS = TrainingParams(sigma2=2.0)
FIRST, SECOND = 0.9, 0.999  # of the paper


class KilledError(Exception):
    """In place of a signal."""


def problem(n: int = 40, tokens: int = 60) -> tuple[Toy, list[Any]]:
    """A model and its labeled sentences, in several batches."""
    corpus = synth_text(n, seed=2, lexicon=60)
    codes = corpus.column("label").codes.astype(np.int32)
    labels = corpus.column("label").vocabulary.strings
    model = ToyModel(ToyModel.Params(), 0).prepare(
        None, corpus, codes, labels, text=(), transition_mask=None, label_constraint=None
    )
    text = model.encode(corpus)
    object.__setattr__(text, "tokens", tokens)
    return model, [(text, HardLabels(codes))]


def center(model: Toy) -> Any:
    return np.linspace(-0.1, 0.1, len(model.parameters), dtype=np.float32)


def train(model: Toy, parts: Any, steps: int, schedule: Schedule, **options: Any) -> Any:
    return descend(model, parts, PARAMS, steps, schedule, center(model), **options)


def test_the_factor_of_the_rates() -> None:
    schedule = Schedule(((0, 1.0),), warm_up=0.2)
    found = [schedule.factor(step, 10) for step in range(10)]
    assert found == pytest.approx([0.5, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])
    assert Schedule(((0, 1.0),)).factor(0, 1) == 1.0
    later = Schedule(((0, 1.0),), warm_up=0.5, course=(4, 8))  # two steps of eight
    assert [later.factor(step, 2) for step in range(2)] == [1.0, 0.75]


@pytest.mark.parametrize("longest", [1e9, 1e-3])
def test_steps_are_those_of_the_paper(longest: float) -> None:
    """One batch holds the whole text, so that each gradient is that of the whole objective."""
    model, parts = problem(tokens=10**6)
    n, size, steps = float(parts[0][0].lengths.sum()), len(model.parameters), 7
    schedule = Schedule(((0, 0.02), (size // 3, 0.1)), longest=longest)
    rates = np.where(np.arange(size) < size // 3, 0.02, 0.1)
    x, m, v = model.parameters.copy(), np.zeros(size), np.zeros(size)
    for t in range(1, steps + 1):
        slope = np.empty(size)
        model.with_parameters(x).gradient(parts, slope)
        slope *= min(1.0, longest / (np.linalg.norm(slope) / n))
        g = -(slope - (x - center(model)) / PARAMS.sigma2) / n
        m = FIRST * m + (1 - FIRST) * g
        v = SECOND * v + (1 - SECOND) * g * g
        ahead = (m / (1 - FIRST**t)) / (
            np.sqrt(v / (1 - SECOND**t)) + 1e-8 / np.sqrt(1 - SECOND**t)
        )
        x = x - rates * schedule.factor(t - 1, steps) * ahead
    before = model.parameters
    result = train(model, parts, steps, schedule)
    np.testing.assert_allclose(model.parameters, x, atol=2e-5)
    assert np.abs(x - before).max() > 0.1
    assert (result.iterations, result.status, result.converged) == (steps, "steps", True)


def test_each_batch_comes_once_before_one_comes_again_and_each_step_has_its_noise() -> None:
    model, parts = problem()
    text, seen, noises = parts[0][0], list[int](), set[float]()
    n = len(text.batches)

    class Watching(Toy):
        def open(self, text: Any, batch: Any, noise: Any = None) -> Any:
            seen.append(batch.sentence_lo)
            noises.add(noise.random())
            return super().open(text, batch, noise)

    watching = Watching(**vars(model))
    train(watching, parts, 3 * n, Schedule(((0, 0.01),)))
    epochs = [seen[i * n : (i + 1) * n] for i in range(3)]
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)
    assert len(set(epochs[0])) == n > 4
    assert epochs[0] != epochs[1]
    assert len(noises) == 3 * n


def test_the_estimate_is_right_on_average() -> None:
    """Over an epoch without steps, values and derivatives are those of the whole objective."""
    from sslbench.engine.crf.optim.adam import _Objective, _Part

    model, parts = problem()
    model.parameters = np.random.default_rng(0).normal(size=len(model.parameters))
    soft = parts[0][0], Entropy(0.3)
    both = [*parts, soft]
    n = len(parts[0][0].batches)
    objective = _Objective(model, [_Part.of(*part) for part in both], 1)
    found = [(loss, slope.copy()) for loss, slope in (objective.at(step) for step in range(n))]
    slope = np.empty_like(model.parameters)
    value = model.gradient(both, slope)
    np.testing.assert_allclose(np.mean([each for _, each in found], axis=0), slope, atol=1e-9)
    mean = np.mean([loss for loss, _ in found])
    assert -mean * objective.n_tokens == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("killed_at", [0, 1, 9, 23])
def test_a_killed_training_ends_with_the_same_bits(killed_at: int) -> None:
    schedule, steps, states = Schedule(((0, 0.05),)), 24, list[Any]()

    def keep(state: Callable[[], dict[str, Any]]) -> None:
        found = state()
        states.append({n: x.copy() if isinstance(x, np.ndarray) else x for n, x in found.items()})
        if len(states) > killed_at:
            raise KilledError

    model, parts = problem()
    expected = train(model, parts, steps, schedule)
    again, parts = problem()
    with pytest.raises(KilledError):
        train(again, parts, steps, schedule, progress=Progress(None, keep))
    resumed, parts = problem()
    progress = Progress(states[-1], lambda state: None)
    assert train(resumed, parts, steps, schedule, progress=progress) == expected
    np.testing.assert_array_equal(resumed.parameters, model.parameters)


def test_a_state_that_does_not_fit() -> None:
    model, parts = problem()
    for harm in ({}, {"x": np.ones(3)}, {"x": np.ones(3), "first": 0, "second": 0}):
        progress = Progress(harm, lambda state: None)
        with pytest.raises((KeyError, ValueError)):
            train(model, parts, 3, Schedule(((0, 0.1),)), progress=progress)


def test_a_loss_that_is_not_finite() -> None:
    model, parts = problem()
    model.parameters[:] = np.nan
    with pytest.raises(ArithmeticError, match="scores of step 1 are no numbers"):
        train(model, parts, 3, Schedule(((0, 0.1),)))


def test_texts_without_a_sentence_and_no_steps() -> None:
    model, parts = problem()
    empty = model.encode(synth_text(1, seed=0).select([]))
    both = [*parts, (empty, Entropy(1.0))]
    assert train(model, both, 3, Schedule(((0, 0.1),))).iterations == 3
    before = model.parameters.copy()
    assert train(model, parts, 0, Schedule(((0, 0.1),))).iterations == 0
    np.testing.assert_array_equal(model.parameters, before)


def test_statistics_of_a_term_do_not_depend_on_the_order_of_batches() -> None:
    model, parts = problem()
    text = parts[0][0]

    def count(potentials: Any) -> Any:
        one = HardLabels(parts[0][1].labels).evaluate(potentials)
        return one, {"tokens": potentials.batch.n_tokens}

    term = Observed(HardLabels(parts[0][1].labels), count)
    train(model, [(text, term)], 2 * len(text.batches) + 3, Schedule(((0, 0.1),)))
    assert Observed.total([term], "tokens") == text.lengths.sum()


def test_it_climbs() -> None:
    model, parts = problem()
    told: list[tuple[int, float]] = []

    def note(step: int, loss: float, length: float) -> None:
        told.append((step, loss))

    before = model.objective(parts, PARAMS)
    train(model, parts, 90, Schedule(((0, 0.1),)), callback=note)
    assert model.objective(parts, PARAMS) > 0.5 * before
    assert [step for step, _ in told] == [20, 40, 60, 80, 90]
    assert told[-1][1] < told[0][1]
