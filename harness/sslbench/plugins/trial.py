"""Imports into the process of a command: code of other distributions is tried elsewhere first.

The listing of plugins imports nothing of them here (`plugins`). A command that uses one imports
its target. An import that crashes, exits, hangs or raises does so in another process, and is one
line here; one that prints is silent here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sslbench.engine.errors import UserError
from sslbench.plugins import registry
from sslbench.plugins.registrations import DatasetInfo, import_within

SECONDS = 60.0  # for an import that compiles


def guard_imports(printed: Callable[[str], None]) -> None:
    """From now on, try each target of another distribution before this process imports it.

    printed: gets what such an import prints, of limited length.
    """
    found: dict[str, str | None] = {}  # what is wrong with each target; None = nothing

    @contextmanager
    def guarded(target: str, what: str) -> Iterator[None]:
        if target.partition(":")[0] in sys.modules or target not in _targets_of_others():
            yield
            return
        if target not in found:
            found[target] = _trial(target, printed)
        if found[target] is not None:
            raise UserError(f"{what}: {found[target]}")
        with _silent():
            yield

    import_within(guarded)


def _targets_of_others() -> frozenset[str]:
    infos = [info for _, found in registry().apart for _, info in found.registrations]
    options = {info.options for info in infos if isinstance(info, DatasetInfo)}
    return frozenset({info.target for info in infos} | options)


def _trial(target: str, printed: Callable[[str], None]) -> str | None:
    from sslbench.plugins.process import try_apart

    found = try_apart(target, SECONDS)
    if found.output:
        printed(found.output)
    return found.problems[0] if found.problems else None


@contextmanager
def _silent() -> Iterator[None]:
    """Drop what is written to standard output and error, also by compiled code."""
    # Found before copies are made, which may get the number of one that the user has closed.
    found = [number for number in (1, 2) if _is_open(number)]
    kept = [(number, os.dup(number)) for number in found]
    _flush()
    try:
        with open(os.devnull, "wb") as nowhere:
            for number, _ in kept:
                os.dup2(nowhere.fileno(), number)
        yield
    finally:
        _flush()
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
