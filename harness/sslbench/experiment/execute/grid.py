"""A grid of runs: the stored ones are read, the others are run and stored as they finish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sslbench.errors import UserError
from sslbench.experiment.execute.cluster import run_on_dask
from sslbench.experiment.execute.pool import OnStart, run_all
from sslbench.experiment.record import RunRecord
from sslbench.experiment.runner import skipped
from sslbench.experiment.store import Store
from sslbench.experiment.training import RunTask


@dataclass
class GridResult:
    """Result of a grid of runs.

    Attributes
    ----------
    records: in the order of the grid, each run once.
    stored: how many of them were in the store before; stored_failed: failed ones among these.
    """

    records: list[RunRecord] = field(default_factory=list)
    stored: int = 0
    stored_failed: int = 0

    @property
    def failed(self) -> list[RunRecord]:
        """The runs that failed; skipped ones have not."""
        return [record for record in self.records if record.status not in ("ok", "skipped")]

    @property
    def skipped(self) -> list[RunRecord]:
        """The runs that were not executed, since the method does not fit the task or model."""
        return [record for record in self.records if record.status == "skipped"]

    @property
    def exit_status(self) -> Literal[0, 1, 2]:
        """0: no run failed; 2: all failures are bad input; 1: other failures."""
        if not self.failed:
            return 0
        return 2 if all(record.error_kind == "input" for record in self.failed) else 1


def run_grid(
    run_tasks: Sequence[RunTask],
    store: Store,
    *,
    jobs: int = 1,
    timeout: float | None = None,
    retry: bool = False,
    executor: str = "local",
    on_stored: Callable[[RunRecord], None] = lambda record: None,
    on_start: OnStart = lambda run_task: None,
    on_end: Callable[[RunRecord], None] = lambda record: None,
) -> GridResult:
    """Run what is not in the store yet and store every record as it comes.

    Runs with a reason to skip them are neither executed nor stored.

    Parameters
    ----------
    jobs: runs at a time.
    timeout: seconds per run.
    retry: run again what failed earlier.
    executor: "local", "dask" or "dask:ADDRESS".
    on_stored, on_start, on_end: called when a run is found in the store, starts, or ends.

    Failures by bad input (a missing file, a wrong parameter) are not stored: once the input is
    corrected, the same command runs them. Other failures are stored.
    """
    result = GridResult()
    records: dict[str, RunRecord] = {}
    todo: dict[str, RunTask] = {}
    for run_task in run_tasks:
        if run_task.skip_reason is not None:
            records[run_task.spec.run_id] = skipped(run_task)
            continue
        record = store.load(run_task.spec.run_id)
        if record is None or (retry and record.status != "ok"):
            todo.setdefault(run_task.spec.run_id, run_task)
            continue
        records[run_task.spec.run_id] = record
        on_stored(record)
        result.stored += 1
        result.stored_failed += record.status != "ok"
    for record in _results(list(todo.values()), jobs, timeout, executor, on_start):
        records[record.run_id] = record
        if record.error_kind != "input":
            store.save(record)
        on_end(record)
    run_ids = dict.fromkeys(run_task.spec.run_id for run_task in run_tasks)
    result.records = [records[run_id] for run_id in run_ids]
    return result


def _results(
    run_tasks: Sequence[RunTask], jobs: int, timeout: float | None, executor: str, on_start: OnStart
) -> Iterator[RunRecord]:
    kind, _, address = executor.partition(":")
    if kind == "local" and not address:
        return run_all(run_tasks, jobs=jobs, timeout=timeout, on_start=on_start)
    if kind == "dask":
        return run_on_dask(run_tasks, address=address or None, on_start=on_start)
    raise UserError(f"--executor {executor!r}", hint="local, dask, or dask:ADDRESS")
