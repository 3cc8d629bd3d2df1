"""A process that forks others, which find imported what it has imported.

It is reached by a pipe, not a socket, so plugins cannot use it, as they could
`multiprocessing`'s fork server.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

from sslbench.processes.child import (
    FORKS,
    Call,
    Child,
    answer,
    end_with,
    exit_code_of,
    run_body,
    start,
)

_END_SECONDS = 5.0  # for the server to end when its connection is closed


class ForkServer:
    """Starts processes. Call it from one thread: it ends with the thread that has used it first.

    Where a fork is not safe, there is no server, and each process is a new interpreter.

    Parameters
    ----------
    prepare: called in the server before the first fork.
    fork: the server is a fork of this process, with all its memory; see `may_fork`. Else it is a
        new interpreter, made for the first process, which reads the environment of then.
    """

    def __init__(self, prepare: Callable[[], None], fork: bool = False) -> None:
        self._prepare = prepare
        self._server = start(_serve, prepare, fork=True) if fork else None

    @property
    def pid(self) -> int | None:
        """Number of the server; None if there is none yet."""
        return None if self._server is None else self._server.pid

    def start(self, call: Call, *arguments: Any, modules: Iterable[str] = ()) -> Child:
        """Start a process that answers with the result of a call, see `Child.result`.

        A server that has ended is replaced; if the new one ends, too, there is none for this call.

        modules: that this and all later processes find imported, if they can be imported.
        """
        if not FORKS:
            return start(answer, call, *arguments, fork=False)
        for _ in range(2):
            if self._server is None:
                self._server = start(_serve, self._prepare, fork=False)
            with suppress(OSError):
                return self._fork(self._server, call, arguments, tuple(modules))
            self.close()
        return start(answer, call, *arguments, fork=False)

    def _fork(
        self, server: Child, call: Call, arguments: tuple[Any, ...], modules: tuple[str, ...]
    ) -> Child:
        ours, theirs = multiprocessing.Pipe()
        with theirs:
            pid = _asked(server, modules, theirs)
        ours.send((call, arguments))
        return Child(pid, ours, partial(_exit_code, server, pid))

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.end(seconds=_END_SECONDS)
            self._server = None


def _asked(server: Child, request: int | tuple[str, ...], theirs: Connection | None = None) -> Any:
    """Send the server a request; return its answer. OSError: it has ended."""
    try:
        server.connection.send(request)
        if theirs is not None:
            send_handle(server.connection, theirs.fileno(), server.pid)
        return server.connection.recv()
    except EOFError as error:
        raise OSError("the process that starts others has ended") from error


def _exit_code(server: Child, pid: int) -> Any:
    with suppress(OSError):
        return _asked(server, pid)
    return None


def may_fork() -> bool:
    """Whether this process can be forked: no other thread, and numpy has started none."""
    return FORKS and "numpy" not in sys.modules and threading.active_count() == 1


def import_modules(modules: Iterable[str]) -> None:
    """Import modules; what fails here fails again, with a message, where it is used."""
    for module in modules:
        with suppress(Exception):
            import_module(module)


def _serve(connection: Connection, prepare: Callable[[], None]) -> None:
    """Fork a process, or return the exit code of one, until the command ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends the processes
    prepare()
    server = os.getpid()
    with suppress(EOFError, OSError):
        while True:
            request = connection.recv()
            if isinstance(request, int):
                connection.send(exit_code_of(request))
                continue
            handle = recv_handle(connection)
            import_modules(request)
            pid = os.fork()
            if pid == 0:
                connection.close()
                signal.signal(signal.SIGINT, signal.default_int_handler)
                end_with(server)
                run_body(_answer_received, Connection(handle))
            os.close(handle)
            connection.send(pid)


def _answer_received(connection: Connection) -> None:
    call, arguments = connection.recv()
    answer(connection, call, *arguments)
