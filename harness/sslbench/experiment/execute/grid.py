"""A grid of runs: the stored ones are read, the others are run and stored as they finish."""

from __future__ import annotations

import shlex
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sslbench.engine.errors import UserError
from sslbench.engine.files.folders import cache_folder
from sslbench.experiment.execute.pool import OnStart, StartMethod, run_all
from sslbench.experiment.execute.workers import run_on_dask, run_spread
from sslbench.experiment.identity import is_current
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.claims import Claims
from sslbench.experiment.records.reading import StoreWarning
from sslbench.experiment.records.record import RunRecord, spec_key
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import Execution
from sslbench.experiment.run.recording import failed, skipped
from sslbench.plugins import Registry, registry
from sslbench.processes import ForkServer

#: pauses before a record is written again, of the first one that cannot be
_PAUSES = (0.2, 1.0)
_POLL_SECONDS = 0.5


class Saving:
    """Saves records in a store; those that it does not take go into another folder.

    That is a new folder ``unsaved/<name of the store>-...`` of the cache, or of the system's
    temporary folder. It is a store, too: copying its files into the first one brings them back.
    Warnings say where the records are, with the command.

    Attributes
    ----------
    elsewhere: records that the store did not take, by run id, with their files.
    lost: records that could be written nowhere, by run id: they are in memory alone.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.elsewhere: dict[str, tuple[RunRecord, Path]] = {}
        self.lost: dict[str, RunRecord] = {}
        self._other: Path | None = None
        self._reason = ""

    def save(self, record: RunRecord) -> None:
        """Write a record to the store; if that fails repeatedly, to the other folder."""
        if not self._write(record, () if self._reason else _PAUSES):
            self._save_elsewhere(record)

    def finish(self) -> list[str]:
        """Try again to store what could not be stored; return the ids of records that are not."""
        for run_id, (record, path) in list(self.elsewhere.items()):
            if self._write(record, ()):
                del self.elsewhere[run_id]
                with suppress(OSError):
                    path.unlink()
                    path.parent.rmdir()  # after the last one
        for run_id, record in list(self.lost.items()):
            if self._write(record, ()):
                del self.lost[run_id]
        for folder, number in Counter(path.parent for _, path in self.elsewhere.values()).items():
            _warn(f"{number} of the records are not in the store. {self._where(folder)}")
        if self.lost:
            _warn(
                f"{self.store.folder}: cannot be written ({self._reason}), nor can another folder:"
                f" {len(self.lost)} of the records are in the results alone, and the grid ended"
            )
        elif self._reason and not self.elsewhere:
            _warn(f"{self.store.folder}: can be written again; all records are in it")
        return [*self.elsewhere, *self.lost]

    def _write(self, record: RunRecord, pauses: tuple[float, ...]) -> bool:
        for pause in (0.0, *pauses):
            time.sleep(pause)
            try:
                self.store.save(record)
            except OSError as error:
                self._reason = error.strerror or str(error)
            else:
                return True
        return False

    def _save_elsewhere(self, record: RunRecord) -> None:
        for folder in self._other_folders():
            try:
                self.elsewhere[record.run_id] = record, Store(folder).save(record)
            except OSError:
                with suppress(OSError):
                    folder.rmdir()  # if it is empty
                continue
            if folder != self._other:
                self._other = folder
                _warn(self._where(folder))
            return
        self.lost[record.run_id] = record

    def _other_folders(self) -> Iterator[Path]:
        if self._other is not None:
            yield self._other
        prefix = f"{self.store.folder.resolve().name}-"
        for parent in (cache_folder() / "unsaved", Path(tempfile.gettempdir())):
            with suppress(OSError):
                parent.mkdir(parents=True, exist_ok=True)
                yield Path(tempfile.mkdtemp(prefix=prefix, dir=parent))

    def _where(self, folder: Path) -> str:
        """A line on the two folders, with the command that brings the records back."""
        store = self.store.folder
        return (
            f"{store}: cannot be written ({self._reason}); records are kept in {folder}; to bring"
            f" them back: cp {shlex.quote(str(folder))}/*.json {shlex.quote(str(store))}/"
        )


def _warn(text: str) -> None:
    warnings.warn(text, StoreWarning, stacklevel=3)


@dataclass
class GridResult:
    """Result of a grid of runs.

    Attributes
    ----------
    records: the record of each run, in the order of the grid.
    stored: how many of them were in the store before; stored_failed: failed ones among these.
    unsaved: run ids of records that the store did not take.
    """

    records: list[RunRecord] = field(default_factory=list)
    stored: int = 0
    stored_failed: int = 0
    unsaved: list[str] = field(default_factory=list)

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
        """0: no run failed; 2: all failures are bad input; 1: other failures, unsaved records."""
        if self.unsaved:
            return 1
        if not self.failed:
            return 0
        return 2 if all(record.error_kind == "input" for record in self.failed) else 1


@dataclass(frozen=True, kw_only=True)
class GridOptions(Execution):
    """How a grid is run, and functions that are called with its progress.

    Attributes
    ----------
    server: starts the processes of local runs; None = a new one.
    admit: asked before a run starts; False = it is left, and so are all after it.
    on_stored, on_start, on_end: called when a run is found in the store, starts, or ends.
    on_wait: called with the number of runs that other processes are executing.
    """

    server: ForkServer | None = None
    admit: Callable[[RunTask], bool] = lambda run_task: True
    on_stored: Callable[[RunRecord], None] = lambda record: None
    on_start: OnStart = lambda run_task: None
    on_end: Callable[[RunRecord], None] = lambda record: None
    on_wait: Callable[[int], None] = lambda number: None


def run_grid(
    run_tasks: Sequence[RunTask],
    store: Store,
    start_method: StartMethod,
    options: GridOptions | None = None,
    plugins: Registry | None = None,
) -> GridResult:
    """Run what is not in the store yet and store every record as it comes.

    Runs with a reason to skip them are neither executed nor stored. A run that another process is
    executing is not started: its record is picked up, or the run taken over if that process ends
    without one.

    Failures by bad input (a missing file, a wrong parameter) are not stored: once the input is
    corrected, the same command runs them. Other failures are stored.

    A store that cannot be written is refused before the first run. Where it becomes so during the
    grid, records go into another folder (see `Saving`) and the grid goes on; it ends early,
    with the records that it has, when they can be written nowhere.

    start_method: see `run_all`.

    Raises
    ------
    UserError: the store cannot be written, and there is something to run.
    """
    grid = _Grid(store, options or GridOptions(), plugins or registry())
    with Claims(store.folder / "claims") as claims:
        return grid.run(run_tasks, start_method, claims)


def is_stored(run_task: RunTask, store: Store, options: GridOptions) -> bool:
    """Return whether `run_grid` would take the record of a run from the store.

    A run without the fingerprint of its data counts as the newest one like it.
    """
    run_id = run_task.spec.run_id
    if run_task.lacks_text:
        key = spec_key(run_task.spec, by_text=True)
        like_it = store.newest([key], by_text=True).get(key)
        if like_it is not None and like_it.spec.inputs == run_task.spec.inputs:
            run_id = like_it.run_id
    return _Grid(store, options, registry()).stored(run_id)


class _Grid:
    def __init__(self, store: Store, options: GridOptions, plugins: Registry) -> None:
        self.store = store
        self.options = options
        self.plugins = plugins
        self.result = GridResult()
        self.records: dict[str, RunRecord] = {}
        self.saving = Saving(store)

    def run(
        self, run_tasks: Sequence[RunTask], start_method: StartMethod, claims: Claims
    ) -> GridResult:
        todo: dict[str, RunTask] = {}
        for run_task in run_tasks:
            run_id = run_task.spec.run_id
            if run_task.skip_reason is not None:
                self.records[run_id] = skipped(run_task)
            elif run_task.load_error is not None:
                if run_id not in self.records:
                    self.records[run_id] = failed(run_task, "input", run_task.load_error)
                    self.options.on_end(self.records[run_id])
            elif run_id not in self.records and not self.stored(run_id):
                todo.setdefault(run_id, run_task)
        if todo:
            self.store.probe()
        elsewhere = self._execute(todo, start_method, claims)
        while elsewhere and not self.saving.lost:
            self.options.on_wait(len(elsewhere))
            while not any(claims.is_free(run_id) for run_id in elsewhere):
                time.sleep(_POLL_SECONDS)
            elsewhere = self._execute(elsewhere, start_method, claims)
        self.result.unsaved = self.saving.finish()
        run_ids = dict.fromkeys(run_task.spec.run_id for run_task in run_tasks)
        self.result.records = [self.records[run_id] for run_id in run_ids if run_id in self.records]
        return self.result

    def stored(self, run_id: str) -> bool:
        """Take a record from the store; False if there is none that may be used."""
        record = self.store.load(run_id)
        if record is None or (self.options.retry and record.status != "ok"):
            return False
        current = is_current(record.spec, record.code, self.plugins)
        if not current and self.options.reuse != "stale":
            return False
        self.records[run_id] = record
        self.options.on_stored(record)
        self.result.stored += 1
        self.result.stored_failed += record.status != "ok"
        return True

    def _execute(
        self, todo: Mapping[str, RunTask], start_method: StartMethod, claims: Claims
    ) -> dict[str, RunTask]:
        """Execute the runs that this process can claim; return those of other processes."""
        elsewhere: dict[str, RunTask] = {}

        def claimed() -> Iterator[RunTask]:
            for run_id, run_task in todo.items():
                if self.saving.lost or not self.options.admit(run_task):
                    return
                if not claims.claim(run_id):
                    elsewhere[run_id] = run_task
                elif self.store.has(run_id) and self.stored(run_id):
                    claims.release(run_id)  # another process has finished it since
                else:
                    yield run_task

        for record in self._results(claimed(), todo, start_method):
            self.records[record.run_id] = record
            if record.error_kind != "input":
                self.saving.save(record)
            claims.release(record.run_id)
            self.options.on_end(record)
        return elsewhere

    def _results(
        self, run_tasks: Iterator[RunTask], todo: Mapping[str, RunTask], start_method: StartMethod
    ) -> Iterator[RunRecord]:
        options = self.options
        kind, _, address = options.executor.partition(":")
        if kind not in ("local", "dask") or (kind == "local" and address):
            raise UserError(f"--executor {options.executor!r}", hint="local, dask, or dask:ADDRESS")
        given: dict[str, Any] = {
            "start_method": start_method,
            "timeout": options.timeout,
            "memory": options.memory,
            "on_start": options.on_start,
        }
        if kind == "dask" and len(todo) > 1:
            return run_on_dask(run_tasks, address=address or None, **given)
        here: dict[str, Any] = {
            **given,
            "jobs": options.jobs,
            "threads": max((each.threads for each in todo.values()), default=1),
            "server": options.server,
        }
        if kind == "dask":
            return run_spread(run_tasks, address=address or None, **here)
        return run_all(run_tasks, **here)
