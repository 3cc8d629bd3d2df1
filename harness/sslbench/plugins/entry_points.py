"""The entry points of a group, read fast and despite damaged metadata.

Importing ``importlib.metadata`` takes 30 ms (it imports the email package), and its
``entry_points()`` fails altogether if the file of one package is damaged. So the folders on
``sys.path`` are read here. ``importlib.metadata`` serves for zip files on the path, and for
interpreters with metadata finders of their own.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

_FILE = "entry_points.txt"


class EntryPoint(NamedTuple):
    """One line of a group, ``name = value``, with distribution and version ("" if unknown)."""

    name: str
    value: str
    distribution: str
    version: str

    def load(self) -> Any:
        """Import the object that the value names.

        ValueError for a value of another form; exceptions of the import are not caught.
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
    """The entry points of a group, and the distributions whose entry points cannot be read.

    Of a distribution that is on the path twice, only the first counts: it is the imported one.
    """
    entries: list[EntryPoint] = []
    unreadable: list[Unreadable] = []
    seen: set[str] = set()
    for name, version, content in _distributions():
        text = content.decode("utf-8", errors="replace")
        if f"[{group}]" not in text or canonical(name) in seen:
            continue
        seen.add(canonical(name))
        try:
            entries.extend(
                EntryPoint(key, value, name, version) for key, value in _group_of(text, group)
            )
        except ValueError as problem:
            unreadable.append(Unreadable(name, f"{_FILE}: {problem}"))
    return entries, unreadable


def canonical(name: str) -> str:
    """The canonical name of a distribution (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _group_of(text: str, group: str) -> list[tuple[str, str]]:
    """The (name, value) pairs of one section; ValueError for any other line in it."""
    pairs = []
    section = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
        elif section == group and line and line[0] not in "#;":
            name, equals, value = (part.strip() for part in line.partition("="))
            if not (name and equals and value):
                raise ValueError(f"line {line!r} is not 'name = module'")
            pairs.append((name, value))
    return pairs


def _distributions() -> Iterator[tuple[str, str, bytes]]:
    """Yield (name, version, entry_points.txt) of every distribution that has such a file."""
    others = [hook for hook in sys.meta_path if hasattr(hook, "find_distributions")]
    if others != [PathFinder]:
        yield from _distributions_by_importlib(sys.path)
        return
    for folder in sys.path:
        if os.path.isfile(folder):  # a zip file
            yield from _distributions_by_importlib([folder])
            continue
        try:
            names = sorted(os.listdir(folder or "."))
        except OSError:  # missing or not readable: nothing can be imported from it either
            continue
        for name in names:
            stem, kind = os.path.splitext(name)
            if kind not in (".dist-info", ".egg-info"):
                continue
            try:
                with open(os.path.join(folder, name, _FILE), "rb") as stream:
                    content = stream.read()
            except OSError:  # most distributions have no such file
                continue
            distribution, _, version = stem.partition("-")
            yield distribution.replace("_", "-"), version, content


def _distributions_by_importlib(path: list[str]) -> Iterator[tuple[str, str, bytes]]:
    from importlib.metadata import distributions

    for distribution in distributions(path=path):
        try:
            text = distribution.read_text(_FILE)
            if text:
                yield distribution.name, distribution.version, text.encode()
        except Exception:  # damaged metadata, perhaps of an unrelated package
            continue
