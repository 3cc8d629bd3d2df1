"""One training in this process, for a tagger to save and use."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from sslbench.engine.errors import UserError
from sslbench.experiment.data import Dataset
from sslbench.experiment.inputs.protocol import Sample
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.task import RunTask, load_dataset
from sslbench.experiment.request.request import TrainRequest
from sslbench.experiment.run.fitting import LocalMethod
from sslbench.experiment.run.saved import SavedTagger, save_tagger, training_corpus
from sslbench.experiment.run.scoring import predict, score_labels
from sslbench.experiment.run.session import Session
from sslbench.experiment.run.training import Trained, train
from sslbench.plugins import registry


@dataclass(frozen=True)
class TrainedTagger(SavedTagger):
    """A tagger with the training that it comes from."""

    session: Session = field(repr=False, kw_only=True)
    trained: Trained = field(repr=False, kw_only=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tagger to a file, for `load_tagger`; UserError if the method cannot save it."""
        save_tagger(Path(path), self.trained, self.session.plugins, self.scores)

    @cached_property
    def scores(self) -> dict[str, dict[str, float]]:
        """Metrics in [0, 1] on the splits "dev" and "test", where the data have them."""
        dataset, metrics = self.trained.sample.dataset, {}
        for name, corpus in dataset.splits.items():
            if name in ("dev", "test"):
                codes = predict(self.tagger, corpus)
                scores = score_labels(dataset.task, dataset.encoding, corpus, self.tagger, codes)
                metrics[name] = dict(scores.metrics)
        return metrics


def train_tagger(
    request: TrainRequest, notice: Callable[[str], None], *, quiet: bool = False
) -> TrainedTagger:
    """Train the one method of a request on its one dataset.

    notice: called with messages for the user.  quiet: no progress messages of the method.
    UserError for data, parameters or a method that do not fit.
    """
    if len(request.methods) != 1 or len(request.datasets) > 1:
        raise UserError("one method is trained on one dataset", hint="give one name of each")
    (task,) = plan(request.run_request(), store=None, notice=notice, cut=False)
    if task.skip_reason is not None:
        method, dataset = task.spec.method, task.spec.dataset
        raise UserError(
            f"{method} cannot be trained on {dataset}: it is {task.skip_reason}",
            hint=f"see sslbench show {method}",
        )
    session = Session.open(msgspec.structs.replace(task, quiet=quiet), registry())
    with session.clock.phase("load"):
        loaded = load_dataset(task, session.plugins)
    return _trained(session, Sample.of(task.spec, loaded))


def train_on(
    dataset: Dataset, method: LocalMethod, *, threads: int = 1, quiet: bool = True
) -> TrainedTagger:
    """Train a method on a dataset that is in memory, by the protocol of the method's spec."""
    task = RunTask(spec=method.spec, metric=dataset.metric, threads=threads, quiet=quiet)
    return _trained(Session.open(task, method.plugins, method), Sample.of(task.spec, dataset))


def _trained(session: Session, sample: Sample) -> TrainedTagger:
    trained = train(session, sample)
    return TrainedTagger(trained.tagger, training_corpus(trained), session=session, trained=trained)
