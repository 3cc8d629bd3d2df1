"""Temporary folders of runs: those of commands that were killed are removed, and no others."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from sslbench.experiment.execute import run_folder
from sslbench.experiment.execute.run_folder import RunFolder, remove_abandoned_folders

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="there are no locks")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_stays_as_long_as_its_command(temporary: Path) -> None:
    ours, killed = RunFolder.make(), RunFolder.make()
    (killed.path / "texts").mkdir()
    (killed.path / "texts" / "0").write_text("text of the user")
    os.close(killed.lock)  # as at the end of a process
    remove_abandoned_folders()
    assert list(temporary.iterdir()) == [ours.path]
    ours.remove()
    assert not list(temporary.iterdir())


def test_what_is_no_folder_of_a_run_stays(temporary: Path) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    (temporary / "sslbench-run-link").symlink_to(elsewhere)
    (temporary / "sslbench-run-file").touch()
    for name in ("without", "linked"):
        (temporary / f"sslbench-run-{name}").mkdir()
    (temporary / "sslbench-run-linked" / "lock").symlink_to(elsewhere / "lock")
    before = sorted(temporary.rglob("*"))
    remove_abandoned_folders()
    assert sorted(temporary.rglob("*")) == before


def test_a_folder_that_is_removed_before_it_is_locked(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, removed = run_folder._locked, list[Path]()

    def after_another(path: Path, flags: int, *, wait: bool) -> int:
        handle = locked(path, flags, wait=wait)
        if not removed:
            removed.append(path.parent)
            shutil.rmtree(path.parent)
        return handle

    monkeypatch.setattr(run_folder, "_locked", after_another)
    folder = RunFolder.make()
    assert folder.path not in removed
    assert folder.path.exists()
    folder.remove()


def test_where_nothing_can_be_locked(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, how: int) -> None:
        raise OSError(37, "no locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    folder = RunFolder.make()
    remove_abandoned_folders()
    assert folder.path.exists()
    folder.remove()
    assert not list(temporary.iterdir())
