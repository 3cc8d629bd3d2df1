"""One training in this process, for a tagger that is kept and used."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sslbench.engine.errors import UserError
from sslbench.experiment.data import Dataset
from sslbench.experiment.inputs.protocol import draw
from sslbench.experiment.planning.plan import Request, plan
from sslbench.experiment.run.context import RunContext
from sslbench.experiment.run.fitting import LocalMethod
from sslbench.experiment.run.saved import SavedTagger, save_tagger, training_corpus
from sslbench.experiment.run.training import (
    RunSetup,
    RunTask,
    Trained,
    predict,
    score_labels,
    train,
)
from sslbench.plugins import registry


@dataclass(frozen=True)
class TrainedTagger(SavedTagger):
    """A tagger with the run setup and the training that it comes from."""

    setup: RunSetup = field(repr=False, kw_only=True)
    trained: Trained = field(repr=False, kw_only=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tagger to a file, for `load_tagger`; UserError if the method cannot save it."""
        save_tagger(Path(path), self.setup, self.trained, self.scores)

    @cached_property
    def scores(self) -> dict[str, dict[str, float]]:
        """Metrics in [0, 1] on the splits "dev" and "test", where the data have them."""
        dataset, found = self.setup.dataset, {}
        for name in ("dev", "test"):
            if name in dataset.splits:
                corpus = dataset.splits[name]
                codes = predict(self.tagger, corpus)
                scores = score_labels(dataset.task, dataset.encoding, corpus, self.tagger, codes)
                found[name] = dict(scores.metrics)
        return found


def train_tagger(request: Request, notice: Callable[[str], None]) -> TrainedTagger:
    """Train the one method of a request on its one dataset, with its one seed.

    notice: called with messages for the user.
    UserError for data, parameters or a method that do not fit.
    """
    (run_task,) = plan(request, store=None, notice=notice)
    if run_task.skip_reason is not None:
        method, dataset = run_task.spec.method, run_task.spec.dataset
        raise UserError(
            f"{method} cannot be trained on {dataset}: it is {run_task.skip_reason}",
            hint=f"see sslbench show {method}",
        )
    timer = RunContext(threads=run_task.threads, quiet=run_task.quiet)
    return _trained(RunSetup.open(run_task, run_task.registry(registry()), timer))


def train_on(
    dataset: Dataset, method: LocalMethod, *, threads: int = 1, quiet: bool = True
) -> TrainedTagger:
    """Train a method on a dataset that is in memory, by the protocol of the method's spec."""
    spec, plugins = method.spec, method.plugins
    run_task = RunTask(spec=spec, metric=dataset.metric, threads=threads, quiet=quiet)
    drawn, timer = draw(dataset, spec.protocol), RunContext(threads=threads, quiet=quiet)
    return _trained(RunSetup(run_task, plugins, dataset, drawn, timer, method))


def _trained(setup: RunSetup) -> TrainedTagger:
    trained = train(setup)
    corpus = training_corpus(setup, trained)
    return TrainedTagger(trained.tagger, corpus, setup=setup, trained=trained)
