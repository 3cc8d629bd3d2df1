"""Equal effort: every method spends the steps of the model, also after it was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sslbench import RunContext
from sslbench.engine.crf import Options, TrainingParams, TrainingResult
from sslbench.engine.variables import CHECKPOINTS
from sslbench.experiment.context.checkpoints import Checkpoints

PARAMS = TrainingParams()


class Stepped:
    """Notes its trainings."""

    def __init__(self, steps: int | None = 100) -> None:
        self.steps, self.parameters = steps, np.zeros(2)
        self.taken: list[int] = []
        self.course: tuple[int, int] | None = None
        self.courses: list[tuple[int, int] | None] = []

    def train(self, parts: Any, params: Any, *, options: Any = None, **_: Any) -> TrainingResult:
        most = (options or params.options()).max_iterations
        self.taken.append(most)
        self.courses.append(self.course)
        self.parameters = self.parameters + most
        return TrainingResult(0.0, "steps", True, most, most, 0.0, 2)


def trained(n: int, *models: Any, options: Options | None = None) -> RunContext:
    run = RunContext()
    for _ in range(n):
        for model in models:
            run.train(model, [], PARAMS, options=options)
    run.finish()
    return run


@pytest.mark.parametrize(
    ("trainings", "taken"),
    [
        (1, [50, 50]),
        (2, [50, 13, 37]),
        (5, [50, 13, 13, 13, 11]),
        (7, [50, 13, 13, 13, 11, 0, 0]),
    ],
)
def test_all_steps_are_taken(trainings: int, taken: list[int]) -> None:
    model = Stepped()
    run = trained(trainings, model)
    assert model.taken == taken
    assert run.trace["effort"] == {"steps": [100], "trainings": [len(taken)]}


def test_each_model_has_its_own() -> None:
    one, two = Stepped(), Stepped(8)
    run = trained(2, one, two)
    assert one.courses == [(0, 100), (50, 100), (63, 100)]
    assert one.course is None
    assert (one.taken, two.taken) == ([50, 13, 37], [4, 1, 3])
    assert run.trace["effort"] == {"steps": [100, 8], "trainings": [3, 3]}


def test_a_method_may_take_less_at_a_time() -> None:
    model = Stepped()
    trained(2, model, options=Options(max_iterations=7))
    assert model.taken == [7, 7, 86]


def test_models_that_end_by_themselves_are_left_alone() -> None:
    model = Stepped(None)
    run = trained(3, model)
    assert model.taken == [500] * 3
    assert "effort" not in run.trace


def test_a_killed_run_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files have the results of two of three trainings."""
    monkeypatch.setenv(CHECKPOINTS, "0")
    plain = Stepped()
    for model, n in ((plain, 2), (Stepped(), 3)):
        checkpoints = Checkpoints(tmp_path, {"engine": "1"}).of("training")
        run = RunContext(checkpoints=checkpoints)
        for _ in range(n):
            run.train(model, [], PARAMS)
    assert model.taken == [13]  # the third one
    run.finish()
    assert model.taken == [13, 24]
    assert model.parameters.tolist() == [100.0, 100.0]


def test_a_state_has_what_was_taken() -> None:
    run, model = RunContext(), Stepped()
    for _ in range(3):
        run.train(model, [], PARAMS)
    other, again = RunContext(), Stepped()
    state = {**run.state(), "spent": [0.0, 0.0]}
    other.resume(state)
    other.train(again, [], PARAMS)
    other.finish()
    assert again.taken == [13, 11]
    assert other.trace["effort"] == {"steps": [100], "trainings": [5]}
