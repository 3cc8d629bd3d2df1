"""The hooks of plugins, and what one plugin registers through them.

pluggy defines the hooks. Its ``load_setuptools_entrypoints`` is not used: with it, a plugin that
raises on import stops the program, and of two distributions with the same entry-point name one is
silently dropped. Here each plugin has its own manager, and its errors become messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType
from typing import NamedTuple

import pluggy

from sslbench.engine.errors import shortened
from sslbench.plugins.entry_points import EntryPoint
from sslbench.plugins.registrations import (
    DatasetInfo,
    FeaturizerInfo,
    MethodInfo,
    ModelInfo,
    Registration,
    SimilarityInfo,
    TextFeaturesInfo,
)

GROUP = "sslbench"
KINDS: Mapping[str, type[Registration]] = {
    "methods": MethodInfo,
    "datasets": DatasetInfo,
    "featurizers": FeaturizerInfo,
    "models": ModelInfo,
    "similarities": SimilarityInfo,
    "text_features": TextFeaturesInfo,
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

    @hookspec
    def sslbench_text_features(self) -> list[TextFeaturesInfo]:
        """Return the features learned from unlabeled text of this plugin."""
        raise NotImplementedError


class Found(NamedTuple):
    """What one plugin registers: pairs of kind and registration, and its errors.

    output: what it printed, if that was kept.
    """

    registrations: list[tuple[str, Registration]]
    problems: list[str]
    output: str = ""


def read_plugin(entry: EntryPoint) -> Found:
    """Import a plugin into this process and call its hooks."""
    found = Found([], [])
    try:
        plugin = entry.load()
        manager = pluggy.PluginManager(GROUP)
        manager.add_hookspecs(Hooks)
        manager.register(plugin, entry.name)
    except (Exception, SystemExit) as problem:  # a script without a main guard may exit on import
        found.problems.append(f"cannot be loaded: {described(problem)}")
        return found
    found.problems.extend(_misspelled_hooks(manager, plugin))
    for kind, expected in KINDS.items():
        try:
            results = getattr(manager.hook, f"{GROUP}_{kind}")()
        except (Exception, SystemExit) as problem:
            found.problems.append(f"hook {GROUP}_{kind} failed: {described(problem)}")
            continue
        for result in results:
            found.problems.extend(_take(found.registrations, kind, expected, result))
    return found


_READ = 100_000  # characters of an exception's text


def described(problem: BaseException) -> str:
    """Type and message of an exception in one line of limited length."""
    try:
        text = str(problem)[:_READ]
    except Exception:  # the exception may be a class of the plugin
        text = ""
    text = " ".join(text.split())
    return shortened(f"{type(problem).__name__}: {text}" if text else type(problem).__name__)


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
) -> Iterator[str]:
    """Append the registrations that a hook returned; yield the errors."""
    rule = f"hook {GROUP}_{kind} must return a list of {expected.__name__}"
    if not isinstance(result, list | tuple):
        yield f"{rule}, not {type(result).__name__}"
        return
    for item in result:
        if type(item) is expected:
            registrations.append((kind, item))
        elif isinstance(item, expected):  # a class of the plugin would have to be imported
            yield f"{rule}; one item is of its subclass {type(item).__name__}"
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
