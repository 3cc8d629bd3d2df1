"""From a planned run to a trained method: load the dataset, draw the sample, tune, train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.corpus.encodings import Scheme, Task
from sslbench.engine.types import I32, I64
from sslbench.engine.version import VERSION
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.data.userdata import load_user_data
from sslbench.experiment.identity.identity import external_hash, fingerprint
from sslbench.experiment.inputs.problem import (
    DecodedTagger,
    Problem,
    Tagger,
    labeled_part,
    predicted,
    relabeled,
    without_labels,
)
from sslbench.experiment.inputs.protocol import Draw, draw, fold_draws, no_text, unlabeled_text
from sslbench.experiment.metrics import Alternatives, Coverage, Scores, score
from sslbench.experiment.planning.template_file import with_templates
from sslbench.experiment.records.record import GuardSpec, RunSpec
from sslbench.experiment.run.checkpoints import Checkpoints, checkpoint_folder
from sslbench.experiment.run.context import RunContext, cpu_seconds
from sslbench.experiment.run.fitting import FitResult, LocalMethod, RunMethod
from sslbench.experiment.run.trials import tune, tuning_warnings
from sslbench.experiment.run.tune import Tuning
from sslbench.plugins import Registry
from sslbench.plugins.registrations import DatasetInfo


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
    load_error: why the data could not be loaded when the run was planned: it fails; None = it runs.
    cut: hold out a fifth of train if the user's own data have no test file and there are no folds.
    code: versions of the code by component, for the record.
    files: sha256 of the files of the data when the run was planned, by path, for the record.
    workers: address of a dask scheduler over whose workers the run spreads its passes; None = none.
    templates: of the featurizer, if it is a file of the user; () for a registered one.
    """

    spec: RunSpec
    metric: str
    data_path: str | None = None
    store: str | None = None
    threads: int = 1
    quiet: bool = True
    skip_reason: str | None = None
    load_error: str | None = None
    cut: bool = True
    code: dict[str, str] = {}
    files: dict[str, str] = {}
    templates: tuple[str, ...] = ()
    workers: str | None = None

    def registry(self, plugins: Registry) -> Registry:
        """The plugins of the run: with the user's templates, if it has any."""
        return with_templates(plugins, self.spec.featurizer, self.templates)


@dataclass
class RunSetup:
    """The loaded dataset and the draw, shared by the trials and the final training of a run.

    timer: takes the seconds of each phase of the run.
    method: trains, in this process or another.
    held_out: int64, the sentences of train that are tested on, of a fold; else none.
    other_spec: of another draw, for its tuning; None = that of the run.
    """

    run_task: RunTask
    plugins: Registry
    dataset: Dataset
    drawn: Draw
    timer: RunContext
    method: RunMethod
    held_out: I64 = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    other_spec: RunSpec | None = None

    @staticmethod
    def open(
        run_task: RunTask,
        plugins: Registry,
        timer: RunContext,
        method: RunMethod | None = None,
    ) -> RunSetup:
        """Load the dataset and draw the labeled sample. method: None = in this process."""
        with timer.phase("load"):
            dataset = load_dataset(run_task, plugins)
        drawn = draw(dataset, run_task.spec.protocol)
        method = method or LocalMethod(run_task.spec, plugins)
        return RunSetup(run_task, plugins, dataset, drawn, timer, method)

    def folds(self) -> list[RunSetup]:
        """The runs of cross-validation: each has the sentences of its fold as the split "test".

        Their trials are not kept in the store, where those of one fold would answer for another.
        """
        run_task = msgspec.structs.replace(self.run_task, store=None)
        return [
            replace(
                self,
                run_task=run_task,
                dataset=self._tested_on(held_out),
                drawn=drawn,
                held_out=held_out,
            )
            for drawn, held_out in fold_draws(self.dataset, self.spec.protocol)
        ]

    def _tested_on(self, held_out: I64) -> Dataset:
        """The dataset with sentences of train as its test, and without further splits."""
        train, kept = self.dataset.splits["train"], ("train", "dev")
        splits = {name: part for name, part in self.dataset.splits.items() if name in kept}
        alternatives = dict(self.dataset.alternatives)
        if "train" in alternatives:
            alternatives["test"] = alternatives["train"].select(train.offsets, held_out)
        splits["test"] = train.select(held_out)
        return replace(self.dataset, splits=splits, alternatives=alternatives, sentence_ids={})

    @property
    def spec(self) -> RunSpec:
        """The identity of the run, or of the run of another draw that it is tuned like."""
        return self.other_spec or self.run_task.spec

    def of_tuning(self) -> RunSetup:
        """The setup on whose draw parameters are tuned: this one, or one of the tuning seed.

        Its trials are those of the run of that seed, so that the store shares them.
        """
        seed = self.spec.protocol.tune_seed
        if isinstance(seed, msgspec.UnsetType) or seed == self.spec.protocol.seed:
            return self
        protocol = msgspec.structs.replace(self.spec.protocol, seed=seed)
        spec = msgspec.structs.replace(self.spec, protocol=protocol)
        dataset = self.dataset
        if spec.data.first_draw:
            task = msgspec.structs.replace(self.run_task, spec=spec)
            dataset = load_dataset(task, self.plugins)
            found = data_fingerprint(dataset, task, self.plugins)
            data = msgspec.structs.replace(spec.data, fingerprint=found)
            spec = msgspec.structs.replace(spec, data=data)
        return replace(self, dataset=dataset, drawn=draw(dataset, protocol), other_spec=spec)

    def problem(self, sentences: I64) -> Problem:
        """The problem that the method gets, without text for one that reads none.

        sentences: int64[n], the labeled sentences of train; all others lose their labels.
        """
        spec, dataset = self.spec, self.dataset
        labeled = labeled_part(dataset.splits["train"], sentences)
        if dataset.label_constraint is not None:
            labeled = relabeled(dataset.label_constraint.impose(labeled))
        labels = tuple(labeled.column("label").vocabulary.strings)
        dev = dataset.splits.get("dev")
        with self.timer.phase("unlabeled"):
            if self.method.description.uses_unlabeled:
                tested = np.union1d(self.drawn.labeled, self.held_out)
                held_out = np.setdiff1d(tested, sentences)
                text = unlabeled_text(dataset, spec.protocol, held_out)
            else:
                text = no_text(dataset)
        problem = Problem(
            task=dataset.task,
            encoding=dataset.encoding,
            labels=labels,
            labeled=labeled,
            unlabeled=text,
            dev=None if dev is None else relabeled(dev.select(np.arange(dev.n_sentences)), labels),
            featurizer=self.method.featurizer,
            model=self.method.model,
            label_constraint=dataset.label_constraint,
        )
        return problem if dataset.codec is None else problem.coded(dataset.codec(labels))

    def fit(
        self,
        problem: Problem,
        params: Mapping[str, Any],
        run: RunContext,
        guard: GuardSpec | None = None,
        *,
        forecast: bool = False,
    ) -> FitResult:
        """Train; the tagger predicts tags, also where a codec maps tags to labels."""
        result = self.method.fit(problem, params, run, guard, forecast=forecast)
        if problem.tags is None:
            return result
        return replace(result, tagger=DecodedTagger(result.tagger, problem.tags))

    def context(self) -> RunContext:
        """A fresh context of one training."""
        return training_context(self.run_task, self.spec.protocol.seed)

    def cpu_seconds(self) -> float:
        """That the run has used, in all its processes."""
        return cpu_seconds() + self.method.cpu_s


