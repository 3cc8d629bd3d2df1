"""From a planned run to a trained method: load the dataset, draw the sample, tune, train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from sslbench.corpus import Corpus
from sslbench.corpus.encodings import Scheme, Task
from sslbench.errors import UserError
from sslbench.experiment.context import RunContext
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.data.userdata import load_user_data
from sslbench.experiment.metrics import Alternatives, Coverage, Scores, score
from sslbench.experiment.problem import (
    DecodedTagger,
    Method,
    Problem,
    Tagger,
    labeled_part,
    predicted,
    relabeled,
    without_labels,
)
from sslbench.experiment.protocol import Draw, draw, no_text, unlabeled_text
from sslbench.experiment.record import RunSpec
from sslbench.experiment.trials import tune, tuning_warnings
from sslbench.experiment.tune import Tuning
from sslbench.plugins import Registry
from sslbench.types import I32, I64


class RunTask(msgspec.Struct, frozen=True):
    """A run to execute: its identity, and what does not affect its result.

    Attributes
    ----------
    metric: primary metric of the dataset, for the record of a run that fails before loading it.
    data_path: file or folder of the data; None = the data home.
    store: folder where tuning trials are shared between runs; None = they are not kept.
    threads: of the run; results do not depend on their number.
    quiet: no progress messages of the method.
    skip_reason: why the run is skipped (its method does not fit the task or model); None = it runs.
    cut: hold out a fifth of train if the user's own data have no test file.
    """

    spec: RunSpec
    metric: str
    data_path: str | None = None
    store: str | None = None
    threads: int = 1
    quiet: bool = True
    skip_reason: str | None = None
    cut: bool = True


@dataclass
class RunSetup:
    """The loaded dataset and the draw, shared by the trials and the final training of a run.

    timer: takes the seconds of each phase of the run.
    """

    run_task: RunTask
    plugins: Registry
    dataset: Dataset
    drawn: Draw
    timer: RunContext

    @staticmethod
    def open(run_task: RunTask, plugins: Registry, timer: RunContext) -> RunSetup:
        """Load the dataset and draw the labeled sample."""
        with timer.phase("load"):
            dataset = load_dataset(run_task, plugins)
        drawn = draw(dataset, run_task.spec.protocol)
        return RunSetup(run_task, plugins, dataset, drawn, timer)

    @property
    def spec(self) -> RunSpec:
        """The identity of the run."""
        return self.run_task.spec

    @property
    def targets(self) -> list[str]:
        """Import targets of the plugins that take part in the run."""
        return plugin_targets(self.plugins, self.spec, self.spec.method)

    def problem(self, sentences: I64, method: str) -> Problem:
        """The problem that a method gets.

        sentences: int64[n], the labeled sentences of train; all others lose their labels.
        method: its name; unlabeled text is not prepared for a method that never reads it.
        """
        spec, dataset = self.spec, self.dataset
        labeled = labeled_part(dataset.splits["train"], sentences)
        if dataset.label_constraint is not None:
            labeled = relabeled(dataset.label_constraint.impose(labeled))
        labels = tuple(labeled.column("label").vocabulary.strings)
        dev = dataset.splits.get("dev")
        model = self.plugins.model(spec.model).load()
        with self.timer.phase("unlabeled"):
            if getattr(self.plugins.method(method).load(), "uses_unlabeled", True):
                held_out = np.setdiff1d(self.drawn.labeled, sentences)
                text = unlabeled_text(dataset, spec.protocol, self.drawn.hidden, held_out)
            else:
                text = no_text(dataset)
        problem = Problem(
            task=dataset.task,
            encoding=dataset.encoding,
            labels=labels,
            labeled=labeled,
            unlabeled=text,
            dev=None if dev is None else relabeled(dev.select(np.arange(dev.n_sentences)), labels),
            featurizer=self.plugins.featurizer(spec.featurizer).load()(),
            model=model() if isinstance(model, type) else model,
            label_constraint=dataset.label_constraint,
        )
        return problem if dataset.codec is None else problem.coded(dataset.codec(labels))

    def fit(self, problem: Problem, params: Any, run: RunContext, method: str) -> Tagger:
        """Train a method; the tagger predicts tags, also where a codec maps tags to labels."""
        trained: Tagger = self.plugins.method(method).load()().fit(problem, params, run)
        return trained if problem.tags is None else DecodedTagger(trained, problem.tags)

    def context(self) -> RunContext:
        """A fresh context of one training; derived data are kept in the cache of the data home."""
        run_task, cache = self.run_task, DataHome().cache
        seed = self.spec.protocol.seed
        return RunContext(seed, threads=run_task.threads, quiet=run_task.quiet, cache=cache)

    def params(self, values: Mapping[str, Any]) -> Any:
        """The method's `Params`: what the spec gives, with these values in place of its own."""
        method = self.plugins.method(self.spec.method).load()
        return make_params(method, {**self.spec.params, **values})


