"""Runs in local processes, which are killed at their limits and when the parent exits."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

import msgspec
import psutil

from sslbench.experiment.execute.nursery import BodyError, Nursery, Started
from sslbench.experiment.execute.threads import thread_variables
from sslbench.experiment.records.record import ErrorKind, RunRecord
from sslbench.experiment.run.runner import execute, failed
from sslbench.experiment.run.training import RunTask
from sslbench.isolation.start import isolated
from sslbench.plugins import registry
from sslbench.plugins.registered import handover
from sslbench.processes.tree import (
    adopt_orphans,
    descendants,
    exit_message,
    kill,
    kill_group,
    signal_at_end_of_parent,
)

_POLL_SECONDS = 0.1
_MEGA = 2**20

OnStart = Callable[[RunTask], None]


def run_all(
    run_tasks: Iterable[RunTask],
    *,
    jobs: int = 1,
    threads: int = 1,
    timeout: float | None = None,
    memory: int | None = None,
    on_start: OnStart = lambda run_task: None,
    nursery: Nursery | None = None,
) -> Iterator[RunRecord]:
    """Execute each run in its own processes, `jobs` at a time; yield records as they come.

    One process loads the data and scores, another trains and predicts (`MethodProcess`). An
    exception, exit, signal or timeout of a process, or too much memory, becomes a record of a
    failed run. Closing the iterator kills the processes that are still running. Call it from the
    main thread: on Linux, child processes are killed when the thread that started them ends.

    Parameters
    ----------
    run_tasks: the next one is taken when a process is free.
    threads: per run.
    timeout: seconds per run; None = no limit.
    memory: bytes per run, of all its processes; None = `default_memory`.
    on_start: called before a process starts.
    nursery: starts the processes, with its own environment; None = a new one.
    """
    waiting, running = iter(run_tasks), list[_Child]()
    limits = Limits(timeout, memory or default_memory(jobs))
    with _environment(threads), contextlib.closing(_Starter(nursery)) as starter:
        try:
            while True:
                while len(running) < jobs and (run_task := next(waiting, None)) is not None:
                    on_start(run_task)
                    running.append(_Child.start(run_task, limits, starter))
                if not running:
                    return
                ready = wait([child.started.connection for child in running], _POLL_SECONDS)
                for child in running:
                    child.watch()
                for child in [each for each in running if each.started.connection in ready]:
                    running.remove(child)
                    yield child.finish()
        finally:
            for child in running:
                child.end()


def default_memory(jobs: int) -> int:
    """Bytes: four fifths of the machine's memory (or that of its control group), by run."""
    total: int = psutil.virtual_memory().total
    with contextlib.suppress(OSError, ValueError):
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return total * 4 // (5 * jobs)


@dataclass(frozen=True)
class Limits:
    """timeout: seconds, None = no limit.  memory: bytes."""

    timeout: float | None
    memory: int


class _Starter:
    """Starts the processes of runs; makes a nursery if none is given, or it is gone."""

    def __init__(self, nursery: Nursery | None) -> None:
        self._nursery = nursery
        self._own: Nursery | None = None

    def start(self, run_task: RunTask, temporary: Path, memory: int) -> Started:
        if self._nursery is not None:
            with contextlib.suppress(OSError):
                return _start(self._nursery, run_task, temporary, memory)
        self.close()
        self._nursery = self._own = Nursery()
        return _start(self._nursery, run_task, temporary, memory)

    def close(self) -> None:
        if self._own is not None:
            self._own.close()


def _start(nursery: Nursery, run_task: RunTask, temporary: Path, memory: int) -> Started:
    spec, encoded = run_task.spec, msgspec.json.encode(run_task)
    names = (("methods", spec.method), ("featurizers", spec.featurizer), ("models", spec.model))
    arguments = (encoded, str(temporary), memory, nursery.parent)
    return nursery.start(_child_main, arguments, registry().own_targets(*names))


