"""Loading of plugins; a broken one is reported and does not affect the others.

pluggy defines the hooks. Its ``load_setuptools_entrypoints`` is not used: with it, a plugin that
raises on import stops the program, and of two distributions with the same entry-point name one is
silently dropped. Here each plugin has its own manager, and its errors become `PluginProblem`
objects that name the entry point and the distribution.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import FunctionType
from typing import NamedTuple, cast

import pluggy

from sslbench.entry_points import EntryPoint, canonical, find_entry_points
from sslbench.errors import UserError
from sslbench.registrations import (
    DatasetInfo,
    FeaturizerInfo,
    MethodInfo,
    ModelInfo,
    Registration,
    SimilarityInfo,
)

GROUP = "sslbench"
BLOCK_VARIABLE = "SSLBENCH_BLOCK"
KINDS: Mapping[str, type[Registration]] = {
    "methods": MethodInfo,
    "datasets": DatasetInfo,
    "featurizers": FeaturizerInfo,
    "models": ModelInfo,
    "similarities": SimilarityInfo,
}

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


class Hooks:
    """The hooks that a plugin module may implement, each returning a list of registrations."""

    @hookspec
    def sslbench_datasets(self) -> list[DatasetInfo]:
        """Return the datasets of this plugin."""
        raise NotImplementedError

    @hookspec
    def sslbench_featurizers(self) -> list[FeaturizerInfo]:
        """Return the featurizers of this plugin."""
        raise NotImplementedError

    @hookspec
    def sslbench_models(self) -> list[ModelInfo]:
        """Return the models of this plugin."""
        raise NotImplementedError

    @hookspec
    def sslbench_methods(self) -> list[MethodInfo]:
        """Return the methods of this plugin."""
        raise NotImplementedError

    @hookspec
    def sslbench_similarities(self) -> list[SimilarityInfo]:
        """Return the similarities of graph vertices of this plugin."""
        raise NotImplementedError


class Origin(NamedTuple):
    """Where a registration comes from: entry point, distribution and version."""

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} of {self.distribution} {self.version}".rstrip()


class PluginProblem(NamedTuple):
    """An error of one plugin (entry point) of one distribution."""

    plugin: str
    distribution: str
    message: str

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} of {self.distribution}: {self.message}"


@dataclass
class Registry:
    """All registrations by kind and name.

    Attributes
    ----------
    problems: errors of broken plugins.
    blocked: plugins left out because of `BLOCK_VARIABLE`.
    origins: where each registration comes from, by (kind, name).
    """

    datasets: dict[str, DatasetInfo] = field(default_factory=dict)
    featurizers: dict[str, FeaturizerInfo] = field(default_factory=dict)
    models: dict[str, ModelInfo] = field(default_factory=dict)
    methods: dict[str, MethodInfo] = field(default_factory=dict)
    similarities: dict[str, SimilarityInfo] = field(default_factory=dict)
    problems: list[PluginProblem] = field(default_factory=list)
    blocked: list[Origin] = field(default_factory=list)
    origins: dict[tuple[str, str], Origin] = field(default_factory=dict)

    def of_kind(self, kind: str) -> dict[str, Registration]:
        """The registrations of one of KINDS by name; UserError for another kind."""
        if kind not in KINDS:
            raise UserError(f"no kind {kind!r}", hint=suggestion(kind, KINDS))
        return cast(dict[str, Registration], getattr(self, kind))

    def get(self, kind: str, name: str) -> Registration:
        """The registration of this name; UserError with similar names if there is none."""
        entries = self.of_kind(kind)
        if name not in entries:
            hint = suggestion(name, entries)
            if self.blocked:
                names = ", ".join(str(origin) for origin in self.blocked)
                hint += f"; blocked by {BLOCK_VARIABLE}: {names}"
            raise UserError(f"no {KINDS[kind].kind} {name!r}", hint=hint)
        return entries[name]

    def dataset(self, name: str) -> DatasetInfo:
        """The dataset of this name; UserError with similar names if there is none."""
        return cast(DatasetInfo, self.get("datasets", name))

    def featurizer(self, name: str) -> FeaturizerInfo:
        """The featurizer of this name; UserError with similar names if there is none."""
        return cast(FeaturizerInfo, self.get("featurizers", name))

    def model(self, name: str) -> ModelInfo:
        """The model of this name; UserError with similar names if there is none."""
        return cast(ModelInfo, self.get("models", name))

    def method(self, name: str) -> MethodInfo:
        """The method of this name; UserError with similar names if there is none."""
        return cast(MethodInfo, self.get("methods", name))

    def similarity(self, name: str) -> SimilarityInfo:
        """The similarity of this name; UserError with similar names if there is none."""
        return cast(SimilarityInfo, self.get("similarities", name))

    def find(self, name: str) -> list[Registration]:
        """Registrations of any kind with this name; UserError with similar names if none has it."""
        infos = [self.of_kind(kind)[name] for kind in KINDS if name in self.of_kind(kind)]
        if not infos:
            names = [other for kind in KINDS for other in self.of_kind(kind)]
            raise UserError(f"nothing is called {name!r}", hint=suggestion(name, names))
        return infos

    def add(self, kind: str, info: Registration, origin: Origin) -> str | None:
        """Add a registration and return None, or return the message that its name is taken."""
        first = self.origins.get((kind, info.name))
        if first is not None:
            return f"{info.kind} {info.name!r} is already registered by {first}; ignored here"
        self.of_kind(kind)[info.name] = info
        self.origins[kind, info.name] = origin
        return None


def suggestion(name: str, names: Iterable[str]) -> str:
    """A hint: "did you mean" with similar names, or the list of all names if none is similar."""
    import difflib  # imported for mistakes only

    names = sorted(set(names))
    similar = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if similar:
        return f"did you mean {' or '.join(similar)}?"
    return f"there are: {', '.join(names)}" if names else "there are none"


@cache
def registry() -> Registry:
    """The registry of this process, loaded by the first call."""
    entries, unreadable = find_entry_points(GROUP)
    plugins = load_plugins(entries, _blocked_names())
    plugins.problems[:0] = [PluginProblem("?", *each) for each in unreadable]
    return plugins


def load_plugins(entries: Iterable[EntryPoint], blocked: frozenset[str] = frozenset()) -> Registry:
    """Load plugins in a fixed order: those of sslbench first, then by distribution and name.

    The first registration of a name counts, so that no plugin can replace a built-in one.
    blocked: canonical names of entry points or distributions to leave out.
    """
    plugins = Registry()
    for entry in sorted(entries, key=lambda e: (canonical(e.distribution) != GROUP, e)):
        origin = Origin(entry.name, entry.distribution, entry.version)
        if {canonical(origin.plugin), canonical(origin.distribution)} & blocked:
            plugins.blocked.append(origin)
            continue
        for message in _load_plugin(plugins, origin, entry):
            plugins.problems.append(PluginProblem(origin.plugin, origin.distribution, message))
    return plugins


def _load_plugin(plugins: Registry, origin: Origin, entry: EntryPoint) -> Iterator[str]:
    """Add the registrations of one plugin; yield its errors."""
    try:
        plugin = entry.load()
        manager = pluggy.PluginManager(GROUP)
        manager.add_hookspecs(Hooks)
        manager.register(plugin, origin.plugin)
    except (Exception, SystemExit) as problem:  # a script without a main guard may exit on import
        yield f"cannot be loaded: {_one_line(problem)}"
        return
    yield from _misspelled_hooks(manager, plugin)
    for kind, expected in KINDS.items():
        try:
            results = getattr(manager.hook, f"{GROUP}_{kind}")()
        except (Exception, SystemExit) as problem:
            yield f"hook {GROUP}_{kind} failed: {_one_line(problem)}"
            continue
        for result in results:
            yield from _add_result(plugins, origin, kind, expected, result)


def _add_result(
    plugins: Registry, origin: Origin, kind: str, expected: type[Registration], result: object
) -> Iterator[str]:
    """Add the registrations that a hook returned; yield the errors."""
    rule = f"hook {GROUP}_{kind} must return a list of {expected.__name__}"
    if not isinstance(result, list | tuple):
        yield f"{rule}, not {type(result).__name__}"
        return
    for item in result:
        if isinstance(item, expected):
            problem = plugins.add(kind, item, origin)
            if problem is not None:
                yield problem
        else:
            yield f"{rule}; one item is {type(item).__name__}"


def _misspelled_hooks(manager: pluggy.PluginManager, plugin: object) -> Iterator[str]:
    """Report implementations of unknown hooks, and functions with a hook's name but no mark."""
    hooks = [f"{GROUP}_{kind}" for kind in KINDS]
    marked = set()
    for caller in manager.get_hookcallers(plugin) or []:
        marked.add(caller.name)
        required = any(not implementation.optionalhook for implementation in caller.get_hookimpls())
        if not caller.has_spec() and required:
            yield f"unknown hook {caller.name!r}; {suggestion(caller.name, hooks)}"
    for name, value in vars(plugin).items() if hasattr(plugin, "__dict__") else ():
        if name.startswith(f"{GROUP}_") and name not in marked and isinstance(value, FunctionType):
            yield f"function {name!r} looks like a hook but is not marked with @hookimpl"


def _blocked_names() -> frozenset[str]:
    names = os.environ.get(BLOCK_VARIABLE, "").split(",")
    return frozenset(canonical(name) for name in names if name.strip())


def _one_line(problem: BaseException) -> str:
    return " ".join(f"{type(problem).__name__}: {problem}".split())
