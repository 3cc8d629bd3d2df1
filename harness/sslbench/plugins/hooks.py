"""The hooks of plugins, and what one plugin registers through them.

pluggy defines the hooks. Its ``load_setuptools_entrypoints`` is not used: with it, a plugin that
raises on import stops the program, and of two distributions with the same entry-point name one is
silently dropped. Here each plugin has its own manager, and its errors become messages.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import distributions
from operator import attrgetter
from types import FunctionType
from typing import Any, NamedTuple

import pluggy

from sslbench.engine.errors import described
from sslbench.plugins.registrations import (
    DatasetInfo,
    FeaturizerInfo,
    MethodInfo,
    ModelInfo,
    Registration,
    SimilarityInfo,
    TextFeaturesInfo,
    WeakSourceInfo,
)

_FILE = "entry_points.txt"


class EntryPoint(NamedTuple):
    """One line of a group, ``name = value``, with distribution and version ("" if unknown)."""

    name: str
    value: str
    distribution: str
    version: str

    @property
    def is_built_in(self) -> bool:
        """Whether it is of sslbench's own distribution."""
        return is_built_in(self.distribution)

    def load(self) -> Any:
        """Import the object that the value names.

        Raises
        ------
        ValueError: the value is neither ``module`` nor ``module:object``.
        Exception: any exception of the import.
        """
        parts = re.fullmatch(r"\s*([\w.]+)\s*(?::\s*([\w.]+)\s*)?(?:\[.*\])?\s*", self.value)
        if parts is None:
            raise ValueError(f"entry point value {self.value!r} is not 'module' or 'module:object'")
        module = import_module(parts[1])
        return attrgetter(parts[2])(module) if parts[2] else module


def find_entry_points(group: str) -> tuple[list[EntryPoint], list[tuple[str, str]]]:
    """Return the entry points of a group; distributions whose entry points are unreadable, and why.

    Of a distribution that is on the path twice, only the first counts: it is the imported one.
    """
    entries: list[EntryPoint] = []
    unreadable: list[tuple[str, str]] = []
    seen: set[str] = set()
    for distribution in distributions():
        try:
            text = distribution.read_text(_FILE) or ""
            if f"[{group}]" not in text or canonical(distribution.name) in seen:
                continue
            seen.add(canonical(distribution.name))
        except Exception:  # damaged metadata, perhaps of an unrelated package
            continue
        try:
            name, version = distribution.name, distribution.version or ""
            found = distribution.entry_points.select(group=group)
            entries += [EntryPoint(each.name, each.value, name, version) for each in found]
        except Exception as problem:
            message = f"{_FILE} cannot be read: {described(problem)}"
            unreadable.append((distribution.name, message))
    return entries, unreadable


def canonical(name: str) -> str:
    """Return the canonical name of a distribution (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def is_built_in(distribution: str) -> bool:
    """Whether this is the name of sslbench's own distribution."""
    return canonical(distribution) == "sslbench"


GROUP = "sslbench"
KINDS: Mapping[str, type[Registration]] = {
    "methods": MethodInfo,
    "datasets": DatasetInfo,
    "featurizers": FeaturizerInfo,
    "models": ModelInfo,
    "similarities": SimilarityInfo,
    "text_features": TextFeaturesInfo,
    "weak_sources": WeakSourceInfo,
}
MOST_REGISTRATIONS = 1000  # of a plugin
_LONGEST_TRACEBACK = 20_000  # characters

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


class Hooks:
    """The hooks that a plugin module may implement, each returning a list of registrations."""


for _kind in KINDS:

    def _specification() -> list[Registration]:
        raise NotImplementedError

    setattr(Hooks, f"{GROUP}_{_kind}", hookspec(_specification))


@dataclass
class PluginContents:
    """What one plugin registers, as pairs of kind and registration, and its errors.

    traceback: that of its first exception; "" = there is none.
    """

    registrations: list[tuple[str, Registration]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    traceback: str = ""

    @contextmanager
    def catching(self, what: str) -> Iterator[None]:
        """Turn an exception into a problem, SystemExit too: a script may exit on import."""
        try:
            yield
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as problem:
            self.problems.append(f"{what}: {described(problem)}")
            with suppress(Exception):  # of an exception that cannot be printed
                lines = "".join(traceback.format_exception(problem))
                self.traceback = self.traceback or lines[-_LONGEST_TRACEBACK:]


def read_plugin(entry: EntryPoint) -> PluginContents:
    """Import a plugin and call its hooks. What it prints goes to standard error."""
    contents = PluginContents()
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Hooks)
    with redirect_stdout(sys.stderr), contents.catching("cannot be loaded"):
        plugin = entry.load()
        manager.register(plugin, entry.name)
        contents.problems += _misspelled_hooks(manager, plugin)
        for kind, expected in KINDS.items():
            with contents.catching(f"hook {GROUP}_{kind} failed"):
                for result in getattr(manager.hook, f"{GROUP}_{kind}")():
                    contents.problems += _take(
                        contents.registrations, kind, expected, result, entry.is_built_in
                    )
    n_registered = len(contents.registrations)
    if n_registered > MOST_REGISTRATIONS:
        contents.problems.append(f"registers {n_registered:,} items, over {MOST_REGISTRATIONS:,}")
        contents.registrations.clear()
    return contents


def suggestion(name: str, names: Iterable[str]) -> str:
    """A hint: "did you mean" with similar names, or the list of all names if none is similar;
    or what to do in place of names with commas between them.
    """
    import difflib  # imported for mistakes only

    names = sorted(set(names))
    if "," in name and set(name.split(",")) <= set(names):
        return "one name at a time; an option can be repeated"
    similar = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if similar:
        return f"did you mean {' or '.join(similar)}?"
    return f"there are: {', '.join(names)}" if names else "there are none"


def _take(
    registrations: list[tuple[str, Registration]],
    kind: str,
    expected: type[Registration],
    result: object,
    built_in: bool,
) -> Iterator[str]:
    """Append the registrations that a hook returned; yield the errors."""
    rule = f"hook {GROUP}_{kind} must return a list of {expected.__name__}"
    if not isinstance(result, list | tuple):
        yield f"{rule}, not {type(result).__name__}"
        return
    if len(result) > MOST_REGISTRATIONS:
        yield f"hook {GROUP}_{kind} returns {len(result):,} items, over {MOST_REGISTRATIONS:,}"
        return
    for item in result:
        if type(item) is expected:
            try:
                info = item if built_in else _plain(item)
            except Exception as problem:
                yield f"{expected.kind} {item.name!r} is no plain data: {described(problem)}"
            else:
                registrations.append((kind, info))
        elif isinstance(item, expected):
            yield f"{rule}; one item is of its subclass {type(item).__name__}"
        else:
            yield f"{rule}; one item is {type(item).__name__}"


def _plain(info: Registration) -> Registration:
    """Return a copy with all types checked, and without objects of the plugin's own classes."""
    import msgspec  # 10 ms, which sslbench's own plugins do not need

    return msgspec.msgpack.decode(msgspec.msgpack.encode(info), type=type(info))


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
