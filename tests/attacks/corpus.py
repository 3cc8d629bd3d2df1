"""Inputs that have broken a reader, a file each in ``corpus/KIND``; the tests read them again.

An attack adds what fails. A file that fails no more stays: it is how the program once broke.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

FOLDER = Path(__file__).with_name("corpus")


def keep(kind: str, data: bytes) -> str:
    """Add an input; return where it is."""
    path = FOLDER / kind.replace(" ", "_") / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path.relative_to(FOLDER.parent))


def kept(kind: str) -> list[bytes]:
    """All inputs of a kind."""
    paths = sorted((FOLDER / kind.replace(" ", "_")).glob("*"))
    return [path.read_bytes() for path in paths]
