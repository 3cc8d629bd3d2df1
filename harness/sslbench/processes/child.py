"""A child process: how it is started, how its answer is read, its limits, and how it ends."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from multiprocessing import connection as connections
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, NoReturn

from sslbench.engine.errors import UserError, described
from sslbench.processes.memory import used_memory

if TYPE_CHECKING:
    import psutil  # 20 ms, which most commands do not need

#: whether a fork is safe here; elsewhere each child is a new interpreter
FORKS = sys.platform == "linux"
_MOST_BYTES = 2**24  # of the answer of `call_apart`
_END_SECONDS = 2.0  # for a process that has closed its connection
_CONNECTION = getattr(connections, "PipeConnection", Connection)  # that of Windows
#: of a new interpreter; the path before any import, since the working folder may hold anything
_BEGIN = """
import sys
sys.path[:] = sys.argv[2:]
from sslbench.processes.child import _begin
_begin(int(sys.argv[1]))
"""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36

Body = Callable[..., None]
Call = Callable[..., bytes]


class ChildError(Exception):
    """There is no answer; one line says why."""


class Child:
    """A process with all that it starts.

    Attributes
    ----------
    pid: its number.
    connection: a pipe to its body; readable also after the end of the process.
    ended: a file or handle for `multiprocessing.connection.wait`, ready after the end.
    peak: bytes, the most that `memory` has returned.
    """

    def __init__(
        self,
        pid: int,
        connection: Connection,
        wait_for_code: Callable[[], int | None],
    ) -> None:
        self.pid = pid
        self.connection = connection
        self._wait_for_code = wait_for_code
        self.ended: Any = os.pidfd_open(pid) if sys.platform == "linux" else self._end_of_wait()
        self.peak = 0
        self._processes = with_descendants(pid)
        self._code: list[int | None] = []

    def result(self, most: int, seconds: float | None = None) -> bytes:
        """Return what the call has returned, see `answer`.

        most: bytes.  seconds: None = no limit.

        Raises
        ------
        UserError: the call has raised one.
        ChildError: the call has raised another exception, or there is no answer within the limits.
        """
        if not wait([self.connection], seconds):
            raise ChildError(f"it took more than {seconds:g} s")
        try:
            data = self.connection.recv_bytes(most + 1)
        except (EOFError, OSError) as error:
            raise ChildError(self.why(error, most)) from None
        kind, content = data[:1], data[1:]
        if kind == b"+":
            return content
        text = content.decode(errors="replace")
        raise UserError(text) if kind == b"?" else ChildError(text)

    def why(self, error: BaseException, most: int) -> str:
        """Return in one line why the connection raises this error. most: bytes of an answer."""
        if wait([self.ended], _END_SECONDS):
            return exit_message(self.exit_code())
        if isinstance(error, EOFError):
            return "the process has closed its connection"
        return f"its answer is damaged, or has more than {most:,} bytes"

    def memory(self, most: int | None = None) -> int:
        """Return the bytes of the process and of all that it has started, see `used_memory`."""
        self._look()
        used = used_memory(self._processes, most)
        self.peak = max(self.peak, used)
        return used

    def exit_code(self) -> int | None:
        """Wait for the end; return the exit code, minus the number of a signal, None = unknown."""
        if not self._code:
            self._code.append(self._wait_for_code())
        return self._code[0]

    def _end_of_wait(self) -> Connection:
        """Return a pipe whose other end a thread closes when the process has ended."""
        ended, other = multiprocessing.Pipe(duplex=False)

        def close_at_end() -> None:
            with other:
                self._wait_for_code()

        threading.Thread(target=close_at_end, daemon=True).start()
        return ended

    def kill(self) -> None:
        """Kill the process, its group, and all that it was seen to start."""
        self._look()
        if not self._code:
            kill_group(self.pid)
        kill(self._processes)

    def _look(self) -> None:
        """Note what the process has started; after its end its number may be another one's."""
        if not self._code:
            self._processes |= with_descendants(self.pid)

    def end(self, seconds: float = 0.0) -> None:
        """Kill the process and all that it has started, wait for its end, close the connection.

        seconds: time for the process to end by itself, without its connection.
        """
        if seconds:
            self.connection.close()
            wait([self.ended], seconds)
        self.kill()
        self.connection.close()
        self.exit_code()
        if sys.platform == "linux" and self.ended >= 0:
            os.close(self.ended)
            self.ended = -1


def start(body: Body, *arguments: Any, fork: bool, output: int | None = None) -> Child:
    """Start a process that calls ``body(connection, *arguments)``; it ends with this thread.

    `multiprocessing` would refuse to start one in a worker of a pool, of joblib or of dask, and
    would import the user's script again. Any thread may call this.

    Parameters
    ----------
    fork: it is a copy of this process, which should have no other thread; else a new interpreter,
        which gets body and arguments by pickle.
    output: the file for standard output and error of a fork. All other files are closed.
    """
    ours, theirs = multiprocessing.Pipe()
    parent = os.getpid()
    with theirs:
        if not fork:
            process = _interpreter(theirs.fileno())
        else:
            _flush()  # what is left in a buffer would be written by both
            pid = os.fork()
            if not pid:
                ours.close()
                _main(theirs, output, parent, body, arguments)
            return Child(pid, ours, partial(exit_code_of, pid))
    with suppress(OSError):  # the process has ended: `Child.result` says how
        ours.send((parent, body, arguments))
    return Child(process.pid, ours, process.wait)


