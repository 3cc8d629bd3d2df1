"""The registry: what all plugins register; a broken plugin is reported, the others are loaded."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, cast

from sslbench.engine.errors import UserError, shortened
from sslbench.plugins.hooks import (
    GROUP,
    KINDS,
    EntryPoint,
    canonical,
    find_entry_points,
    is_built_in,
    read_plugin,
    suggestion,
)
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

    traceback: that of its first exception; "" = there is none.
    """

    plugin: str
    distribution: str
    message: str
    traceback: str = ""

    def __str__(self) -> str:
        source = shortened(f"plugin {self.plugin!r} of {self.distribution}")
        remedy = shortened(f"mend or uninstall it, or set {BLOCK_VARIABLE}={self.distribution}")
        return f"{source}: {shortened(self.message)}; {remedy}"


@dataclass
class Registry:
    """All registrations by kind and name.

    Attributes
    ----------
    problems: errors of broken plugins.
    blocked: plugins left out because of `BLOCK_VARIABLE`.
    origins: where each registration comes from, by (kind, name).
    loaded: versions of the distributions, other than sslbench, that register something, by name.
    """

    datasets: dict[str, DatasetInfo] = field(default_factory=dict)
    featurizers: dict[str, FeaturizerInfo] = field(default_factory=dict)
    models: dict[str, ModelInfo] = field(default_factory=dict)
    methods: dict[str, MethodInfo] = field(default_factory=dict)
    similarities: dict[str, SimilarityInfo] = field(default_factory=dict)
    text_features: dict[str, TextFeaturesInfo] = field(default_factory=dict)
    weak_sources: dict[str, WeakSourceInfo] = field(default_factory=dict)
    problems: list[PluginProblem] = field(default_factory=list)
    blocked: list[Origin] = field(default_factory=list)
    origins: dict[tuple[str, str], Origin] = field(default_factory=dict)
    loaded: dict[str, str] = field(default_factory=dict)

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

    def weak_source(self, name: str) -> WeakSourceInfo:
        """The weak source of this name; UserError with similar names if there is none."""
        return cast(WeakSourceInfo, self.get("weak_sources", name))

    def find(self, name: str) -> list[Registration]:
        """Registrations of any kind with this name; UserError with similar names if none has it."""
        infos = [self.of_kind(kind)[name] for kind in KINDS if name in self.of_kind(kind)]
        if not infos:
            names = [other for kind in KINDS for other in self.of_kind(kind)]
            raise UserError(f"nothing is called {name!r}", hint=suggestion(name, names))
        return infos

    @property
    def packages(self) -> frozenset[str]:
        """Top-level packages of sslbench and of what its plugins register."""
        targets = [info.target for kind in KINDS for info in self.of_kind(kind).values()]
        return frozenset(
            {GROUP, *(target.partition(":")[0].partition(".")[0] for target in targets)}
        )

    def built_in_targets(self, names: Iterable[tuple[str, str]]) -> list[str]:
        """Return the targets of these (kind, name) pairs, those of sslbench's own plugins only."""
        return [
            self.of_kind(kind)[name].target
            for kind, name in names
            if (origin := self.origins.get((kind, name))) and is_built_in(origin.distribution)
        ]

    def add(self, kind: str, info: Registration, origin: Origin) -> str | None:
        """Add a registration and return None, or return the message that its name is taken."""
        first = self.origins.get((kind, info.name))
        if first is not None:
            return f"{info.kind} {info.name!r} is already registered by {first}; ignored here"
        self.of_kind(kind)[info.name] = info
        self.origins[kind, info.name] = origin
        return None

    def read(self, entry: EntryPoint) -> None:
        """Add what one plugin registers, and one problem with all of its errors."""
        contents = read_plugin(entry)
        origin = Origin(entry.name, entry.distribution, entry.version)
        problems = list(contents.problems)
        for kind, info in contents.registrations:
            if (taken := self.add(kind, info, origin)) is not None:
                problems.append(taken)
        if contents.registrations and not entry.is_built_in:
            self.loaded[entry.distribution] = entry.version
        if problems:
            more = len(problems) - _SHOWN_PROBLEMS
            shown = problems[:_SHOWN_PROBLEMS] + ([f"and {more} more errors"] if more > 0 else [])
            self.problems.append(
                PluginProblem(entry.name, entry.distribution, "; ".join(shown), contents.traceback)
            )


_handed_over: bytes | None = None


@cache
def registry() -> Registry:
    """Return the registry of this process, which the first call loads."""
    if _handed_over is not None:
        import msgspec  # which `sslbench list` does not need

        return msgspec.msgpack.decode(_handed_over, type=Registry)
    entries, unreadable = find_entry_points(GROUP)
    blocked = _blocked_names()
    plugins = load_plugins(entries, blocked)
    plugins.problems[:0] = [
        PluginProblem("?", distribution, message)
        for distribution, message in unreadable
        if canonical(distribution) not in blocked
    ]
    return plugins


def use_registry(encoded: bytes) -> None:
    """Let `registry` return another process's, as MessagePack; no plugin is imported here."""
    global _handed_over
    _handed_over = encoded
    registry.cache_clear()


def built_in_plugins() -> Registry:
    """Return what sslbench's own distribution registers; no other one is imported."""
    entries = [each for each in find_entry_points(GROUP)[0] if each.is_built_in]
    return load_plugins(entries, _blocked_names())


def load_plugins(entries: Iterable[EntryPoint], blocked: frozenset[str] = frozenset()) -> Registry:
    """Load plugins in a fixed order: those of sslbench first, then by distribution and name.

    The first registration of a name counts, so that no plugin can replace a built-in one.

    blocked: canonical names of entry points or distributions to leave out.
    """
    plugins = Registry()
    for entry in sorted(entries, key=lambda entry: (not entry.is_built_in, entry)):
        if {canonical(entry.name), canonical(entry.distribution)} & blocked:
            plugins.blocked.append(Origin(entry.name, entry.distribution, entry.version))
        else:
            plugins.read(entry)
    return plugins


def _blocked_names() -> frozenset[str]:
    names = os.environ.get(BLOCK_VARIABLE, "").split(",")
    return frozenset(canonical(name) for name in names if name.strip())
