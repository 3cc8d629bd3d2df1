"""From a task to a trained method: load, draw, tune, train."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from sslbench.corpus import Corpus
from sslbench.corpus.encodings import Scheme
from sslbench.corpus.encodings import Task as TaskKind
from sslbench.errors import UserError
from sslbench.experiment.context import RunContext
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.data.userdata import load_user_data
from sslbench.experiment.identity import code_version
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
from sslbench.experiment.record import RunSpec, content_id
from sslbench.experiment.store import Store
from sslbench.experiment.tune import SearchAxis, Trial, search
from sslbench.plugins import Registry
from sslbench.types import I32, I64


class Task(msgspec.Struct, frozen=True):
    """A run to execute: its identity, and what is no part of it.

    Attributes
    ----------
    data_path: the user's file or folder, when the data set is not a registered one.
    metric: primary metric, for the record of a run that dies before it loads its data.
    store: folder whose tuning trials are shared between runs; None = do not share.
    cut: whether a user's data without a test file give up a fifth of train for it.
    """

    spec: RunSpec
    metric: str
    data_path: str | None = None
    store: str | None = None
    threads: int = 1
    quiet: bool = True
    cut: bool = True


@dataclass
class RunSetup:
    """Everything a run holds: what is resolved once and used by trials and the final training."""

    task: Task
    known: Registry
    dataset: Dataset
    drawn: Draw
    timer: RunContext

    @staticmethod
    def open(task: Task, known: Registry, timer: RunContext) -> RunSetup:
        """Load the data set and draw the labeled sample."""
        with timer.phase("load"):
            dataset = load_dataset(task, known)
        return RunSetup(task, known, dataset, draw(dataset, task.spec.protocol), timer)

    def problem(self, sentences: I64, method: str) -> Problem:
        """The problem with these labeled sentences; nothing else of train keeps its label."""
        spec, dataset = self.task.spec, self.dataset
        labeled = labeled_part(dataset.splits["train"], sentences)
        if dataset.label_constraint is not None:
            labeled = relabeled(dataset.label_constraint.impose(labeled))
        labels = tuple(labeled.column("label").vocabulary.strings)
        dev = dataset.splits.get("dev")
        model = self.known.model(spec.model).load()
        with self.timer.phase("unlabeled"):
            if getattr(self.known.method(method).load(), "uses_unlabeled", True):
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
            featurizer=self.known.featurizer(spec.featurizer).load()(),
            model=model() if isinstance(model, type) else model,
            label_constraint=dataset.label_constraint,
        )
        return problem if dataset.codec is None else problem.coded(dataset.codec(labels))

    def fit(self, problem: Problem, params: Any, run: RunContext, method: str) -> Tagger:
        """Train a method; what the tagger predicts are tags, also under a label codec."""
        trained: Tagger = self.known.method(method).load()().fit(problem, params, run)
        return trained if problem.tags is None else DecodedTagger(trained, problem.tags)

    def dev_corpus(self) -> Corpus:
        """Development sentences with their labels: for the harness's eyes."""
        if self.drawn.dev_source == "own":
            return self.dataset.splits["dev"]
        return self.dataset.splits["train"].select(self.drawn.dev)

    def dev_alternatives(self) -> Alternatives | None:
        """What is accepted in `dev_corpus` besides its labels."""
        if self.drawn.dev_source == "own":
            return self.dataset.alternatives.get("dev")
        others = self.dataset.alternatives.get("train")
        offsets = self.dataset.splits["train"].offsets
        return None if others is None else others.select(offsets, self.drawn.dev)


@dataclass(frozen=True)
class Trained:
    """What training gave: the tagger, the problem and parameters it came from, trials, notes."""

    tagger: Tagger
    problem: Problem
    params: Any
    trials: list[Trial]
    run: RunContext


def train(setup: RunSetup) -> Trained:
    """Tune within the budget of the protocol, then train on the whole labeled sample."""
    task, spec = setup.task, setup.task.spec
    with setup.timer.phase("tune"):
        chosen, trials = _tune(setup)
    params = make_params(setup.known.method(spec.method).load(), {**spec.params, **chosen})
    problem = setup.problem(setup.drawn.labeled, spec.method)
    run = _context(task)
    with setup.timer.phase("fit"):
        tagger = setup.fit(problem, params, run, spec.method)
    return Trained(tagger, problem, params, trials, run)


def _context(task: Task) -> RunContext:
    """A fresh context of a training; derived data are kept in the cache of the data home."""
    seed, cache = task.spec.protocol.seed, DataHome().cache
    return RunContext(seed, threads=task.threads, quiet=task.quiet, cache=cache)


