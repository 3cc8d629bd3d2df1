"""Vectors of sentences in files of the cache, by content; memory-mapped.

A part is two files: float32 numbers, and an index that says whose they are. Both are written
atomically, the index last, so that processes can add parts at the same time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from sslbench.engine.files import derived
from sslbench.engine.files.atomic import replacing
from sslbench.engine.types import F32

_KEY, _CHECK = 32, 16  # bytes of a sentence's key, and of the check of its numbers
_ENTRY = np.dtype([("key", f"V{_KEY}"), ("rows", "<i8"), ("check", f"V{_CHECK}")])
_ABOUT = b"vectors of sentences 1"


class VectorStore:
    """Vectors of sentences, float32[n, D] by key; what is damaged is not there.

    folder: of one model; None = nothing is kept.
    """

    def __init__(self, folder: Path | None, size: int) -> None:
        self._folder = folder
        self._size = size
        self._found: dict[bytes, list[tuple[F32, bytes]]] = {}  # damaged ones among them
        with suppress(OSError):
            for path in sorted(folder.glob("*.index")) if folder else ():
                self._open(path)

    def get(self, key: bytes) -> F32 | None:
        """Of a sentence."""
        parts = self._found.get(key, ())
        return next((numbers for numbers, check in parts if _check(numbers) == check), None)

    def add(self, part: Mapping[bytes, F32]) -> None:
        """Write a part, vectors by key; a file that cannot be written is no error."""
        if self._folder is None or not part:
            return
        name = hashlib.sha256(b"".join(sorted(part))).hexdigest()[:32]
        index = np.empty(len(part), _ENTRY)
        for i, (key, rows) in enumerate(part.items()):
            index[i] = key, len(rows), _check(rows)
        with suppress(OSError):
            with replacing(self._folder / f"{name}.f4") as file:
                for rows in part.values():
                    file.write(np.ascontiguousarray(rows, "<f4").data)
            path = self._folder / f"{name}.index"
            derived.keep(path, self._about(name), index.tobytes())
            self._open(path)

    def _about(self, name: str) -> bytes:
        return _ABOUT + name.encode() + str(self._size).encode()

    def _open(self, path: Path) -> None:
        content = derived.find(path, self._about(path.stem))
        if content is None or len(content) % _ENTRY.itemsize:
            return None
        index = np.frombuffer(content, _ENTRY)
        ends = np.cumsum(index["rows"])
        try:
            shape = int(ends[-1]), self._size
            numbers = np.memmap(path.with_suffix(".f4"), "<f4", "r", shape=shape)
        except (OSError, ValueError, IndexError):  # missing, too short
            return derived.drop(path)
        for entry, end in zip(index, ends.tolist(), strict=True):
            rows = numbers[end - int(entry["rows"]) : end]
            entries = self._found.setdefault(entry["key"].tobytes(), [])
            entries.append((rows, entry["check"].tobytes()))
        return None


def _check(rows: F32) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(rows, "<f4").data, digest_size=_CHECK).digest()
