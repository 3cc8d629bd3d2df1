"""The folder for the temporary files of a run. Those of commands that were killed are removed.

A file in the folder is locked while the command lives: the system unlocks it however a process
ends. Where there are no such locks, folders of killed commands stay.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sslbench.engine.files.locks import lock_file

PREFIX = "sslbench-run-"
_LOCK = "lock"


@dataclass(frozen=True)
class RunFolder:
    """A folder of this process. lock: descriptor of the locked file; -1 = it cannot be locked."""

    path: Path
    lock: int

    @staticmethod
    def make() -> RunFolder:
        """Make a new folder below the system's temporary one."""
        while True:
            path, lock = Path(tempfile.mkdtemp(prefix=PREFIX)), -1
            with suppress(OSError):
                lock = _locked(path / _LOCK, os.O_CREAT | os.O_RDWR, wait=True)
            if path.exists():  # else another process has removed it before it was locked
                return RunFolder(path, lock)
            _unlock(lock)

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        _unlock(self.lock)


def remove_abandoned_folders() -> None:
    """Remove the folders of this user's commands that have been killed."""
    for path in _folders():
        with suppress(OSError):
            lock = _locked(path / _LOCK, os.O_RDWR, wait=False)
            if lock >= 0:
                RunFolder(path, lock).remove()


def _folders() -> Iterator[Path]:
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                yield Path(entry.path)


def _locked(path: Path, flags: int, *, wait: bool) -> int:
    """Open and lock a file; OSError if another process has it, or it is somebody else's."""
    if sys.platform == "win32":
        return -1
    handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if os.fstat(handle).st_uid != os.getuid():
            raise PermissionError(0, "another user's file", str(path))
        lock_file(handle, wait=wait)
    except OSError:
        os.close(handle)
        raise
    return handle


def _unlock(handle: int) -> None:
    if handle >= 0:
        os.close(handle)
