"""What a process may not open or import is refused and noted, by a Python audit hook.

Code that avoids the interpreter's own `open` (compiled code, ctypes) is not seen here; see
`landlock` for the systems where it is stopped, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_MOST = 20  # notes in a reply


class Watch:
    """Opening and importing: what is refused from `start` on, and notes of the attempts."""

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._hidden: tuple[str, ...] = ()
        self._own: tuple[str, ...] = ()
        self._modules: tuple[str, ...] = ()

    def start(
        self, hidden: Iterable[Path], modules: Iterable[str], own: Iterable[Path] = ()
    ) -> None:
        """Refuse from now on.

        hidden: files and folders that may not be opened.  modules: that may not be imported, with
        all that is in them.  own: folders in hidden ones that may be opened.
        """
        self._hidden = tuple(str(path.resolve()) for path in hidden)
        self._own = tuple(str(path.resolve()) for path in own)
        self._modules = tuple(modules)
        sys.addaudithook(self._check)

    def take(self) -> list[str]:
        """The notes since the last call, each once."""
        notes, self._notes = list(dict.fromkeys(self._notes)), []
        return notes[:_MOST]

    def _check(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[0], str | bytes):
            path = os.path.realpath(os.fsdecode(args[0]))
            if _inside(path, self._hidden) and not _inside(path, self._own):
                self._refuse(f"read {path}")
        elif event == "import" and any(_within(args[0], each) for each in self._modules):
            self._refuse(f"import {args[0]}")

    def _refuse(self, what: str) -> None:
        self._notes.append(what)
        raise PermissionError(f"a method may not {what}: hidden labels come from there")


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(path == each or path.startswith(each + os.sep) for each in folders)


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")
