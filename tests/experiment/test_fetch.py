"""Downloads from a local server that breaks off, sends wrong bytes or sends too much."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import http.server
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, fetch
from sslbench.plugins.registrations import RemoteFile
from support.waiting import HANG, until

CONTENT = bytes(range(256)) * 1_000
WRONG = b"x" * len(CONTENT)
#: of the content, as in a part that an earlier command left
HAD = 100_000


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the content under a name that says what is wrong with the answer."""

    protocol_version = "HTTP/1.1"
    asked: list[tuple[str, str]]

    def do_GET(self) -> None:
        name, given = self.path.strip("/"), self.headers.get("Range", "")
        self.asked.append((name, given))
        found = re.fullmatch(r"bytes=(\d+)-", given)
        with suppress(ConnectionError):
            getattr(self, f"serve_{name}")(int(found[1]) if found else 0)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **headers}.items():
            if value:
                self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def part(self, body: bytes, start: int, total: str = "", **headers: str) -> None:
        span = f"bytes {start}-{len(body) - 1}/{total or len(body)}"
        status = 206 if start else 200
        self.answer(status, body[start:], **({"Content_Range": span} if start else {}), **headers)

    def serve_good(self, start: int) -> None:
        self.part(CONTENT, start)

    def serve_wrong(self, start: int) -> None:
        self.part(WRONG, start)

    def serve_cut(self, start: int) -> None:
        """The connection breaks after 70,000 bytes of each answer."""
        rest = CONTENT[start:]
        span = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
        headers = {"Content_Length": str(len(rest)), "Content_Range": span if start else ""}
        self.answer(206 if start else 200, rest[:70_000], **{"Content-Length": "", **headers})

    def serve_slices(self, start: int) -> None:
        """Of a range, it sends 70,000 bytes at most."""
        body = CONTENT[start : start + 70_000] if start else CONTENT
        span = f"bytes {start}-{start + len(body) - 1}/{len(CONTENT)}"
        self.answer(206 if start else 200, body, Content_Range=span if start else "")

    def serve_dead(self, start: int) -> None:
        """It breaks before the first byte."""
        self.answer(200, b"", **{"Content-Length": str(len(CONTENT))})

    def serve_nothing(self, start: int) -> None:
        self.answer(200, b"", **{"Content-Length": "", "Connection": "close"})

    def serve_silent(self, start: int) -> None:
        time.sleep(2.0)  # ten times as long as the client waits

    def serve_whole(self, start: int) -> None:
        """Ranges are ignored."""
        self.answer(200, CONTENT)

    def serve_refuses(self, start: int) -> None:
        """Ranges are an error."""
        self.answer(416 if start else 200, b"" if start else CONTENT)

    def serve_shifted(self, start: int) -> None:
        """Another range than was asked for."""
        self.part(CONTENT, start and start - 1)

    def serve_other(self, start: int) -> None:
        """A range of a longer file."""
        self.part(CONTENT, start, total="999999")

    def serve_longer(self, start: int) -> None:
        self.answer(200, CONTENT + b"more")

    def serve_endless(self, start: int) -> None:
        self.answer(200, b"", **{"Content-Length": "", "Connection": "close"})
        for _ in range(10_000):
            self.wfile.write(WRONG)

    def serve_shorter(self, start: int) -> None:
        """It ends early and gives no length."""
        self.answer(200, CONTENT[:500], **{"Content-Length": "", "Connection": "close"})

    def serve_packed(self, start: int) -> None:
        """Compressed on the way, although that was not wanted."""
        self.answer(200, gzip.compress(CONTENT), Content_Encoding="gzip")

    def serve_absent(self, start: int) -> None:
        self.send_error(404)

    def serve_broken(self, start: int) -> None:
        self.send_error(500)


