"""Packing: finished records of a store go from a file each into segments.

A segment is written under a temporary name, flushed to disk and renamed. It is then read back, and
a file is removed only if the record in the segment is equal to it. A process that is killed at any
moment leaves a record in its file, in a segment, or in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sslbench.engine.errors import UserError
from sslbench.engine.files.atomic import write_atomically
from sslbench.engine.files.locks import lock_file
from sslbench.experiment.records import segment as segments
from sslbench.experiment.records.catalog import SEGMENTS
from sslbench.experiment.records.claims import Claims
from sslbench.experiment.records.packing import DamageError, Tree
from sslbench.experiment.records.reading import RECORD, checked, content_of, decode_tree, listed
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.segment import RUNS, Segment
from sslbench.experiment.records.store import Store

#: bytes after which a new segment begins
SEGMENT_BYTES = 2**26
#: bytes of the files of a block
BLOCK_BYTES = 2**27


@dataclass
class Packed:
    """The result of packing.

    Attributes
    ----------
    records: how many are in segments now and no longer in a file each.
    segments: the new files.
    before, after: bytes of the files that were removed, and of the new segments.
    left: files that stay, and why.
    """

    records: int = 0
    segments: list[Path] = field(default_factory=list)
    before: int = 0
    after: int = 0
    left: list[str] = field(default_factory=list)


def pack(store: Store) -> Packed:
    """Pack the records that have a file each; damaged ones stay where they are.

    Another process that packs the same store is waited for. UserError if the store cannot be
    written.
    """
    store.probe()
    result = Packed()
    with _alone(store.folder / SEGMENTS), Claims(store.folder / "claims") as claims:
        _remove_packed(store, claims, result)
        blocks: list[bytes] = []
        for paths in _groups(store, result):
            block = _block(paths, result)
            if sum(map(len, blocks)) + len(block) > SEGMENT_BYTES and blocks:
                _write(store, claims, blocks, result)
                blocks = []
            blocks.append(block)
        if any(blocks):
            _write(store, claims, blocks, result)
    return result


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time, where the file system has locks; two would only pack twice."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("ab") as file:
        with suppress(OSError):
            lock_file(file)
        yield


def _groups(store: Store, result: Packed) -> Iterator[list[Path]]:
    """The files of each block: runs on one text, those with the same labeled sample together."""
    packed = _newest_packed(store)
    loose = [name.removesuffix(RECORD) for name in listed(store.folder, RECORD)]
    group: list[Path] = []
    text, size = "", 0
    for record in sorted(store.records(loose), key=_order):
        path = store.path(record.run_id)
        if not path.exists():
            continue
        if record.run_id in packed and packed[record.run_id] >= record.created:
            result.left.append(f"{path.name}: another record of this run is packed, no older one")
            continue
        more, same = path.stat().st_size, _text(record) == text
        if group and (not same or len(group) == RUNS or size + more > BLOCK_BYTES):
            yield group
            group, size = [], 0
        group.append(path)
        text, size = _text(record), size + more
    if group:
        yield group


def _newest_packed(store: Store) -> dict[str, str]:
    """When the newest packed record of each run was made."""
    newest: dict[str, str] = {}
    for segment in store.segments():
        for run_id in segment.places:
            newest[run_id] = max(newest.get(run_id, ""), segment.age(run_id)[0])
    return newest


def _text(record: RunRecord) -> str:
    return str(record.data.get("test_sha256"))


def _order(record: RunRecord) -> tuple[str, ...]:
    protocol = record.spec.protocol
    sample = (str(protocol.labeled), f"{protocol.seed:020}")
    return (_text(record), *sample, record.method, record.run_id)


def _block(paths: Sequence[Path], result: Packed) -> bytes:
    """A block with the records of these files; b"" if there is none that comes back the same."""
    trees = [tree for path in paths if (tree := _tree(path)) is not None]
    while trees:
        try:
            return segments.block(trees)
        except segments.UnfitError as error:
            unfit = error.places
            result.left += [f"{trees[i]['run_id']}{RECORD}: {error}" for i in unfit]
            trees = [tree for i, tree in enumerate(trees) if i not in unfit]
    return b""


def _tree(path: Path) -> Tree | None:
    """A record as plain values; None if it is damaged or gone."""
    try:
        tree = decode_tree(content_of(path))
        return tree if checked(tree).run_id == path.stem else None
    except (UserError, OSError):
        return None


def _write(store: Store, claims: Claims, blocks: Sequence[bytes], result: Packed) -> None:
    """Write a segment, and remove the files of its records."""
    data = b"".join([segments.MAGIC, *blocks])
    path = store.folder / SEGMENTS / segments.name_of(data)
    write_atomically(path, data)
    result.segments.append(path)
    result.after += len(data)
    _remove(store, claims, Segment(path), result)


def _remove_packed(store: Store, claims: Claims, result: Packed) -> None:
    """Remove files whose records are packed: a process was killed before it could."""
    loose = {name.removesuffix(RECORD) for name in listed(store.folder, RECORD)}
    for segment in store.segments():
        if loose & segment.places.keys():
            _remove(store, claims, segment, result)


def _remove(store: Store, claims: Claims, segment: Segment, result: Packed) -> None:
    """Remove the files that are equal to records of the segment, as it is on the disk."""
    for offset, head in segment.blocks:
        if not any(store.path(entry.run_id).exists() for entry in head.runs):
            continue
        for entry, packed in segment.trees(offset, head):
            path = store.path(entry.run_id)
            # A run that is being executed again will be stored in this file.
            if isinstance(packed, DamageError) or not claims.claim(entry.run_id):
                continue
            with suppress(UserError, OSError):
                data = content_of(path)
                if _same(decode_tree(data), packed):
                    path.unlink()
                    result.records += 1
                    result.before += len(data)
            claims.release(entry.run_id)


def _same(one: Tree, other: Tree) -> bool:
    """Whether two records are equal, types of numbers and digest included."""
    first, second = (msgspec.json.encode(tree, order="sorted") for tree in (one, other))
    return first == second
