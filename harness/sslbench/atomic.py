"""Atomic writing: a file is complete or does not exist."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write to a temporary file beside `path`, flush it to disk, and rename it over `path`.

    A reader sees the old file, the complete new one, or none; after an exception the old file is
    unchanged. Missing folders are created. OSError if the file cannot be written.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())  # mkstemp creates it with 0600, unreadable for others
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file with this content, see `replacing`."""
    with replacing(path) as file:
        file.write(data)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
