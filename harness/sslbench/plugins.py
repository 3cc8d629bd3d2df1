"""Finding plugins, and surviving the bad ones.

pluggy defines the hooks. Its ``load_setuptools_entrypoints`` is not used: there one plugin that
raises on import takes the host down, and of two distributions with the same entry-point name one
vanishes without a word. Here each plugin gets a manager of its own; what is wrong with it becomes a
``PluginProblem`` that names the entry point and the distribution, and the others go on.
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
        """Return the datasets that this plugin offers."""
        raise NotImplementedError

    @hookspec
    def sslbench_featurizers(self) -> list[FeaturizerInfo]:
        """Return the featurizers that this plugin offers."""
        raise NotImplementedError

    @hookspec
    def sslbench_models(self) -> list[ModelInfo]:
        """Return the models that this plugin offers."""
        raise NotImplementedError

    @hookspec
    def sslbench_methods(self) -> list[MethodInfo]:
        """Return the methods that this plugin offers."""
        raise NotImplementedError

    @hookspec
    def sslbench_similarities(self) -> list[SimilarityInfo]:
        """Return the similarities of graph vertices that this plugin offers."""
        raise NotImplementedError


class Origin(NamedTuple):
    """Where a registration comes from: entry point, distribution and its version."""

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} of {self.distribution} {self.version}".rstrip()


class PluginProblem(NamedTuple):
    """What is wrong with one plugin (entry point) of one distribution."""

    plugin: str
    distribution: str
    message: str

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} of {self.distribution}: {self.message}"


@dataclass
class Registry:
    """Everything that the plugins offer, by kind and name."""

    datasets: dict[str, DatasetInfo] = field(default_factory=dict)
    featurizers: dict[str, FeaturizerInfo] = field(default_factory=dict)
    models: dict[str, ModelInfo] = field(default_factory=dict)
    methods: dict[str, MethodInfo] = field(default_factory=dict)
    similarities: dict[str, SimilarityInfo] = field(default_factory=dict)
    problems: list[PluginProblem] = field(default_factory=list)
    blocked: list[Origin] = field(default_factory=list)
    origins: dict[tuple[str, str], Origin] = field(default_factory=dict)

    def of_kind(self, kind: str) -> dict[str, Registration]:
        """Return name -> registration of one of KINDS."""
        if kind not in KINDS:
            raise UserError(f"no kind {kind!r}", hint=suggestion(kind, KINDS))
        return cast(dict[str, Registration], getattr(self, kind))

    def get(self, kind: str, name: str) -> Registration:
        """Return the registration; UserError with near names when there is none."""
        entries = self.of_kind(kind)
        if name not in entries:
            hint = suggestion(name, entries)
            if self.blocked:
                names = ", ".join(str(origin) for origin in self.blocked)
                hint += f"; blocked by {BLOCK_VARIABLE}: {names}"
            raise UserError(f"no {KINDS[kind].kind} {name!r}", hint=hint)
        return entries[name]

    def dataset(self, name: str) -> DatasetInfo:
        """Return a dataset; UserError with near names when there is none."""
        return cast(DatasetInfo, self.get("datasets", name))

    def featurizer(self, name: str) -> FeaturizerInfo:
        """Return a featurizer; UserError with near names when there is none."""
        return cast(FeaturizerInfo, self.get("featurizers", name))

    def model(self, name: str) -> ModelInfo:
        """Return a model; UserError with near names when there is none."""
        return cast(ModelInfo, self.get("models", name))

    def method(self, name: str) -> MethodInfo:
        """Return a method; UserError with near names when there is none."""
        return cast(MethodInfo, self.get("methods", name))

    def similarity(self, name: str) -> SimilarityInfo:
        """Return a similarity; UserError with near names when there is none."""
        return cast(SimilarityInfo, self.get("similarities", name))

    def find(self, name: str) -> list[Registration]:
        """Return what bears this name, of any kind; UserError with near names when nothing does."""
        found = [self.of_kind(kind)[name] for kind in KINDS if name in self.of_kind(kind)]
        if not found:
            every = [known for kind in KINDS for known in self.of_kind(kind)]
            raise UserError(f"nothing is called {name!r}", hint=suggestion(name, every))
        return found

    def add(self, kind: str, info: Registration, origin: Origin) -> str | None:
        """Enter one registration; the text of the problem when its name is taken."""
        known = self.origins.get((kind, info.name))
        if known is not None:
            return f"{info.kind} {info.name!r} is already registered by {known}; ignored here"
        self.of_kind(kind)[info.name] = info
        self.origins[kind, info.name] = origin
        return None


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?" with near names, or the list of all when none is near."""
    import difflib  # only needed for a mistake

    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"there are: {', '.join(names)}" if names else "there are none"


