"""Downloads: interrupted ones resume, addresses are tried in order, the sha256 is verified.

The bytes received so far are in NAME.part beside the target, which is renamed when its sha256 is
right. Since that is known beforehand, any address may continue the file: if the bytes do not fit
together, the sha256 is wrong at the end and the whole file is downloaded again.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests

from sslbench.engine.errors import UserError, printable
from sslbench.engine.files.locks import lock_file
from sslbench.plugins.registrations import RemoteFile

# An address that does not answer must not delay a run for minutes.
_TIMEOUT_SECONDS = 30
_CHUNK_BYTES = 1 << 16
# An address that takes longer for a chunk is too slow.
_STALL_SECONDS = 60
_REDIRECTS = 10
# Requests to one address for the rest of a file after the connection broke.
_ATTEMPTS = 6
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)")
_LENGTH = re.compile(r"[0-9]{1,18}")


class _StalledError(requests.Timeout):
    """An address sends too slowly; the message says how slowly."""


class _WrongBytesError(Exception):
    """An address serves other bytes than those of the file; the message says how they differ."""


def download(file: RemoteFile, target: Path) -> None:
    """Download ``file`` to ``target`` from the first of its addresses that serves the right bytes.

    Resumes from NAME.part if that exists, and waits while another process downloads the same file.
    After a broken connection or Ctrl-C the bytes received stay in NAME.part.

    Raises
    ------
    UserError: no address serves the file, or it cannot be written. The message says which file to
        put where.
    """
    part = part_of(target)
    try:
        with _locked(part, file.path) as stream:
            if target.is_file():  # another process downloaded it in the meantime
                return
            failures = _fetch(_Transfer(file, stream))
            if failures is None:
                os.fsync(stream.fileno())
                os.replace(part, target)
                return
            received = os.fstat(stream.fileno()).st_size
    except OSError as problem:
        message = f"cannot write {part}: {problem.strerror}"
        raise UserError(message, hint=put_it_there(file, target)) from problem
    text = "; ".join(failures) or "it has no address"
    if received:
        text += f"; {received:,} bytes are saved, the same command resumes from there"
    raise UserError(f"cannot download {file.path}: {text}", hint=put_it_there(file, target))


def part_of(target: Path) -> Path:
    """The path of an unfinished download of ``target``."""
    return target.with_name(f"{target.name}.part")


def put_it_there(file: RemoteFile, target: Path) -> str:
    """The hint for a machine without network."""
    return f"put the file ({file.bytes:,} bytes, sha256 {file.sha256}) at {target}"


def _fetch(transfer: _Transfer) -> list[str] | None:
    """Complete a transfer: None if the file is right, otherwise why each address failed."""
    failures = []
    try:
        if transfer.is_right():
            return None
        for url in transfer.file.urls:
            failure = transfer.fetch(url)
            if failure is None:
                return None
            failures.append(f"{url} ({failure})")
    except KeyboardInterrupt:
        transfer.progress.end_line()
        _say(
            f"interrupted; {transfer.size:,} of {transfer.file.bytes:,} bytes of"
            f" {transfer.file.path} are saved, the same command resumes from there"
        )
        raise
    finally:
        transfer.progress.end_line()
    return failures


class _Transfer:
    """The download of one file into an open part file."""

    def __init__(self, file: RemoteFile, stream: FileIO) -> None:
        self.file = file
        self.progress = Progress(file.path, file.bytes)
        self._stream = stream

    @property
    def size(self) -> int:
        """Bytes received so far."""
        return os.fstat(self._stream.fileno()).st_size

    def is_right(self) -> bool:
        """Whether the part is the whole file; a part of full length with other bytes is emptied."""
        if self.size < self.file.bytes:
            return False
        self._stream.seek(0)
        if hashlib.file_digest(self._stream, "sha256").hexdigest() == self.file.sha256:
            return True
        self._empty()
        return False

    def fetch(self, url: str) -> str | None:
        """Get the rest of the file from an address: None if it is right then, otherwise why not."""
        failure = None
        for _ in range(_ATTEMPTS):
            before = self.size
            try:
                self._receive(url)
            except _WrongBytesError as problem:
                failure = str(problem)
                if not before or self.size:  # wrong without bytes of another address
                    break
            except requests.RequestException as problem:
                failure = _reason(problem)
                if self.size <= before:
                    break
            else:
                return None
        return failure

    def _receive(self, url: str) -> None:
        """Make one request; raise _WrongBytesError or a RequestException if it fails."""
        with self._ask(url) as response:
            length = _length(response)
            if length not in (None, self.file.bytes):
                raise _WrongBytesError(f"serves {length:,} bytes, not {self.file.bytes:,}")
            from_start = response.status_code != requests.codes.partial_content
            for chunk in _chunks(response):
                if from_start:  # the part is emptied only once there are new bytes
                    self._empty()
                    from_start = False
                if self.size + len(chunk) > self.file.bytes:
                    self._empty()
                    raise _WrongBytesError(f"serves more than {self.file.bytes:,} bytes")
                self._write(chunk)
                self.progress.show(self.size)
        if from_start:
            raise _WrongBytesError("sends nothing")
        if self.size < self.file.bytes:
            if response.status_code == requests.codes.partial_content:
                raise requests.ConnectionError("not all of the rest")  # servers may send less
            short = self.size
            self._empty()
            raise _WrongBytesError(f"ends after {short:,} of {self.file.bytes:,} bytes")
        if not self.is_right():
            raise _WrongBytesError("the bytes served have another sha256")
        self.progress.finish()

    def _ask(self, url: str) -> requests.Response:
        """The response with the rest of the file, or all of it if the server sends no ranges."""
        start = self.size
        if start:
            response = _get(url, {"Range": f"bytes={start}-"})
            if response.status_code == requests.codes.ok or _continues(response, start):
                return response
            response.close()
        response = _get(url, {})
        response.raise_for_status()
        return response

    def _write(self, data: bytes) -> None:
        while data:  # at the end of a disk, a part of the data is written
            data = data[self._stream.write(data) :]

    def _empty(self) -> None:
        self._stream.truncate(0)


class _Session(requests.Session):
    """Follows no redirects: requests reads the whole body of each, which may have no end."""

    def resolve_redirects(self, *_: Any, **more: Any) -> Iterator[Any]:  # type: ignore[override]
        return iter(())


def _get(url: str, headers: dict[str, str]) -> requests.Response:
    """The response after redirects, which lead to http and https only."""
    # A compressed response would have other lengths and ranges.
    headers = {"Accept-Encoding": "identity", **headers}
    for _ in range(_REDIRECTS):
        session = _Session()
        response = session.get(url, headers=headers, stream=True, timeout=_TIMEOUT_SECONDS)
        if not response.is_redirect:
            return response
        response.close()
        url = _next_address(url, response.headers["Location"])
    raise requests.TooManyRedirects(f"more than {_REDIRECTS} redirects")


def _next_address(url: str, location: str) -> str:
    try:
        following = urljoin(url, location)
        scheme = urlsplit(following).scheme
    except ValueError:
        raise requests.exceptions.InvalidURL("redirects to no address") from None
    if scheme not in ("http", "https"):
        raise requests.exceptions.InvalidSchema(f"redirects to {scheme[:20]}:")
    return following


def _chunks(response: requests.Response) -> Iterator[bytes]:
    """The content; _StalledError if a chunk takes too long, however few bytes come."""
    connection = socket.socket(fileno=os.dup(response.raw.fileno()))
    done, arrived, stalled = threading.Event(), [0], []

    def watch() -> None:
        seen = -1
        while seen != arrived[0]:
            seen = arrived[0]
            if done.wait(_STALL_SECONDS):
                return
        stalled.append(True)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)  # ends the read that waits

    threading.Thread(target=watch, daemon=True).start()
    try:
        for chunk in response.iter_content(_CHUNK_BYTES):
            arrived[0] += 1
            yield chunk
    except requests.RequestException:
        if not stalled:
            raise
    finally:
        done.set()
        connection.close()
    if stalled:
        raise _StalledError(f"fewer than {_CHUNK_BYTES:,} bytes in {_STALL_SECONDS} s")


def _content_range(response: requests.Response) -> tuple[int, int | None] | None:
    """Where a part of a file begins, and the length of the whole file if the response says it."""
    parsed = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status_code != requests.codes.partial_content or parsed is None:
        return None
    return int(parsed[1]), None if parsed[2] == "*" else int(parsed[2])


def _continues(response: requests.Response, start: int) -> bool:
    """Whether the response has the bytes of the file from ``start`` on."""
    part = _content_range(response)
    return part is not None and part[0] == start and "Content-Encoding" not in response.headers


def _length(response: requests.Response) -> int | None:
    """Length of the whole file in bytes according to a response; None if it does not say."""
    if response.status_code == requests.codes.partial_content:
        part = _content_range(response)
        return None if part is None else part[1]
    length = response.headers.get("Content-Length", "")
    plain = _LENGTH.fullmatch(length) and "Content-Encoding" not in response.headers
    return int(length) if plain else None


@contextmanager
def _locked(part: Path, label: str) -> Iterator[FileIO]:
    """Open a part for appending, one process at a time; delete it if it is empty at the end."""
    part.parent.mkdir(parents=True, exist_ok=True)
    stream = _open_locked(part, label)
    try:
        yield stream
    finally:
        if not os.fstat(stream.fileno()).st_size:
            part.unlink(missing_ok=True)
        stream.close()


def _open_locked(part: Path, label: str) -> FileIO:
    while True:
        stream = FileIO(part, "a+")  # unbuffered: nothing is lost when the process is killed
        try:
            lock_file(stream, wait=False)
        except BlockingIOError:
            _say(f"another process downloads {label}; waiting for it")
            lock_file(stream)
        except OSError:  # a file system without locks; the sha256 is verified anyway
            return stream
        # The process that held the lock may have renamed or removed the file opened here.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(stream.fileno()), os.stat(part)):
                return stream
        stream.close()


class Progress:
    """One line on standard error, which a terminal shows growing."""

    def __init__(self, label: str, total: int) -> None:
        self._label, self._total = label, total
        self._drawn = 0.0
        self._unfinished = False

    def show(self, done: int) -> None:
        """Show the number of bytes received on a terminal, at most ten times a second."""
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._drawn > 0.1:
            self._drawn = now
            self._draw(done)
            self._unfinished = True

    def finish(self) -> None:
        """Write the final line."""
        self._draw(self._total)
        self._unfinished = True
        self.end_line()

    def end_line(self) -> None:
        """End the line, if one is unfinished."""
        if self._unfinished:
            sys.stderr.write("\n")
            self._unfinished = False

    def _draw(self, done: int) -> None:
        start = "\r" if sys.stderr.isatty() else ""
        size = f"{done / 1e6:.1f} of {self._total / 1e6:.1f} MB"
        sys.stderr.write(f"{start}fetching {printable(self._label)}: {size}")
        sys.stderr.flush()


def _say(text: str) -> None:
    sys.stderr.write(f"sslbench: {printable(text)}\n")


def _reason(problem: requests.RequestException) -> str:
    if problem.response is not None:
        return f"{problem.response.status_code} {problem.response.reason}"
    if isinstance(problem, requests.Timeout) and not isinstance(problem, _StalledError):
        return f"silent for {_TIMEOUT_SECONDS} s"
    if isinstance(problem, (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        return "the connection failed"
    text = " ".join(str(problem).split())
    return text if len(text) <= 120 else type(problem).__name__
