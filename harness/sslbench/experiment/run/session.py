"""What the steps of a run share: its task, its plugins, the process of its method, its clock."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sslbench.engine.types import I64
from sslbench.experiment.context.checkpoints import Checkpoints, checkpoint_folder
from sslbench.experiment.context.context import RunContext, cpu_seconds
from sslbench.experiment.data import DataHome
from sslbench.experiment.inputs.problem import DecodedTagger, Problem
from sslbench.experiment.inputs.protocol import Sample, no_text
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.run.fitting import Fitted, LocalMethod, RunMethod, Training
from sslbench.plugins import Registry


@dataclass(frozen=True)
class Session:
    """The means of a run; its data pass from step to step.

    method: trains, in this process or another.
    clock: takes the seconds of each step.
    """

    task: RunTask
    plugins: Registry
    method: RunMethod
    clock: RunContext

    @staticmethod
    def open(task: RunTask, plugins: Registry, method: RunMethod | None = None) -> Session:
        """Begin a run. method: None = it trains in this process."""
        plugins = task.registry(plugins)
        method = method or LocalMethod(task.spec, plugins)
        return Session(task, plugins, method, RunContext(threads=task.threads, quiet=task.quiet))

    def problem(self, sample: Sample, sentences: I64) -> Problem:
        """The problem of these labeled sentences, without text for a method that reads none.

        sentences: int64[n], see `Sample.problem`.
        """
        with self.clock.phase("unlabeled"):
            reads = self.method.description.uses_unlabeled
            text = sample.text(sentences) if reads else no_text(sample.dataset)
        return sample.problem(sentences, text, self.method.featurizer, self.method.model)

    def fit(self, training: Training, run: RunContext) -> Fitted:
        """Train; the tagger predicts tags, also where a codec maps tags to labels."""
        fitted, tags = self.method.fit(training, run), training.problem.tags
        return (
            fitted if tags is None else replace(fitted, tagger=DecodedTagger(fitted.tagger, tags))
        )

    def context(self, seed: int) -> RunContext:
        """A fresh context of one training."""
        return training_context(self.task, seed)

    def cpu_seconds(self) -> float:
        """CPU seconds of the run until now, in all its processes."""
        return cpu_seconds() + self.method.cpu_s


def training_context(task: RunTask, seed: int) -> RunContext:
    """A context of one training; derived data are stored in the cache of the data home."""
    folder = checkpoint_folder(task.store, task.spec.run_id)
    return RunContext(
        seed,
        threads=task.threads,
        quiet=task.quiet,
        cache=DataHome().cache,
        checkpoints=None if folder is None else Checkpoints(folder, task.code),
    )
