"""Which files are hidden beside the data and the store of a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sslbench.experiment.planning.plan import plan
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.isolation.hidden import hidden_files
from sslbench.plugins import registry
from support.run_fakes import task


def test_stores_beside_that_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the default store of the folder that the command was called in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "0123456789abcdef.json").touch()
    (tmp_path / "packed" / "segments").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "notes.json").touch()
    (tmp_path / "link").symlink_to("other")
    (tmp_path / "mine").mkdir()
    found = hidden_files(
        task("supervised", dataset="synth", store=tmp_path / "mine"), registry(), []
    )
    names = {path.absolute().name for path in found if tmp_path in path.absolute().parents}
    assert names == {"mine", "other", "packed"}


@pytest.mark.parametrize("name", ["docs", "docs/a.txt"])
def test_annotations_of_brat(tmp_path: Path, name: str) -> None:
    """They are hidden as the text is, and a folder has no second name."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("Ham wins .\nLee wins .\n" * 3)
    (folder / "a.ann").write_text("T1\tLOC 0 3\tHam\n")
    request = RunRequest(method=["supervised"], data=tmp_path / name, columns=("word", "label"))
    lines: list[str] = []
    (planned,) = plan(request, store=Store(tmp_path / "runs"), notice=lines.append)
    assert {folder / "a.txt", folder / "a.ann"} <= set(hidden_files(planned, registry(), []))
    assert not [line for line in lines if "hard links" in line]


def test_second_names_of_the_users_files(tmp_path: Path) -> None:
    """Those near by are hidden, and a line says that there may be others."""
    data, beside = tmp_path / "data", tmp_path / "copies"
    data.mkdir()
    beside.mkdir()
    for name in ("train", "test"):
        (data / f"{name}.txt").write_text("a X\n\nb Y\n\n" * 4)
    os.link(data / "test.txt", data / "copy")
    os.link(data / "test.txt", beside / "copy")
    request = RunRequest(method=["supervised"], data=data, columns=("word", "label"))
    lines: list[str] = []
    (planned,) = plan(request, store=Store(tmp_path / "runs"), notice=lines.append)
    hidden = set(hidden_files(planned, registry(), []))
    assert {data / "copy", beside / "copy", data / "test.txt", data / "train.txt"} <= hidden
    (line,) = [line for line in lines if "hard links" in line]
    assert line.startswith(f"{data / 'test.txt'}: has 3 names")
