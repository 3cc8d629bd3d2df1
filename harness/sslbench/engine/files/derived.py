"""Small files in the cache: a damaged one is dropped, one that cannot be written is left out.

A process that runs code of plugins must not write what other processes read. It reads the cache,
and writes to a folder in its place, see `write_instead`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path

from sslbench.engine.files.atomic import write_atomically

_instead: list[tuple[Path, Path]] = []


def write_instead(own: Path, folder: Path) -> None:
    """Write to `own` what belongs into the folder, from now on; read it from both."""
    _instead.append((own, folder))


def places(path: Path) -> list[Path]:
    """Return where to look for a file of the cache, in order; it is written to the last one."""
    for own, folder in _instead:
        for root in (own, folder):  # the first may be inside of the second
            if path.is_relative_to(root):
                rest = path.relative_to(root)
                return [folder / rest, own / rest]
    return [path]


def keep(path: Path, key: bytes, content: bytes) -> None:
    """Write content under a digest of it and of the key; a file that cannot be written is no error.

    key: everything that the content depends on.
    """
    with suppress(OSError):
        write_atomically(places(path)[-1], _digest(key, content) + content)


def find(path: Path, key: bytes) -> bytes | None:
    """Return the content that `keep` wrote with this key, else None.

    What lies there in its place, such as a damaged file or a folder, is removed.
    """
    return next((data for each in places(path) if (data := _found(each, key)) is not None), None)


def _found(path: Path, key: bytes) -> bytes | None:
    try:
        data = _read(path)
    except FileNotFoundError:
        return None
    except OSError:
        data = b""
    size = hashlib.sha256().digest_size
    if len(data) >= size and data[:size] == _digest(key, data[size:]):
        return data[size:]
    drop(path)
    return None


def _read(path: Path) -> bytes:
    """Content of a file of this user or of root, since machine code is run; OSError for others."""
    with path.open("rb") as file:
        if hasattr(os, "getuid") and os.fstat(file.fileno()).st_uid not in (os.getuid(), 0):
            raise PermissionError(0, "another user's file", str(path))
        return file.read()


def drop(path: Path) -> None:
    """Remove what lies at the path of a file of the cache, if that is possible."""
    path = places(path)[-1]
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _digest(key: bytes, content: bytes) -> bytes:
    digest = hashlib.sha256(len(key).to_bytes(8, "little") + key)
    digest.update(content)
    return digest.digest()
