"""Small files in place of the files of a dataset."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sslbench import RemoteFile


def placed(root: Path, file: RemoteFile, data: bytes) -> RemoteFile:
    """Put the bytes where the file belongs below a data home; return it with their digest."""
    path = root / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return replace(file, sha256=hashlib.sha256(data).hexdigest())


def place(root: Path, files: Mapping[str, RemoteFile], text: str) -> dict[str, RemoteFile]:
    """Put the text where each of the files belongs; return them with its digest."""
    return {split: placed(root, file, text.encode()) for split, file in files.items()}
