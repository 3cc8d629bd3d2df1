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


def descendants(process: psutil.Process | None = None) -> set[psutil.Process]:
    """Of a process; None = of this one. Its orphans are among them after `adopt_orphans`.

    Empty for a process that has ended, also if its number is that of another one now.
    """
    import psutil  # 20 ms, which most commands do not need

    with suppress(psutil.Error):
        return set((process or psutil.Process()).children(recursive=True))
    return set()


def kill(processes: Iterable[psutil.Process]) -> None:
    """Kill those that are still there."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def kill_group(pid: int) -> None:
    """Kill the process group of this number, where there are groups; 0 = that of this process."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def end_descendants() -> None:
    """Kill all that this process has started, and what that starts meanwhile; wait for the ends."""
    while members := descendants():
        kill(members)
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)


def limit_memory(most: int) -> None:
    """Make allocations beyond this many bytes fail, in this process and those that it starts."""
    if sys.platform != "win32":
        import resource

        _limit(resource.RLIMIT_DATA, most)


def write_no_core_file() -> None:
    """Leave no file with the memory of this process if it crashes."""
    if sys.platform != "win32":
        import resource

        _limit(resource.RLIMIT_CORE, 0)


def _limit(what: int, most: int) -> None:
    import resource

    hard = resource.getrlimit(what)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(what, (most, most))


def exit_message(exitcode: int | None) -> str:
    """How a process ended, in one line. exitcode: negative = minus the number of a signal."""
    if exitcode is None or exitcode >= 0:
        return f"the process ended without a result (exit status {exitcode})"
    name = signal_name(-exitcode)
    hint = "; out of memory?" if name == "SIGKILL" else ""
    return f"the process was killed by {name}{hint}"


def signal_name(number: int) -> str:
    """The name of a signal, or its number."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
