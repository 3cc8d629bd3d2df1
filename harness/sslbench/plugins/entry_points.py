"""The entry points of a group, despite damaged metadata of some distributions."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.metadata import Distribution, distributions
from typing import Any, NamedTuple

from sslbench.engine.errors import described

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
        loaded: Any = import_module(parts[1])
        for attribute in parts[2].split(".") if parts[2] else ():
            loaded = getattr(loaded, attribute)
        return loaded


class Unreadable(NamedTuple):
    """A distribution whose entry points cannot be read, and why."""

    distribution: str
    message: str


def find_entry_points(group: str) -> tuple[list[EntryPoint], list[Unreadable]]:
    """Return the entry points of a group, and the distributions whose entry points are unreadable.

    Of a distribution that is on the path twice, only the first counts: it is the imported one.
    """
    entries: list[EntryPoint] = []
    unreadable: list[Unreadable] = []
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
            entries += _of_group(distribution, group)
        except Exception as problem:
            message = f"{_FILE} cannot be read: {described(problem)}"
            unreadable.append(Unreadable(distribution.name, message))
    return entries, unreadable


def canonical(name: str) -> str:
    """Return the canonical name of a distribution (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def is_built_in(distribution: str) -> bool:
    """Whether this is the name of sslbench's own distribution."""
    return canonical(distribution) == "sslbench"


def _of_group(distribution: Distribution, group: str) -> list[EntryPoint]:
    found = distribution.entry_points.select(group=group)
    name, version = distribution.name, distribution.version
    return [EntryPoint(each.name, each.value, name, version or "") for each in found]
