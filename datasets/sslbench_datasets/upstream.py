"""Files of public repositories at fixed commits, as the registrations list them.

Imported by every registration, so it imports nothing heavy. A mirror that moves does no harm: the
sha256 decides whether a file is the right one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sslbench import RemoteFile

GITHUB = "https://raw.githubusercontent.com"
NLTK = f"{GITHUB}/nltk/nltk_data/5db857e6f7df11eabb5e5665836db9ec8df07e28/packages/corpora"
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class Upstream:
    """A folder of files upstream and where they are stored.

    Attributes
    ----------
    folder: below the data home.
    url: address of the folder upstream, without a slash at the end.
    licence: licence of the files.
    agreement: see `RemoteFile`.
    """

    folder: str
    url: str
    licence: str
    agreement: bool = False

    def file(self, name: str, length: int, sha256: str, *, extra: bool = False) -> RemoteFile:
        """One file: its path below both folders, its length in bytes and its digest."""
        return RemoteFile(
            path=f"{self.folder}/{name}",
            urls=(f"{self.url}/{name}",),
            sha256=sha256,
            licence=self.licence,
            bytes=length,
            extra=extra,
            agreement=self.agreement,
        )

    def files(self, table: str, *, extra: bool = False) -> tuple[RemoteFile, ...]:
        """The files of a table with one line per file: path, length in bytes, sha256."""
        rows = (line.split() for line in table.strip().split("\n"))
        return tuple(
            self.file(name, int(length), sha256, extra=extra) for name, length, sha256 in rows
        )

    def splits(self, table: str) -> dict[str, RemoteFile]:
        """The files of such a table with the lines train, dev and test, by split."""
        return dict(zip(SPLITS, self.files(table), strict=True))


def size(counts: Sequence[int], *units: str) -> str:
    """Counts and their units as text: "8,936 sentences, 211,727 tokens"."""
    return ", ".join(f"{count:,} {unit}" for count, unit in zip(counts, units, strict=True))
