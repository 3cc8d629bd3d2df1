"""Checksummed downloads: several addresses tried in turn, atomic, progress on standard error."""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

from sslbench.errors import UserError
from sslbench.registrations import RemoteFile

# A mirror that does not answer must not hold up a run for minutes.
_TIMEOUT_SECONDS = 30
_CHUNK_BYTES = 1 << 16


class Progress:
    """What pooch calls while it downloads; one line on standard error, redrawn on a terminal."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.total = 0
        self._done = 0
        self._drawn = 0.0

    def update(self, n_bytes: int) -> None:
        """Count ``n_bytes`` more."""
        self._done += n_bytes
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._drawn > 0.1:
            self._drawn = now
            self._draw("")

    def reset(self) -> None:
        """Start counting again (pooch does so before it reports the total)."""
        self._done = 0

    def close(self) -> None:
        """Leave the finished line."""
        self._draw("\n")

    def _draw(self, end: str) -> None:
        done = min(self._done, self.total) if self.total else self._done
        start = "\r" if sys.stderr.isatty() else ""
        of_total = f" of {self.total / 1e6:.1f}" if self.total else ""
        sys.stderr.write(f"{start}fetching {self.label}: {done / 1e6:.1f}{of_total} MB{end}")
        sys.stderr.flush()


def download(file: RemoteFile, target: Path) -> None:
    """Fetch ``file`` to ``target``, from the first of its addresses that serves the right bytes.

    The bytes go to a temporary file beside the target, which gets the name only after its sha256
    is found right. Raises UserError that says which file to put where when no address serves it.
    """
    import pooch  # with requests: 100 ms that only a download should cost

    pooch.get_logger().setLevel(logging.WARNING)
    failures = []
    for url in file.urls:
        try:
            pooch.retrieve(
                url,
                known_hash=f"sha256:{file.sha256}",
                fname=target.name,
                path=target.parent,
                downloader=pooch.HTTPDownloader(
                    progressbar=Progress(file.path),
                    chunk_size=_CHUNK_BYTES,
                    timeout=_TIMEOUT_SECONDS,
                ),
            )
        except (OSError, ValueError) as problem:  # requests' exceptions are OSErrors
            failures.append(f"{url} ({_reason(problem)})")
        else:
            return
    raise UserError(
        f"cannot download {file.path}: {'; '.join(failures) or 'it has no address'}",
        hint=put_it_there(file, target),
    )


def put_it_there(file: RemoteFile, target: Path) -> str:
    """Return the advice for a machine without network."""
    return f"put the file ({file.bytes:,} bytes, sha256 {file.sha256}) at {target}"


def _reason(problem: Exception) -> str:
    if isinstance(problem, PermissionError):
        return f"cannot write: {problem.strerror}"
    if isinstance(problem, ValueError) and "hash" in str(problem).lower():
        return "the bytes served have another sha256"
    text = " ".join(str(problem).split())
    return text if len(text) <= 120 else type(problem).__name__
