"""Ends and limits of processes: with their parent, with all that they have started, in memory."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def signal_at_end_of_parent(number: int) -> None:
    """Have this signal sent to this process when the thread that started it ends (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Become the parent of processes that a descendant leaves when it ends (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


def process_of(pid: int) -> psutil.Process | None:
    """Return the process of this number, not to be mistaken for a later one; None if it ended."""
    import psutil  # 20 ms, which most commands do not need

    with suppress(psutil.Error):
        return psutil.Process(pid)
    return None


def descendants(process: psutil.Process | None) -> set[psutil.Process]:
    """Return all that a process has started, and its adopted orphans; none if it has ended."""
    import psutil

    with suppress(psutil.Error):
        return set() if process is None else set(process.children(recursive=True))
    return set()


def my_descendants() -> set[psutil.Process]:
    """Return all that this process has started, and its adopted orphans."""
    return descendants(process_of(os.getpid()))


def resident_memory(process: psutil.Process | None) -> int:
    """Return the resident bytes of a process, 0 if it has ended."""
    import psutil

    with suppress(psutil.Error):
        return 0 if process is None else int(process.memory_info().rss)
    return 0


def kill(processes: Iterable[psutil.Process | None]) -> None:
    """Kill those that are still there."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            if process is not None:
                process.kill()


def kill_group(pid: int) -> None:
    """Kill the process group of this number, where there are groups; 0 = that of this process."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def limit_memory(most: int) -> None:
    """Make allocations beyond this many bytes fail, in this process and those that it starts."""
    if sys.platform == "win32":
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def exit_message(exitcode: int | None) -> str:
    """Return how a process ended, in one line. exitcode: see `Child.exit_code`."""
    if exitcode is None or exitcode >= 0:
        return f"the process ended without a result (exit status {exitcode})"
    number = -exitcode
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    hint = "; out of memory?" if name == "SIGKILL" else ""
    return f"the process was killed by {name}{hint}"
