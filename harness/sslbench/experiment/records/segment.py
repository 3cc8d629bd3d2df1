"""Segments: files of packed records, written once and never changed.

    file  = MAGIC block*
    block = MARK, size of the head (4 bytes), sha256 of the head, head, parts

The head says which runs the block has, and size and sha256 of each part. A block needs no other
one: damage costs the blocks that it is in, and the next one is found by its mark. All sizes are
bounded before anything is read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec
from msgspec import Meta

from sslbench.experiment.records import packing
from sslbench.experiment.records.packing import PARTS, Arrays, Block, DamageError, Part, Tree
from sslbench.experiment.records.predictions import SMALLEST

SUFFIX = ".segment"
MAGIC = b"sslbench segment 1\n"
MARK = bytes.fromhex("8b5367c1f2a90e64d37f10aa5ce86b2d")
#: runs of a block
RUNS = 32
#: most bytes of a part that is not compressed
LARGEST_PART = 2**28
#: a part up to this size stays in memory longer
_SMALL_PART = 2**20 + 2**19
_LARGEST_HEAD = 2**20
_HASH = hashlib.sha256().digest_size
_FIXED = len(MARK) + 4 + _HASH
_STEP = 2**20

_Hex = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
_Size = Annotated[int, Meta(ge=0, le=LARGEST_PART)]


class Entry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A run of a block. content: see `packing.content`."""

    run_id: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
    created: str
    content: _Hex


