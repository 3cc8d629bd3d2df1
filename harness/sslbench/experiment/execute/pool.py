"""Runs in local processes: a new one per run, killed on timeout and when the parent exits."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import psutil
from pebble import ProcessExpired, concurrent

from sslbench.experiment.execute.threads import thread_variables
from sslbench.experiment.record import RunRecord
from sslbench.experiment.runner import execute, failed
from sslbench.experiment.training import RunTask
from sslbench.plugins import handover

_POLL_SECONDS = 0.1
_PR_SET_PDEATHSIG = 1
_MEGA = 2**20

OnStart = Callable[[RunTask], None]


def run_all(
    run_tasks: Iterable[RunTask],
    *,
    jobs: int = 1,
    threads: int = 1,
    timeout: float | None = None,
    on_start: OnStart = lambda run_task: None,
) -> Iterator[RunRecord]:
    """Execute each run in its own process, `jobs` at a time; yield records as they come.

    An exception, exit, signal or timeout of a process becomes a record of a failed run. Closing
    the iterator kills the processes that are still running. Call it from the main thread: on
    Linux, child processes are killed when the thread that started them ends.

    Parameters
    ----------
    run_tasks: the next one is taken when a process is free.
    threads: per run.
    timeout: seconds per run; None = no limit.
    on_start: called before a process starts.
    """
    waiting, running = iter(run_tasks), dict[Future[bytes], _Child]()
    with _environment(threads):
        try:
            while True:
                while len(running) < jobs and (run_task := next(waiting, None)) is not None:
                    on_start(run_task)
                    child = _Child.start(run_task, timeout)
                    running[child.future] = child
                if not running:
                    return
                done, _ = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                for child in running.values():
                    child.watch()
                for future in done:
                    yield running.pop(future).finish(timeout)
        finally:
            for child in running.values():
                child.kill()


@dataclass
class _Child:
    """The process of a run. peak: bytes, the largest memory sample."""

    run_task: RunTask
    future: Future[bytes]
    process: psutil.Process | None
    began: float = field(default_factory=time.perf_counter)
    peak: int = 0

    @staticmethod
    def start(run_task: RunTask, timeout: float | None) -> _Child:
        name = f"sslbench-{run_task.spec.run_id}"
        # Not daemonic: a method may start processes too, and `kill` ends the whole group.
        # Both arguments: pebble 5.2 declares `mp_context` but reads `context`, and forks without.
        spawn = multiprocessing.get_context("spawn")
        launch = concurrent.process(  # type: ignore[call-overload]
            name=name,
            daemon=False,
            timeout=timeout,
            context=spawn,
            mp_context=spawn,
        )
        future: Future[bytes] = launch(_child_main)(msgspec.json.encode(run_task), os.getpid())
        pids = [child.pid for child in multiprocessing.active_children() if child.name == name]
        process = None
        with contextlib.suppress(psutil.Error, IndexError):
            process = psutil.Process(pids[0])
        return _Child(run_task, future, process)

    def watch(self) -> None:
        """Sample the memory of the process and its children; a killed run cannot report it."""
        if self.process is None:
            return
        with contextlib.suppress(psutil.Error):
            family = [self.process, *self.process.children(recursive=True)]
            self.peak = max(self.peak, sum(member.memory_info().rss for member in family))

    def finish(self, timeout: float | None) -> RunRecord:
        """The record of a process that has ended."""
        self.kill()
        try:
            record = msgspec.json.decode(self.future.result(), type=RunRecord)
        except TimeoutError:
            record = failed(self.run_task, "timeout", f"stopped after {timeout:g} s (--timeout)")
        except ProcessExpired as error:
            record = failed(self.run_task, "process", _exit_message(error.exitcode))
        except Exception as error:  # e.g. a failed import in the child
            record = failed(self.run_task, "process", f"{type(error).__name__}: {error}")
        if record.wall_s == 0.0:
            record.wall_s = time.perf_counter() - self.began
        peaks = [mb for mb in (record.peak_rss_mb, self.peak / _MEGA) if mb]
        record.peak_rss_mb = round(max(peaks), 1) if peaks else None
        return record

    def kill(self) -> None:
        """Kill the process group: the run and the processes that its method has started."""
        if self.process is None:
            return
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(psutil.Error):  # it may not have its own group yet
            self.process.kill()


def _exit_message(exitcode: int | None) -> str:
    if exitcode is None or exitcode >= 0:
        return f"the process ended without a result (exit status {exitcode})"
    name = signal.Signals(-exitcode).name if -exitcode in set(signal.Signals) else str(-exitcode)
    hint = "; out of memory?" if name == "SIGKILL" else ""
    return f"the process was killed by signal {name}{hint}"


def _child_main(encoded: bytes, parent: int) -> bytes:
    """Body of a run's process: returns the record as JSON."""
    _exit_with(parent)
    # Standard output is for the results of the command: what a method prints goes to stderr.
    os.dup2(2, 1)
    record = execute(msgspec.json.decode(encoded, type=RunTask))
    record.peak_rss_mb = _peak_rss_mb()
    return msgspec.json.encode(record)


def _exit_with(parent: int) -> None:
    """Have this process killed when the parent exits (PR_SET_PDEATHSIG on Linux).

    Processes that a method has started are killed with the run (`_Child.kill`), but survive if the
    parent is killed by SIGKILL.
    """
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    if sys.platform == "linux":
        # Takes effect at once, even while compiled code holds the interpreter lock.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _peak_rss_mb() -> float | None:
    """Highest resident memory of this process or of its largest finished child, in MiB."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    with contextlib.suppress(OSError, StopIteration, ValueError):
        # ru_maxrss of a spawned process includes the memory of the parent; VmHWM does not.
        status = Path("/proc/self/status").read_text().splitlines()
        line = next(line for line in status if line.startswith("VmHWM:"))
        own = int(line.split()[1]) * 1024
    return max(own, children) / _MEGA


@contextlib.contextmanager
def _environment(threads: int) -> Iterator[None]:
    """Set the variables that numba and BLAS read at import, for processes that start here."""
    variables = {**thread_variables(threads), **handover()}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
