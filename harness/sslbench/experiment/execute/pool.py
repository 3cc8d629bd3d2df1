"""Runs in local processes, which are killed at their limits and when the parent exits."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

import msgspec
import psutil

from sslbench.engine.errors import UserError
from sslbench.experiment.execute.run_folder import RunFolder, remove_abandoned_folders
from sslbench.experiment.execute.startup import import_engine, modules_of, thread_variables
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import ErrorKind, RunRecord
from sslbench.experiment.run.fitting import RunMethod
from sslbench.experiment.run.recording import failed
from sslbench.experiment.run.runner import execute
from sslbench.plugins import Registry, registry
from sslbench.plugins.registered import use_registry
from sslbench.processes import Child, ChildError, ForkServer
from sslbench.processes.child import kill, kill_group, my_descendants, signal_at_end_of_parent
from sslbench.processes.memory import group_limits

_POLL_SECONDS = 0.1
_MEGA = 2**20
_MOST_BYTES = 2**31 - 2  # of a record

OnStart = Callable[[RunTask], None]


#: Starts the process that trains, when called in the process of a run with a folder for temporary
#: files and the bytes that may be used (None = all). It must be a function of a module, since its
#: name is sent to other processes.
StartMethod = Callable[[RunTask, Registry, Path, int | None], RunMethod]


def run_all(
    run_tasks: Iterable[RunTask],
    start_method: StartMethod,
    *,
    jobs: int = 1,
    threads: int = 1,
    timeout: float | None = None,
    memory: int | None = None,
    on_start: OnStart = lambda run_task: None,
    server: ForkServer | None = None,
) -> Iterator[RunRecord]:
    """Execute each run in its own processes, `jobs` at a time; yield records as they come.

    One process loads the data and scores, another trains and predicts. An exception, exit, signal
    or timeout of a process, or too much memory, becomes a record of a failed run. Closing the
    iterator kills the processes that are still running. Call it from the main thread: on Linux,
    child processes are killed when the thread that started them ends.

    Parameters
    ----------
    run_tasks: the next one is taken when a process is free.
    start_method: starts the process that trains.
    threads: per run.
    timeout: seconds per run; None = no limit.
    memory: bytes per run, of all its processes; None = `default_memory`.
    on_start: called before a process starts.
    server: starts the processes, with its own environment; None = a new one.
    """
    remove_abandoned_folders()
    waiting, running = iter(run_tasks), list[_Run]()
    limits = timeout, memory or default_memory(jobs)
    used = server or ForkServer(import_engine)
    with _environment(threads), contextlib.nullcontext() if server else contextlib.closing(used):
        try:
            while True:
                while len(running) < jobs and (run_task := next(waiting, None)) is not None:
                    on_start(run_task)
                    running.append(_Run.start(run_task, start_method, used, *limits))
                if not running:
                    return
                ready = wait([run.child.connection for run in running], _POLL_SECONDS)
                for run in running:
                    run.watch()
                for run in [each for each in running if each.child.connection in ready]:
                    running.remove(run)
                    yield run.finish()
        finally:
            for run in running:
                run.end()


def default_memory(jobs: int) -> int:
    """Bytes: four fifths of the machine's memory (or that of its control groups), by run."""
    total = min([psutil.virtual_memory().total, *group_limits()])
    return total * 4 // (5 * jobs)


@dataclass
class _Run:
    """A run in its process. timeout: seconds, None = no limit.  memory: bytes."""

    run_task: RunTask
    child: Child
    temporary: RunFolder
    timeout: float | None
    memory: int
    began: float = field(default_factory=time.perf_counter)
    late: bool = False

    @staticmethod
    def start(
        run_task: RunTask,
        start_method: StartMethod,
        server: ForkServer,
        timeout: float | None,
        memory: int,
    ) -> _Run:
        folder = RunFolder.make()
        spec, plugins = run_task.spec, registry()
        names = (("methods", spec.method), ("featurizers", spec.featurizer), ("models", spec.model))
        child = server.start(
            _run_here,
            msgspec.json.encode(run_task),
            msgspec.msgpack.encode(plugins),
            start_method,
            folder.path,
            memory,
            modules=[__name__, start_method.__module__, *modules_of(plugins, names)],
        )
        return _Run(run_task, child, folder, timeout, memory)

    def watch(self) -> None:
        """Kill the process and its descendants beyond the limits."""
        if self.child.connection.poll():
            return
        spent = time.perf_counter() - self.began
        self.late = self.timeout is not None and spent > self.timeout
        if self.child.memory(self.memory) > self.memory or self.late:
            self.child.kill()

    def finish(self) -> RunRecord:
        """Return the record of a process that has answered or ended."""
        peak = self.child.peak
        try:
            record = msgspec.json.decode(self.child.result(_MOST_BYTES), type=RunRecord)
        except (ChildError, UserError, msgspec.MsgspecError) as error:
            if self.late:
                record = self._failed("timeout", f"stopped after {self.timeout:g} s (--timeout)")
            elif peak > self.memory:
                message = f"stopped at {self.memory / _MEGA:,.0f} MiB of memory (--memory)"
                record = self._failed("memory", message)
            else:
                record = self._failed("process", str(error))
        self.end()
        peaks = [mb for mb in (record.peak_rss_mb, peak / _MEGA) if mb]
        record.peak_rss_mb = round(max(peaks), 1) if peaks else None
        return record

    def _failed(self, kind: ErrorKind, message: str) -> RunRecord:
        record = failed(self.run_task, kind, message)
        record.wall_s = time.perf_counter() - self.began
        return record

    def end(self) -> None:
        """Kill the process with all that it has started, and remove its files."""
        self.child.end()
        self.temporary.remove()


def _run_here(
    encoded: bytes, plugins: bytes, start_method: StartMethod, temporary: Path, memory: int
) -> bytes:
    """Execute a run in its process; return the record as JSON.

    plugins: the registry of the command. This process imports no plugin of another distribution
    but the loader of its dataset.
    """
    use_registry(plugins)
    run_task = msgspec.json.decode(encoded, type=RunTask)
    registered = run_task.registry(registry())
    # Before this process has threads and data, which a fork would share.
    method = start_method(run_task, registered, temporary, memory)
    _exit_with(os.getppid())
    with contextlib.closing(method):
        record = execute(run_task, registered, method)
    record.peak_rss_mb = _peak_rss_mb()
    return msgspec.json.encode(record)


def _exit_with(parent: int) -> None:
    """End this process and all that it has started when the parent exits, or with SIGTERM.

    On Linux, a signal tells the end of the parent; elsewhere it is noticed within a second.
    """
    if sys.platform == "linux":
        signal_at_end_of_parent(signal.SIGTERM)
        signal.signal(signal.SIGTERM, lambda *_: _end())
    threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _end() -> None:
    """Kill all descendants, and this process."""
    kill(my_descendants())
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
    mine = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    with contextlib.suppress(OSError, StopIteration, ValueError):
        # ru_maxrss of a spawned process includes the memory of the parent; VmHWM does not.
        status = Path("/proc/self/status").read_text().splitlines()
        line = next(line for line in status if line.startswith("VmHWM:"))
        mine = int(line.split()[1]) * 1024
    return max(mine, children) / _MEGA


@contextlib.contextmanager
def _environment(threads: int) -> Iterator[None]:
    """Set the variables that numba and BLAS read at import, for processes that start here."""
    variables = thread_variables(threads)
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
