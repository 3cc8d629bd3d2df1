"""Downloads that can be resumed: mirrors tried in turn, sizes limited, sha256 before the name.

What has come so far lies beside the target as NAME.part. Since the sha256 of the whole file is
known beforehand, a part may be continued from any mirror: bytes that do not fit together are found
at the end, and then the whole is fetched again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

import requests

from sslbench.errors import UserError
from sslbench.registrations import RemoteFile

# A mirror that does not answer must not hold up a run for minutes.
_TIMEOUT_SECONDS = 30
_CHUNK_BYTES = 1 << 16
# Times that one address is asked for the rest after the connection broke.
_ATTEMPTS = 6
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class _WrongBytesError(Exception):
    """An address serves something else than the file; the text says what."""


def download(file: RemoteFile, target: Path) -> None:
    """Fetch ``file`` to ``target``, from the first of its addresses that serves the right bytes.

    Goes on from NAME.part when there is one; waits when another process fetches the same file.
    Raises UserError that says which file to put where when no address serves it or it cannot be
    written. What came before a broken connection or Ctrl-C stays in NAME.part.
    """
    part = part_of(target)
    try:
        with _locked(part, file.path) as stream:
            if target.is_file():  # another process has fetched it in the meantime
                return
            failures = _fetch(_Transfer(file, stream))
            if failures is None:
                os.fsync(stream.fileno())
                os.replace(part, target)
                return
            kept = os.fstat(stream.fileno()).st_size
    except OSError as problem:
        message = f"cannot write {part}: {problem.strerror}"
        raise UserError(message, hint=put_it_there(file, target)) from problem
    text = "; ".join(failures) or "it has no address"
    if kept:
        text += f"; the {kept:,} bytes that came are kept, the same command goes on from there"
    raise UserError(f"cannot download {file.path}: {text}", hint=put_it_there(file, target))


def part_of(target: Path) -> Path:
    """Return where an unfinished download of ``target`` lies."""
    return target.with_name(f"{target.name}.part")


def put_it_there(file: RemoteFile, target: Path) -> str:
    """Return the advice for a machine without network."""
    return f"put the file ({file.bytes:,} bytes, sha256 {file.sha256}) at {target}"


def _fetch(transfer: _Transfer) -> list[str] | None:
    """Complete a transfer; why each address failed, or None when the bytes are the right ones."""
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
            f" {transfer.file.path} are kept, the same command goes on from there"
        )
        raise
    finally:
        transfer.progress.end_line()
    return failures


class _Transfer:
    """The bytes of one file on their way into an open part."""

    def __init__(self, file: RemoteFile, stream: FileIO) -> None:
        self.file = file
        self.progress = Progress(file.path, file.bytes)
        self._stream = stream

    @property
    def size(self) -> int:
        """Bytes in the part."""
        return os.fstat(self._stream.fileno()).st_size

    def is_right(self) -> bool:
        """Whether the part is the whole file; one as long with other bytes is emptied."""
        if self.size < self.file.bytes:
            return False
        self._stream.seek(0)
        if hashlib.file_digest(self._stream, "sha256").hexdigest() == self.file.sha256:
            return True
        self._empty()
        return False

    def fetch(self, url: str) -> str | None:
        """Get the rest, or all, from an address; None when the file is right, else why not."""
        failure = None
        for _ in range(_ATTEMPTS):
            before = self.size
            try:
                self._receive(url)
            except _WrongBytesError as problem:
                failure = str(problem)
                if not before or self.size:  # what the address has alone is wrong
                    break
            except requests.RequestException as problem:
                failure = _reason(problem)
                if self.size <= before:
                    break
            else:
                return None
        return failure

    def _receive(self, url: str) -> None:
        """One request. _WrongBytesError or requests' exceptions when the file is not right then."""
        with self._ask(url) as response:
            length = _length(response)
            if length not in (None, self.file.bytes):
                raise _WrongBytesError(f"serves {length:,} bytes, not {self.file.bytes:,}")
            anew = response.status_code != requests.codes.partial_content
            for chunk in response.iter_content(_CHUNK_BYTES):
                if anew:  # not before something comes
                    self._empty()
                    anew = False
                if self.size + len(chunk) > self.file.bytes:
                    self._empty()
                    raise _WrongBytesError(f"serves more than {self.file.bytes:,} bytes")
                self._stream.write(chunk)
                self.progress.show(self.size)
        if anew:
            raise _WrongBytesError("sends nothing")
        if self.size < self.file.bytes:
            if response.status_code == requests.codes.partial_content:
                raise requests.ConnectionError("not all of the rest")  # a server may send less
            short = self.size
            self._empty()
            raise _WrongBytesError(f"ends after {short:,} of {self.file.bytes:,} bytes")
        if not self.is_right():
            raise _WrongBytesError("the bytes served have another sha256")
        self.progress.finish()

    def _ask(self, url: str) -> requests.Response:
        """The answer to a request for the rest; for all when this server cannot give the rest."""
        start = self.size
        if start:
            response = _get(url, {"Range": f"bytes={start}-"})
            if response.status_code == requests.codes.ok or _continues(response, start):
                return response
            response.close()
        response = _get(url, {})
        response.raise_for_status()
        return response

    def _empty(self) -> None:
        self._stream.truncate(0)


