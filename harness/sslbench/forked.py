"""A call in a forked process, of which only plain bytes come back."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress

_MOST = 2**24  # bytes of a result
_BLOCK = 2**16


class ForkError(Exception):
    """The process has ended without a result, or taken too long; the reason is one line."""


def in_fork(call: Callable[[], bytes], seconds: float) -> bytes:
    """The result of a call that must not raise. Where there is no fork, it is called here.

    What the call prints goes to standard error; what it changes or starts ends with it.

    ForkError: no result within the time.
    """
    if not hasattr(os, "fork"):
        return call()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(call, writing)
    os.close(writing)
    try:
        data = _read(reading, time.monotonic() + seconds)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if data is None:
        raise ForkError(f"it took more than {seconds:g} s")
    if data[:1] != b"+":
        raise ForkError("the process ended without a result")
    return data[1:]


def _answer(call: Callable[[], bytes], writing: int) -> None:
    try:
        os.setsid()
        os.dup2(2, 1)
        data = b"+" + call()
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)


def _read(reading: int, end: float) -> bytes | None:
    """All bytes until the other side ends; None if it takes too long or sends too much."""
    data = b""
    while (
        len(data) <= _MOST and select.select([reading], [], [], max(end - time.monotonic(), 0))[0]
    ):
        block = os.read(reading, _BLOCK)
        if not block:
            return data
        data += block
    return None
