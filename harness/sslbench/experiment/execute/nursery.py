"""Processes of runs, forked from one that has imported the engine and has read no data.

To start an interpreter and import the engine takes about a second, as long as a short run. Here one
process, the nursery, does it once for all runs of a grid. It has a pipe to the command and no
address: nothing that a plugin runs can ask it for a process. Code of other distributions and
readers of datasets are imported by the processes of the runs alone. Where there is no safe fork
(macOS, Windows), each run is a new interpreter.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from types import ModuleType
from typing import Any, Literal, cast

from sslbench.experiment.execute.threads import use_threads
from sslbench.plugins.registrations import import_within
from sslbench.processes.tree import signal_at_end_of_parent

_ENGINE = "sslbench.experiment.execute.pool"
_FORKS = sys.platform == "linux"

Body = Callable[..., bytes]


class BodyError(Exception):
    """What the body of a process has raised, as one text."""


@dataclass(frozen=True)
class Started:
    """A process that computes bytes.

    pid: its number.  connection: readable when the result is there, or the process has ended.
    exit_code: waits for the end of the process, which must be near; None = not known.
    """

    pid: int
    connection: Connection
    exit_code: Callable[[], int | None]

    def result(self) -> bytes:
        """What its body has returned; EOFError if it has ended without, BodyError if it raised."""
        found = self.connection.recv_bytes()
        if found[:1] != b"+":
            raise BodyError(found[1:].decode())
        return found[1:]


class Nursery:
    """Starts processes. Call it from the main thread: it ends with the thread that has made it.

    Parameters
    ----------
    how: it is started. A new interpreter ("spawn") reads the environment of now; a fork has the
        imports, and all the memory, of this process. See `early_nursery`.

    Attributes
    ----------
    parent: the number of the process whose children the processes are.
    """

    def __init__(self, how: Literal["spawn", "fork"] = "spawn") -> None:
        self.parent = os.getpid()
        self._context = cast(Any, multiprocessing.get_context(how))
        self._process: Any = None
        if _FORKS:
            self._connection, theirs = multiprocessing.Pipe()
            with _without_main():
                self._process = self._context.Process(
                    target=_nurse, args=(theirs, self._connection, self.parent)
                )
                self._process.start()
            theirs.close()
            self.parent = self._process.pid

    def start(self, body: Body, arguments: tuple[Any, ...], targets: Iterable[str] = ()) -> Started:
        """Start a process that calls the body.

        targets: ``"module:attribute"`` of sslbench's own plugins, whose modules all later processes
        find imported.

        OSError: the nursery is gone.
        """
        ours, theirs = multiprocessing.Pipe()
        with theirs:
            if self._process is None:
                with _without_main():
                    process = self._context.Process(target=_grow, args=(theirs,))
                    process.start()
                pid, exit_code = process.pid, lambda: _joined(process)
            else:
                pid = self._fork(theirs, tuple(targets))
                exit_code = lambda: self._exit_code(pid)  # noqa: E731
        ours.send((body, arguments))
        return Started(pid, ours, exit_code)

    def _fork(self, connection: Connection, targets: tuple[str, ...]) -> int:
        try:
            self._connection.send(targets)
            send_handle(self._connection, connection.fileno(), self.parent)
            pid: int = self._connection.recv()
            return pid
        except EOFError as error:
            raise OSError("the process that starts runs has ended") from error

    def _exit_code(self, pid: int) -> int | None:
        with suppress(EOFError, OSError):
            self._connection.send(pid)
            code: int | None = self._connection.recv()
            return code
        return None

    def close(self) -> None:
        """End the nursery."""
        if self._process is not None:
            self._connection.close()
            self._process.join()


def early_nursery(threads: int, targets: Iterable[str]) -> Nursery | None:
    """A nursery forked from a command that has just begun, with what that imports anyway.

    None where this process may hold more than a fork should have: numpy is imported, or there are
    other threads.

    threads: per run.  targets: see `Nursery.start`.
    """
    if not _FORKS or "numpy" in sys.modules or threading.active_count() > 1:
        return None
    use_threads(threads)
    _prepare(targets)
    return Nursery("fork")


def _prepare(targets: Iterable[str] = ()) -> None:
    """What every run begins with. The engine is imported late: numpy reads the environment.

    The garbage collector would walk through the modules again and again, and write to pages that
    are shared with the runs.
    """
    gc.disable()
    import_module(_ENGINE)
    import_module("sslbench.engine.compilation.compiled").prepare()
    _import(targets)
    gc.freeze()
    gc.enable()


def _import(targets: Iterable[str]) -> None:
    """What fails here fails again, with a message, in the process of the run."""
    for target in targets:
        with suppress(Exception):
            import_module(target.partition(":")[0])


@contextmanager
def _without_main() -> Iterator[None]:
    """Let new processes not import the user's script, which would start the runs once more."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _nurse(connection: Connection, theirs: Connection, parent: int) -> None:
    """Body of the nursery: fork a process, or tell how one has ended, until the command ends.

    theirs: the other side of the connection, which this process must not hold.
    """
    theirs.close()
    signal_at_end_of_parent(signal.SIGKILL)
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends the runs
    import_within(lambda target, what: nullcontext())
    _prepare()
    with suppress(EOFError, OSError):
        while True:
            request = connection.recv()
            if isinstance(request, int):
                connection.send(_waited(request))
                continue
            handle = recv_handle(connection)
            _import(request)
            pid = os.fork()
            if pid == 0:
                connection.close()
                signal.signal(signal.SIGINT, signal.default_int_handler)
                _grow(Connection(handle))
            os.close(handle)
            connection.send(pid)


def _grow(connection: Connection) -> None:
    """Body of a process: it ends here."""
    status = 1
    try:
        body, arguments = connection.recv()
        try:
            answer = b"+" + body(*arguments)
        except Exception as error:
            traceback.print_exc()
            answer = b"-" + f"{type(error).__name__}: {error}".encode(errors="replace")
        connection.send_bytes(answer)
        status = 0
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(status)


def _waited(pid: int) -> int | None:
    with suppress(ChildProcessError):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return None


def _joined(process: Any) -> int | None:
    process.join()
    code: int | None = process.exitcode
    return code
