"""Locks of files between processes."""

from __future__ import annotations

import sys
from typing import IO


def lock_file(file: int | IO[bytes], *, wait: bool = True) -> None:
    """Lock an open file for this process until it is closed; on Windows nothing is locked.

    BlockingIOError if another process has the lock and `wait` is false; OSError on a file system
    without locks.
    """
    if sys.platform == "win32":
        return
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
