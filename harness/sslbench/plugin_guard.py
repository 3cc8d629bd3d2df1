"""The processes that import a plugin: a guard, and its child, which imports.

The guard ends its child after a time limit, and then everything that the plugin has started. The
answer goes to standard output of the guard; what the plugin prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

from sslbench.entry_points import EntryPoint
from sslbench.errors import printable, shortened
from sslbench.hooks import Found, described, read_plugin
from sslbench.registrations import RemoteFile

_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.002
_MEMORY = 4 * 2**30  # bytes; a plugin may import a large library


def main(task: dict[str, Any]) -> None:
    """Read one plugin and write the answer.

    task: "path", "entry" (fields of an `EntryPoint`) and "seconds".
    """
    channel = os.dup(1)
    os.dup2(2, 1)
    child = os.fork()
    if child == 0:
        _answer(EntryPoint(*task["entry"]), channel)
    _adopt_orphans()
    status = _wait(child, task["seconds"])
    _end_descendants()
    if status is None:
        problem = f"its import took more than {task['seconds']:g} s"
    elif os.WIFSIGNALED(status):
        problem = f"its import ended the process with {_signal_name(os.WTERMSIG(status))}"
    else:
        problem = f"its import ended the process (exit status {os.WEXITSTATUS(status)})"
    # The reader takes the first line: that of the child, if it has written one.
    _write(channel, _encoded(Found([], [f"cannot be loaded: {problem}"])))


def _answer(entry: EntryPoint, channel: int) -> NoReturn:
    """Import the plugin, write what it registers, and end without its exit handlers."""
    try:
        _limit_resources()
        try:
            found = read_plugin(entry)
        except BaseException as problem:
            found = Found([], [f"cannot be loaded: {described(problem)}"])
        _write(channel, _encoded(found))
        os._exit(0)
    finally:
        os._exit(1)


def _encoded(found: Found) -> bytes:
    """One line of JSON."""
    registrations, problems = [], [shortened(problem) for problem in found.problems]
    for kind, info in found.registrations:
        try:
            text = json.dumps(vars(info), default=_fields, ensure_ascii=False, allow_nan=False)
            text.encode()  # a surrogate is no text
        except (TypeError, ValueError, RecursionError) as problem:
            name = printable(str(info.name))
            problems.append(f"{info.kind} {name} is no plain data: {described(problem)}")
        else:
            registrations.append(f"[{json.dumps(kind)}, {text}]")
    return (
        f'{{"registrations": [{", ".join(registrations)}], "problems": {json.dumps(problems)}}}\n'
    ).encode()


def _fields(value: object) -> dict[str, Any]:
    if type(value) is RemoteFile:
        return vars(value)
    raise TypeError(f"a value of type {type(value).__name__}")


def _write(channel: int, data: bytes) -> None:
    with suppress(OSError):  # the reader has gone, or the plugin has closed the channel
        while data:
            data = data[os.write(channel, data) :]


def _limit_resources() -> None:
    """Limit the memory, and write no core file."""
    if sys.platform == "win32":
        return
    import resource

    limit = min(_MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    for what, most in ((resource.RLIMIT_DATA, limit), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(what, (most, most))


def _wait(child: int, seconds: float) -> int | None:
    """The wait status of the child, killed after the time limit (None) or with the reader."""
    reader, ends = os.getppid(), time.monotonic() + seconds
    while time.monotonic() < ends and os.getppid() == reader:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(_POLL_SECONDS)
    return None


def _adopt_orphans() -> None:
    """Become the parent of the processes that the child leaves (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _end_descendants() -> None:
    """Kill the child and the processes that it has started, also those of another session."""
    while pids := _children():
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in pids:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:  # another system: the reader kills the process group
        return []


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
