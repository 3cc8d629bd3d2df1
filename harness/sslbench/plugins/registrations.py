"""Registrations: descriptions of methods, datasets, featurizers and models.

A registration names its target, which is imported on use. This module imports only the standard
library, so that listing all plugins takes milliseconds.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, fields
from importlib import import_module
from operator import attrgetter
from typing import Any, ClassVar

from sslbench.engine.errors import UserError, described

TASKS = ("tagging", "spans", "segmentation", "joint")
#: parameters of `sslbench.GraphParams` that a dataset may declare
GRAPH_VALUES = ("column", "similarity", "neighbors", "symmetry")
#: what a model may offer to methods beyond `sslbench.engine.crf.SequenceModel`
CAPABILITIES: Mapping[str, str] = {
    "log_linear": "log-potentials are linear in weights: expected features, and their pruning",
    "factors": "weights of factor features, which a method computes",
    "first_order": "no scores of three labels in a row",
    "features": "reads the templates and the dense columns of the featurizer",
    "masked_words": "guesses words that it does not see, and is trained to",
}

LONGEST_TEXT = 10_000  # characters of a field
#: else a model could make every replay of a submission pass
MOST_TOLERANCE = 0.05
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def load_target(target: str, what: str) -> Any:
    """Import ``"module:attribute"`` and return the object that it names.

    What the import prints goes to standard error.

    what: the registration, for the message.

    Raises
    ------
    UserError: the import fails; the original exception is its cause.
    """
    module, _, attribute = target.partition(":")
    try:
        with redirect_stdout(sys.stderr):
            return attrgetter(attribute)(import_module(module))
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as problem:  # a plugin's module may raise anything on import
        raise UserError(f"{what}: cannot load {target}: {described(problem)}") from problem


def _check_fields(registration: object) -> None:
    """Raise TypeError or ValueError if a text or a tuple is none, or a text is very long."""
    where = type(registration).__name__
    for each in fields(registration):  # type: ignore[arg-type]
        value, declared = getattr(registration, each.name), str(each.type)
        if declared == "str":
            if not isinstance(value, str):
                raise TypeError(f"{where}: {each.name} must be a str, not {type(value).__name__}")
            if len(value) > LONGEST_TEXT:
                message = f"{where}: {each.name} has more than {LONGEST_TEXT:,} characters"
                raise ValueError(message)
        elif declared.startswith("tuple") and each.name != "tasks":
            kind = RemoteFile if "RemoteFile" in declared else str
            if not isinstance(value, tuple) or not all(isinstance(item, kind) for item in value):
                raise TypeError(f"{where}: {each.name} must be a tuple of {kind.__name__}")


@dataclass(frozen=True, kw_only=True)
class Registration:
    """Base class of what a plugin registers.

    Attributes
    ----------
    name: used on the command line; unique within its kind.
    summary: one line.
    reference: publication, or origin of a corpus.
    target: ``"module:attribute"``, imported on use.
    version: version of its code, from 1. Raise it when the same run gets other predictions: stored
        runs of an earlier version are stale.
    """

    name: str
    summary: str
    reference: str
    target: str
    version: int = 1

    kind: ClassVar[str] = "registration"

    def __post_init__(self) -> None:
        """TypeError or ValueError for a wrong field."""
        _check_fields(self)
        where = type(self).__name__
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{where}: {self.name!r} is not a usable name")
        if not _TARGET.fullmatch(self.target):
            wrong = f"target must read 'module:attribute', not {self.target!r}"
            raise ValueError(f"{where} {self.name}: {wrong}")
        if type(self.version) is not int or self.version < 1:
            raise ValueError(f"{where} {self.name}: version must be 1, 2, ...")

    def load(self) -> Any:
        """Import the target; UserError if that fails."""
        return load_target(self.target, f"{self.kind} {self.name}")


def _check_tasks(registration: Registration, tasks: tuple[str, ...]) -> None:
    if isinstance(tasks, str) or not tasks or not set(tasks) <= set(TASKS):
        where = f"{type(registration).__name__} {registration.name}"
        raise ValueError(f"{where}: tasks {tasks!r} must be some of {TASKS}")


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file of a dataset that can be downloaded.

    Attributes
    ----------
    path: relative to the data home, with forward slashes.
    urls: tried in this order.
    sha256: hash of the whole file, 64 lower-case hexadecimal digits.
    licence: terms of use.
    bytes: length of the file.
    extra: only needed for external unlabeled text.
    agreement: the licence restricts use, so that the user must accept it before the download;
        `licence` is the text to accept.
    """

    path: str
    urls: tuple[str, ...]
    sha256: str
    licence: str
    bytes: int
    extra: bool = False
    agreement: bool = False

    def __post_init__(self) -> None:
        """TypeError or ValueError for a wrong field."""
        _check_fields(self)
        if {"", ".", ".."} & set(self.path.split("/")) or "\\" in self.path or ":" in self.path:
            # No registration may write outside the data home.
            raise ValueError(f"RemoteFile: {self.path!r} is not a path below the data home")
        if not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"RemoteFile {self.path}: sha256 must be 64 lower-case hex digits")
        if not isinstance(self.bytes, int) or self.bytes < 1:  # limits the download
            raise ValueError(f"RemoteFile {self.path}: bytes must be the length of the file")


