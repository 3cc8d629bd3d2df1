"""The files of a store: which there are, and reading of a record that has a file of its own."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from sslbench.engine.errors import InputWarning, UserError
from sslbench.experiment.records.integrity import decode
from sslbench.experiment.records.record import RunRecord

RECORD = ".json"
_LARGEST = 2**30  # bytes of a file that is read; records have kilobytes


class StoreWarning(InputWarning):
    """A file in a store cannot be read or written. None is ever deleted."""


def listed(folder: Path, suffix: str) -> dict[str, str]:
    """The stamps of the files of a folder with this suffix, by name, ascending.

    Hidden ones are left out. UserError if the folder cannot be read; a missing one has no files.
    """
    try:
        with os.scandir(folder) as entries:
            found = {}
            for entry in entries:
                if entry.name.endswith(suffix) and entry.name[0] != ".":
                    found[entry.name] = _entry_stamp(entry)
    except (FileNotFoundError, NotADirectoryError):  # the second: a file is in place of a parent
        return {}
    except OSError as error:
        raise UserError(error.strerror or str(error), file=folder) from error
    return dict(sorted(found.items()))


def _entry_stamp(entry: os.DirEntry[str]) -> str:
    try:
        return stamp_of(entry.stat())
    except OSError:
        return "0 0 0 0"  # a link to nothing, or removed in the meantime: reading it tells


def stamp_of(status: os.stat_result) -> str:
    """What tells whether a file is the one that was read: size, times and inode."""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def read_record_file(path: Path) -> RunRecord:
    """Read a record; UserError with the file name if it cannot be read."""
    try:
        return decode(content_of(path))
    except UserError as error:
        raise UserError(error.message, file=path) from error
    except OSError as error:
        raise UserError(error.strerror or str(error), file=path) from error


def content_of(path: Path) -> bytes:
    """OSError also for a pipe or device, and for a file that is too large for a record."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(0, "is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "not a regular file")
    if status.st_size > _LARGEST:
        raise OSError(0, f"a file of {status.st_size} bytes")
    return path.read_bytes()
