"""Small files in the cache: a damaged one is dropped, one that cannot be written is left out."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path

from sslbench.engine.files.atomic import write_atomically


def keep(path: Path, key: bytes, content: bytes) -> None:
    """Write content under a digest of it and of the key; a file that cannot be written is no error.

    key: everything that the content depends on.
    """
    with suppress(OSError):
        write_atomically(path, _digest(key, content) + content)


def find(path: Path, key: bytes) -> bytes | None:
    """Return the content that `keep` wrote with this key, else None.

    What lies there in its place, such as a damaged file or a folder, is removed.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        data = b""
    size = hashlib.sha256().digest_size
    if len(data) >= size and data[:size] == _digest(key, data[size:]):
        return data[size:]
    drop(path)
    return None


def drop(path: Path) -> None:
    """Remove what lies at the path of a file of the cache, if that is possible."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _digest(key: bytes, content: bytes) -> bytes:
    digest = hashlib.sha256(len(key).to_bytes(8, "little") + key)
    digest.update(content)
    return digest.digest()
