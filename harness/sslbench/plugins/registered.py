"""The registry: loading of plugins; a broken one is reported and does not affect the others.

Those of sslbench are imported. Those of other distributions are imported by processes of their own
(`plugin_process`), which send their registrations: a command imports a third party's code only to
use it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, cast

from sslbench.engine.errors import UserError, shortened
from sslbench.plugins.entry_points import EntryPoint, canonical, find_entry_points
from sslbench.plugins.hooks import GROUP, KINDS, Found, read_plugin, suggestion
from sslbench.plugins.registrations import (
    DatasetInfo,
    FeaturizerInfo,
    MethodInfo,
    ModelInfo,
    Registration,
    SimilarityInfo,
    TextFeaturesInfo,
)

BLOCK_VARIABLE = "SSLBENCH_BLOCK"
_SHOWN_PROBLEMS = 3  # of one plugin


class Origin(NamedTuple):
    """Where a registration comes from: entry point, distribution and version."""

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return shortened(f"plugin {self.plugin!r} of {self.distribution} {self.version}".rstrip())


class PluginProblem(NamedTuple):
    """The errors of one plugin (entry point) of one distribution.

    output: what it printed when it was imported.
    """

    plugin: str
    distribution: str
    message: str
    output: str = ""

    def __str__(self) -> str:
        source = shortened(f"plugin {self.plugin!r} of {self.distribution}")
        return f"{source}: {shortened(self.message)}"


@dataclass
class Registry:
    """All registrations by kind and name.

    Attributes
    ----------
    problems: errors of broken plugins.
    blocked: plugins left out because of `BLOCK_VARIABLE`.
    origins: where each registration comes from, by (kind, name).
    loaded: versions of the distributions, other than sslbench, that register something, by name.
    apart: what the processes of the other distributions' plugins have sent.
    """

    datasets: dict[str, DatasetInfo] = field(default_factory=dict)
    featurizers: dict[str, FeaturizerInfo] = field(default_factory=dict)
    models: dict[str, ModelInfo] = field(default_factory=dict)
    methods: dict[str, MethodInfo] = field(default_factory=dict)
    similarities: dict[str, SimilarityInfo] = field(default_factory=dict)
    text_features: dict[str, TextFeaturesInfo] = field(default_factory=dict)
    problems: list[PluginProblem] = field(default_factory=list)
    blocked: list[Origin] = field(default_factory=list)
    origins: dict[tuple[str, str], Origin] = field(default_factory=dict)
    loaded: dict[str, str] = field(default_factory=dict)
    apart: list[tuple[EntryPoint, Found]] = field(default_factory=list, repr=False)

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

    def learner(self, name: str) -> TextFeaturesInfo:
        """The text features of this name; UserError with similar names if there are none."""
        return cast(TextFeaturesInfo, self.get("text_features", name))

    def find(self, name: str) -> list[Registration]:
        """Registrations of any kind with this name; UserError with similar names if none has it."""
        infos = [self.of_kind(kind)[name] for kind in KINDS if name in self.of_kind(kind)]
        if not infos:
            names = [other for kind in KINDS for other in self.of_kind(kind)]
            raise UserError(f"nothing is called {name!r}", hint=suggestion(name, names))
        return infos

    def own_targets(self, *names: tuple[str, str]) -> list[str]:
        """The targets of those of these kinds and names that sslbench's distribution registers."""
        found = [(kind, name, self.origins.get((kind, name))) for kind, name in names]
        return [
            self.of_kind(kind)[name].target
            for kind, name, origin in found
            if origin is not None and canonical(origin.distribution) == GROUP
        ]

    def add(self, kind: str, info: Registration, origin: Origin) -> str | None:
        """Add a registration and return None, or return the message that its name is taken."""
        first = self.origins.get((kind, info.name))
        if first is not None:
            return f"{info.kind} {info.name!r} is already registered by {first}; ignored here"
        self.of_kind(kind)[info.name] = info
        self.origins[kind, info.name] = origin
        return None


@cache
def registry() -> Registry:
    """The registry of this process, loaded by the first call."""
    entries, unreadable = find_entry_points(GROUP)
    plugins = load_plugins(entries, _blocked_names())
    plugins.problems[:0] = [PluginProblem("?", *each) for each in unreadable]
    return plugins


def handover() -> dict[str, str]:
    """Variables for processes of this command, which then read no plugin again."""
    read = registry().apart
    if not read:
        return {}
    from sslbench.plugins.process import handover

    return handover(read)


def load_plugins(entries: Iterable[EntryPoint], blocked: frozenset[str] = frozenset()) -> Registry:
    """Load plugins in a fixed order: those of sslbench first, then by distribution and name.

    The first registration of a name counts, so that no plugin can replace a built-in one.
    blocked: canonical names of entry points or distributions to leave out.
    """
    plugins = Registry()
    ours: list[EntryPoint] = []
    others: list[EntryPoint] = []
    for entry in sorted(entries):
        if {canonical(entry.name), canonical(entry.distribution)} & blocked:
            plugins.blocked.append(Origin(entry.name, entry.distribution, entry.version))
        else:
            (ours if canonical(entry.distribution) == GROUP else others).append(entry)
    for entry in ours:
        _add_found(plugins, entry, read_plugin(entry))
    if others:
        from sslbench.plugins.process import read_apart  # a part of the start that few need

        for entry, found in zip(others, read_apart(others), strict=True):
            plugins.apart.append((entry, found))
            _add_found(plugins, entry, found)
            if found.registrations:
                plugins.loaded[entry.distribution] = entry.version
    return plugins


def _add_found(plugins: Registry, entry: EntryPoint, found: Found) -> None:
    """Add the registrations of one plugin, and one problem with all of its errors."""
    origin = Origin(entry.name, entry.distribution, entry.version)
    problems = list(found.problems)
    for kind, info in found.registrations:
        problem = plugins.add(kind, info, origin)
        if problem is not None:
            problems.append(problem)
    if problems:
        more = len(problems) - _SHOWN_PROBLEMS
        shown = problems[:_SHOWN_PROBLEMS] + ([f"and {more} more errors"] if more > 0 else [])
        plugins.problems.append(
            PluginProblem(entry.name, entry.distribution, "; ".join(shown), found.output)
        )


def _blocked_names() -> frozenset[str]:
    names = os.environ.get(BLOCK_VARIABLE, "").split(",")
    return frozenset(canonical(name) for name in names if name.strip())
