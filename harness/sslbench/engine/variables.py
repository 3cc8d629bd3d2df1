"""Environment variables and limits, which are checked before anything is done.

Imports nothing heavy.
"""

from __future__ import annotations

import os
import sys

from sslbench.engine.errors import UserError

THREADS = "NUMBA_NUM_THREADS"
NO_COMPILER = "NUMBA_DISABLE_JIT"
CHECKPOINTS = "SSLBENCH_CHECKPOINT_SECONDS"
_CHECKPOINT_SECONDS = 60.0
_LEAST_FILES = 64
_LEAST_ROOM = 640 << 20
_MOST_THREADS = 10**6
_MOST_SECONDS = 1e9


def check_variables() -> None:
    """UserError for a variable with which nothing can be computed."""
    _number(THREADS, 1, 1, _MOST_THREADS, "a number of threads")
    checkpoint_seconds()
    if os.environ.get(NO_COMPILER, "0") not in ("", "0"):
        raise UserError(
            f"the variable {NO_COMPILER} is set: kernels are only run compiled", hint="unset it"
        )


def check_limits() -> None:
    """UserError if so few files may be open, or so little be addressed, that a run would fail."""
    if sys.platform == "win32":
        return
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY and files < _LEAST_FILES:
        message = f"this shell allows {files} open files, and {_LEAST_FILES} are needed"
        raise UserError(message, hint="raise the limit: ulimit -n 1024")
    room, _ = resource.getrlimit(resource.RLIMIT_AS)
    if room != resource.RLIM_INFINITY and room < _LEAST_ROOM:  # a library would end the process
        message = f"this shell allows {room >> 20} MB of virtual memory, and {_LEAST_ROOM >> 20}"
        raise UserError(f"{message} are needed", hint="raise the limit, see ulimit -v")


def processors() -> int:
    """Return how many processors this process may use: not all, under taskset or a scheduler."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checkpoint_seconds() -> float:
    """Return the seconds between two checkpoints; UserError for another text in the variable."""
    return _number(CHECKPOINTS, _CHECKPOINT_SECONDS, 0, _MOST_SECONDS, "a number of seconds")


def _number(name: str, default: float, least: float, most: float, what: str) -> float:
    text = os.environ.get(name)
    if not text:
        return default
    try:
        value = float(text) if isinstance(default, float) else int(text)
    except ValueError:
        value = -1
    if not least <= value <= most:
        hint = f"give {what} from {least:g}, or unset it"
        raise UserError(f"the variable {name} is {text!r}", hint=hint)
    return value