@dataclass(frozen=True)
class Trained:
    """Result of `train`.

    problem, params: of the final training.  tuning: that came before it.
    run: context of the final training, with its trace and timing.
    warnings: lines for the user.
    """

    tagger: Tagger
    problem: Problem
    params: Any
    tuning: Tuning
    run: RunContext
    warnings: tuple[str, ...] = ()

    @property
    def used_dev(self) -> bool:
        """Whether the method looked at the development labels in the final training."""
        return self.problem.dev_labels.seen


def train(setup: RunSetup) -> Trained:
    """Tune within the budget of the protocol, then train on the whole labeled sample."""
    method = setup.spec.method
    with setup.timer.phase("tune"):
        tuning = tune(setup)
    params = setup.params(tuning.best)
    problem, run = setup.problem(setup.drawn.labeled, method), setup.context()
    with setup.timer.phase("fit"):
        tagger = setup.fit(problem, params, run, method)
    return Trained(tagger, problem, params, tuning, run, tuning_warnings(setup, tuning))


def load_dataset(run_task: RunTask, plugins: Registry) -> Dataset:
    """Load the registered dataset, or the user's files."""
    data, name = run_task.spec.data, run_task.spec.dataset
    if data.columns is not None:
        return load_user_data(Path(run_task.data_path or ""), data.columns, cut=run_task.cut)
    home = DataHome(run_task.data_path, dataset=name)
    dataset = plugins.dataset(name).load()(home, **data.options)
    if not isinstance(dataset, Dataset):
        raise RuntimeError(f"load() of dataset {name} returned a {type(dataset).__name__}")
    return dataset


def make_params(method: type[Method], values: Mapping[str, Any]) -> Any:
    """The method's `Params` from plain values; UserError names a field that does not fit."""
    try:
        return msgspec.convert(dict(values), method.Params, strict=False)
    except msgspec.ValidationError as error:
        raise UserError(
            f"parameter of {method.__name__}: {error}", hint="see sslbench show"
        ) from error


def predict(tagger: Tagger, corpus: Corpus) -> I32:
    """int32[N]: predicted label codes of a corpus; its own labels are dropped first."""
    return predicted(tagger, without_labels(corpus))


def score_labels(
    task: str,
    encoding: str | None,
    corpus: Corpus,
    tagger: Tagger,
    codes: I32,
    cover: Coverage | None = None,
    alternatives: Alternatives | None = None,
) -> Scores:
    """Score predictions against the label column of a corpus.

    codes: int32[N], codes into `tagger.labels`.  cover, alternatives: see `score`.
    """
    gold = corpus.column("label")
    return score(
        cast(Task, task),
        (gold.vocabulary.strings, gold.codes),
        (tagger.labels, codes),
        corpus.offsets,
        encoding=cast(Scheme | None, encoding),
        coverage=cover,
        alternatives=alternatives,
    )


def plugin_targets(plugins: Registry, spec: RunSpec, method: str) -> list[str]:
    """Import targets of all plugins that take part in a run with this method."""
    infos = [plugins.method(method), plugins.featurizer(spec.featurizer), plugins.model(spec.model)]
    if spec.data.columns is None:
        infos.append(plugins.dataset(spec.dataset))
    return [info.target for info in infos]
