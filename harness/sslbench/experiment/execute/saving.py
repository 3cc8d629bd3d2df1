"""Saving of the records of a grid, also when its store can no longer be written."""

from __future__ import annotations

import shlex
import tempfile
import time
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path

from sslbench.engine.files.folders import cache_folder
from sslbench.experiment.records.reading import StoreWarning
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store

#: pauses before a record is written again, of the first one that cannot be
_PAUSES = (0.2, 1.0)


class Saving:
    """Saves records in a store; those that it does not take are kept in another folder.

    That is a new folder ``unsaved/<name of the store>-...`` of the cache, or of the system's
    temporary folder. It is a store, too: copying its files into the first one brings them back.
    Warnings say where the records are, with the command.

    Attributes
    ----------
    kept: records that the store did not take, by run id, with their files.
    lost: records that could be written nowhere, by run id: they are in memory alone.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.kept: dict[str, tuple[RunRecord, Path]] = {}
        self.lost: dict[str, RunRecord] = {}
        self._other: Store | None = None
        self._reason = ""

    def save(self, record: RunRecord) -> None:
        """Write a record to the store; if that fails repeatedly, to the other folder."""
        if not self._write(record, () if self._reason else _PAUSES):
            self._keep(record)

    def finish(self) -> list[str]:
        """Try again to store what could not be stored; return the ids of records that are not."""
        for run_id, (record, path) in list(self.kept.items()):
            if self._write(record, ()):
                del self.kept[run_id]
                with suppress(OSError):
                    path.unlink()
                    path.parent.rmdir()  # after the last one
        for run_id, record in list(self.lost.items()):
            if self._write(record, ()):
                del self.lost[run_id]
        for folder, number in Counter(path.parent for _, path in self.kept.values()).items():
            _warn(f"{number} of the records are not in the store. {self._where(folder)}")
        if self.lost:
            _warn(
                f"{self.store.folder}: cannot be written ({self._reason}), nor can another folder:"
                f" {len(self.lost)} of the records are in the results alone, and the grid ended"
            )
        elif self._reason and not self.kept:
            _warn(f"{self.store.folder}: can be written again; all records are in it")
        return [*self.kept, *self.lost]

    def _write(self, record: RunRecord, pauses: tuple[float, ...]) -> bool:
        for pause in (0.0, *pauses):
            time.sleep(pause)
            try:
                self.store.save(record)
            except OSError as error:
                self._reason = error.strerror or str(error)
            else:
                return True
        return False

    def _keep(self, record: RunRecord) -> None:
        if self._other is None or (path := _saved(self._other, record)) is None:
            name = f"{self.store.folder.resolve().name}-"
            for parent in (cache_folder() / "unsaved", Path(tempfile.gettempdir())):
                self._other = _new_store(parent, name)
                path = None if self._other is None else _saved(self._other, record)
                if path is not None:
                    _warn(self._where(path.parent))
                    break
        if path is None:
            self.lost[record.run_id] = record
        else:
            self.kept[record.run_id] = record, path

    def _where(self, folder: Path) -> str:
        """The two folders, why there are two, and the command that makes one of them."""
        store = self.store.folder
        return (
            f"{store}: cannot be written ({self._reason}); records are kept in {folder}; to bring"
            f" them back: cp {shlex.quote(str(folder))}/*.json {shlex.quote(str(store))}/"
        )


def _new_store(parent: Path, prefix: str) -> Store | None:
    try:
        parent.mkdir(parents=True, exist_ok=True)
        return Store(tempfile.mkdtemp(prefix=prefix, dir=parent))
    except OSError:
        return None


def _saved(store: Store, record: RunRecord) -> Path | None:
    """The file of the record; None, and the folder removed if it is empty, if it has none."""
    try:
        return store.save(record)
    except OSError:
        with suppress(OSError):
            store.folder.rmdir()
        return None


def _warn(text: str) -> None:
    warnings.warn(text, StoreWarning, stacklevel=3)
