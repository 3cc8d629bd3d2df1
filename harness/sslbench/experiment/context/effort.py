"""Equal effort: all methods train a model that is trained by steps for the same number of them.

More steps make such a model better, with or without unlabeled text. So each method spends the steps
of the model (`SequenceModel.steps`), no more and no less: half of them in its first training, an
eighth in each later one while any are left, and what is left at its end on its last objective.
The rates of a model may fall over all of them, whatever the trainings are (`SequenceModel.course`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sslbench.engine.crf import Options, SequenceModel, TrainingResult

#: the first training gets one of so many equal parts of the steps, each later one one of so many
FIRST, LATER = 2, 8
Train = Callable[["Options"], "TrainingResult"]


@dataclass
class _Spent:
    """What one model has taken. train, options: of its last training."""

    model: SequenceModel
    train: Train
    options: Options
    steps: int = 0
    trainings: int = 0

    def go_on(self, steps: int) -> TrainingResult:
        most = min(steps, self.options.max_iterations)
        self.model.course = self.steps, self.model.steps or 0
        try:
            result = self.train(replace(self.options, max_iterations=most))
        finally:
            self.model.course = None
        self.steps += result.iterations
        self.trainings += 1
        return result


class Effort:
    """The steps that the models of one training of a method have taken."""

    def __init__(self) -> None:
        self._models: list[_Spent] = []
        self._before: list[list[int]] = []

    def train(self, model: SequenceModel, options: Options, train: Train) -> TrainingResult:
        """Train a model for the steps that are due. train: for at most `max_iterations`."""
        spent, total = self._of(model, options, train), model.steps or 0
        due = -(-total // (LATER if spent.trainings else FIRST))
        return spent.go_on(min(due, max(0, total - spent.steps)))

    def finish(self) -> dict[str, list[int]]:
        """Spend what is left; return what each model has taken."""
        for spent in self._models:
            left = (spent.model.steps or 0) - spent.steps
            if left > 0:
                spent.options = replace(spent.options, max_iterations=left)
                spent.go_on(left)
        taken = self.state()
        return {"steps": [a for a, _ in taken], "trainings": [b for _, b in taken]}

    def state(self) -> list[list[int]]:
        """What a checkpoint has: steps and trainings of each model."""
        return [[spent.steps, spent.trainings] for spent in self._models]

    def resume(self, state: list[list[int]]) -> None:
        """Go on from a state: models are known by the order of their first trainings."""
        self._before = state
        for spent, (steps, trainings) in zip(self._models, state, strict=False):
            spent.steps, spent.trainings = steps, trainings

    def _of(self, model: SequenceModel, options: Options, train: Train) -> _Spent:
        for spent in self._models:
            if spent.model is model:
                spent.options, spent.train = options, train
                return spent
        before = self._before[len(self._models) :][:1] or [[0, 0]]
        self._models.append(_Spent(model, train, options, *before[0]))
        return self._models[-1]
