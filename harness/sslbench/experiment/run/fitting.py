"""The plugins of a run at work, and what the steps of a run share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from sslbench.engine.compilation.compile_time import Seconds
from sslbench.engine.lazy import lazy
from sslbench.engine.types import I64
from sslbench.experiment.checks.guard import is_better
from sslbench.experiment.checks.weak_audit import audit_weak
from sslbench.experiment.context.checkpoints import Checkpoints, checkpoint_folder
from sslbench.experiment.context.context import RunContext, cpu_seconds
from sslbench.experiment.data import DataHome
from sslbench.experiment.data.weak import source_names
from sslbench.experiment.identity import corpus_hash
from sslbench.experiment.inputs.problem import DecodedTagger, Method, Problem, Tagger
from sslbench.experiment.inputs.protocol import Sample, no_text
from sslbench.experiment.inputs.text_features import FeaturedTagger, Learned, on_features
from sslbench.experiment.inputs.weak_sources import with_sources
from sslbench.experiment.planning.description import (
    MethodDescription,
    describe,
    describe_model,
    make_params,
)
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import GuardSpec, RunSpec, content_id
from sslbench.plugins import Registry


class MethodError(Exception):
    """An exception of a plugin in another process, with the end of its traceback."""

    def __init__(self, message: str, lines: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.lines = list(lines)


class MethodEndedError(Exception):
    """The process of the plugins has ended without an answer."""


@dataclass(frozen=True)
class Training:
    """What a method is to be trained on, and how.

    params: parameters besides those of the spec of the run; of the model, as MODEL.NAME.
    guard: the method that is trained instead unless this one is better; None = no guard.
    """

    problem: Problem
    params: Mapping[str, Any]
    guard: GuardSpec | None = None


@dataclass(frozen=True)
class Fitted:
    """A trained tagger.

    params: all parameters of the training as plain values, and those of the model that are tuned.
    used_dev: whether the training read development labels.
    """

    tagger: Tagger
    params: dict[str, Any]
    used_dev: bool


def _fit(cls: type[Method], params: Any, problem: Problem, run: RunContext) -> Tagger:
    tagger = cls().fit(problem, params, run)
    run.finish()
    return tagger


class RunMethod(ABC):
    """The method of a run with its featurizer and model, in this process or another.

    Attributes
    ----------
    compile_s: wall seconds in which another process has compiled kernels.
    earlier: what killed parts of the trainings took, until the checkpoints that they left.
    isolation: what hides labels from the method, besides that they are not in its memory.
    violations: what the plugins have tried to read or import, and must not.
    """

    def __init__(self) -> None:
        self.compile_s = 0.0
        self.earlier = Seconds()
        self.isolation = "none"
        self.violations: list[str] = []

    @property
    @abstractmethod
    def featurizer(self) -> Any:
        """What the problem of `fit` gets."""

    @property
    @abstractmethod
    def model(self) -> Any:
        """What the problem of `fit` gets."""

    @property
    @abstractmethod
    def description(self) -> MethodDescription:
        """The method with the parameters fixed that the spec of the run gives."""

    @property
    def cpu_s(self) -> float:
        """CPU seconds of another process, without compilation."""
        return 0.0

    @abstractmethod
    def fit(self, training: Training, run: RunContext) -> Fitted:
        """Train."""

    def close(self) -> None:  # noqa: B027  # nothing to do in this process
        """End the other process and all that it has started."""


class LocalMethod(RunMethod):
    """The method in this process."""

    def __init__(self, spec: RunSpec, plugins: Registry) -> None:
        super().__init__()
        self.spec = spec
        self.plugins = plugins
        self._learned: dict[str, tuple[dict[str, Learned], dict[str, Any]]] = {}

    @lazy
    def cls(self) -> type[Method]:
        """The class of the method."""
        method: type[Method] = self.plugins.method(self.spec.method).load()
        return method

    @lazy
    def featurizer(self) -> Any:
        return self.plugins.featurizer(self.spec.featurizer).load()()

    @lazy
    def model(self) -> Any:
        return self._model({})

    def _model(self, values: Mapping[str, Any]) -> Any:
        """The model. values: of parameters that are tuned."""
        target = self.plugins.model(self.spec.model).load()
        if getattr(target, "Params", None) is not None:
            params = make_params(target, {**self.spec.of_model, **values})
            return target(params, self.spec.protocol.seed)
        return target() if isinstance(target, type) else target

    @lazy
    def description(self) -> MethodDescription:
        method = describe(self.cls, self.spec.params, self.spec.first_trial)
        reads = method.uses_unlabeled or bool(self.spec.learned)
        name = self.spec.model
        model = describe_model(name, self.plugins.model(name).load(), self.spec.of_model)
        return msgspec.structs.replace(method.on_model(model), uses_unlabeled=reads)

    def fit(self, training: Training, run: RunContext) -> Fitted:
        """See `RunMethod`."""
        problem = self._with_sources(training.problem)
        start = f"{self.spec.model}."
        chosen = {k: v for k, v in training.params.items() if k.startswith(start)}
        if chosen:
            model = self._model({k.removeprefix(start): v for k, v in chosen.items()})
            problem = replace(problem, model=model)
        training = replace(training, problem=problem)
        own = {k: v for k, v in training.params.items() if k not in chosen}
        values = make_params(self.cls, {**self.spec.params, **own})
        plain = msgspec.to_builtins(values) | chosen
        if run.checkpoints is not None:
            text = problem.unlabeled.n_sentences
            run.checkpoints = run.checkpoints.of(plain, corpus_hash(problem.labeled), text)
        if source_names(problem.labeled.columns) and self.description.uses_unlabeled:
            run.trace["weak_sources"] = audit_weak(problem)
        learned = self._learn(problem, run)
        if learned:
            reads = bool(getattr(self.cls, "uses_unlabeled", True))
            rich = on_features(problem, tuple(learned.values()), text=reads)
            tagger = self._guarded(values, replace(training, problem=rich), run)
            tagger = FeaturedTagger(tagger, learned)
            problem.dev_labels.seen |= rich.dev_labels.seen
        else:
            tagger = self._guarded(values, training, run)
        if run.checkpoints is not None:
            run.checkpoints.remove()
        self.earlier = Seconds(*map(sum, zip(self.earlier, run.earlier, strict=True)))
        return Fitted(tagger, plain, problem.dev_labels.seen)

    def _guarded(self, values: Any, training: Training, run: RunContext) -> Tagger:
        """The method's tagger, or that of the guard's method."""
        problem, guard = training.problem, training.guard
        if guard is not None:
            other: type[Method] = self.plugins.method(guard.method).load()
            theirs = make_params(other, guard.params)
            method = partial(_fit, self.cls, values)
            if not is_better(problem, guard, method, partial(_fit, other, theirs), run):
                return _fit(other, theirs, problem, run)
        return _fit(self.cls, values, problem, run)

    def _with_sources(self, problem: Problem) -> Problem:
        """The problem with the weak labels of programs, if the run has any."""
        if not self.spec.weak_sources:
            return problem
        sources = {name: self.plugins.weak_source(name).load() for name in self.spec.weak_sources}
        params = self.spec.weak_sources
        return with_sources(
            problem,
            {name: (cls(), make_params(cls, params[name])) for name, cls in sources.items()},
        )

    def _learn(self, problem: Problem, run: RunContext) -> dict[str, Learned]:
        """Features learned from the text, by name; trials of tuning on one text share them."""
        if not self.spec.learned:
            return {}
        key = ""
        if self.spec.protocol.tuned:
            shards = [corpus_hash(shard) for shard in problem.unlabeled]
            key = content_id([corpus_hash(problem.labeled), *shards])
        if not key or key not in self._learned:
            learned, notes = {}, {}
            with run.phase("text_features"):
                for name, params in self.spec.learned.items():
                    cls = self.plugins.learner(name).load()
                    # other random numbers: the method's do not depend on what trials share
                    apart = run.apart(self.spec.protocol.seed)
                    learned[name] = cls().learn(problem, make_params(cls, params), apart)
                    notes[name] = apart.trace
            self._learned = {key: (learned, notes)}
        learned, notes = self._learned[key]
        run.trace.update(notes)
        return learned


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