def training_context(run_task: RunTask, seed: int) -> RunContext:
    """A context of one training; derived data are kept in the cache of the data home."""
    folder = checkpoint_folder(run_task.store, run_task.spec.run_id)
    return RunContext(
        seed,
        threads=run_task.threads,
        quiet=run_task.quiet,
        cache=DataHome().cache,
        checkpoints=None if folder is None else Checkpoints(folder, run_task.code),
    )


@dataclass(frozen=True)
class Trained:
    """Result of `train`.

    problem, params: of the final training.  tuning: that came before it.
    run: context of the final training, with its trace and timing.
    used_dev: the method looked at the development labels in the final training.
    warnings: lines for the user.
    """

    tagger: Tagger
    problem: Problem
    params: dict[str, Any]
    tuning: Tuning
    run: RunContext
    used_dev: bool = False
    warnings: tuple[str, ...] = ()


def train(setup: RunSetup) -> Trained:
    """Tune within the budget of the protocol, then train on the whole labeled sample."""
    with setup.timer.phase("tune"):
        tuning = tune(setup.of_tuning())
    problem, run = setup.problem(setup.drawn.labeled), setup.context()
    guard = None if setup.spec.guard is msgspec.UNSET else setup.spec.guard
    foreseen = not setup.spec.protocol.folds  # cross-validation tells more than a forecast
    with setup.timer.phase("fit"):
        fitted = setup.fit(problem, tuning.best, run, guard, forecast=foreseen)
    warnings = (*tuning_warnings(setup, tuning), *run.warnings)
    return Trained(fitted.tagger, problem, fitted.params, tuning, run, fitted.used_dev, warnings)


def load_dataset(run_task: RunTask, plugins: Registry) -> Dataset:
    """Load the registered dataset, or the user's files."""
    data, name = run_task.spec.data, run_task.spec.dataset
    if data.columns is not None:
        cut = run_task.cut and not run_task.spec.protocol.folds
        return load_user_data(Path(run_task.data_path or ""), data.columns, cut=cut)
    home = DataHome(run_task.data_path, dataset=name)
    seed = run_task.spec.protocol.seed
    return load_registered(plugins.dataset(name), home, data.options, seed)


def load_registered(
    info: DatasetInfo, home: DataHome, options: Mapping[str, Any], seed: int
) -> Dataset:
    """Load a registered dataset; one with draws gets the seed."""
    drawn = {"seed": seed} if info.draws else {}
    dataset = info.load()(home, **options, **drawn)
    if not isinstance(dataset, Dataset):
        raise RuntimeError(f"load() of dataset {info.name} returned a {type(dataset).__name__}")
    return dataset


def data_fingerprint(dataset: Dataset, run_task: RunTask, plugins: Registry) -> str:
    """`fingerprint` of the data of a run, with the external text if its protocol can use it."""
    spec = run_task.spec
    if dataset.external is None or spec.protocol.text == "rest":
        return fingerprint(dataset)
    known_as = None
    if run_task.files and spec.data.columns is None and run_task.data_path is None:
        # Verified files, read by code of one version, always give the same text.
        info = plugins.dataset(spec.dataset)
        known_as = {
            "dataset": spec.dataset,
            "options": spec.data.options,
            "facts": dict(dataset.metadata),  # a file that an option names may change
            "seed": spec.protocol.seed if info.draws else 0,
            "files": run_task.files,
            "code": [info.version, VERSION],
        }
    cache = DataHome().cache
    return fingerprint(dataset, lambda: external_hash(dataset, known_as, cache))


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
