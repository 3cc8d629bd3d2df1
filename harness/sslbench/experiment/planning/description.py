"""What planning and tuning need to know of plugins: plain data.

Code of other distributions is imported by a process of its own, not by that of the command, which
stores records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from sslbench.engine.errors import UserError, described
from sslbench.experiment.planning.space import (
    SearchAxis,
    default_values,
    legal_ends,
    model_axes,
    open_axes,
)
from sslbench.experiment.planning.values import file_params, typed_values
from sslbench.experiment.request.words import in_words
from sslbench.plugins import Registry
from sslbench.plugins.hooks import KINDS, is_built_in
from sslbench.plugins.registrations import ModelInfo
from sslbench.processes.child import ChildError, call_apart

T = TypeVar("T")
SECONDS = 60.0  # for an import that compiles


class MethodDescription(msgspec.Struct, frozen=True):
    """A method, or a model, with some of its parameters fixed.

    Attributes
    ----------
    params: all parameters, with their defaults.
    axes: what tuning may search; defaults: a value for each of them.
    ends: the least and greatest legal values of each of these parameters, where it has them.
    uses_unlabeled: the method reads unlabeled text.
    presets: named values of some parameters.  preset_notes: what to know of some presets.
    task_defaults: by task, values that some parameters have there if nobody sets them.
    files: the parameters that are paths of the user's files, see `UserFile`.
    """

    params: dict[str, Any]
    axes: tuple[SearchAxis, ...] = ()
    defaults: dict[str, Any] = {}
    ends: dict[str, list[float]] = {}
    uses_unlabeled: bool = True
    presets: dict[str, dict[str, Any]] = {}
    preset_notes: dict[str, str] = {}
    task_defaults: dict[str, dict[str, Any]] = {}
    files: tuple[str, ...] = ()

    def of_graph(self, graph: Mapping[str, str | int]) -> dict[str, Any]:
        """What a corpus says of its graph (`DatasetInfo.graph`), for a method that builds one."""
        over_graph = "similarity" in self.params
        return {k: v for k, v in graph.items() if k in self.params} if over_graph else {}

    def on_model(self, model: MethodDescription) -> MethodDescription:
        """The method with what tuning may search of its model, too."""
        return msgspec.structs.replace(
            self,
            axes=self.axes + model.axes,
            defaults=self.defaults | model.defaults,
            ends=self.ends | model.ends,
        )

    def on_task(
        self, task: str, given: Mapping[str, Any], *, tuned: bool
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The defaults of a task: parameters that they fix, and values of the first trial.

        given: parameters that are not left to defaults.  tuned: whether `axes` are searched.
        """
        searched = {axis.param for axis in self.axes} if tuned else set()
        usual = self.task_defaults.get(task, {})
        left = {name: value for name, value in usual.items() if name not in given}
        fixed = {name: value for name, value in left.items() if name not in searched}
        return fixed, {name: value for name, value in left.items() if name in searched}


def method_description(plugins: Registry, name: str, fixed: Mapping[str, Any]) -> MethodDescription:
    """`describe` of a registered method; UserError if it cannot be loaded."""
    return _apart(
        plugins,
        ("methods", name),
        lambda: describe(plugins.method(name).load(), fixed),
        MethodDescription,
    )


def learner_description(
    plugins: Registry, name: str, fixed: Mapping[str, Any]
) -> MethodDescription:
    """Describe features that are learned from text; UserError if they cannot be loaded."""
    return _with_params(plugins, ("text_features", name), fixed)


def source_description(plugins: Registry, name: str, fixed: Mapping[str, Any]) -> MethodDescription:
    """Describe a source of weak labels; UserError if it cannot be loaded."""
    return _with_params(plugins, ("weak_sources", name), fixed)


def _with_params(
    plugins: Registry, what: tuple[str, str], fixed: Mapping[str, Any]
) -> MethodDescription:
    """The parameters of a registration. what: its kind and name."""

    def described() -> MethodDescription:
        target = plugins.get(*what).load()
        params = msgspec.to_builtins(make_params(target, fixed))
        return MethodDescription(params, files=file_params(target.Params))

    return _apart(plugins, what, described, MethodDescription)