class _Stored(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A part of a block in the file. raw: its size when it is not compressed."""

    size: _Size
    raw: _Size
    sha256: _Hex


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The head of a block: its runs and its parts."""

    runs: Annotated[list[Entry], Meta(max_length=1024)]
    parts: dict[Part, _Stored]


@dataclass(frozen=True)
class Place:
    """Where a packed record is. offset: of the parts of its block in the file; place: within it."""

    head: Head
    offset: int
    place: int

    def start(self, part: Part) -> int:
        """Where a part of the block begins in the file."""
        names = list(self.head.parts)
        before = names[: names.index(part)]
        return self.offset + sum(self.head.parts[name].size for name in before)


class Segment:
    """The records of a segment.

    Attributes
    ----------
    places: where the record of a run is, by run id.
    problems: damaged stretches of the file, a line each.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blocks: list[tuple[int, Head]] = []
        self.problems: list[str] = []
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            self._stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
            for each in _walk(file, status.st_size):
                if isinstance(each, str):
                    self.problems.append(each)
                else:
                    self.blocks.append(each)
        self.places = {
            entry.run_id: Place(head, offset, i)
            for offset, head in self.blocks
            for i, entry in enumerate(head.runs)
        }

    def age(self, run_id: str) -> tuple[str, str]:
        """Return a sort key: of two records of a run, the newer one has the larger key."""
        where = self.places[run_id]
        return where.head.runs[where.place].created, self.path.name

    def tree(self, run_id: str) -> Tree:
        """A record as plain values; DamageError or OSError if it cannot be read."""
        where = self.places[run_id]
        return self._whole(where, self._rest(where)[where.place])

    def trees(
        self, offset: int, head: Head, level: int = SMALLEST
    ) -> Iterator[tuple[Entry, Tree | DamageError]]:
        """The records of a block as plain values, or why there is none; level: see `packing.whole`.

        Most of the time is that of the smallest text of predictions.
        """
        try:
            rest = self._rest(Place(head, offset, 0))
        except DamageError as error:
            yield from ((entry, error) for entry in head.runs)
            return
        for i, (entry, left) in enumerate(zip(head.runs, rest, strict=False)):
            try:
                yield entry, self._whole(Place(head, offset, i), left, level)
            except DamageError as error:
                yield entry, error

    def arrays(self, where: Place, part: Part) -> Arrays:
        """The counts or codes of predictions of a run, by split and name."""
        stored, start = where.head.parts[part], where.start(part)
        return _block(self.path, self._stamp, start, stored, part).arrays(where.place)

    def _rest(self, where: Place) -> list[Any]:
        data = _read(self.path, where.start("rest"), where.head.parts["rest"])
        try:
            return msgspec.json.decode(data, type=list[Any])
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise DamageError(f"rest: {error}") from None

    def _whole(self, where: Place, rest: Any, level: int = SMALLEST) -> Tree:
        entry = where.head.runs[where.place]
        if not isinstance(rest, dict):
            raise DamageError("a record is no JSON object")
        try:
            predictions = self.arrays(where, "predictions")
            tree = packing.whole(rest, self.arrays(where, "counts"), predictions, level)
            same = packing.content(tree, predictions) == entry.content
        except (KeyError, TypeError, AttributeError) as error:
            raise DamageError(f"not a record: {error!r}") from None
        if not same or tree.get("run_id") != entry.run_id:
            raise DamageError("its digest is not that of its content")
        return tree


def _walk(file: IO[bytes], size: int) -> Iterator[tuple[int, Head] | str]:
    """Offset of the parts and head of each block, or a line on damaged bytes."""
    at = len(MAGIC) if file.read(len(MAGIC)) == MAGIC else 0
    while at < size:
        block = _head(file, at)
        if block is None:
            following = _next_mark(file, at + 1, size)
            yield f"bytes {at:,} to {following:,} are damaged"
            at = following
            continue
        length, head = block
        start = at + _FIXED + length
        yield start, head
        at = start + sum(part.size for part in head.parts.values())


def _head(file: IO[bytes], at: int) -> tuple[int, Head] | None:
    """The head of the block that begins there, with its size; None if none does."""
    file.seek(at)
    fixed = file.read(_FIXED)
    length = int.from_bytes(fixed[len(MARK) : len(MARK) + 4], "little")
    if not fixed.startswith(MARK) or length > _LARGEST_HEAD:
        return None
    data = file.read(length)
    if hashlib.sha256(data).digest() != fixed[-_HASH:]:
        return None
    try:
        head = msgspec.json.decode(data, type=Head)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return (length, head) if set(head.parts) == set(PARTS) else None


def _next_mark(file: IO[bytes], start: int, size: int) -> int:
    """Where the next block begins; the size of the file if there is none."""
    while start < size:
        file.seek(start)
        place = file.read(_STEP + len(MARK)).find(MARK)
        if place >= 0:
            return start + place
        start += _STEP
    return size


def _read(path: Path, start: int, stored: _Stored) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        data = file.read(stored.size)
    if hashlib.sha256(data).hexdigest() != stored.sha256:
        raise DamageError("a part of its block is damaged")
    return packing.inflated(data, stored.raw)


def _block(
    path: Path, stamp: tuple[int, int, int], start: int, stored: _Stored, part: Part
) -> Block:
    """A part of one of the blocks that were read last. stamp: of their file."""
    read = _small_block if stored.raw <= _SMALL_PART else _large_block
    return read(path, stamp, start, stored, part)


@lru_cache(maxsize=128)
def _small_block(path: Path, _stamp: object, start: int, stored: _Stored, part: Part) -> Block:
    return Block(_read(path, start, stored), part)


@lru_cache(maxsize=4)
def _large_block(path: Path, _stamp: object, start: int, stored: _Stored, part: Part) -> Block:
    return Block(_read(path, start, stored), part)


class UnfitError(ValueError):
    """Records that a block cannot have; places: which ones."""

    def __init__(self, reason: str, places: Sequence[int]) -> None:
        super().__init__(reason)
        self.places = frozenset(places)


def block(trees: Sequence[Tree]) -> bytes:
    """A block with these records; UnfitError if some would not come back the same."""
    raw = packing.parts_of(trees)
    if max(map(len, raw.values())) > LARGEST_PART:
        raise UnfitError("too large to be packed", range(len(trees)))
    entries = _entries(trees, raw)
    packed = {part: packing.deflated(raw[part]) for part in PARTS}
    stored = {
        part: _Stored(len(packed[part]), len(raw[part]), hashlib.sha256(packed[part]).hexdigest())
        for part in PARTS
    }
    head = msgspec.json.encode(Head(entries, stored))
    fixed = [MARK, len(head).to_bytes(4, "little"), hashlib.sha256(head).digest()]
    return b"".join([*fixed, head, *packed.values()])


def _entries(trees: Sequence[Tree], raw: dict[Part, bytes]) -> list[Entry]:
    """The entries of a block; UnfitError if counts would not come back the same."""
    codes, counts = (Block(raw[part], part) for part in ("predictions", "counts"))
    entries, unfit = [], []
    for i, (tree, rest) in enumerate(zip(trees, msgspec.json.decode(raw["rest"]), strict=True)):
        content = packing.content(tree, codes.arrays(i))
        again = packing.whole(rest, counts.arrays(i), {})
        ours, theirs = ({**each, "predictions": {}} for each in (again, tree))
        if packing.content(ours, {}) != packing.content(theirs, {}):
            unfit.append(i)
        entries.append(Entry(tree["run_id"], tree["created"], content))
    if unfit:
        raise UnfitError("would not come back the same", unfit)
    return entries


def name_of(data: bytes) -> str:
    """The name of a segment with this content."""
    return hashlib.sha256(data).hexdigest()[:32] + SUFFIX