@dataclass(frozen=True, kw_only=True)
class DatasetInfo(Registration):
    """A dataset; its target is ``load(home: DataHome, **options) -> Dataset``.

    With `draws` it is ``load(home: DataHome, *, seed: int = 0, **options) -> Dataset``.

    Attributes
    ----------
    licence: licence of the corpus.
    task: one of TASKS.
    metric: name of the primary metric, e.g. ``"f1"``.
    featurizer: name of the default featurizer.
    protocol: splits and evaluation, in words.
    files: needed in the data home, downloaded if missing.
    own: files that the user must provide since they may not be redistributed, in words; "" = none.
    options: ``"module:Struct"`` with the options of ``load``; "" = none.
    family: corpora that share annotation or source, e.g. ``"UD treebanks"``. Statistics across
        corpora count a family once; "" = the dataset is a family of its own.
    tune: default tuning trials per method if all of train is labeled.
    draws: the data depend on the seed of the run, which `load` gets: seed s is draw s.
    weak: names of the weak sources whose labels are columns ``weak:NAME`` of its text.
    graph: values of `sslbench.GraphParams` for methods with a parameter ``similarity``, unless the
        user sets them, e.g. ``{"column": "image", "similarity": "letters"}``.
    """

    licence: str
    task: str
    metric: str
    featurizer: str
    protocol: str
    files: tuple[RemoteFile, ...] = ()
    own: str = ""
    options: str = ""
    family: str = ""
    tune: int = 0
    draws: bool = False
    weak: tuple[str, ...] = ()
    graph: Mapping[str, str | int] = field(default_factory=dict)

    kind: ClassVar[str] = "dataset"

    def __post_init__(self) -> None:
        """TypeError or ValueError for a wrong field."""
        super().__post_init__()
        _check_tasks(self, (self.task,))
        for name in self.graph:
            if name not in GRAPH_VALUES:
                raise ValueError(
                    f"DatasetInfo {self.name}: graph has {name!r}; there are"
                    f" {', '.join(GRAPH_VALUES)}"
                )


@dataclass(frozen=True, kw_only=True)
class FeaturizerInfo(Registration):
    """A featurizer; its target is a callable ``() -> TemplateFeaturizer``.

    Attributes
    ----------
    columns: columns that the corpus must have.
    tasks: tasks that it is made for.
    """

    columns: tuple[str, ...] = ("word",)
    tasks: tuple[str, ...] = TASKS

    kind: ClassVar[str] = "featurizer"

    def __post_init__(self) -> None:
        """TypeError or ValueError for a wrong field."""
        super().__post_init__()
        _check_tasks(self, self.tasks)


def _check_capabilities(registration: Registration, field: str) -> None:
    unknown = [name for name in getattr(registration, field) if name not in CAPABILITIES]
    if unknown:
        raise ValueError(
            f"{type(registration).__name__} {registration.name}: {field} has {unknown[0]!r}; there"
            f" are {', '.join(CAPABILITIES)}"
        )


def _check_cost(registration: Registration, cost: float) -> None:
    if not 0 < cost < math.inf:
        raise ValueError(f"{type(registration).__name__}: cost must be a number above 0")


