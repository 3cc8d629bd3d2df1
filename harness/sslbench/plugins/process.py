"""Code of other distributions, imported by processes of their own: plugins, and their targets.

What a plugin does when it is imported, from an error to a crash or a flood of output, ends in that
process (`plugin_guard`). It sends its registrations, which are plain data, as one line of JSON.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import msgspec

from sslbench.engine.errors import UserError
from sslbench.plugins.entry_points import EntryPoint
from sslbench.plugins.hooks import KINDS, Found
from sslbench.plugins.registrations import Registration
from sslbench.processes.tree import descendants, kill, kill_group

if TYPE_CHECKING:
    import psutil

SECONDS_VARIABLE = "SSLBENCH_PLUGIN_SECONDS"
SECONDS = 20.0
_HANDOVER_VARIABLE = "SSLBENCH_PLUGINS_READ"
_MOST_HANDED = 2**15  # characters, since a variable may have 128 KiB of UTF-8
_MOST_ANSWER = 4 * 2**20  # bytes of registrations and errors
_MOST_OUTPUT = 2**14  # bytes kept of what a plugin prints
_BLOCK = 2**16
_AT_ONCE = 8  # processes
_POLL_SECONDS = 0.05
_GRACE_SECONDS = 2.0  # for the guard to end what a plugin has started
_START = (
    "import json, sys; task = json.loads(sys.argv[1]); sys.path[:] = task['path'];"
    " from sslbench.plugins.guard import main; main(task)"
)


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    """What a process sends: pairs of kind and registration, and errors."""

    registrations: list[tuple[str, msgspec.Raw]]
    problems: list[str]


class _Handed(msgspec.Struct):
    """What a command has read, for the processes that it starts."""

    entries: list[EntryPoint]
    answers: list[_Answer]


def handover(read: Sequence[tuple[EntryPoint, Found]]) -> dict[str, str]:
    """The variable with which processes of this command need not read the plugins again.

    Empty if there is nothing to hand over, or too much.
    """
    answers = [
        _Answer(
            [(kind, msgspec.Raw(msgspec.json.encode(info))) for kind, info in found.registrations],
            found.problems,
        )
        for _, found in read
    ]
    try:
        text = msgspec.json.encode(_Handed([entry for entry, _ in read], answers)).decode()
    except UnicodeEncodeError:  # a name that is not UTF-8
        return {}
    return {_HANDOVER_VARIABLE: text} if read and len(text) < _MOST_HANDED else {}


def _handed_over(entries: Sequence[EntryPoint]) -> list[Found] | None:
    """What the parent process has read of the same plugins."""
    try:
        handed = msgspec.json.decode(os.environ.get(_HANDOVER_VARIABLE, ""), type=_Handed)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    if handed.entries != list(entries) or len(handed.answers) != len(entries):
        return None
    return [_found(answer, "") for answer in handed.answers]


def read_apart(entries: Sequence[EntryPoint]) -> list[Found]:
    """What each plugin registers. A process that fails or takes too long is an error of its plugin.

    UserError for a time limit in $SSLBENCH_PLUGIN_SECONDS that is no positive number.
    """
    handed = _handed_over(entries)
    if handed is not None:
        return handed
    tasks = [{"entry": entry, "seconds": _seconds(SECONDS)} for entry in entries]
    found: list[Found] = []
    for first in range(0, len(tasks), _AT_ONCE):
        found += _read_some(tasks[first : first + _AT_ONCE])
    return found


def try_apart(target: str, seconds: float) -> Found:
    """What goes wrong when a target is imported, and what it prints.

    seconds: the limit, if $SSLBENCH_PLUGIN_SECONDS does not give one.
    """
    (found,) = _read_some([{"target": target, "seconds": _seconds(seconds)}])
    return found


def _seconds(default: float) -> float:
    text = os.environ.get(SECONDS_VARIABLE, "")
    try:
        seconds = float(text or default)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise UserError(f"{SECONDS_VARIABLE} is {text!r}, not a number of seconds")
    return seconds


def _read_some(tasks: Sequence[dict[str, Any]]) -> list[Found]:
    """The answers to tasks of `plugin_guard.main`, each without "path"."""
    children: list[_Child] = []
    try:
        children.extend(map(_Child.start, tasks))
        _receive(children)
        return [child.found() for child in children]
    finally:
        for child in children:
            child.end()


@dataclass
class _Child:
    """The process of one task; ends: by time.monotonic(), if it does not end itself."""

    process: subprocess.Popen[bytes]
    ends: float
    answer: bytearray = field(default_factory=bytearray)
    output: bytearray = field(default_factory=bytearray)

    @staticmethod
    def start(task: dict[str, Any]) -> _Child:
        path = [folder for folder in sys.path if isinstance(folder, str)]
        process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps({**task, "path": path})],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        return _Child(process, time.monotonic() + task["seconds"] + _GRACE_SECONDS)

    def streams(self) -> list[tuple[IO[bytes], bytearray, int]]:
        """Each stream, where its bytes go, and how many are kept."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        return [
            (self.process.stdout, self.answer, _MOST_ANSWER),
            (self.process.stderr, self.output, _MOST_OUTPUT),
        ]

    def done(self) -> bool:
        """Whether nothing more is expected of it."""
        return (
            b"\n" in self.answer
            or len(self.answer) >= _MOST_ANSWER
            or self.process.poll() is not None
            or time.monotonic() > self.ends
        )

    def found(self) -> Found:
        """What the plugin registers, decoded strictly."""
        found = Found([], [], self.output.decode(errors="replace"))
        if len(self.answer) >= _MOST_ANSWER:
            found.problems.append(f"registrations and errors of over {_MOST_ANSWER:,} bytes")
            return found
        try:
            answer = msgspec.json.decode(self.answer.partition(b"\n")[0], type=_Answer)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            reason = "has other content" if self.answer else "is missing: its process has ended"
            found.problems.append(f"cannot be loaded: the answer {reason}")
            return found
        return _found(answer, found.output)

    def end(self) -> None:
        """Kill the process, unless it ends itself soon."""
        if b"\n" in self.answer:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_GRACE_SECONDS)
        started = self._started()
        kill_group(self.process.pid)
        kill(started)
        self.process.wait()
        for stream, _, _ in self.streams():
            stream.close()

    def _started(self) -> set[psutil.Process]:
        """What a guard that is still there has not ended."""
        if self.process.poll() is not None:
            return set()
        import psutil  # 20 ms, which most commands do not need

        return descendants(psutil.Process(self.process.pid))


