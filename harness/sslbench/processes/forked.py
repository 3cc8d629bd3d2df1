"""A call in a forked process, of which only plain bytes come back."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from sslbench.processes.tree import kill_group

_MOST = 2**24  # bytes of a result
_BLOCK = 2**16


class ForkError(Exception):
    """No result: the process has ended, takes too long or sends too much. One line says which."""


def in_fork(call: Callable[[], bytes], seconds: float) -> bytes:
    """The result of a call that must not raise. Where there is no fork, it is called here.

    What the call prints goes to standard error; what it changes or starts ends with it.

    ForkError: no result within the time and the limit of 16 MiB.
    """
    if not hasattr(os, "fork"):
        return call()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(call, writing)
    os.close(writing)
    try:
        data = _read(reading, seconds)
    finally:
        os.close(reading)
        kill_group(child)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
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


def _read(reading: int, seconds: float) -> bytes:
    """All bytes until the other side ends; ForkError if it takes too long or sends too much."""
    data, end = bytearray(), time.monotonic() + seconds
    while select.select([reading], [], [], max(end - time.monotonic(), 0))[0]:
        block = os.read(reading, _BLOCK)
        if not block:
            return bytes(data)
        data += block
        if len(data) > _MOST:
            raise ForkError(f"its result has more than {_MOST:,} bytes")
    raise ForkError(f"it took more than {seconds:g} s")