def _get(url: str, headers: dict[str, str]) -> requests.Response:
    # Compressed on the way, a file would have other lengths and ranges.
    headers = {"Accept-Encoding": "identity", **headers}
    return requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT_SECONDS)


def _continues(response: requests.Response, start: int) -> bool:
    """Whether these are the bytes from ``start`` on, as they are in the file."""
    found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    return (
        response.status_code == requests.codes.partial_content
        and "Content-Encoding" not in response.headers
        and found is not None
        and int(found[1]) == start
    )


def _length(response: requests.Response) -> int | None:
    """Length in bytes of the whole that an answer is, or is part of; None when it is not told."""
    headers = response.headers
    if response.status_code == requests.codes.partial_content:
        found = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
        return int(found[2]) if found and found[2] != "*" else None
    told = headers.get("Content-Length", "")
    return int(told) if told.isdigit() and "Content-Encoding" not in headers else None


@contextmanager
def _locked(part: Path, label: str) -> Iterator[FileIO]:
    """Open a part for appending; one process at a time. Left empty, it is taken away."""
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
        stream = FileIO(part, "a+")  # unbuffered: what came is kept when the process is killed
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"another process fetches {label}; waiting for it")
            fcntl.flock(stream, fcntl.LOCK_EX)
        except OSError:  # a file system without locks; in the end the sha256 decides
            return stream
        # Whoever held the lock may have renamed or removed the file that was opened.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(stream.fileno()), os.stat(part)):
                return stream
        stream.close()


class Progress:
    """One line on standard error, redrawn on a terminal."""

    def __init__(self, label: str, total: int) -> None:
        self._label, self._total = label, total
        self._drawn = 0.0
        self._unfinished = False

    def show(self, done: int) -> None:
        """Tell a terminal that ``done`` bytes are there, some times a second."""
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._drawn > 0.1:
            self._drawn = now
            self._draw(done)
            self._unfinished = True

    def finish(self) -> None:
        """Leave the finished line."""
        self._draw(self._total)
        self._unfinished = True
        self.end_line()

    def end_line(self) -> None:
        """What is written next begins a new line."""
        if self._unfinished:
            sys.stderr.write("\n")
            self._unfinished = False

    def _draw(self, done: int) -> None:
        start = "\r" if sys.stderr.isatty() else ""
        size = f"{done / 1e6:.1f} of {self._total / 1e6:.1f} MB"
        sys.stderr.write(f"{start}fetching {self._label}: {size}")
        sys.stderr.flush()


def _say(text: str) -> None:
    sys.stderr.write(f"sslbench: {text}\n")


def _reason(problem: requests.RequestException) -> str:
    if problem.response is not None:
        return f"{problem.response.status_code} {problem.response.reason}"
    if isinstance(problem, requests.Timeout):
        return f"silent for {_TIMEOUT_SECONDS} s"
    if isinstance(problem, (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        return "the connection failed"
    text = " ".join(str(problem).split())
    return text if len(text) <= 120 else type(problem).__name__
