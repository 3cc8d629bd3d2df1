"""The dask executor: the same runs on the workers of a dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from sslbench.errors import UserError
from sslbench.experiment.execute.pool import OnStart
from sslbench.experiment.record import RunRecord
from sslbench.experiment.runner import execute, failed
from sslbench.experiment.training import Task


def run_on_dask(
    tasks: Sequence[Task], *, address: str | None, on_start: OnStart = lambda task: None
) -> Iterator[RunRecord]:
    """Run the tasks on a dask cluster (at `address`, or a local one); yield records as they come.

    Workers need the same version of sslbench and the data under the same paths. They run one task
    per worker thread and cannot kill one: timeouts are the cluster's business.
    """
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise UserError(
            "--executor dask needs dask.distributed", hint="pip install 'sslbench[dask]'"
        ) from error
    with _client(Client, address) as client:
        futures = {}
        for task in tasks:
            on_start(task)
            # pure=False: a retried run must not be answered from the scheduler's memory.
            future = client.submit(_on_worker, msgspec.json.encode(task), pure=False)
            futures[future] = task
        for future in as_completed(list(futures)):
            yield _result(futures[future], future)


def _client(make: Any, address: str | None) -> Any:
    try:
        return make(address) if address else make()
    except (OSError, ValueError) as error:
        raise UserError(
            f"no dask scheduler at {address}: {error}", hint="e.g. --executor dask:tcp://host:8786"
        ) from error


def _result(task: Task, future: Any) -> RunRecord:
    try:
        return msgspec.json.decode(future.result(), type=RunRecord)
    except Exception as error:  # a lost worker, an import that fails there
        return failed(task, "process", f"{type(error).__name__}: {error}")


def _on_worker(encoded: bytes) -> bytes:
    return msgspec.json.encode(execute(msgspec.json.decode(encoded, type=Task)))
