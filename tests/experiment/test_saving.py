"""A store that cannot be written: refused before a run; no record is lost after one."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.execute import grid
from sslbench.experiment.execute.grid import GridOptions, Saving, run_grid
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records import store as store_module
from sslbench.experiment.records.reading import StoreWarning
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.experiment.run.recording import failed
from sslbench.experiment.run.runner import execute
from sslbench.isolation.start import isolated
from support.run_fakes import task


class Disk:
    """Refuses what is written below some folders, as a full disk does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full: list[Path] = []
        true = store_module.write_atomically

        def write(path: Path, data: bytes) -> None:
            if any(folder in path.parents for folder in self.full):
                raise OSError(errno.ENOSPC, "No space left on device", str(path))
            true(path, data)

        monkeypatch.setattr(store_module, "write_atomically", write)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(grid.tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(grid, "_PAUSES", (0.0,))
    return Disk(monkeypatch)


def record(seed: int) -> RunRecord:
    return failed(task(seed=seed), "method", "broken")


def lines(caught: pytest.WarningsRecorder) -> list[str]:
    return [str(warning.message) for warning in caught]


def test_records_are_kept_elsewhere_and_brought_back_by_copying(tmp_path: Path, disk: Disk) -> None:
    store = Store(tmp_path / "runs")
    keeper = Saving(store)
    keeper.save(record(0))
    disk.full = [store.folder]

    def save() -> list[str]:
        keeper.save(record(1))
        keeper.save(record(2))
        return keeper.finish()

    with pytest.warns(StoreWarning) as caught:
        unsaved = save()
    assert unsaved == [record(1).run_id, record(2).run_id]
    (folder,) = (tmp_path / "cache" / "unsaved").iterdir()
    first, last = lines(caught)
    command = f"cp {folder}/*.json {store.folder}/"
    assert first == (
        f"{store.folder}: cannot be written (No space left on device); records are kept in"
        f" {folder}; to bring them back: {command}"
    )
    assert last.startswith("2 of the records are not in the store. ")
    assert command in last
    for path in folder.glob("*.json"):
        shutil.copy(path, store.folder)
    assert [r.spec.protocol.seed for r in map(store.load, [*unsaved, record(0).run_id])] == [
        1,
        2,
        0,
    ]


def test_a_store_that_can_be_written_again_takes_them_itself(tmp_path: Path, disk: Disk) -> None:
    store = Store(tmp_path / "runs")
    keeper = Saving(store)
    disk.full = [store.folder]
    with pytest.warns(StoreWarning, match="records are kept in"):
        keeper.save(record(1))
    disk.full = []
    with pytest.warns(StoreWarning, match="can be written again; all records are in it"):
        assert keeper.finish() == []
    assert store.load(record(1).run_id) is not None
    assert list((tmp_path / "cache" / "unsaved").iterdir()) == []


def test_the_temporary_folder_is_the_last_resort(tmp_path: Path, disk: Disk) -> None:
    store = Store(tmp_path / "runs")
    keeper = Saving(store)
    disk.full = [store.folder, tmp_path / "cache"]
    with pytest.warns(StoreWarning, match=f"kept in {tmp_path / 'tmp'}"):
        keeper.save(record(1))
    disk.full = [tmp_path]
    keeper.save(record(2))
    assert list(keeper.lost) == [record(2).run_id]
    with pytest.warns(StoreWarning) as caught:
        assert keeper.finish() == [record(1).run_id, record(2).run_id]
    assert "in the results alone, and the grid ended" in lines(caught)[1]


def local(run_tasks: object, **_: object) -> object:
    """Runs in this process."""
    return map(execute, run_tasks)  # type: ignore[call-overload]


@pytest.fixture
def tasks(fake_plugin: None, monkeypatch: pytest.MonkeyPatch) -> list[RunTask]:
    monkeypatch.setattr(grid, "run_all", local)
    return [task(labeled=20, seed=seed) for seed in range(4)]


def test_a_disk_that_fills_up_during_a_grid(
    tmp_path: Path, disk: Disk, tasks: list[RunTask]
) -> None:
    store, done = Store(tmp_path / "runs"), []

    def end(made: RunRecord) -> None:
        done.append(made.run_id)
        disk.full = [store.folder]

    with pytest.warns(StoreWarning, match="cannot be written"):
        result = run_grid(tasks, store, isolated, GridOptions(on_end=end))
    assert [r.run_id for r in result.records] == done
    assert [r.status for r in result.records] == ["ok"] * 4
    assert result.unsaved == done[1:]
    assert result.exit_status == 1
    (kept,) = (tmp_path / "cache" / "unsaved").iterdir()
    disk.full = []
    shutil.copytree(kept, store.folder, dirs_exist_ok=True)
    again = run_grid(tasks, store, isolated)
    assert (again.stored, again.exit_status) == (4, 0)
    assert again.records == result.records


def test_the_grid_ends_where_nothing_can_be_kept(
    tmp_path: Path, disk: Disk, tasks: list[RunTask]
) -> None:
    store = Store(tmp_path / "runs")

    def end(made: RunRecord) -> None:
        disk.full = [tmp_path]

    with pytest.warns(StoreWarning, match="the grid ended"):
        result = run_grid(tasks, store, isolated, GridOptions(on_end=end))
    assert len(result.records) == 2
    assert result.unsaved == [result.records[1].run_id]
    assert result.exit_status == 1


@pytest.mark.parametrize("how", ["below a file", "long name", "read-only", "no space"])
def test_a_store_is_probed_before_the_first_run(
    tmp_path: Path, tasks: list[RunTask], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    folder = tmp_path / "x" / ("y" * 300 if how == "long name" else "runs")
    if how == "below a file":
        folder.parent.write_text("")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    if how == "read-only":
        monkeypatch.setattr(Path, "mkdir", refuse)
    if how == "no space":
        monkeypatch.setattr(Path, "write_bytes", refuse)
    started: list[object] = []
    options = GridOptions(on_start=started.append)
    monkeypatch.setattr(grid, "run_all", lambda *_, **__: pytest.fail("a run was started"))
    with pytest.raises(UserError, match="cannot be written") as caught:
        run_grid(tasks, Store(folder), isolated, options)
    assert str(folder) in str(caught.value) or how == "long name"
    assert not started


def test_a_finished_grid_needs_no_writable_store(
    tmp_path: Path, tasks: list[RunTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store on a read-only disk can be shown."""
    run_grid(tasks, Store(tmp_path / "runs"), isolated)
    monkeypatch.setattr(Store, "probe", lambda store: pytest.fail("probed"))
    result = run_grid(tasks, Store(tmp_path / "runs"), isolated)
    assert result.stored == 4


def test_trials_that_cannot_be_stored_fail_no_run(
    tmp_path: Path, disk: Disk, fake_plugin: None
) -> None:
    disk.full = [tmp_path]
    made = execute(task(store=tmp_path / "runs", labeled=20, tune=3))
    assert made.status == "ok"
    assert len(made.tuning) == 3


def test_a_file_that_is_no_record_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    store, made = Store(tmp_path), record(1)
    path = store.path(made.run_id)
    path.mkdir()
    (path / "notes").write_text("mine")
    store.save(made)
    assert store.load(made.run_id) == made
    assert (tmp_path / f"{path.name}.damaged" / "notes").read_text() == "mine"


def test_temporary_files_of_killed_writers_are_removed_by_the_next(tmp_path: Path) -> None:
    store, made = Store(tmp_path), record(1)
    code = (
        "import os, sys; from sslbench.engine.files.atomic import replacing\n"
        "with replacing(sys.argv[1]) as file: file.write(b'{'); file.flush(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(store.path(made.run_id))], check=True)
    (left,) = os.listdir(tmp_path)
    assert left.endswith(".tmp")
    path = store.save(made)
    assert os.listdir(tmp_path) == [path.name]