@dataclass(frozen=True, kw_only=True)
class ModelInfo(Registration):
    """A sequence model; the interface of its target is `sslbench.experiment.inputs.problem.Model`.

    Attributes
    ----------
    provides: names of CAPABILITIES. A method that needs another one is not run with the model.
    labels_only: whether it is trained on labels and gives labels, see
        `sslbench.engine.crf.Labeler`; it runs with methods that need no more.
    tolerance: share of the labels that may differ in a replay on another kind of processor, where
        sums have other last bits, before ``sslbench verify`` fails; at most MOST_TOLERANCE.
    cost: CPU seconds of a training on 100 sentences divided by those of a first-order CRF, roughly;
        runs are priced by it until there are runs with the model.
    """

    provides: tuple[str, ...] = ()
    labels_only: bool = False
    tolerance: float = 0.0
    cost: float = 10.0

    kind: ClassVar[str] = "model"

    def __post_init__(self) -> None:
        """TypeError or ValueError for a wrong field."""
        super().__post_init__()
        _check_capabilities(self, "provides")
        if not 0 <= self.tolerance <= MOST_TOLERANCE:
            raise ValueError(f"ModelInfo {self.name}: tolerance must be in [0, {MOST_TOLERANCE}]")
        _check_cost(self, self.cost)


@dataclass(frozen=True, kw_only=True)
class MethodInfo(Registration):
    """A learning method; its target is a class with ``Params`` and ``fit``.

    Attributes
    ----------
    baseline: whether other methods are compared with it.
    tasks: tasks that the method is for; runs on datasets of other tasks are skipped.
    models: names of the models that it works with, () = all; runs with others are skipped.
    needs_model: names of CAPABILITIES that a model must provide; runs with others are skipped.
    labels_only: whether it trains models on labels alone and reads the labels that they give; runs
        of others with a model that has no scores of labels are skipped.
    needs: parameters that have no default of use: runs that leave one empty are skipped.
    without_labels: whether it can learn without any labeled sentence; else such runs are skipped.
    weak: whether it learns from weak labels; runs without any are skipped.
    cost: CPU seconds of a training divided by the baseline's, roughly; ``sslbench choose`` tries
        cheap methods first.
    """

    baseline: bool = False
    tasks: tuple[str, ...] = TASKS
    models: tuple[str, ...] = ()
    needs_model: tuple[str, ...] = ()
    labels_only: bool = False
    needs: tuple[str, ...] = ()
    without_labels: bool = False
    weak: bool = False
    cost: float = 10.0

    kind: ClassVar[str] = "method"

    def __post_init__(self) -> None:
        """TypeError or ValueError for a wrong field."""
        super().__post_init__()
        _check_capabilities(self, "needs_model")
        _check_tasks(self, self.tasks)
        _check_cost(self, self.cost)

    def misfit(self, task: str, model: ModelInfo) -> str | None:
        """Why the method cannot run on this task with this model; None if it can."""
        if task not in self.tasks:
            return f"for {', '.join(self.tasks)}, not {task}"
        if self.models and model.name not in self.models:
            return f"for model {', '.join(self.models)}, not {model.name}"
        if model.labels_only and not self.labels_only:
            return f"for models that give scores of labels, not {model.name}"
        lacking = [name for name in self.needs_model if name not in model.provides]
        if lacking:
            return f"for models that provide {', '.join(lacking)}, not {model.name}"
        return None

    def lacks(self, params: Mapping[str, Any], labeled: int | str, weak: bool) -> str | None:
        """Why the method cannot run with these parameters and labels; None if it can.

        weak: whether there are weak labels.
        """
        if self.weak and not weak:
            return "without weak labels: give --weak SOURCE, or columns weak:NAME in --columns"
        for name in self.needs:
            if not params.get(name):
                return f"without its parameter {name}: give --set {self.name}.{name}=..."
        if labeled == 0 and not self.without_labels:
            return "without labeled sentences, and learns from them"
        return None


@dataclass(frozen=True, kw_only=True)
class SimilarityInfo(Registration):
    """A similarity of graph vertices; its target is a callable ``() -> Similarity``.

    The interface is `sslbench.engine.graph.similarity.Similarity`.
    """

    kind: ClassVar[str] = "similarity"


@dataclass(frozen=True, kw_only=True)
class TextFeaturesInfo(Registration):
    """Features that are learned from unlabeled text, for ``--with``.

    The interface of its target is `sslbench.experiment.inputs.text_features.TextFeatures`.
    """

    kind: ClassVar[str] = "text feature"


@dataclass(frozen=True, kw_only=True)
class WeakSourceInfo(Registration):
    """A program that gives weak labels, for ``--weak``.

    The interface of its target is `sslbench.experiment.inputs.weak_sources.WeakLabeler`.
    """

    kind: ClassVar[str] = "weak source"