def _interpreter(connection: int) -> subprocess.Popen[bytes]:
    """Start an interpreter that calls `_begin` with the number of its end of a pipe."""
    command = [sys.executable, "-c", _BEGIN, str(connection), *sys.path]
    if sys.platform != "win32":
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(connection,))
    os.set_handle_inheritable(connection, True)
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)


def _begin(number: int) -> None:
    """Receive the body of a new interpreter, and call it."""
    connection = _CONNECTION(number)
    try:
        parent, body, arguments = connection.recv()
    except EOFError:  # the parent has ended
        os._exit(1)
    _main(connection, None, parent, body, arguments)


def call_apart(call: Call, seconds: float) -> bytes:
    """Return the result of a call in a fork. Where there is no safe fork, it is called here.

    What the call prints goes to standard error; what it changes or starts ends with it.

    Raises
    ------
    UserError: the call has raised one.
    ChildError: the call has raised another exception, or there is no result within the
        seconds and 16 MiB.
    """
    if not FORKS:
        return call()
    child = start(answer, call, fork=True)
    try:
        return child.result(_MOST_BYTES, seconds)
    finally:
        child.end()


def answer(connection: Connection, call: Call, *arguments: Any) -> None:
    """Send what a call returns, or its exception as one line; then wait to be ended.

    The process leaves the session and the terminal of the command.
    """
    _detach()
    try:
        data = b"+" + call(*arguments)
    except UserError as error:
        data = b"?" + str(error).encode(errors="replace")
    except Exception as error:
        traceback.print_exc()
        data = b"-" + described(error).encode(errors="replace")
    _flush()
    with suppress(EOFError, OSError):
        connection.send_bytes(data)
        connection.recv_bytes()  # while this process lives, its descendants can be found


def with_descendants(pid: int) -> set[psutil.Process]:
    """Return a process, all that it has started, and its adopted orphans; none if it has ended."""
    import psutil

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return {process, *process.children(recursive=True)}
    return set()


def my_descendants() -> set[psutil.Process]:
    """Return all that this process has started, and its adopted orphans."""
    return {process for process in with_descendants(os.getpid()) if process.pid != os.getpid()}


def kill(processes: Iterable[psutil.Process]) -> None:
    """Kill those that are still there."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def kill_group(pid: int) -> None:
    """Kill the process group of this number, where there are groups; 0 = that of this process."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def limit_memory(most: int) -> None:
    """Make allocations beyond this many bytes fail, in this process and those that it starts."""
    if sys.platform == "win32":
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def exit_message(exitcode: int | None) -> str:
    """Return how a process ended, in one line. exitcode: see `Child.exit_code`."""
    if exitcode is None or exitcode >= 0:
        return f"the process ended without a result (exit status {exitcode})"
    number = -exitcode
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    hint = "; out of memory?" if name == "SIGKILL" else ""
    return f"the process was killed by {name}{hint}"


def signal_at_end_of_parent(number: int) -> None:
    """Have this signal sent to this process when the thread that started it ends (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, number)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


def _detach() -> None:
    """Leave session and terminal, read nothing, print to standard error, adopt all orphans."""
    if hasattr(os, "setsid"):
        with suppress(PermissionError):
            os.setsid()
    _read_nothing()
    with suppress(OSError):  # standard error is closed
        _print_to(2)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # adopt what descendants leave when they end


def _read_nothing() -> None:
    """Make standard input empty."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    if nothing:
        os.dup2(nothing, 0)
        os.close(nothing)


def end_with(parent: int) -> None:
    """Have this process killed when its parent, the process of this number, ends (Linux)."""
    signal_at_end_of_parent(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def exit_code_of(pid: int) -> int | None:
    """Wait for the end of a child; return its exit code, None if another has waited for it."""
    with suppress(ChildProcessError):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return None


def run_body(body: Body, connection: Connection, *arguments: Any) -> NoReturn:
    """Call the body of a process, and end the process without its exit handlers."""
    status = 1
    try:
        body(connection, *arguments)
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(status)


def _main(
    connection: Connection, output: int | None, parent: int, body: Body, arguments: tuple[Any, ...]
) -> NoReturn:
    _reset_signals()
    end_with(parent)
    if output is not None:
        _use_output(output, connection.fileno())
    run_body(body, connection, *arguments)


def _reset_signals() -> None:
    """End at the signals that the command handles; what it ignores stays ignored."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)


def _use_output(output: int, other: int) -> None:
    """Write standard output and error to this file, read nothing; close all files but the two."""
    _read_nothing()
    _print_to(output)
    os.closerange(3, other)
    os.closerange(other + 1, os.sysconf("SC_OPEN_MAX"))


def _print_to(file: int) -> None:
    """Write standard output and error to this file."""
    os.dup2(file, 1)
    os.dup2(file, 2)
    # The streams of the parent may be a notebook's, or write to a file that is closed next.
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
