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
from sslbench.experiment.records.record import RunRecord, spec_key
from sslbench.experiment.records.summary import summary

NAME = "index.sqlite"
_SCHEMA = (
    "CREATE TABLE files (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL,"
    " problems TEXT NOT NULL, packed INTEGER NOT NULL)",
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, run_id TEXT NOT NULL, file INTEGER NOT NULL,"
    " best INTEGER NOT NULL, packed INTEGER NOT NULL, created TEXT NOT NULL, digest TEXT NOT NULL,"
    " key TEXT NOT NULL, text_key TEXT NOT NULL, dataset TEXT NOT NULL, has_dev INTEGER,"
    " cost0 TEXT NOT NULL, cost1 TEXT NOT NULL, cost2 TEXT NOT NULL, cpu_s REAL)",
    "CREATE TABLE summaries (id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL, data BLOB NOT NULL)",
    "CREATE INDEX by_run ON runs (run_id, packed, created, digest, best)",
    "CREATE INDEX by_file ON runs (file)",
    "CREATE INDEX by_key ON runs (key, best, created, run_id)",
    "CREATE INDEX by_text_key ON runs (text_key, best, created, run_id)",
    "CREATE INDEX by_dataset ON runs (dataset, created, best, has_dev)",
    "CREATE INDEX by_cost0 ON runs (cost0, best, cpu_s)",
    "CREATE INDEX by_cost1 ON runs (cost1, best, cpu_s)",
    "CREATE INDEX by_cost2 ON runs (cost2, best, cpu_s)",
)
#: in the header of the file: "sslb", and the version of what is in it
_APPLICATION, _VERSION = 0x73736C62, 1
_WAIT_SECONDS = 60.0
#: a file that was changed so shortly before it was read may change again within the same tick
_SETTLED_NS = 10**9
_FILES = 256  # of a transaction
_NAMES = 500  # of a query
#: errors of an index that is damaged (sqlite3.OperationalError: or cannot be written)
DAMAGED = (sqlite3.DatabaseError, DamageError, UnicodeError)

Read = Callable[[str], Iterable[tuple[Mapping[str, Any], RunRecord] | str]]


class Row(NamedTuple):
    """A record as the index has it.

    name, stamp: of its file, relative to the store.  data: see `summary`.
    """

    run_id: str
    name: str
    stamp: str
    data: bytes


