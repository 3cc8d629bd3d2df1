"""Runs in processes of their own: a fresh one per run, killed on timeout, never left behind."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import psutil
from pebble import ProcessExpired, concurrent

from sslbench.experiment.execute.threads import thread_variables
from sslbench.experiment.record import RunRecord
from sslbench.experiment.runner import execute, failed
from sslbench.experiment.training import Task

_POLL_SECONDS = 0.1
_PR_SET_PDEATHSIG = 1
_MEGA = 2**20

OnStart = Callable[[Task], None]


def run_all(
    tasks: Sequence[Task],
    *,
    jobs: int = 1,
    timeout: float | None = None,
    on_start: OnStart = lambda task: None,
) -> Iterator[RunRecord]:
    """Run every task in a process of its own, `jobs` at a time; yield records as they come.

    Whatever happens to a process (exception, exit, signal, timeout) becomes a record. Closing the
    iterator, or leaving it by an exception, kills what is still running. Call it from the main
    thread: on Linux the children die with the thread that started them.
    """
    waiting, running = deque(tasks), dict[Future[bytes], _Child]()
    threads = tasks[0].threads if tasks else 1
    with _environment(threads):
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    task = waiting.popleft()
                    on_start(task)
                    child = _Child.start(task, timeout)
                    running[child.future] = child
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
    """A run in a process."""

    task: Task
    future: Future[bytes]
    process: psutil.Process | None
    began: float = field(default_factory=time.perf_counter)
    peak: int = 0

    @staticmethod
    def start(task: Task, timeout: float | None) -> _Child:
        name = f"sslbench-{task.spec.run_id}"
        # Not daemonic, so that a method may start processes too; `kill` ends its whole group.
        # pebble 5.2 reads `context` but declares `mp_context`, which it ignores: it then forks.
        spawn = multiprocessing.get_context("spawn")
        launch = concurrent.process(  # type: ignore[call-overload]
            name=name,
            daemon=False,
            timeout=timeout,
            context=spawn,
            mp_context=spawn,
        )
        future: Future[bytes] = launch(_child_main)(msgspec.json.encode(task), os.getpid())
        pids = [child.pid for child in multiprocessing.active_children() if child.name == name]
        process = None
        with contextlib.suppress(psutil.Error, IndexError):
            process = psutil.Process(pids[0])
        return _Child(task, future, process)

    def watch(self) -> None:
        """Sample the memory of the process and its children, for runs that are killed."""
        if self.process is None:
            return
        with contextlib.suppress(psutil.Error):
            family = [self.process, *self.process.children(recursive=True)]
            self.peak = max(self.peak, sum(member.memory_info().rss for member in family))

    def finish(self, timeout: float | None) -> RunRecord:
        """The record of a process that has ended, in whatever way."""
        self.kill()
        try:
            record = msgspec.json.decode(self.future.result(), type=RunRecord)
        except TimeoutError:
            record = failed(self.task, "timeout", f"stopped after {timeout:g} s (--timeout)")
        except ProcessExpired as error:
            record = failed(self.task, "process", _how_it_died(error.exitcode))
        except Exception as error:  # e.g. the child could not import what it needs
            record = failed(self.task, "process", f"{type(error).__name__}: {error}")
        if record.wall_s == 0.0:
            record.wall_s = time.perf_counter() - self.began
        known = [mb for mb in (record.peak_rss_mb, self.peak / _MEGA) if mb]
        record.peak_rss_mb = round(max(known), 1) if known else None
        return record

    def kill(self) -> None:
        """Kill the process group: the run and whatever processes its method has started."""
        if self.process is None:
            return
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(psutil.Error):  # it may not lead its own group yet
            self.process.kill()


def _how_it_died(exitcode: int | None) -> str:
    if exitcode is None or exitcode >= 0:
        return f"the process ended without a result (exit status {exitcode})"
    name = signal.Signals(-exitcode).name if -exitcode in set(signal.Signals) else str(-exitcode)
    hint = "; out of memory?" if name == "SIGKILL" else ""
    return f"the process was killed by signal {name}{hint}"


def _child_main(encoded: bytes, parent: int) -> bytes:
    """Body of a run's process: returns the record as JSON."""
    _die_with(parent)
    # Standard output belongs to the results of the command; a method's prints go to stderr.
    os.dup2(2, 1)
    record = execute(msgspec.json.decode(encoded, type=Task))
    record.peak_rss_mb = _peak_rss_mb()
    return msgspec.json.encode(record)


def _die_with(parent: int) -> None:
    """See to it that a killed parent leaves no run behind.

    On Linux the kernel does it; processes that a method itself has started are ended with the run
    (`_Child.kill`), but not when the parent is killed outright.
    """
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    if sys.platform == "linux":
        # Immediate, and works while a kernel holds the interpreter lock.
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
        # ru_maxrss of a spawned process starts at the parent's memory; VmHWM is its own.
        status = Path("/proc/self/status").read_text().splitlines()
        line = next(line for line in status if line.startswith("VmHWM:"))
        own = int(line.split()[1]) * 1024
    return max(own, children) / _MEGA


@contextlib.contextmanager
def _environment(threads: int) -> Iterator[None]:
    """Variables that numba and BLAS read at import, set for the children that start here."""
    wanted = thread_variables(threads)
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
