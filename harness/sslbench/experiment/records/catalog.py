"""The records of a store by its index, whether they have a file of their own or are packed."""

from __future__ import annotations

import os
import sqlite3
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from sslbench.engine.errors import UserError
from sslbench.experiment.records.index import (
    DAMAGED,
    Content,
    Index,
    Row,
    Unread,
    chunks,
    discard,
    index_of,
)
from sslbench.experiment.records.packing import DamageError
from sslbench.experiment.records.predictions import STORED, Predictions
from sslbench.experiment.records.reading import (
    RECORD,
    StoreWarning,
    checked,
    content_of,
    decode_tree,
    from_summary,
    listed,
    read_record_file,
    stamp_of,
)
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.segment import SUFFIX, Segment

SEGMENTS = "segments"
_AT_ONCE = 500  # records that are decoded at a time
T = TypeVar("T")


class _Fields(msgspec.Struct):
    """The fields of a record that its summary lacks."""

    counts: dict[str, dict[str, list[int]]] = {}
    predictions: dict[str, Predictions] = {}


class Catalog:
    """The records of a folder.

    Of several records of a run, that of a file of its own counts, then the newest.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index: Index | None = None
        self._segments: dict[str, tuple[str, Segment]] = {}

    def records(self, run_ids: Collection[str] | None = None) -> list[RunRecord]:
        """The readable records of these runs, or all, sorted by run id.

        Counts and predictions are read from the files when they are asked for. Warnings name
        damaged files. UserError if the folder cannot be read; without the folder, there are none.
        """
        return self._ask(partial(self._rows, run_ids))

    def each(self) -> Iterator[RunRecord]:
        """Yield all of `records`, of which few are in memory at a time."""
        run_ids = self._ask(Index.run_ids)
        for chunk in chunks(run_ids, _AT_ONCE):
            yield from self._ask(partial(self._rows, chunk), refresh=False)

    def _rows(self, run_ids: Collection[str] | None, index: Index) -> list[RunRecord]:
        return [from_summary(row.data, partial(self._field, row)) for row in index.rows(run_ids)]

    def newest(self, keys: Collection[str], by_text: bool) -> dict[str, RunRecord]:
        """The newest record of each key (see `spec_key`) that has one."""

        def answer(index: Index) -> dict[str, RunRecord]:
            run_ids = index.newest(keys, by_text)
            records = {record.run_id: record for record in self._rows(run_ids.values(), index)}
            return {key: records[run_id] for key, run_id in run_ids.items()}

        return self._ask(answer)

    def training_cpu_s(self, key: str) -> list[float]:
        """CPU seconds of a training, of each run with this key (see `cost_keys`)."""
        return self._ask(lambda index: index.training_cpu_s(key), refresh=False)

    def has_dev(self, dataset: str) -> bool | None:
        """Whether the dataset had a development split in the newest run; None without a run."""
        return self._ask(lambda index: index.has_dev(dataset), refresh=False)

    def packed_ids(self) -> set[str]:
        """The runs of the segments."""
        return {run_id for segment in self.segments() for run_id in segment.places}

    def load_packed(self, run_id: str) -> RunRecord | None:
        """The newest packed record of a run that is whole; warnings name damaged ones."""
        segments = [segment for segment in self.segments() if run_id in segment.places]
        segments.sort(key=lambda segment: segment.age(run_id), reverse=True)
        for segment in segments:
            try:
                return checked(segment.tree(run_id))
            except (DamageError, UserError, OSError) as error:
                line = f"{segment.path}: run {run_id}: {error}; ignored"
                warnings.warn(line, StoreWarning, stacklevel=3)
        return None

    def segments(self) -> list[Segment]:
        """The segments that can be opened, by name."""
        before, self._segments = self._segments, {}
        for name, stamp in listed(self.folder / SEGMENTS, SUFFIX).items():
            with suppress(OSError):
                read = before.get(name)
                if read is None or read[0] != stamp:
                    read = stamp, Segment(self.folder / SEGMENTS / name)
                self._segments[name] = read
        return [segment for _, segment in self._segments.values()]

    def _ask(self, question: Callable[[Index], T], *, refresh: bool = True) -> T:
        """The answer of the index; a damaged one is made again."""
        try:
            return question(self._opened(refresh))
        except DAMAGED as error:
            if self._index is not None:
                self._index.close()
                if not isinstance(error, sqlite3.OperationalError):  # as of a full disk
                    discard(self._index.path)
                self._index = None
            return question(self._opened(refresh))

    def _opened(self, refresh: bool) -> Index:
        if self._index is not None and not refresh:
            return self._index
        stamps = listed(self.folder, RECORD) | {
            f"{SEGMENTS}/{name}": stamp
            for name, stamp in listed(self.folder / SEGMENTS, SUFFIX).items()
        }
        if self._index is None:
            self._index = index_of(self.folder, stamps, self._contents)
        else:
            self._index.refresh(stamps, self._contents)
        for name, line in self._index.problems() if refresh else ():
            warnings.warn(f"{self.folder / name}: {line}; ignored", StoreWarning, stacklevel=5)
        return self._index

    def _contents(self, name: str) -> Iterator[Content]:
        """The records of a file as plain values and checked, or a line for what is damaged."""
        path = self.folder / name
        try:
            if name.endswith(RECORD):
                tree = decode_tree(content_of(path))
                record = checked(tree)
                if record.run_id != path.stem:
                    raise UserError(f"holds the record of run {record.run_id}")
                yield tree, record
            else:
                yield from _unpacked(Segment(path))
        except UserError as error:
            yield error.message
        except OSError as error:
            yield Unread(error.strerror or str(error))

    def _field(self, row: Row, name: str) -> Mapping[str, Any]:
        """The counts or predictions of a record, from the file that the index has read."""
        with suppress(OSError, DamageError, msgspec.MsgspecError, KeyError):
            if row.name.endswith(RECORD):
                return self._own_field(row, name)
            if name == "counts":
                segment = self._segment(row.name)
                arrays = segment.arrays(segment.places[row.run_id], "counts")
                return {s: {n: a.tolist() for n, a in each.items()} for s, each in arrays.items()}
        path = self.folder / f"{row.run_id}{RECORD}"
        whole = read_record_file(path) if os.path.lexists(path) else self.load_packed(row.run_id)
        if whole is None:
            raise UserError(f"the record of run {row.run_id} is gone", file=self.folder)
        return cast(Mapping[str, Any], getattr(whole, name))

    def _own_field(self, row: Row, name: str) -> Mapping[str, Any]:
        with (self.folder / row.name).open("rb") as file:
            if stamp_of(os.fstat(file.fileno())) != row.stamp:
                raise DamageError("the file has changed")
            fields = msgspec.json.decode(file.read(), type=_Fields)
        return cast(Mapping[str, Any], getattr(fields, name))

    def _segment(self, name: str) -> Segment:
        short = name.rpartition("/")[2]
        if short not in self._segments:
            self.segments()
        return self._segments[short][1]


def _unpacked(segment: Segment) -> Iterator[Content]:
    """All records of a segment, or a line for each that is damaged."""
    yield from segment.problems
    for offset, head in segment.blocks:
        for entry, tree in segment.trees(offset, head, STORED):
            try:
                if isinstance(tree, DamageError):
                    raise tree
                yield tree, checked(tree)
            except (UserError, DamageError) as error:
                yield f"run {entry.run_id}: {error}"