def index_of(folder: Path, stamps: Mapping[str, str], read: Read) -> Index:
    """The index of a store, with its files as they are now.

    stamps: of the files by name, relative to the folder.  read: the records of a file, as plain
    values and checked; a line for each that is damaged.
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
        if path is not None and not path.parent.exists():
            with suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(
            ":memory:" if path is None else path, timeout=_WAIT_SECONDS, isolation_level=None
        )
        # A damaged name or stamp is that of no file.
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
                    self._base.execute(f"PRAGMA application_id = {_APPLICATION}")
                    self._base.execute(f"PRAGMA user_version = {_VERSION}")
        ids = [self._base.execute(f"PRAGMA {name}").fetchone()[0] for name in _PRAGMAS]
        if self._schema() != list(_SCHEMA) or ids != [_APPLICATION, _VERSION]:
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
        found = self._base.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL")
        return [sql for (sql,) in found]

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
        known = dict(self._base.execute("SELECT name, stamp FROM files"))
        gone = [name for name in known if name not in stamps]
        changed = [name for name, stamp in stamps.items() if known.get(name) != stamp]
        for names in chunks(gone, _FILES):
            with self._writing():
                self._forget(names)
        for names in chunks(changed, _FILES):
            rows = [(name, _settled(name, stamps[name]), *_read(read, name)) for name in names]
            with self._writing():
                self._forget(names)
                for name, stamp, found, problems in rows:
                    self._add(name, stamp, found, problems)

    def _forget(self, names: Sequence[str]) -> None:
        base = self._base
        for name in names:
            found = base.execute("SELECT id FROM files WHERE name = ?", (name,)).fetchone()
            if found is not None:
                runs = base.execute("SELECT id, run_id FROM runs WHERE file = ?", found).fetchall()
                for number, _ in runs:
                    base.execute("DELETE FROM summaries WHERE id = ?", (number,))
                base.execute("DELETE FROM runs WHERE file = ?", found)
                base.execute("DELETE FROM files WHERE id = ?", found)
                self._choose(run_id for _, run_id in runs)

    def _add(self, name: str, stamp: str, found: Sequence[_Found], problems: Sequence[str]) -> None:
        base, packed = self._base, not name.endswith(".json")
        file = base.execute(
            "INSERT INTO files (name, stamp, problems, packed) VALUES (?, ?, ?, ?)",
            (name, stamp, msgspec.json.encode(problems).decode(), packed),
        ).lastrowid
        for each in found:
            number = base.execute(
                "INSERT INTO runs (file, best, packed, run_id, created, digest, key, text_key,"
                " dataset, has_dev, cost0, cost1, cost2, cpu_s)"
                " VALUES (?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (file, packed, *each.columns),
            ).lastrowid
            base.execute(
                "INSERT INTO summaries (id, sha256, data) VALUES (?, ?, ?)",
                (number, _sha256(each.columns[0], each.data), each.data),
            )
        self._choose(str(each.columns[0]) for each in found)

    def _choose(self, run_ids: Iterable[str]) -> None:
        """Mark the record of each run that counts: that of a file of its own, then the newest."""
        self._base.executemany(
            "UPDATE runs SET best = (id = (SELECT id FROM runs WHERE run_id = ?"
            " ORDER BY packed, created DESC, digest DESC LIMIT 1)) WHERE run_id = ?",
            ((run_id, run_id) for run_id in run_ids),
        )

    def problems(self) -> list[tuple[str, str]]:
        """Damaged files by name, a line for each damage."""
        found = self._base.execute("SELECT name, problems FROM files WHERE problems != '[]'")
        try:
            return [
                (name, line)
                for name, lines in sorted(found)
                for line in msgspec.json.decode(lines, type=list[str])
            ]
        except msgspec.MsgspecError as error:
            raise DamageError(f"problems: {error}") from None

    def run_ids(self) -> list[str]:
        """The runs that have a record, ascending."""
        self._look()
        found = self._base.execute("SELECT run_id FROM runs WHERE best = 1 ORDER BY run_id")
        return [run_id for (run_id,) in found]

    def rows(self, run_ids: Collection[str] | None = None) -> list[Row]:
        """The records of these runs, or all, by run id."""
        if run_ids is None:
            self._look()
            return self._rows("runs.best = 1", ())
        asked = sorted(set(run_ids))
        found = [
            row
            for chunk in chunks(asked, _NAMES)
            for row in self._rows(f"runs.best = 1 AND runs.run_id IN ({_marks(chunk)})", chunk)
        ]
        if len(found) < len(asked):
            self._look()
        return found

    def _rows(self, condition: str, values: Sequence[object]) -> list[Row]:
        found = self._base.execute(
            "SELECT runs.run_id, files.name, files.stamp, summaries.data, summaries.sha256"
            " FROM runs JOIN files ON files.id = runs.file JOIN summaries ON"
            f" summaries.id = runs.id WHERE {condition} ORDER BY runs.run_id",
            values,
        )
        rows = []
        for run_id, name, stamp, data, sha256 in found:
            if _sha256(run_id, data) != sha256:
                raise DamageError("a summary is damaged")
            rows.append(Row(run_id, name, stamp, data))
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
            found = self._base.execute(
                f"SELECT cpu_s FROM runs WHERE {column} = ? AND best = 1 AND cpu_s NOT NULL", (key,)
            ).fetchall()
            if found:
                return [seconds for (seconds,) in found]
        return []

    def has_dev(self, dataset: str) -> bool | None:
        """Whether the newest run on the dataset had a development split; None without one."""
        found = self._base.execute(
            "SELECT has_dev FROM runs WHERE dataset = ? AND best = 1 AND has_dev NOT NULL"
            " ORDER BY created DESC LIMIT 1",
            (dataset,),
        ).fetchone()
        return None if found is None else bool(found[0])


_PRAGMAS = ("application_id", "user_version")


class _Found(NamedTuple):
    """The columns of a run from `run_id` on, and its summary."""

    columns: tuple[object, ...]
    data: bytes


def _read(read: Read, name: str) -> tuple[list[_Found], list[str]]:
    found, problems = [], []
    for each in read(name):
        if isinstance(each, str):
            problems.append(each)
        else:
            found.append(_columns(*each))
    return found, problems


def _columns(tree: Mapping[str, Any], record: RunRecord) -> _Found:
    spec, seconds = record.spec, training_cpu_s(record)
    columns = (
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
    return _Found(columns, summary(tree))


def _settled(name: str, stamp: str) -> str:
    """The stamp to keep; "" if the file may still change without another stamp."""
    changed = int(stamp.split()[2])
    young = abs(time.time_ns() - changed) < _SETTLED_NS
    return "" if young and name.endswith(".json") else stamp


def _sha256(run_id: object, data: bytes) -> str:
    return hashlib.sha256(f"{run_id} ".encode() + data).hexdigest()


def chunks(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Yield the names in parts of this size; the last one may be smaller."""
    for first in range(0, len(names), size):
        yield names[first : first + size]


def _marks(names: Sequence[str]) -> str:
    return ", ".join("?" * len(names))
