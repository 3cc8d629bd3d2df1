"""Bundles: one file with records that somebody submits, and what they are.

    file = MAGIC, manifest (JSON, one line), segment

It is written under a temporary name and renamed. Nothing in it is code: the manifest has typed
fields, the segment bounded sizes, and both are checked before a record is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from sslbench.engine.errors import UserError
from sslbench.engine.files.atomic import folder_beside, write_atomically
from sslbench.experiment.records import archive
from sslbench.experiment.records import segment as segments
from sslbench.experiment.records.catalog import SEGMENTS
from sslbench.experiment.records.reading import content_of
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store

MAGIC = b"sslbench bundle 1\n"
_LARGEST_MANIFEST = 2**20
_Name = Annotated[str, Meta(max_length=200)]
_Names = Annotated[list[_Name], Meta(max_length=1000)]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a bundle says of itself.

    Attributes
    ----------
    suite: name of the suite.  methods, datasets: what the records add to it.
    sslbench: version of sslbench.  plugins: version by name of each distribution with a plugin.
    runs: number of records.  sha256, bytes: hash and size of the segment.
    """

    suite: _Name
    methods: _Names
    datasets: _Names
    sslbench: _Name
    plugins: dict[_Name, _Name]
    runs: Annotated[int, Meta(ge=1)] = 1
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] = "0" * 64
    bytes: Annotated[int, Meta(ge=1)] = 1


class Bundle(NamedTuple):
    """A bundle that is whole. segment: the packed records, as bytes."""

    manifest: Manifest
    segment: bytes

    @contextmanager
    def store(self) -> Iterator[Store]:
        """A temporary store with the records; they are checked when they are read."""
        with TemporaryDirectory(prefix="sslbench-bundle-") as folder:
            self.add_to(Store(folder))
            yield Store(folder)

    def add_to(self, store: Store) -> Path:
        """Put the records into a store, and return the path of the segment."""
        path = store.folder / SEGMENTS / segments.name_of(self.segment)
        write_atomically(path, self.segment)
        return path


def write_bundle(path: Path, manifest: Manifest, records: Iterable[RunRecord]) -> Manifest:
    """Write a bundle with these records, and return its manifest: number and hash are set here.

    Raises
    ------
    UserError: the records cannot be packed into one segment.
    """
    with folder_beside(path) as folder:
        store = Store(folder)
        paths = [store.save(record) for record in records]
        packed = archive.pack(store)
        if packed.records != len(paths):
            reason = "; ".join(packed.left) or "a record contradicts itself"
            raise UserError(f"cannot be packed: {reason}")
        if len(packed.segments) != 1:
            what = f"{packed.after:,} bytes in {len(packed.segments)} segments, not in one"
            raise UserError(f"cannot be packed: {what}", hint="submit one method at a time")
        data = packed.segments[0].read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    stated = {"runs": packed.records, "sha256": sha256, "bytes": len(data)}
    manifest = msgspec.structs.replace(manifest, **stated)
    write_atomically(path, b"".join([MAGIC, msgspec.json.encode(manifest), b"\n", data]))
    return manifest


def read_bundle(path: Path) -> Bundle:
    """Read a bundle.

    Raises
    ------
    UserError: it cannot be read, is no bundle, or is damaged.
    """
    try:
        data = content_of(path)
    except OSError as error:
        raise UserError(error.strerror or str(error), file=path) from None
    head, newline, segment = data.removeprefix(MAGIC).partition(b"\n")
    if not data.startswith(MAGIC) or not newline or len(head) > _LARGEST_MANIFEST:
        raise UserError("not a bundle", file=path, hint="sslbench submit writes one")
    try:
        manifest = msgspec.json.decode(head, type=Manifest)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UserError(f"not a bundle: its manifest: {error}", file=path) from None
    if len(segment) != manifest.bytes:
        what = f"{len(segment):,} bytes of records, but should be {manifest.bytes:,}"
        raise UserError(f"damaged: {what}", file=path, hint="copy it again")
    if hashlib.sha256(segment).hexdigest() != manifest.sha256:
        raise UserError("damaged: another sha256 than in its manifest", file=path)
    return Bundle(manifest, segment)
