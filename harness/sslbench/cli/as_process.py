"""The command as a process: signals that end it, and streams that are closed or full."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from sslbench.engine.errors import UserError

READER_GONE = 128 + 13  # as if ended by SIGPIPE, which Windows does not have
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP


class Interrupted(KeyboardInterrupt):
    """A signal has asked this process to end; exit_status: as shells show it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_status = 128 + number


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Raise `Interrupted` for the signals of a terminal, a closed terminal and a process manager.

    So all of them leave nothing behind. A signal that is ignored, as by nohup, stays so. Every
    second signal is ignored: managers send several, which would interrupt the cleaning up.
    """
    count = 0

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count % 2:
            raise Interrupted(number)

    numbers = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Messages(io.FileIO):
    """Standard error; what cannot be written, to a full disk or a closed pipe, is dropped."""

    def write(self, data: object) -> int:
        """Write bytes; return how many."""
        with suppress(OSError):
            return super().write(data)  # type: ignore[arg-type]  # bytes of any kind
        return memoryview(data).nbytes  # type: ignore[arg-type]


def _raw(stream: object) -> object:
    """Return the stream below a buffer; with PYTHONUNBUFFERED there is none."""
    return getattr(stream, "raw", stream)


def prepare_streams() -> bool:
    """Open closed standard streams on nothing; return whether results can be shown.

    Files would get the numbers of closed streams, and be written to by whatever prints.
    """
    closed = [stream is None for stream in (sys.stdin, sys.stdout, sys.stderr)]
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest free number
    if closed[0]:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    if closed[1]:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if closed[2] or isinstance(_raw(sys.stderr.buffer), io.FileIO):
        encoding = "utf-8" if closed[2] else sys.stderr.encoding
        raw = _Messages(2, "w", closefd=False)
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=True
        )
    return not closed[1]


def unwritten() -> OSError | None:
    """Return why standard output cannot be written, None if it can; what is left is dropped."""
    try:
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.stdout.flush()
        return error
    return None


def is_full(problem: Exception) -> bool:
    """Can an output not be written, which is no file that the user has named?"""
    return isinstance(problem, OSError) and problem.errno in _FULL and not problem.filename


def in_words(problem: Exception) -> Exception:
    """Return an error as one that a user understands, if input or limits of the shell cause it."""
    starved = isinstance(problem, MemoryError) or "can't start new thread" in str(problem)
    if starved or _is_library_without_memory(problem):
        return UserError("out of memory", hint="free some, or see ulimit -v and ulimit -u")
    if not isinstance(problem, OSError):
        return problem
    if problem.errno in (errno.EMFILE, errno.ENFILE):
        return UserError("too many open files", hint="raise the limit, see ulimit -n")
    full = unwritten()
    if full is not None:
        return UserError(full.strerror or str(full), file="standard output")
    if problem.strerror and problem.filename:
        return UserError(problem.strerror, file=problem.filename)  # e.g. not writable
    try:
        os.getcwd()
    except FileNotFoundError:
        return UserError("the working folder has been removed", hint="change to another folder")
    return UserError(problem.strerror) if problem.strerror else problem


def _is_library_without_memory(problem: Exception) -> bool:
    """Is this a library that cannot be loaded into a limited memory (ulimit -v)?

    The errors differ: an ImportError of the loader, an OSError without a number of llvmlite. A
    library that is not there at all is another error.
    """
    if isinstance(problem, ModuleNotFoundError) or getattr(problem, "errno", None) is not None:
        return False
    if sys.platform == "win32":
        return False
    import resource

    limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    return limited and isinstance(problem, ImportError | OSError)
