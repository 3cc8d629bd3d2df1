"""Atomic writing: a file is complete or does not exist."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write to a temporary file beside `path`, flush it to disk, and rename it over `path`.

    A reader sees the old file, the complete new one, or none; after an exception the old file is
    unchanged. Missing folders are created. Temporary files that killed writers of the same file
    have left are removed. OSError if the file cannot be written.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(target.parent, target.stem[:_LONGEST_STEM])
    name = temporary_name(target)
    try:
        # 0666 less the umask, as of any new file
        with os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
        _sync_folder(target.parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _sync_folder(folder: Path) -> None:
    """Flush the names of a folder to disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file with this content, see `replacing`."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path`, removed at the end; see `replacing` for killed writers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(path.parent, path.stem[:_LONGEST_STEM])
    folder = temporary_name(path)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def temporary_name(path: Path) -> Path:
    """Return a hidden name beside `path` that says which process made it."""
    token = f"{_host()}-{os.getpid()}-{secrets.token_hex(8)}"
    return path.with_name(f".{path.stem[:_LONGEST_STEM]}-{token}.tmp")


def remove_abandoned(folder: Path, stem: str | None = None) -> None:
    """Remove temporary files and folders in a folder whose process, on this machine, has ended.

    stem: of the files that they were for; None = any.
    """
    with suppress(OSError):
        for name in os.listdir(folder):
            parts = name.removeprefix(".").removesuffix(".tmp").rsplit("-", 3)
            if len(parts) < 4 or name != f".{'-'.join(parts)}.tmp" or parts[1] != _host():
                continue
            ended = parts[2].isdecimal() and not _is_running(int(parts[2]))
            if ended and stem in (None, parts[0]):
                shutil.rmtree(folder / name, ignore_errors=True)
                (folder / name).unlink(missing_ok=True)


_LONGEST_STEM = 100  # a name has at most 255 bytes


@cache
def _host() -> str:
    """Return the machine and, on Linux, the name space in which its process numbers are valid."""
    host = platform.node()
    with suppress(OSError):
        host += os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(host.encode()).hexdigest()[:8]


def _is_running(pid: int) -> bool:
    import psutil  # takes a while, and is rarely needed

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.AccessDenied:
        return True
    except (psutil.Error, OverflowError):  # no such process, or no number of one
        return False