@dataclass
class _Child:
    """The process of a run. peak: bytes, the largest memory sample of it and its descendants."""

    run_task: RunTask
    limits: Limits
    started: Started
    process: psutil.Process | None
    temporary: Path
    began: float = field(default_factory=time.perf_counter)
    descendants: set[psutil.Process] = field(default_factory=set)
    peak: int = 0
    late: bool = False

    @staticmethod
    def start(run_task: RunTask, limits: Limits, starter: _Starter) -> _Child:
        folder = Path(tempfile.mkdtemp(prefix="sslbench-run-"))
        started = starter.start(run_task, folder, limits.memory)
        process = None
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(started.pid)
        return _Child(run_task, limits, started, process, folder)

    def watch(self) -> None:
        """Sample the memory of the process and its descendants; kill them beyond the limits."""
        if self.process is None or self.started.connection.poll():
            return
        limit = self.limits.timeout
        self.late = limit is not None and time.perf_counter() - self.began > limit
        used = 0
        self.descendants |= descendants(self.process)
        with contextlib.suppress(psutil.Error):
            used = self.process.memory_info().rss
        for member in self.descendants:
            with contextlib.suppress(psutil.Error):
                used += member.memory_info().rss
        self.peak = max(self.peak, used)
        if self.late or used > self.limits.memory:
            self.kill()

    def finish(self) -> RunRecord:
        """The record of a process that has answered or ended."""
        result, code = self.end()
        limits = self.limits
        if isinstance(result, RunRecord):
            record = result
        elif self.late:
            record = self._failed("timeout", f"stopped after {limits.timeout:g} s (--timeout)")
        elif self.peak > limits.memory:
            message = f"stopped at {limits.memory / _MEGA:,.0f} MiB of memory (--memory)"
            record = self._failed("memory", message)
        else:
            record = self._failed("process", result or exit_message(code))
        peaks = [mb for mb in (record.peak_rss_mb, self.peak / _MEGA) if mb]
        record.peak_rss_mb = round(max(peaks), 1) if peaks else None
        return record

    def _failed(self, kind: ErrorKind, message: str) -> RunRecord:
        record = failed(self.run_task, kind, message)
        record.wall_s = time.perf_counter() - self.began
        return record

    def end(self) -> tuple[RunRecord | str, int | None]:
        """Its record, or what was wrong, "" if it has sent nothing; and its exit code."""
        result: RunRecord | str = ""
        try:
            if self.started.connection.poll():
                result = msgspec.json.decode(self.started.result(), type=RunRecord)
        except (EOFError, ConnectionError):
            pass
        except (BodyError, OSError, msgspec.MsgspecError) as error:
            result = str(error)
        self.kill()
        self.started.connection.close()
        return result, self.started.exit_code()

    def kill(self) -> None:
        """Kill the process and all that it is known to have started."""
        shutil.rmtree(self.temporary, ignore_errors=True)
        if self.process is None:
            return
        self.descendants |= descendants(self.process)
        kill_group(self.process.pid)
        kill((self.process, *self.descendants))


def _child_main(encoded: bytes, temporary: str, memory: int, parent: int) -> bytes:
    """Body of a run's process: returns the record as JSON."""
    run_task = msgspec.json.decode(encoded, type=RunTask)
    plugins = run_task.registry(registry())
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    # Before this process has threads and data, which a fork would share.
    method = isolated(run_task, plugins, Path(temporary), memory)
    _exit_with(parent)
    # Standard output is for the results of the command: what a dataset prints goes to stderr.
    os.dup2(2, 1)
    with contextlib.closing(method):
        record = execute(run_task, plugins, method)
    record.peak_rss_mb = _peak_rss_mb()
    return msgspec.json.encode(record)


def _exit_with(parent: int) -> None:
    """End this process and all that it has started when the parent exits, or with SIGTERM.

    On Linux, orphans of descendants become children of this process, and a signal tells the end of
    the parent; elsewhere it is noticed within a second.
    """
    if sys.platform == "linux":
        adopt_orphans()
        signal_at_end_of_parent(signal.SIGTERM)
        signal.signal(signal.SIGTERM, lambda *_: _end())
    threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _end() -> None:
    """Kill all descendants, and this process."""
    kill(descendants())
    kill_group(0)
    os._exit(1)


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    _end()


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
