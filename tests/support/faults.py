"""File operations that fail on purpose, as SQLite's tests have them.

Python's file operations all go through the modules `os` and `io`. Here they are replaced by ones
that count the operations below a folder, and let one of them fail, or it and all later ones.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

ERRORS = ("ENOSPC", "EIO", "EROFS", "ENOTDIR", "ENOENT")
#: functions of `os` whose first argument is a path or a descriptor
OPERATIONS = (
    *("open", "fsync", "replace", "rename", "link", "unlink", "remove", "rmdir", "mkdir"),
    *("stat", "lstat", "listdir", "scandir", "utime"),
)
_OPEN = io.open
_NO_KIND = str.maketrans("", "", "bt")


class Faults:
    """Lets the `position`-th operation below a folder fail.

    Attributes
    ----------
    lasting: whether all later operations fail, too: the disk stays full, or is gone.
    count: operations so far.
    failed: name of the operation that failed first; "" if none has.
    """

    def __init__(self, folder: Path, error: str, position: int, *, lasting: bool) -> None:
        self.folder = str(folder.absolute())
        self.error = getattr(errno, error)
        self.position = position
        self.lasting = lasting
        self.count = 0
        self.failed = ""
        self._paths: dict[int, str] = {}

    def meet(self, operation: str, path: object) -> None:
        """Count an operation on a path or descriptor; OSError if it is one that is to fail."""
        if isinstance(path, int):
            path = self._paths.get(path, "")
        name = os.path.abspath(os.fsdecode(path)) if path else ""  # type: ignore[arg-type]
        if name != self.folder and not name.startswith(self.folder + os.sep):
            return
        self.count += 1
        if self.count == self.position or (self.lasting and self.count > self.position):
            self.failed = self.failed or operation
            raise OSError(self.error, os.strerror(self.error), name)

    @contextmanager
    def active(self) -> Iterator[Faults]:
        """Replace the operations of this process."""
        operations = {name: self._failing(name) for name in OPERATIONS}
        with (
            mock.patch.multiple(os, fdopen=self._fdopen, **operations),
            mock.patch.object(io, "open", self._open),
            mock.patch.object(builtins, "open", self._open),
        ):
            yield self

    def _failing(self, name: str) -> Callable[..., Any]:
        true = getattr(os, name)

        def operation(path: Any = ".", *args: Any, dir_fd: int | None = None, **more: Any) -> Any:
            full = path if dir_fd is None else os.path.join(self._paths.get(dir_fd, "/"), path)
            self.meet(name, full)
            if dir_fd is not None:
                more["dir_fd"] = dir_fd
            result = true(path, *args, **more)
            if name == "open":
                self._paths[result] = os.path.abspath(os.fsdecode(full))
            return result

        return operation

    def _fdopen(self, descriptor: int, mode: str = "r", *args: Any, **more: Any) -> Any:
        return self._watched(descriptor, mode, self._paths.get(descriptor, ""), more)

    def _open(self, file: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
        if isinstance(file, int):
            return _OPEN(file, mode, *args, **more)
        self.meet("open", file)
        return self._watched(file, mode, os.path.abspath(os.fsdecode(file)), more)

    def _watched(self, file: Any, mode: str, path: str, more: dict[str, Any]) -> Any:
        """An open file with reads and writes that are counted."""
        raw = _Raw(file, mode.translate(_NO_KIND))
        raw.before = lambda operation: self.meet(operation, path)
        self._paths[raw.fileno()] = path
        buffered: Any
        if raw.writable():
            buffered = io.BufferedRandom(raw) if raw.readable() else io.BufferedWriter(raw)
        else:
            buffered = io.BufferedReader(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, more.get("encoding"))


class _Raw(io.FileIO):
    before: Callable[[str], None]

    def write(self, data: Any) -> int:
        self.before("write")
        return super().write(data)

    def readinto(self, buffer: Any) -> int:
        self.before("read")
        return super().readinto(buffer)

    def readall(self) -> bytes:
        self.before("read")
        return super().readall()
