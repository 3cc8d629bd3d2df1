"""Folders of users without a home, and folders that others can write to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs
import pytest

from sslbench.engine.files import derived, folders
from sslbench.engine.files.folders import cache_folder, others_can_write, temporary_folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The temporary folder of the system, for a process that has said nothing yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("SSLBENCH_TOLD", "")  # to be removed after the test
    monkeypatch.delenv("SSLBENCH_TOLD")
    temporary_folder.cache_clear()
    yield tmp_path
    temporary_folder.cache_clear()


def no_home(*_: object, **__: object) -> Path:
    raise RuntimeError("could not determine the home directory")


@pytest.mark.parametrize("path", [no_home, lambda *_, **__: Path("~/.cache/sslbench")])
def test_a_user_without_a_home(
    temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    path: Callable[..., Path],
) -> None:
    """A number that has no name, as in a container; by version of platformdirs."""
    monkeypatch.delenv("SSLBENCH_CACHE", raising=False)
    monkeypatch.setattr(platformdirs, "user_cache_path", path)
    folder = temporary / f"sslbench-{os.getuid()}"
    assert [cache_folder(), cache_folder()] == [folder / "derived"] * 2
    assert folder.stat().st_mode & 0o777 == 0o700
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"sslbench: no home folder; files are kept in {folder} (SSLBENCH_CACHE")


@pytest.mark.parametrize("how", ["writable", "link"])
def test_a_temporary_folder_that_somebody_else_may_have_made(temporary: Path, how: str) -> None:
    name = temporary / f"sslbench-{os.getuid()}"
    if how == "link":
        (temporary / "elsewhere").mkdir()
        name.symlink_to("elsewhere")
    else:
        name.mkdir()
        name.chmod(0o777)
    folder = temporary_folder()
    assert folder != name
    assert folder.stat().st_mode & 0o777 == 0o700


def test_others_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    assert others_can_write(folder) is None
    folder.parent.chmod(0o1777)  # only the owner of a file can rename it
    assert others_can_write(folder) is None
    for mode in (0o777, 0o702):
        folder.parent.chmod(mode)
        assert others_can_write(folder) == folder.parent
    folder.parent.chmod(0o770)
    monkeypatch.setattr(folders, "_is_own_group", lambda group: False)
    assert others_can_write(folder) == folder.parent
    monkeypatch.setattr(folders, "_is_own_group", lambda group: True)
    assert others_can_write(folder) is None
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert others_can_write(folder) in (folder, None)  # None where the superuser runs the tests


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners")
def test_files_of_other_users_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code of the cache is run: one that somebody else made is made again."""
    path = tmp_path / "kernel"
    derived.keep(path, b"key", b"code")
    assert derived.find(path, b"key") == b"code"
    monkeypatch.setattr(
        "os.fstat", lambda file: os.stat_result((0o100644, *[0] * 3, 4711, *[0] * 5))
    )
    assert derived.find(path, b"key") is None
    assert not path.exists()