class Server:
    """Where it listens, and (name, Range header) of each request."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.asked: list[tuple[str, str]] = []

    def file(self, *names: str) -> RemoteFile:
        return RemoteFile(
            path="sub/file.bin",
            urls=tuple(f"{self.base}/{name}" for name in names),
            sha256=hashlib.sha256(CONTENT).hexdigest(),
            licence="free",
            bytes=len(CONTENT),
        )


@pytest.fixture
def server() -> Iterator[Server]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        found = Server(httpd.server_port)
        Handler.asked = found.asked
        threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
        yield found
        httpd.shutdown()


@pytest.fixture
def home(tmp_path: Path) -> DataHome:
    return DataHome(tmp_path / "home", tmp_path / "cache", offline=False)


@pytest.fixture
def part(home: DataHome) -> Path:
    """What an earlier command left: the first bytes of the content."""
    path = home.root / "sub" / "file.bin.part"
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT[:HAD])
    return path


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def failure(home: DataHome, file: RemoteFile) -> str:
    with pytest.raises(UserError) as caught:
        home.path(file)
    text = str(caught.value)
    assert "\n" not in text
    assert str(home.locate(file)) in text
    assert not home.locate(file).exists()
    return text


def test_a_part_is_continued(home: DataHome, server: Server, part: Path) -> None:
    target = home.path(server.file("good"))
    assert target.read_bytes() == CONTENT
    assert server.asked == [("good", f"bytes={HAD}-")]
    assert names_in(target.parent) == ["file.bin"]


def test_a_broken_connection_is_resumed_at_once(home: DataHome, server: Server) -> None:
    assert home.path(server.file("cut")).read_bytes() == CONTENT
    spans = [span for _, span in server.asked]
    assert spans[0] == ""
    assert len(set(spans)) == len(spans) > 2


def test_a_server_may_send_the_rest_in_slices(home: DataHome, server: Server, part: Path) -> None:
    assert home.path(server.file("slices")).read_bytes() == CONTENT
    assert [span for _, span in server.asked] == [f"bytes={HAD + i * 70_000}-" for i in range(3)]


def test_another_mirror_continues_what_the_first_began(
    home: DataHome, server: Server, part: Path
) -> None:
    assert home.path(server.file("dead", "absent", "broken", "good")).read_bytes() == CONTENT
    assert server.asked[-1] == ("good", f"bytes={HAD}-")


@pytest.mark.parametrize(
    ("name", "requests"), [("whole", 1), ("packed", 1), ("refuses", 2), ("shifted", 2)]
)
def test_a_server_that_cannot_continue_sends_all(
    home: DataHome,
    server: Server,
    part: Path,
    name: str,
    requests: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(fetch.Progress, "show", lambda _, done: sizes.append(done))
    assert home.path(server.file(name)).read_bytes() == CONTENT
    assert server.asked == [(name, f"bytes={HAD}-"), (name, "")][:requests]
    assert sizes[0] < HAD  # nothing was put after what there was


def test_a_part_of_something_else_costs_one_more_request(
    home: DataHome, server: Server, part: Path
) -> None:
    part.write_bytes(b"<html>")
    assert home.path(server.file("good")).read_bytes() == CONTENT
    assert server.asked == [("good", "bytes=6-"), ("good", "")]


@pytest.mark.parametrize("had", [CONTENT, WRONG, CONTENT + b"more"])
def test_a_part_of_full_length_is_looked_at_first(
    home: DataHome, server: Server, part: Path, had: bytes
) -> None:
    part.write_bytes(had)
    assert home.path(server.file("good")).read_bytes() == CONTENT
    assert server.asked == ([] if had == CONTENT else [("good", "")])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("absent", "404"),
        ("broken", "500"),
        ("wrong", "another sha256"),
        ("longer", "serves 256,004 bytes, not 256,000"),
        ("endless", "serves more than 256,000 bytes"),
        ("shorter", "ends after 500 of 256,000 bytes"),
        ("dead", "the connection failed"),
        ("nothing", "sends nothing"),
        ("silent", "silent for 0.2 s"),
    ],
)
def test_a_mirror_that_does_not_serve_it_is_passed_over(
    home: DataHome, server: Server, name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "silent":
        monkeypatch.setattr(fetch, "_TIMEOUT_SECONDS", 0.2)
    assert told in failure(home, server.file(name))
    assert names_in(home.root / "sub") == []
    monkeypatch.undo()
    assert home.path(server.file(name, "good")).read_bytes() == CONTENT
    assert server.asked[-1] == ("good", "")


def test_a_server_that_is_not_there(home: DataHome) -> None:
    assert "(the connection failed)" in failure(home, Server(9).file("good"))


def test_never_more_bytes_than_the_file_has(
    home: DataHome, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(fetch.Progress, "show", lambda _, done: sizes.append(done))
    failure(home, server.file("endless"))
    assert sizes
    assert max(sizes) <= len(CONTENT)


def test_good_bytes_are_kept_when_a_mirror_has_another_file(
    home: DataHome, server: Server, part: Path
) -> None:
    text = failure(home, server.file("other", "longer", "absent"))
    assert "serves 999,999 bytes" in text
    assert "100,000 bytes are saved" in text
    assert part.read_bytes() == CONTENT[:HAD]


def test_wrong_bytes_are_not_asked_for_again_and_again(
    home: DataHome, server: Server, part: Path
) -> None:
    failure(home, server.file("wrong"))
    assert server.asked == [("wrong", f"bytes={HAD}-"), ("wrong", "")]
    assert not part.exists()


def test_interrupted_it_says_that_it_will_go_on(
    home: DataHome,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    file = server.file("good")
    with monkeypatch.context() as patch:
        patch.setattr(fetch.Progress, "show", interrupt)
        with pytest.raises(KeyboardInterrupt):
            home.path(file)
    kept = (home.root / "sub" / "file.bin.part").stat().st_size
    assert 0 < kept < len(CONTENT)
    said = f"interrupted; {kept:,} of 256,000 bytes of sub/file.bin are saved, the same command"
    assert said in capsys.readouterr().err
    assert home.path(file).read_bytes() == CONTENT
    assert server.asked[-1] == ("good", f"bytes={kept}-")


def test_a_terminal_sees_one_line_that_is_redrawn(
    home: DataHome,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    failure(home, server.file("wrong"))
    text = capsys.readouterr().err
    assert text.startswith("\rfetching sub/file.bin: 0.1 of 0.3 MB")
    assert text.count("\n") == 1
    assert text.endswith("\n")


@pytest.mark.parametrize("other_succeeds", [True, False])
def test_two_processes_do_not_write_in_the_same_part(
    home: DataHome,
    server: Server,
    part: Path,
    capsys: pytest.CaptureFixture[str],
    other_succeeds: bool,
) -> None:
    file = server.file("good")
    found: list[Path] = []
    with part.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting = threading.Thread(target=lambda: found.append(home.path(file)), daemon=True)
        waiting.start()
        said: list[str] = []
        line = "another process downloads sub/file.bin"
        assert until(lambda: said.append(capsys.readouterr().err) or line in "".join(said))
        assert waiting.is_alive()
        if other_succeeds:
            other.write(CONTENT[HAD:])
            other.flush()
            part.rename(home.locate(file))
        else:
            part.unlink()
    waiting.join(HANG)
    assert found == [home.locate(file)]
    assert found[0].read_bytes() == CONTENT
    assert server.asked == ([] if other_succeeds else [("good", "")])
    assert names_in(part.parent) == ["file.bin"]


def test_a_home_that_cannot_be_written_is_told_with_the_way_out(
    home: DataHome, server: Server
) -> None:
    home.root.write_text("a file where the folder should be")
    text = failure(home, server.file("good"))
    assert "cannot write" in text
    assert "256,000 bytes" in text
