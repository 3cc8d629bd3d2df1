"""The time that this process has taken to compile kernels: it does not count for a run.

The compilation of a kernel includes those of the kernels that it calls: the outermost is timed.
"""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple


class Seconds(NamedTuple):
    """Wall seconds, and CPU seconds of the compiling thread."""

    wall: float = 0.0
    cpu: float = 0.0


_spent = Seconds()
_nesting = 0


def compile_seconds() -> Seconds:
    """Return the seconds that this process has compiled until now."""
    return _spent


def start_clock() -> None:
    """Count from now on, by numba's events."""
    from numba.core import event

    register: Any = event.register

    class Clock(event.Listener):
        """Adds up the outermost compilations."""

        began = Seconds()

        def on_start(self, event: Any) -> None:
            global _nesting
            if _nesting == 0:
                self.began = Seconds(time.perf_counter(), time.thread_time())
            _nesting += 1

        def on_end(self, event: Any) -> None:
            global _nesting, _spent
            _nesting -= 1
            if _nesting == 0:
                wall = time.perf_counter() - self.began.wall
                cpu = time.thread_time() - self.began.cpu
                _spent = Seconds(_spent.wall + wall, _spent.cpu + cpu)

    register("numba:compile", Clock())


def _start_again() -> None:
    global _spent
    _spent = Seconds()


if hasattr(os, "register_at_fork"):  # a fork has compiled nothing
    os.register_at_fork(after_in_child=_start_again)