def load_dataset(task: Task, known: Registry) -> Dataset:
    """Load the registered data set, or the user's files."""
    data = task.spec.data
    if data.columns is not None:
        return load_user_data(Path(task.data_path or ""), data.columns, cut=task.cut)
    home = DataHome(task.data_path, dataset=task.spec.dataset)
    dataset = known.dataset(task.spec.dataset).load()(home, **data.options)
    if not isinstance(dataset, Dataset):
        raise RuntimeError(f"data set {task.spec.dataset} gave a {type(dataset).__name__}")
    return dataset


def make_params(method: type[Method], values: Mapping[str, Any]) -> Any:
    """The method's `Params` from plain values; UserError names a field that does not fit."""
    try:
        return msgspec.convert(dict(values), method.Params, strict=False)
    except msgspec.ValidationError as error:
        raise UserError(
            f"parameter of {method.__name__}: {error}", hint="see sslbench show"
        ) from error


def search_axes(method: type[Method]) -> tuple[SearchAxis, ...]:
    """What the method declares to be tuned: ``Params.search``."""
    return tuple(getattr(method.Params, "search", ()))


def predict(tagger: Tagger, corpus: Corpus) -> I32:
    """Predicted label codes of a corpus whose labels are taken away first."""
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
    """Score predicted codes (into `tagger.labels`) against the label column of a corpus."""
    gold = corpus.column("label")
    return score(
        cast(TaskKind, task),
        (gold.vocabulary.strings, gold.codes),
        (tagger.labels, codes),
        corpus.offsets,
        encoding=cast(Scheme | None, encoding),
        coverage=cover,
        alternatives=alternatives,
    )


def _tune(setup: RunSetup) -> tuple[dict[str, Any], list[Trial]]:
    """Choose the method's open parameters on development data; ({}, []) without a budget."""
    spec = setup.task.spec
    axes = search_axes(setup.known.method(spec.method).load())
    if not spec.protocol.tune or not axes:
        return {}, []
    store = None if setup.task.store is None else Store(setup.task.store)
    return search(axes, spec.protocol.tune, spec.params, _Trials(setup, store))


class _Trials:
    """Runs trials, or takes them from the store when they have been run before."""

    def __init__(self, setup: RunSetup, store: Store | None) -> None:
        self.setup = setup
        self.store = store
        self.dev = setup.dev_corpus()
        self.alternatives = setup.dev_alternatives()
        self._problems: dict[str, Problem] = {}

    def __call__(self, axis: SearchAxis, value: float, params: Mapping[str, Any]) -> Trial:
        name = axis.via or self.setup.task.spec.method
        fields = self.setup.known.method(name).load().Params.__struct_fields__
        # Another method's trial must not depend on parameters it does not have: then the same
        # trial serves every method that asks for it.
        own = {key: item for key, item in params.items() if key in fields}
        trial_id = content_id({"trial": self._identity(name, own)})
        trial = self.store.load_trial(trial_id) if self.store else None
        if trial is not None:
            # What the run would have cost without the store.
            timing = self.setup.timer.timing
            timing["tune_stored"] = timing.get("tune_stored", 0.0) + trial.seconds
        else:
            trial = self._run(axis, value, name, own)
            if self.store and trial.error is None:  # failures are not worth keeping
                self.store.save_trial(trial_id, trial)
        return trial

    def _identity(self, name: str, params: dict[str, Any]) -> RunSpec:
        spec = self.setup.task.spec
        protocol = msgspec.structs.replace(spec.protocol, tune=0)  # the budget changes no trial
        code = code_version(plugin_targets(self.setup.known, spec, name))
        return msgspec.structs.replace(
            spec, method=name, params=params, protocol=protocol, code=code
        )

    def _run(self, axis: SearchAxis, value: float, name: str, params: dict[str, Any]) -> Trial:
        setup = self.setup
        began = time.perf_counter()
        dataset, metric, result, error = setup.dataset, setup.dataset.metric, None, None
        run = _context(setup.task)
        setup.timer.progress(f"trial: {name} {axis.param}={value:g}")
        if name not in self._problems:
            self._problems[name] = setup.problem(setup.drawn.train, name)
        try:
            values = make_params(setup.known.method(name).load(), params)
            tagger = setup.fit(self._problems[name], values, run, name)
            codes = predict(tagger, self.dev)
            scores = score_labels(
                *(dataset.task, dataset.encoding, self.dev, tagger, codes),
                alternatives=self.alternatives,
            )
            result = scores.metrics[metric]
        except UserError:
            raise
        except Exception as problem_found:  # a value at the edge of a grid may not train
            error = f"{type(problem_found).__name__}: {problem_found}"
        seconds = time.perf_counter() - began
        return Trial(axis.param, value, name, params, metric, result, seconds, error)


def plugin_targets(known: Registry, spec: RunSpec, method: str) -> list[str]:
    """The targets whose sources a run with this method depends on."""
    infos = [known.method(method), known.featurizer(spec.featurizer), known.model(spec.model)]
    if spec.data.columns is None:
        infos.append(known.dataset(spec.dataset))
    return [info.target for info in infos]