def model_description(plugins: Registry, name: str, fixed: Mapping[str, Any]) -> MethodDescription:
    """`describe_model` of a registered model; UserError as above."""
    return _apart(
        plugins,
        ("models", name),
        lambda: describe_model(name, plugins.model(name).load(), fixed),
        MethodDescription,
    )


def featurizer_digest(plugins: Registry, name: str) -> str:
    """First 16 digits of a hash of the templates; for dense columns, the version counts."""

    def digest() -> str:
        featurizer = plugins.featurizer(name).load()()
        lines = [*map(repr, featurizer.templates), str(featurizer.dense is not None)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

    return _apart(plugins, ("featurizers", name), digest, str)


def _apart(plugins: Registry, what: tuple[str, str], call: Callable[[], T], kind: type[T]) -> T:
    """The result of a call, in another process if the registration is of another distribution."""
    origin = plugins.origins.get(what)
    if origin is None or is_built_in(origin.distribution):
        return call()
    plural, name = what
    where = f"{KINDS[plural].kind} {name!r} of {origin.distribution} cannot be loaded"

    def encoded() -> bytes:
        try:
            return msgspec.json.encode(call())
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{where}: {described(error)}") from error

    try:
        return msgspec.json.decode(call_apart(encoded, SECONDS), type=kind)
    except (ChildError, msgspec.MsgspecError) as error:
        raise UserError(f"{where}: {error}") from None


def describe(
    method: type[Any], fixed: Mapping[str, Any], first: Mapping[str, Any] | None = None
) -> MethodDescription:
    """Describe a method; UserError for a fixed parameter that does not fit.

    first: values of the first trial, for axes where they are not the method's own.
    """
    axes = open_axes(method.Params, fixed)
    return MethodDescription(
        params=msgspec.to_builtins(make_params(method, fixed)),
        axes=axes,
        defaults=default_values(method.Params, axes) | dict(first or {}),
        ends={axis.param: legal_ends(method.Params, axis.param) for axis in axes},
        uses_unlabeled=bool(getattr(method, "uses_unlabeled", True)),
        presets=presets_of(method.Params),
        preset_notes=preset_notes_of(method.Params),
        task_defaults=task_defaults_of(method.Params),
        files=file_params(method.Params),
    )


def describe_model(name: str, target: Any, fixed: Mapping[str, Any]) -> MethodDescription:
    """Describe a model; its axes have the names MODEL.PARAMETER.

    UserError for a fixed parameter that does not fit.
    """
    params = getattr(target, "Params", None)
    if params is None:
        return MethodDescription({})
    axes = model_axes(name, params, fixed)
    return MethodDescription(
        params=msgspec.to_builtins(make_params(target, fixed)),
        axes=axes,
        defaults=default_values(params, axes),
        ends={axis.param: legal_ends(params, axis.param.rpartition(".")[2]) for axis in axes},
        files=file_params(params),
    )


def presets_of(params: type[Any]) -> dict[str, dict[str, Any]]:
    """The presets that a method's `Params` declares."""
    return {name: dict(values) for name, values in getattr(params, "presets", {}).items()}


def task_defaults_of(params: type[Any]) -> dict[str, dict[str, Any]]:
    """The defaults by task that a method's `Params` declares."""
    return {task: dict(values) for task, values in getattr(params, "task_defaults", {}).items()}


def has_task_defaults(model: ModelInfo) -> bool:
    """Whether methods have their defaults by task with a model: those are for log-linear ones."""
    return "log_linear" in model.provides


def preset_notes_of(params: type[Any]) -> dict[str, str]:
    """What a method's `Params` says of its presets, by name."""
    return dict(getattr(params, "preset_notes", {}))


def make_params(method: type[Any], values: Mapping[str, Any]) -> Any:
    """The method's `Params` from plain values; UserError names a field that does not fit."""
    try:
        return typed_values(method.Params, values)
    except msgspec.ValidationError as error:
        what = in_words(error, values, method.Params)
        message = f"parameter of {method.__name__}: {what}"
        raise UserError(message, hint="see sslbench show") from error
