"""Installed packages beside the versions that sslbench declares."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from typing import NamedTuple

from packaging.requirements import Requirement

#: extras that users install; those of developers are not looked at
EXTRAS = ("", "dask", "encoder", "graph", "import", "neural", "sklearn")


class Unmet(NamedTuple):
    """A package that is missing, or whose version is not one that sslbench declares."""

    name: str
    text: str


def declared(distribution: str = "sslbench") -> Iterator[tuple[Requirement, str]]:
    """Yield each requirement that applies here, with its extra ("" = it is always needed)."""
    try:
        texts = requires(distribution) or []
    except PackageNotFoundError:  # the sources are on the path and not installed
        return
    for requirement in map(Requirement, texts):
        marker = requirement.marker
        for extra in EXTRAS:
            if marker is None or marker.evaluate({"extra": extra}):
                yield requirement, extra
                break


@cache
def unmet() -> tuple[Unmet, ...]:
    """Return the packages that are missing or of another version, with what to do, a line each.

    A package of an extra may be missing.
    """
    problems = []
    for requirement, extra in declared():
        name, wanted = requirement.name, requirement.specifier
        remedy = f"pip install '{name}{wanted}'"
        try:
            installed = version(name)
        except PackageNotFoundError:
            if not extra:
                problems.append(Unmet(name, f"not installed: {remedy}"))
            continue
        if not wanted.contains(installed, prereleases=True):
            text = f"{installed} is installed, sslbench needs {wanted}: {remedy}"
            problems.append(Unmet(name, text))
    return tuple(problems)
