"""The data home: what is used, fetched, refused. Downloads come from this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome
from sslbench.plugins import Registry
from sslbench.plugins.registrations import RemoteFile
from support.command import sslbench
from support.file_server import Served, registration, serving

CONTENT = b"the right bytes\n" * 10_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """Serves right.bin and wrong.bin."""
    files = {"right.bin": CONTENT, "wrong.bin": b"x" * len(CONTENT)}
    with serving(tmp_path / "www", files) as served:
        yield served


@pytest.fixture
def home(tmp_path: Path) -> DataHome:
    return DataHome(tmp_path / "home", tmp_path / "cache", offline=False)


def remote(*urls: str, path: str = "sub/file.bin") -> RemoteFile:
    digest = hashlib.sha256(CONTENT).hexdigest()
    return RemoteFile(path=path, urls=urls, sha256=digest, licence="free", bytes=len(CONTENT))


def put(home: DataHome, file: RemoteFile, content: bytes) -> Path:
    target = home.locate(file)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return target


def test_a_file_that_is_there_is_never_fetched(home: DataHome, server: Served) -> None:
    file = remote(f"{server[0]}/right.bin")
    target = put(home, file, CONTENT)
    assert home.path(file) == target
    assert server[1] == []


def test_the_first_address_with_the_right_bytes_wins(
    home: DataHome, server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    base, requested = server
    file = remote(f"{base}/absent.bin", f"{base}/wrong.bin", f"{base}/right.bin", f"{base}/never")
    target = home.path(file)
    assert target.read_bytes() == CONTENT
    assert requested == ["/absent.bin", "/wrong.bin", "/right.bin"]
    # Nothing else is left beside it, and only standard error speaks.
    assert [path.name for path in target.parent.iterdir()] == ["file.bin"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "fetching sub/file.bin: 0.2 of 0.2 MB" in captured.err
    home.path(file)
    assert len(requested) == 3


def test_when_no_address_serves_it_the_message_says_what_to_put_where(
    home: DataHome, server: Served
) -> None:
    file = remote(f"{server[0]}/absent.bin", f"{server[0]}/wrong.bin")
    with pytest.raises(UserError) as caught:
        home.path(file)
    text = str(caught.value)
    assert "\n" not in text
    for part in (f"{server[0]}/absent.bin", "404", "another sha256", file.sha256, "160,000 bytes"):
        assert part in text
    assert str(home.locate(file)) in text
    assert not home.locate(file).exists()


def test_offline_nothing_is_requested(tmp_path: Path, server: Served) -> None:
    home = DataHome(tmp_path / "home", tmp_path / "cache", offline=True)
    file = remote(f"{server[0]}/right.bin")
    with pytest.raises(UserError, match="SSLBENCH_OFFLINE") as caught:
        home.path(file)
    assert str(home.locate(file)) in str(caught.value)
    assert file.sha256 in str(caught.value)
    assert server[1] == []


def test_a_wrong_file_is_refused_and_kept(home: DataHome, server: Served) -> None:
    file = remote(f"{server[0]}/right.bin")
    target = put(home, file, b"mine")
    found = hashlib.sha256(b"mine").hexdigest()
    with pytest.raises(UserError, match=rf"{found}.*{file.sha256}"):
        home.path(file)
    assert target.read_bytes() == b"mine"
    assert server[1] == []


def test_a_read_only_home_is_enough(home: DataHome, monkeypatch: pytest.MonkeyPatch) -> None:
    file = remote()
    put(home, file, CONTENT)
    # Not even the cache can be written: digests are computed again, that is all.
    monkeypatch.setattr("sslbench.experiment.data.home.os.replace", _refuse)
    assert home.path(file).is_file()
    assert home.state(file) == "ok"


def _refuse(*_: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_digests_are_remembered_until_the_file_changes(
    home: DataHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = remote()
    target = put(home, file, CONTENT)
    reads = []
    digest = hashlib.file_digest
    monkeypatch.setattr(
        "sslbench.experiment.data.home.hashlib.file_digest",
        lambda *arguments: (reads.append(1), digest(*arguments))[1],
    )
    home.path(file)
    home.path(file)
    assert len(reads) == 1
    assert home.state(file, rehash=True) == "ok"
    assert len(reads) == 2
    target.write_bytes(CONTENT + b"more")
    assert home.state(file) == "wrong sha256"


@pytest.mark.parametrize("memory", ["", "[]", '{"x": 1}', "{broken"])
def test_a_damaged_memory_is_ignored(home: DataHome, memory: str) -> None:
    file = remote()
    put(home, file, CONTENT)
    home.path(file)
    (stored,) = (home.cache / "sha256").iterdir()
    stored.write_text(memory)
    assert home.path(file).is_file()


def test_folders_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSLBENCH_DATA", str(tmp_path / "d"))
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "c"))
    home = DataHome()
    assert (home.root, home.cache) == (tmp_path / "d", tmp_path / "c")


def test_derived_folders_depend_on_the_content_of_the_key_only(home: DataHome) -> None:
    assert home.derived("k", {"a": 1, "b": [2]}) == home.derived("k", {"b": [2], "a": 1})
    assert home.derived("k", {"a": 1}) != home.derived("k", {"a": 2})


def test_the_data_commands(home: DataHome, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLBENCH_DATA", str(home.root))
    monkeypatch.setenv("SSLBENCH_CACHE", str(home.cache))
    monkeypatch.delenv("SSLBENCH_OFFLINE", raising=False)
    plain = remote(f"{server[0]}/right.bin")
    extra = replace(plain, path="extra.bin", licence="other licence", extra=True)
    info = registration(plain, extra, target="m:f")
    monkeypatch.setattr("sslbench.cli.data.registry", lambda: Registry(datasets={"mine": info}))

    def data(*arguments: str) -> tuple[int, str]:
        result = sslbench("data", *arguments)
        return result.exit_code, result.stdout

    here, there = str(home.locate(plain)), str(home.locate(extra))
    assert data("path", "mine") == (0, f"{here}\n{there}\n")
    assert data("verify", "mine") == (1, f"missing  {here}\nmissing  {there}\n")
    assert data("fetch", "--no-extra", "mine") == (0, f"{here}\n")
    assert data("verify", "mine") == (1, f"ok       {here}\nmissing  {there}\n")
    assert data("fetch", "mine") == (0, f"{here}\n{there}\n")
    assert data("verify", "mine") == (0, f"ok  {here}\nok  {there}\n")
    assert data("verify", "--all") == data("verify", "mine")
    assert data("verify")[0] == 2
    status, text = data("verify", "--all", "--read")  # its target cannot be imported
    assert status == 1
    assert "wrong  mine: dataset mine: cannot load m:f" in text
    status, text = data("info", "mine")
    assert status == 0
    assert all(part in text for part in ("ok, 160,000 bytes", plain.sha256, "other licence"))
    Path(here).write_bytes(b"x")
    assert data("verify", "mine")[0] == 1
    assert "not read  mine: a file is missing or wrong" in data("verify", "--read", "mine")[1]
    assert data("fetch", "mine")[0] == 2


def test_verify_reads_the_splits() -> None:
    result = sslbench("data", "verify", "--read", "synth")
    assert result.exit_code == 0
    assert "ok  synth: train 400 sentences" in result.stdout


@pytest.mark.parametrize("length", [0, -1, "12"])
def test_a_file_is_registered_with_its_length(length: int) -> None:
    with pytest.raises(ValueError, match="bytes must be the length"):
        RemoteFile(path="a", urls=(), sha256="0" * 64, licence="", bytes=length)
