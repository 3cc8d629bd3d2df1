"""The store: whole files only, damaged ones named, merging by copying."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.records import store as module
from sslbench.experiment.records.reading import StoreWarning
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.experiment.records.trials import PartScore
from sslbench.experiment.run.recording import failed
from support.run_fakes import task


def record(seed: int) -> RunRecord:
    return failed(task(seed=seed), "method", "broken")


def test_save_load_and_list(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "runs")
    assert store.records() == []
    records = [record(seed) for seed in range(3)]
    for each in records:
        assert store.save(each).name == f"{each.run_id}.json"
    assert store.load(records[0].run_id) == records[0]
    assert store.load("0" * 16) is None
    ids = [each.run_id for each in store.records()]
    assert ids == sorted(each.run_id for each in records)


def test_damaged_files_are_named_skipped_and_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    good, cut = record(1), record(2)
    store.save(good)
    path = store.save(cut)
    path.write_bytes(path.read_bytes()[:100])
    (tmp_path / "notes.json").write_text("{}")
    with pytest.warns(StoreWarning) as caught:
        assert store.records() == [good]
    assert len(caught) == 2
    assert {str(w.message).split(":")[0] for w in caught} == {
        str(path),
        str(tmp_path / "notes.json"),
    }
    with pytest.warns(StoreWarning, match=str(path)):
        assert store.load(cut.run_id) is None
    assert path.exists()


def test_a_failed_write_leaves_the_old_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    first = record(1)
    path = store.save(first)

    def no_rename(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(module.os, "replace", no_rename)
    first.error = "another"
    with pytest.raises(OSError, match="disk full"):
        store.save(first)
    monkeypatch.undo()
    assert store.load(first.run_id).error == "broken"
    assert os.listdir(tmp_path) == [path.name]


def test_temporary_files_of_a_killed_writer_are_no_records(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(record(1))
    (tmp_path / ".abc-x.tmp").write_text("{")
    assert len(store.records()) == 1


def test_records_are_readable_by_others(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        path = Store(tmp_path).save(record(1))
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o644


def test_stores_merge_by_copying(tmp_path: Path) -> None:
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    for seed in (0, 1):
        one.save(record(seed))
    for seed in (1, 2):
        two.save(record(seed))
    shutil.copytree(two.folder, one.folder, dirs_exist_ok=True)
    assert sorted(r.spec.protocol.seed for r in one.records()) == [0, 1, 2]
    # A record under the name of another run does not answer for it.
    path = next(one.folder.glob("*.json"))
    shutil.copy(path, one.path("0" * 16))
    with pytest.warns(StoreWarning, match=f"holds the record of run {path.stem}"):
        assert len(one.records()) == 3
    with pytest.warns(StoreWarning):
        assert one.load("0" * 16) is None


def test_find_by_beginning_or_path(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = record(1)
    path = store.save(made)
    assert store.find(made.run_id[:6]) == made
    assert store.find(str(path)) == made
    path.with_name(made.run_id[:6] + "f" * 10 + ".json").write_text("x")
    with pytest.raises(UserError, match="2 runs begin with"):
        store.find(made.run_id[:6])
    for missing in ("zzz", "../x", str(tmp_path / "no.json"), ""):
        with pytest.raises(UserError):
            store.find(missing)


def test_trials(tmp_path: Path) -> None:
    store = Store(tmp_path)
    trial = PartScore({"n_tokens": [3, 4]}, 1.5, 1.25)
    assert store.load_trial("t") is None
    store.save_trial("t", trial)
    assert store.load_trial("t") == trial
    assert store.records() == []
    (tmp_path / "trials" / "t.json").write_text("{")
    with pytest.warns(StoreWarning, match=r"t\.json"):
        assert store.load_trial("t") is None


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="not a folder"):
        Store(tmp_path / "file")


def test_a_store_whose_name_is_not_utf8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the name is not UTF-8"):
        Store(tmp_path / os.fsdecode(b"\xff"))
