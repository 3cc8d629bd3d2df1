"""The processes that import a plugin: a guard, and its child, which imports.

The guard ends its child after a time limit, and then everything that the plugin has started. The
answer goes to standard output of the guard; what the plugin prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import time
import traceback
from contextlib import suppress
from typing import Any, NoReturn

from sslbench.engine.errors import printable, shortened
from sslbench.plugins.entry_points import EntryPoint
from sslbench.plugins.hooks import Found, described, read_plugin
from sslbench.plugins.registrations import RemoteFile, import_target
from sslbench.processes.tree import (
    adopt_orphans,
    descendants,
    end_descendants,
    limit_memory,
    signal_name,
    write_no_core_file,
)

_POLL_SECONDS = 0.002
_MEMORY = 4 * 2**30  # bytes; a plugin may import a large library


def main(task: dict[str, Any]) -> None:
    """Read one plugin, or try the import of one target, and write the answer.

    task: "path", "seconds", and "entry" (fields of an `EntryPoint`) or "target".
    """
    channel = os.dup(1)
    os.dup2(2, 1)
    child = os.fork()
    if child == 0:
        _answer(task, channel)
    adopt_orphans()
    status = _wait(child, task["seconds"])
    if status is None:
        problem = f"its import took more than {task['seconds']:g} s"
    elif os.WIFSIGNALED(status):
        problem = f"its import ended the process with {signal_name(os.WTERMSIG(status))}"
    else:
        problem = f"its import ended the process (exit status {os.WEXITSTATUS(status)})"
    # The reader takes the first line: that of the child, if it has written one. This one is written
    # before anything is killed: a child that waits for its own process must not go on and answer.
    _write(channel, _encoded(Found([], [f"cannot be loaded: {problem}"])))
    end_descendants()


def _answer(task: dict[str, Any], channel: int) -> NoReturn:
    """Import the code, write what it registers, and end without its exit handlers."""
    try:
        limit_memory(min(_MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2))
        write_no_core_file()
        try:
            found = read_plugin(EntryPoint(*task["entry"])) if "entry" in task else _tried(task)
        except BaseException as problem:
            found = Found([], [f"cannot be loaded: {described(problem)}"])
        _write(channel, _encoded(found))
        os._exit(0)
    finally:
        os._exit(1)


def _tried(task: dict[str, Any]) -> Found:
    """What is wrong with the import of a target: it fails, or leaves processes behind."""
    target, process = task["target"], os.getpid()
    try:
        import_target(target)
    except BaseException as problem:
        with suppress(Exception):  # of an exception that cannot be printed
            traceback.print_exc()
        return Found([], [f"cannot load {target}: {described(problem)}"])
    if os.getpid() != process:  # a fork that the import has made
        os._exit(0)
    left = len(descendants())
    return Found(
        [], [f"cannot load {target}: its import leaves processes ({left})"] if left else []
    )


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


def _wait(child: int, seconds: float) -> int | None:
    """The wait status of the child, killed after the time limit (None) or with the reader."""
    reader, ends = os.getppid(), time.monotonic() + seconds
    while time.monotonic() < ends and os.getppid() == reader:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(_POLL_SECONDS)
    return None
