"""Runs on the workers of a dask cluster: several are shared out, one spreads its passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from sslbench.experiment.execute.pool import OnStart, run_all
from sslbench.experiment.execute.threads import use_threads
from sslbench.experiment.execute.workers import connect, warn_of_other_processors
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.run.recording import failed
from sslbench.experiment.run.runner import execute


def run_on_dask(
    run_tasks: Iterable[RunTask],
    *,
    address: str | None,
    on_start: OnStart = lambda run_task: None,
) -> Iterator[RunRecord]:
    """Execute runs on a dask cluster; yield records as they come.

    Workers need the same version of sslbench and the data under the same paths. A worker thread
    executes one run at a time and cannot be stopped: the timeout of the command does not apply.
    The run of a worker that is lost is made by another, and fails if that is lost several times.

    address: of the scheduler; None = a local cluster.  on_start: called when a run is submitted.
    UserError: see `connect`.
    """
    with connect(address) as client:
        futures = {}
        for run_task in run_tasks:
            on_start(run_task)
            # pure=False: a repeated run is computed again, not taken from the scheduler's cache.
            future = client.submit(_on_worker, msgspec.json.encode(run_task), pure=False)
            futures[future] = run_task
        for future in _as_completed(list(futures)):
            record = _result(futures.pop(future), future)
            del future  # the cluster makes lost results again that somebody holds on to
            yield record


def run_spread(
    run_tasks: Iterable[RunTask], *, address: str | None, **options: Any
) -> Iterator[RunRecord]:
    """Execute runs here, one after the other; each spreads its passes over the workers.

    options: of `run_all`.  UserError: see `connect`.
    """
    with connect(address) as client:
        warn_of_other_processors(client)
        workers: str = client.scheduler.address
        tasks = (msgspec.structs.replace(task, workers=workers) for task in run_tasks)
        yield from run_all(tasks, **options)


def _as_completed(futures: list[Any]) -> Iterator[Any]:
    import distributed

    dask: Any = distributed
    yield from dask.as_completed(futures)


def _result(run_task: RunTask, future: Any) -> RunRecord:
    try:
        return msgspec.json.decode(future.result(), type=RunRecord)
    except Exception as error:  # the worker was lost, or an import failed there
        return failed(run_task, "process", f"{type(error).__name__}: {error}")


def _on_worker(encoded: bytes) -> bytes:
    run_task = msgspec.json.decode(encoded, type=RunTask)
    use_threads(run_task.threads)
    return msgspec.json.encode(execute(run_task))