@cache
def registry() -> Registry:
    """Return the registry of this process, loaded on the first call."""
    entries, unreadable = find_entry_points(GROUP)
    found = load_plugins(entries, _blocked_names())
    found.problems[:0] = [PluginProblem("?", *each) for each in unreadable]
    return found


def load_plugins(entries: Iterable[EntryPoint], blocked: frozenset[str] = frozenset()) -> Registry:
    """Load plugins in a fixed order: the harness's own distribution first, then by name.

    With that order nobody can change what a built-in name means by shipping the same one.
    ``blocked``: canonical names of entry points or distributions.
    """
    found = Registry()
    for entry in sorted(entries, key=lambda e: (canonical(e.distribution) != GROUP, e)):
        origin = Origin(entry.name, entry.distribution, entry.version)
        if {canonical(origin.plugin), canonical(origin.distribution)} & blocked:
            found.blocked.append(origin)
            continue
        for message in _load_plugin(found, origin, entry):
            found.problems.append(PluginProblem(origin.plugin, origin.distribution, message))
    return found


def _load_plugin(found: Registry, origin: Origin, entry: EntryPoint) -> Iterator[str]:
    """Enter one plugin's registrations; yield what is wrong with it."""
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
            yield from _enter(found, origin, kind, expected, result)


def _enter(
    found: Registry, origin: Origin, kind: str, expected: type[Registration], result: object
) -> Iterator[str]:
    """Enter what one hook returned; yield what is wrong with it."""
    wanted = f"hook {GROUP}_{kind} must return a list of {expected.__name__}"
    if not isinstance(result, list | tuple):
        yield f"{wanted}, not {type(result).__name__}"
        return
    for item in result:
        if isinstance(item, expected):
            problem = found.add(kind, item, origin)
            if problem is not None:
                yield problem
        else:
            yield f"{wanted}; one item is {type(item).__name__}"


def _misspelled_hooks(manager: pluggy.PluginManager, plugin: object) -> Iterator[str]:
    """Yield hook implementations that no hook answers to, and unmarked functions named like one."""
    known = [f"{GROUP}_{kind}" for kind in KINDS]
    marked = set()
    for caller in manager.get_hookcallers(plugin) or []:
        marked.add(caller.name)
        required = any(not implementation.optionalhook for implementation in caller.get_hookimpls())
        if not caller.has_spec() and required:
            yield f"unknown hook {caller.name!r}; {suggestion(caller.name, known)}"
    for name, value in vars(plugin).items() if hasattr(plugin, "__dict__") else ():
        if name.startswith(f"{GROUP}_") and name not in marked and isinstance(value, FunctionType):
            yield f"function {name!r} looks like a hook but is not marked with @hookimpl"


def _blocked_names() -> frozenset[str]:
    names = os.environ.get(BLOCK_VARIABLE, "").split(",")
    return frozenset(canonical(name) for name in names if name.strip())


def _one_line(problem: BaseException) -> str:
    return " ".join(f"{type(problem).__name__}: {problem}".split())
