"""The index of a store: what tables, states and prices need of each record, in SQLite.

It is derived: whatever happens to it, it is made again from the records. A file is read and
checked once, and recognized afterwards by name, size, times and inode. The index is a file of the
store or, where that cannot be written, of the cache.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sslbench.engine.files.folders import cache_folder
from sslbench.experiment.records.cost import cost_keys, has_dev, training_cpu_s
from sslbench.experiment.records.packing import DamageError
from sslbench.experiment.records.reading import summary
from sslbench.experiment.records.record import RunRecord, spec_key

NAME = "index.sqlite"
#: columns of a run that its record gives
_OF_RECORD = (
    "run_id TEXT NOT NULL, created TEXT NOT NULL, digest TEXT NOT NULL, key TEXT NOT NULL,"
    " text_key TEXT NOT NULL, dataset TEXT NOT NULL, has_dev INTEGER, cost0 TEXT NOT NULL,"
    " cost1 TEXT NOT NULL, cost2 TEXT NOT NULL, cpu_s REAL"
)
_SCHEMA = (
    "CREATE TABLE files (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, stamp TEXT NOT NULL,"
    " problems TEXT NOT NULL, packed INTEGER NOT NULL)",
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, file INTEGER NOT NULL, best INTEGER NOT NULL,"
    f" packed INTEGER NOT NULL, {_OF_RECORD})",
    "CREATE TABLE summaries (id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL, data BLOB NOT NULL)",
    "CREATE INDEX by_run ON runs (run_id, packed, created, digest, best)",
    "CREATE INDEX by_file ON runs (file)",
    "CREATE INDEX by_key ON runs (key, best, created, run_id)",
    "CREATE INDEX by_text_key ON runs (text_key, best, created, run_id)",
    "CREATE INDEX by_dataset ON runs (dataset, created, best, has_dev)",
    *(f"CREATE INDEX by_cost{i} ON runs (cost{i}, best, cpu_s)" for i in range(3)),
)
#: in the header of the file: "sslb", and the version of what is in it
_PRAGMAS = {"application_id": 0x73736C62, "user_version": 3}
_WAIT_SECONDS = 60.0
#: a file that was changed so shortly before it was read may change again within the same tick
_SETTLED_NS = 10**9
_FILES = 256  # of a transaction
_NAMES = 500  # of a query
#: errors of an index that is damaged (sqlite3.OperationalError: or cannot be written)
DAMAGED = (sqlite3.DatabaseError, DamageError, UnicodeError)


class Unread(str):
    """A line on a file that could not be read: it is read again the next time."""


#: a record as plain values and checked, or a line on one that is damaged
Content = tuple[Mapping[str, Any], RunRecord] | str
Read = Callable[[str], Iterable[Content]]
#: the values of `_OF_RECORD` and the summary of a record
_Entry = tuple[tuple[str | float | None, ...], bytes]


class Row(NamedTuple):
    """A record in the index.

    name: path of its file, relative to the store.  stamp: that of this file.  data: see `summary`.
    """

    run_id: str
    name: str
    stamp: str
    data: bytes


def index_of(folder: Path, stamps: Mapping[str, str], read: Read) -> Index:
    """The index of a store, with its files as they are now.

    stamps: stamps of the files by name, relative to the folder.
    read: gives the contents of a file.
    """
    for path in _places(folder) if stamps else ():
        for _ in range(2):
            index = None
            try:
                index = Index(path)
                index.refresh(stamps, read)
                return index
            except DAMAGED as error:
                if index is not None:
                    index.close()
                if isinstance(error, sqlite3.OperationalError):
                    break  # it cannot be written here
                discard(path)
    index = Index(None)
    index.refresh(stamps, read)
    return index


def _places(folder: Path) -> list[Path]:
    number = hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:16]
    return [folder / NAME, cache_folder() / "indexes" / f"{number}.sqlite"]


def discard(path: Path | None) -> None:
    """Remove a damaged index, if it is in a file."""
    for name in (path, path.with_name(f"{path.name}-journal")) if path else ():
        with suppress(OSError):
            name.unlink(missing_ok=True)


class Index:
    """An index in a file, or in memory (path None).

    sqlite3.OperationalError where it cannot be read or written, another sqlite3.DatabaseError or
    DamageError if it is damaged.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._looked = False
        if path is not None and not os.path.exists(path.parent):
            with suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(
            ":memory:" if path is None else path, timeout=_WAIT_SECONDS, isolation_level=None
        )
        # A damaged stamp is that of no file; names are bytes, since not all of them are UTF-8.
        self._base.text_factory = partial(str, encoding="utf-8", errors="replace")
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def _check(self) -> None:
        """Make the tables of a new index; sqlite3.DatabaseError if it is no index."""
        self._base.execute("PRAGMA trusted_schema = OFF")
        self._base.execute("PRAGMA synchronous = NORMAL")
        if not self._schema():
            with self._writing():
                if not self._schema():
                    for statement in _SCHEMA:
                        self._base.execute(statement)
                    for name, value in _PRAGMAS.items():
                        self._base.execute(f"PRAGMA {name} = {value}")
        values = {n: self._base.execute(f"PRAGMA {n}").fetchone()[0] for n in _PRAGMAS}
        if self._schema() != list(_SCHEMA) or values != _PRAGMAS:
            raise sqlite3.DatabaseError("another index")

    def _look(self) -> None:
        """sqlite3.DatabaseError if rows are lost: asked where one is not there, or for all.

        It reads the whole table, and is done once.
        """
        if not self._looked:
            if self._base.execute("PRAGMA integrity_check(runs)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("damaged")
            self._looked = True

    def _schema(self) -> list[str]:
        return self._first_column("SELECT sql FROM sqlite_master WHERE sql NOT NULL")

    def _first_column(self, query: str, *values: object) -> list[Any]:
        return [row[0] for row in self._base.execute(query, values)]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._base.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._base.execute("ROLLBACK")
            raise

    def refresh(self, stamps: Mapping[str, str], read: Read) -> None:
        """Read the files that are new or have changed, and forget those that are gone."""
        rows = self._base.execute("SELECT name, stamp FROM files")
        before = {os.fsdecode(name): stamp for name, stamp in rows}
        gone = [name for name in before if name not in stamps]
        changed = [name for name, stamp in stamps.items() if before.get(name) != stamp]
        for names in chunks(gone, _FILES):
            with self._writing():
                self._forget(names)
        for names in chunks(changed, _FILES):
            files = [_file(n, stamps[n], list(_entries(read(n)))) for n in names]
            with self._writing():
                self._forget(names)
                for file in files:
                    self._add(*file)

    def _forget(self, names: Sequence[str]) -> None:
        for name in names:
            for file in self._first_column(
                "SELECT id FROM files WHERE name = ?", os.fsencode(name)
            ):
                run_ids = self._first_column("SELECT run_id FROM runs WHERE file = ?", file)
                for statement in (
                    "DELETE FROM summaries WHERE id IN (SELECT id FROM runs WHERE file = ?)",
                    "DELETE FROM runs WHERE file = ?",
                    "DELETE FROM files WHERE id = ?",
                ):
                    self._base.execute(statement, (file,))
                self._choose(run_ids)

    def _add(self, name: str, stamp: str, entries: Sequence[_Entry | str]) -> None:
        packed = not name.endswith(".json")
        problems = [str(entry) for entry in entries if isinstance(entry, str)]
        file = self._base.execute(
            "INSERT INTO files (name, stamp, problems, packed) VALUES (?, ?, ?, ?)",
            (os.fsencode(name), stamp, msgspec.json.encode(problems).decode(), packed),
        ).lastrowid
        run_ids = []
        for columns, data in (entry for entry in entries if not isinstance(entry, str)):
            row = (None, file, 0, packed, *columns)
            number = self._base.execute(f"INSERT INTO runs VALUES ({_marks(row)})", row).lastrowid
            run_ids.append(str(columns[0]))
            digest = _sha256(run_ids[-1], data)
            self._base.execute("INSERT INTO summaries VALUES (?, ?, ?)", (number, digest, data))
        self._choose(run_ids)

    def _choose(self, run_ids: Iterable[str]) -> None:
        """Mark the record of each run that counts: that of a file of its own, then the newest."""
        self._base.executemany(
            "UPDATE runs SET best = (id = (SELECT id FROM runs WHERE run_id = ?"
            " ORDER BY packed, created DESC, digest DESC LIMIT 1)) WHERE run_id = ?",
            ((run_id, run_id) for run_id in run_ids),
        )

    def problems(self) -> list[tuple[str, str]]:
        """Damaged files by name, a line for each damage."""
        files = self._base.execute("SELECT name, problems FROM files WHERE problems != '[]'")
        try:
            return [
                (os.fsdecode(name), line)
                for name, lines in sorted(files)
                for line in msgspec.json.decode(lines, type=list[str])
            ]
        except msgspec.MsgspecError as error:
            raise DamageError(f"problems: {error}") from None

    def run_ids(self) -> list[str]:
        """The runs that have a record, ascending."""
        self._look()
        return self._first_column("SELECT run_id FROM runs WHERE best = 1 ORDER BY run_id")

    def rows(self, run_ids: Collection[str] | None = None) -> list[Row]:
        """The records of these runs, or all, by run id."""
        if run_ids is None:
            self._look()
            return self._rows("", ())
        asked = sorted({run_id for run_id in run_ids if run_id.isascii()})  # others are no runs
        rows = [
            row
            for chunk in chunks(asked, _NAMES)
            for row in self._rows(f"AND runs.run_id IN ({_marks(chunk)})", chunk)
        ]
        if len(rows) < len(asked):
            self._look()
        return rows

    def _rows(self, condition: str, values: Sequence[object]) -> list[Row]:
        selected = self._base.execute(
            "SELECT runs.run_id, files.name, files.stamp, summaries.data, summaries.sha256"
            " FROM runs JOIN files ON files.id = runs.file JOIN summaries ON"
            f" summaries.id = runs.id WHERE runs.best = 1 {condition} ORDER BY runs.run_id",
            values,
        )
        rows = []
        for run_id, name, *rest, sha256 in selected:
            rows.append(Row(run_id, os.fsdecode(name), *rest))
            if _sha256(rows[-1].run_id, rows[-1].data) != sha256:
                raise DamageError("a summary is damaged")
        return rows

    def newest(self, keys: Collection[str], by_text: bool) -> dict[str, str]:
        """The run id of the newest record of each key that has one, see `spec_key`."""
        column = "text_key" if by_text else "key"
        newest: dict[str, str] = {}
        asked = sorted(set(keys))
        for chunk in chunks(asked, _NAMES):
            newest |= dict(
                self._base.execute(
                    f"SELECT {column}, run_id FROM runs WHERE best = 1 AND {column} IN"
                    f" ({_marks(chunk)}) ORDER BY created, run_id",
                    chunk,
                )
            )
        if len(newest) < len(asked):
            self._look()
        return newest

    def training_cpu_s(self, key: str) -> list[float]:
        """CPU seconds of a training, of each run with this key (see `cost_keys`)."""
        for column in ("cost0", "cost1", "cost2"):
            query = f"SELECT cpu_s FROM runs WHERE {column} = ? AND best = 1 AND cpu_s NOT NULL"
            if seconds := self._first_column(query, key):
                return seconds
        return []

    def has_dev(self, dataset: str) -> bool | None:
        """Whether the newest run on the dataset had a development split; None without one."""
        newest = self._first_column(
            "SELECT has_dev FROM runs WHERE dataset = ? AND best = 1 AND has_dev NOT NULL"
            " ORDER BY created DESC LIMIT 1",
            dataset,
        )
        return bool(newest[0]) if newest else None


def _columns(record: RunRecord) -> tuple[str | float | None, ...]:
    """The values of `_OF_RECORD`."""
    spec, seconds = record.spec, training_cpu_s(record)
    return (
        record.run_id,
        record.created,
        record.digest,
        spec_key(spec, by_text=False),
        spec_key(spec, by_text=True),
        spec.dataset,
        None if seconds is None else has_dev(record),
        *cost_keys(spec),
        seconds,
    )


def _entries(contents: Iterable[Content]) -> Iterator[_Entry | str]:
    for each in contents:
        yield each if isinstance(each, str) else (_columns(each[1]), summary(each[0]))


def _file(
    name: str, stamp: str, entries: list[_Entry | str]
) -> tuple[str, str, list[_Entry | str]]:
    """Return name, stamp and entries of a file, as the index stores them.

    The stamp is "" if the file has to be read again: it may still change without another stamp, or
    it could not be read.
    """
    changed = int(stamp.split()[2])
    young = abs(time.time_ns() - changed) < _SETTLED_NS and name.endswith(".json")
    again = young or any(isinstance(entry, Unread) for entry in entries)
    return name, "" if again else stamp, entries


def _sha256(run_id: str, data: bytes) -> str:
    return hashlib.sha256(f"{run_id} ".encode() + data).hexdigest()


def chunks(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Yield the names in parts of this size; the last one may be smaller."""
    for first in range(0, len(names), size):
        yield names[first : first + size]


def _marks(names: Sequence[object]) -> str:
    return ", ".join("?" * len(names))
