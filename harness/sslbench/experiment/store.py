"""A folder of run records: one JSON file per run, named by what was asked, written whole."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path

import msgspec

from sslbench.atomic import write_atomically
from sslbench.errors import UserError
from sslbench.experiment.record import RunRecord, decode, encode
from sslbench.experiment.tune import Trial


class StoreWarning(UserWarning):
    """A file in a store cannot be used; it is skipped, never deleted."""


class Store:
    """Run records (``<run_id>.json``) and tuning trials (``trials/<id>.json``) in one folder.

    Stores of several machines merge by copying files: names are content hashes.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise UserError("not a folder", file=self.folder, hint="give another --store")

    def path(self, run_id: str) -> Path:
        """Where the record of a run lives."""
        return self.folder / f"{run_id}.json"

    def load(self, run_id: str) -> RunRecord | None:
        """The record of a run; None when absent or damaged (a warning names the file)."""
        return _read(self.path(run_id))

    def save(self, record: RunRecord) -> Path:
        """Write a record atomically: a reader sees the old file, the new file or none."""
        path = self.path(record.run_id)
        write_atomically(path, encode(record))
        return path

    def records(self) -> list[RunRecord]:
        """All readable records, by run id."""
        return read_records(sorted(self.folder.glob("*.json")))

    def find(self, name: str) -> RunRecord:
        """The record with this id, unique beginning of an id, or file path."""
        if name.endswith(".json"):
            return read_record_file(Path(name))
        hits = sorted(self.folder.glob(f"{name}*.json")) if name.isalnum() else []
        if not hits:
            raise UserError(f"no run {name!r} in {self.folder}", hint="see --store")
        if len(hits) > 1:
            ids = ", ".join(hit.stem for hit in hits[:4])
            raise UserError(f"{name!r} is the beginning of {len(hits)} runs", hint=f"e.g. {ids}")
        return read_record_file(hits[0])

    def load_trial(self, trial_id: str) -> Trial | None:
        """The result of a tuning trial, when it has been run already."""
        path = self.folder / "trials" / f"{trial_id}.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=Trial)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, OSError) as error:
            warnings.warn(
                f"{path}: skipped, not a tuning trial: {error}", StoreWarning, stacklevel=2
            )
            return None

    def save_trial(self, trial_id: str, trial: Trial) -> None:
        """Keep the result of a tuning trial."""
        path = self.folder / "trials" / f"{trial_id}.json"
        write_atomically(path, msgspec.json.encode(trial) + b"\n")


def read_record_file(path: Path) -> RunRecord:
    """Read one record file; UserError names the file when it cannot be read."""
    try:
        return decode(path.read_bytes())
    except UserError as error:
        raise UserError(error.message, file=path) from error
    except OSError as error:
        raise UserError(error.strerror or str(error), file=path) from error


def read_records(paths: Iterable[Path]) -> list[RunRecord]:
    """Read many record files; damaged ones are named in a warning and skipped, never deleted."""
    found: dict[str, RunRecord] = {}
    for path in paths:
        record = _read(path)
        if record is not None:
            found.setdefault(record.run_id, record)
    return [found[run_id] for run_id in sorted(found)]


def _read(path: Path) -> RunRecord | None:
    if not path.exists():
        return None
    try:
        return read_record_file(path)
    except UserError as error:
        warnings.warn(f"{error}; skipped", StoreWarning, stacklevel=3)
        return None