def _found(answer: _Answer, output: str) -> Found:
    found = Found([], list(answer.problems), output)
    for kind, data in answer.registrations:
        try:
            found.registrations.append((kind, _decoded(kind, data)))
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            found.problems.append(f"registration of {kind}: {problem}")
    return found


def _decoded(kind: str, data: msgspec.Raw) -> Registration:
    if kind not in KINDS:
        raise msgspec.ValidationError("unknown kind")
    return msgspec.json.decode(data, type=KINDS[kind])


def _receive(children: Sequence[_Child]) -> None:
    """Read what the processes send until each is done."""
    with selectors.DefaultSelector() as selector:
        for child in children:
            for stream, kept, limit in child.streams():
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ, (kept, limit))
        while not all(child.done() for child in children):
            for key, _ in selector.select(_POLL_SECONDS):
                if not _read_block(key):
                    selector.unregister(key.fileobj)
        for key in list(selector.get_map().values()):  # of processes that have just ended
            while len(key.data[0]) < key.data[1] and _read_block(key):
                pass


def _read_block(key: selectors.SelectorKey) -> bool:
    """Keep a block of a stream, within the limit; False if there is none now."""
    kept, limit = key.data
    try:
        block = os.read(key.fd, _BLOCK)
    except BlockingIOError:
        return False
    kept += block[: limit - len(kept)]
    return bool(block)
