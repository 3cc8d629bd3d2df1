"""Downloads from servers that redirect, stall or lie, and onto disks that are full."""

from __future__ import annotations

import hashlib
import http.server
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, fetch
from sslbench.plugins.registrations import RemoteFile
from support.waiting import until

CONTENT = bytes(range(256)) * 1_000
FETCH = """
import sys
from pathlib import Path
from sslbench.experiment.data.fetch import download
from sslbench.plugins.registrations import RemoteFile
file = RemoteFile(path="f", urls=(sys.argv[1],), sha256=sys.argv[2], licence="", bytes=256_000)
download(file, Path(sys.argv[3]))
"""


class Handler(http.server.BaseHTTPRequestHandler):
    """The path says what is wrong with the answer: of a redirect, where it leads."""

    stop: threading.Event

    def do_GET(self) -> None:
        name, _, rest = self.path.strip("/").partition("/")
        with suppress(ConnectionError):
            getattr(self, f"serve_{name}")(rest)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""

    def begin(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()

    def serve_good(self, _: str) -> None:
        self.begin(200, Content_Length=str(len(CONTENT)))
        self.wfile.write(CONTENT)

    def serve_half(self, _: str) -> None:
        """Half of it, then nothing until the test ends; it continues."""
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        if start:
            span = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
            self.begin(206, Content_Range=span, Content_Length=str(len(CONTENT) - start))
            self.wfile.write(CONTENT[start:])
            return
        self.begin(200, Content_Length=str(len(CONTENT)))
        self.wfile.write(CONTENT[: len(CONTENT) // 2])
        self.stop.wait()

    def serve_drip(self, _: str) -> None:
        """A byte now and then, and never as many as a chunk."""
        self.begin(200, Content_Length=str(len(CONTENT)))
        while not self.stop.wait(0.02):
            self.wfile.write(b"x")

    def serve_to(self, location: str) -> None:
        self.begin(302, Location=unquote(location), Content_Length="0")

    def serve_loop(self, _: str) -> None:
        self.begin(302, Location="/loop", Content_Length="0")

    def serve_flood(self, _: str) -> None:
        """A redirect whose body never ends."""
        self.begin(302, Location="/good")
        while not self.stop.is_set():
            self.wfile.write(b"x" * 2**16)

    def serve_length(self, length: str) -> None:
        self.begin(200, Content_Length={"long": "9" * 5000, "odd": "\xb2"}[length])
        self.wfile.write(CONTENT)

    def serve_says(self, _: str) -> None:
        self.send_response(404, "\x1b[2Jnothing is wrong")
        self.end_headers()


@pytest.fixture
def base() -> Iterator[str]:
    stop = threading.Event()
    handler = type("Stopping", (Handler,), {"stop": stop})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        stop.set()
        server.shutdown()


@pytest.fixture
def home(tmp_path: Path) -> DataHome:
    return DataHome(tmp_path / "home", tmp_path / "cache", offline=False)


def file_at(url: str) -> RemoteFile:
    digest = hashlib.sha256(CONTENT).hexdigest()
    return RemoteFile(path="f", urls=(url,), sha256=digest, licence="free", bytes=len(CONTENT))


@pytest.mark.parametrize("name", ["to//good", "flood"])
def test_redirects_are_followed_without_their_body(name: str, base: str, home: DataHome) -> None:
    assert home.path(file_at(f"{base}/{name}")).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("to/file:///etc/passwd", "(redirects to file:)"),
        ("to/ftp://127.0.0.1/f", "(redirects to ftp:)"),
        ("to/data:,x", "(redirects to data:)"),
        ("to/http://[", "(redirects to no address)"),
        ("loop", "(more than 10 redirects)"),
        ("says", r"(404 \x1b[2Jnothing is wrong)"),
    ],
)
def test_a_wrong_answer_is_one_line(name: str, told: str, base: str, home: DataHome) -> None:
    with pytest.raises(UserError) as caught:
        home.path(file_at(f"{base}/{name}"))
    assert told in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("length", ["long", "odd"])
def test_a_length_that_is_no_number_is_ignored(length: str, base: str, home: DataHome) -> None:
    assert home.path(file_at(f"{base}/length/{length}")).read_bytes() == CONTENT


def test_an_address_that_drips_is_given_up(
    base: str, home: DataHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_STALL_SECONDS", 0.2)
    with pytest.raises(UserError, match=r"fewer than 65,536 bytes in 0.2 s"):
        home.path(file_at(f"{base}/drip"))


def test_what_a_stalled_server_sent_is_kept(
    base: str, home: DataHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_STALL_SECONDS", 2.0)  # the second request may wait, too
    assert home.path(file_at(f"{base}/half")).read_bytes() == CONTENT  # the second request


@pytest.mark.parametrize("after", [0, 65_536, 100_000])
def test_a_killed_download_goes_on(after: int, base: str, tmp_path: Path) -> None:
    target, part = tmp_path / "f", tmp_path / "f.part"
    digest = hashlib.sha256(CONTENT).hexdigest()
    arguments = [sys.executable, "-c", FETCH, f"{base}/half", digest, str(target)]
    process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
    assert until(lambda: part.exists() and part.stat().st_size >= min(after, 65_536))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not target.exists()
    kept = part.read_bytes()
    assert CONTENT.startswith(kept)
    if not kept:  # the server would keep the second download waiting too
        part.write_bytes(CONTENT[:1])
    assert subprocess.run(arguments, check=False).returncode == 0
    assert target.read_bytes() == CONTENT
    assert not part.exists()


def test_a_full_disk_is_one_line_and_keeps_what_came(base: str, home: DataHome) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(UserError, match=r"cannot write .*f\.part: File too large"):
            home.path(file_at(f"{base}/good"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    part = home.root / "f.part"
    assert part.read_bytes() == CONTENT[:100_000]
    assert home.path(file_at(f"{base}/half")).read_bytes() == CONTENT
