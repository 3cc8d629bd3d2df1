"""The workers of a dask cluster: several runs are shared out, a single one spreads its passes.

`perform` and `_run_here` run on a worker, all else in the process of the command or of a run. A
worker writes the units of a pass to files of its own folder, and gets the same ones in the next
pass.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from sslbench.engine.compilation.compile_time import compile_seconds
from sslbench.engine.compilation.threads import set_number_of_threads
from sslbench.engine.errors import UserError, printable
from sslbench.engine.files.atomic import write_atomically
from sslbench.engine.spread import Pass, WorkerError, pack, pass_at, unpack
from sslbench.engine.version import VERSION
from sslbench.experiment.execute.pool import OnStart, StartMethod, default_memory, run_all
from sslbench.experiment.execute.startup import import_engine
from sslbench.experiment.identity import processor
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.run.recording import failed
from sslbench.plugins import registry
from sslbench.processes import ForkServer

_POLL = 2.0  # seconds between two looks for workers
PATIENCE = 60.0  # seconds without a worker until a pass goes on here
_FOLDER = "sslbench-units"


class Answer(NamedTuple):
    """The answer of a worker. data: the result, or a line on a failure.  "unit": it lacks the unit.

    cpu: seconds, without compilation.
    """

    status: Literal["done", "unit", "failed"]
    worker: str
    data: bytes = b""
    cpu: float = 0.0


@cache
def code() -> str:
    """Return the versions that the results of passes depend on, as one text."""
    names = ("sslbench", "numpy", "numba")
    parts = [f"engine {VERSION}", f"Python {platform.python_version()}"]
    return ", ".join([*parts, *(f"{name} {version(name)}" for name in names)])


def connect(address: str | None) -> Any:
    """A dask client, of a new local cluster if there is no address.

    UserError: dask.distributed is not installed, no scheduler or worker answers, or a worker has
    other code than this process.
    """
    try:
        import distributed
    except ImportError as error:
        raise UserError(
            "--executor dask needs dask.distributed", hint="pip install 'sslbench[dask]'"
        ) from error
    dask: Any = distributed  # its functions have no types
    with ExitStack() as failed:
        try:
            client = dask.Client(address) if address else dask.Client(threads_per_worker=1)
            failed.callback(client.close)
            client.wait_for_workers(1, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            raise UserError(
                f"no dask scheduler with workers at {address}: {error}",
                hint="e.g. --executor dask:tcp://host:8786",
            ) from error
        _check_code(client)
        failed.pop_all()
    return client


def _check_code(client: Any) -> None:
    """UserError: a worker has other code than this process, or none."""
    try:
        versions = client.run(code)
    except Exception as error:  # whatever an import raises there
        raise UserError(
            f"a worker cannot run sslbench: {type(error).__name__}: {error}", hint=_SAME
        ) from error
    for worker, theirs in versions.items():
        if theirs != code():
            raise UserError(_other_code(worker), hint=_SAME)


def warn_of_other_processors(client: Any) -> None:
    """One line if workers have another kind of processor than this process."""
    others = sorted(set(client.run(processor).values()) - {processor()})
    if others:
        _tell(
            f"workers have another kind of processor ({', '.join(others)}) than this command"
            f" ({processor()}): last bits of results depend on where a pass is done"
        )


_SAME = "workers need the same sslbench, Python, numpy and numba as the command"


def _other_code(worker: str) -> str:
    return f"the worker {worker} runs other code than this command"


class DaskBroker:
    """Shares out passes; see `Broker`. cpu: seconds of the workers, without compilation."""

    def __init__(self, address: str) -> None:
        self.client = connect(address)
        self.cpu = 0.0
        self._run = uuid.uuid4().hex  # names the units of this run
        self._homes: dict[tuple[str, int], str] = {}  # the worker that has a unit
        self._counts: dict[str, int] = {}  # units by key

    def over(
        self, target: str, work: bytes, key: str, give: Callable[[int], bytes | None], begin: int
    ) -> Generator[bytes, None, None]:
        """See `Broker`."""
        one = _OnePass(self, target, work, key, give)
        del work  # the cluster has it
        ahead: deque[tuple[int, Any]] = deque()
        try:
            while True:
                while len(ahead) < one.window and (future := one.submit(begin)) is not None:
                    ahead.append((begin, future))
                    begin += 1
                if not ahead:
                    return
                yield one.result(*ahead.popleft())
        except _LostError as reason:
            _tell(f"workers: {reason}; the pass {target} goes on in this process")
        finally:
            for _, future in ahead:
                future.cancel()

    def close(self) -> None:
        """Let workers drop the units of this run."""
        try:
            with closing(self.client):
                self.client.run(_drop, self._run)
        except Exception as error:  # workers that are gone have dropped them
            _tell(f"closing the connection to the workers: {type(error).__name__}")


class _LostError(Exception):
    """There are no workers, or they cannot do this unit."""


class _OnePass:
    """A pass over the units of `key`."""

    def __init__(
        self,
        broker: DaskBroker,
        target: str,
        work: bytes,
        key: str,
        give: Callable[[int], bytes | None],
    ) -> None:
        self.broker, self.key, self.give = broker, key, give
        self.client, self.target, self.number = broker.client, target, uuid.uuid4().hex
        # A task rather than scattered data: the cluster makes a lost copy again.
        self.work = self._submit(bytes, work)

    @property
    def window(self) -> int:
        """Units to have under way: workers may come and go."""
        return 2 * max(1, len(_workers(self.client)))

    def _submit(self, function: Any, *arguments: Any, worker: str | None = None) -> Any:
        options = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about the size of the arguments
            return self.client.submit(function, *arguments, pure=False, **options)

    def submit(self, number: int, again: bool = False) -> Any:
        """Start a unit; None if there is none of this number. again: no worker has it."""
        homes, place = self.broker._homes, (self.key, number)
        if number >= self.broker._counts.get(self.key, sys.maxsize):
            return None
        worker, unit = None if again else homes.get(place), None
        if worker is None and (unit := self.give(number)) is None:
            self.broker._counts[self.key] = number
            return None
        names = f"{self.broker._run}/{self.key}.{number}"
        what = self.target, self.number, self.work, names, unit, code()
        return self._submit(perform, *what, worker=worker)

    def result(self, number: int, future: Any) -> bytes:
        """The result of a unit; it is sent again where it is missing."""
        while (answer := self._wait(future)).status == "unit":
            future = self.submit(number, again=True)
        if answer.status == "failed":
            line = printable(answer.data.decode(errors="replace"))
            raise WorkerError(f"worker {answer.worker}, pass {self.target}: {line}")
        self.broker._homes[self.key, number] = answer.worker
        self.broker.cpu += answer.cpu
        return answer.data

    def _wait(self, future: Any) -> Answer:
        last = time.monotonic()
        while True:
            try:
                return Answer(*future.result(timeout=_POLL))
            except TimeoutError:
                if _workers(self.client):
                    last = time.monotonic()
                elif time.monotonic() - last > PATIENCE:
                    raise _LostError("none answers") from None
            except Exception as error:  # a task that fails is an answer: the cluster has lost it
                raise _LostError(type(error).__name__) from error


def _workers(client: Any) -> list[str]:
    try:
        return list(client.nthreads())
    except Exception:  # the scheduler is gone
        return []


def _tell(text: str) -> None:
    print(f"sslbench: {text}", file=sys.stderr, flush=True)


# -- on a worker -------------------------------------------------------------------------------

_one_at_a_time = threading.Lock()
_last: dict[str, Pass[Any, Any]] = {}  # the pass in progress, by its number


def _drop(run: str, dask_worker: Any) -> None:
    shutil.rmtree(Path(dask_worker.local_directory) / _FOLDER / run, ignore_errors=True)


def perform(
    target: str, number: str, work: bytes, unit_name: str, unit: bytes | None, wanted: str
) -> Answer:
    """The result of a unit of the pass of a target.

    unit: None = it is in a file.  wanted: the `code` of the command.
    """
    from distributed import get_worker

    worker: Any = get_worker()
    if code() != wanted:
        return Answer("failed", worker.address, _other_code(worker.address).encode())
    path = Path(worker.local_directory) / _FOLDER / unit_name
    try:
        if unit is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, unit)
        elif not path.exists():
            return Answer("unit", worker.address)
        with _one_at_a_time:  # kernels use the threads of the worker
            set_number_of_threads(worker.state.nthreads)
            began = time.process_time() - compile_seconds().cpu
            data = _result(target, number, work, path.read_bytes() if unit is None else unit)
            cpu = time.process_time() - compile_seconds().cpu - began
        return Answer("done", worker.address, data, cpu)
    except Exception as error:
        return Answer("failed", worker.address, f"{type(error).__name__}: {error}".encode())


def _result(target: str, number: str, work: bytes, unit: bytes) -> bytes:
    if number not in _last:
        _last.clear()
        _last[number] = pass_at(target, registry().packages).unpacked(*unpack(work))
    one = _last[number]
    return pack((one.pack_result(one.run(one.unpack_unit(*unpack(unit)))), {}))


def run_on_dask(
    run_tasks: Iterable[RunTask],
    start_method: StartMethod,
    *,
    address: str | None,
    timeout: float | None = None,
    memory: int | None = None,
    on_start: OnStart = lambda run_task: None,
) -> Iterator[RunRecord]:
    """Execute runs on a dask cluster; yield records as they come.

    Workers need the same version of sslbench and the data under the same paths. Each thread of a
    worker executes one run at a time, as `run_all` does, in processes of the run. If a worker is
    lost, another one repeats its run; the run fails if this happens several times.

    address: address of the scheduler; None = a local cluster.
    timeout: seconds per run; None = no limit.
    memory: bytes per run; None = those of the worker, divided by its threads.
    on_start: called when a run is submitted.
    UserError: see `connect`.
    """
    with connect(address) as client, ExitStack() as after:
        import distributed

        dask: Any = distributed  # its functions have no types
        command, futures = uuid.uuid4().hex, {}
        after.callback(_end_servers_of, client, command)
        for run_task in run_tasks:
            on_start(run_task)
            # pure=False: a repeated run is computed again, not taken from the scheduler's cache.
            given = msgspec.json.encode(run_task), start_method, timeout, memory
            future = client.submit(_run_here, command, *given, pure=False)
            futures[future] = run_task
        for future in dask.as_completed(list(futures)):
            record = _record_of(futures.pop(future), future)
            del future  # the cluster makes lost results again that somebody holds on to
            yield record


def _end_servers_of(client: Any, command: str) -> None:
    with suppress(Exception):  # of workers that are gone
        client.run(_end_servers, command)


def run_spread(
    run_tasks: Iterable[RunTask], *, address: str | None, **options: Any
) -> Iterator[RunRecord]:
    """Execute runs here, one after the other; each spreads its passes over the workers.

    options: other arguments of `run_all`.  UserError: see `connect`.
    """
    with connect(address) as client:
        warn_of_other_processors(client)
        workers: str = client.scheduler.address
        tasks = (msgspec.structs.replace(task, workers=workers) for task in run_tasks)
        yield from run_all(tasks, **options)


def _record_of(run_task: RunTask, future: Any) -> RunRecord:
    try:
        return msgspec.json.decode(future.result(), type=RunRecord)
    except Exception as error:  # the worker was lost, or an import failed there
        return failed(run_task, "process", f"{type(error).__name__}: {error}")


#: by command and thread, since a server ends with the thread that has used it first
_servers: dict[tuple[str, int], ForkServer] = {}


def _end_servers(command: str) -> None:
    for key in [key for key in _servers if key[0] == command]:
        _servers.pop(key).close()


def _run_here(
    command: str,
    encoded: bytes,
    start_method: StartMethod,
    timeout: float | None,
    memory: int | None,
) -> bytes:
    from distributed import get_worker

    worker: Any = get_worker()
    own: int = worker.state.nthreads
    whole: int = worker.memory_manager.memory_limit or default_memory(1)
    run_task = msgspec.json.decode(encoded, type=RunTask)
    run_task = msgspec.structs.replace(run_task, threads=min(run_task.threads, own))
    # Dask sets it for its workers: freed memory goes back at once, which makes trainings slower.
    os.environ.pop("MALLOC_TRIM_THRESHOLD_", None)
    server = _servers.setdefault((command, threading.get_ident()), ForkServer(import_engine))
    (record,) = run_all(
        [run_task],
        start_method,
        threads=run_task.threads,
        timeout=timeout,
        memory=memory or whole // own,
        server=server,
    )
    return msgspec.json.encode(record)
