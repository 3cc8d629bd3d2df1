"""The store: a folder of run records, a JSON file per run, named by the hash of its spec."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import msgspec

from sslbench.atomic import write_atomically
from sslbench.errors import UserError
from sslbench.experiment.integrity import decode
from sslbench.experiment.record import RunRecord, encode
from sslbench.experiment.tune import Trial


class StoreWarning(UserWarning):
    """A file in a store cannot be read; it is ignored, never deleted."""


class Store:
    """A folder of run records (``<run_id>.json``) and tuning trials (``trials/<id>.json``).

    Names are hashes of identities, so stores of several machines are merged by copying files. The
    folder ``claims`` says which runs are in progress, ``verified`` which were replayed.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise UserError("not a folder", file=self.folder, hint="give another --store")

    def path(self, run_id: str) -> Path:
        """The file of the record of a run."""
        return self.folder / f"{run_id}.json"

    def load(self, run_id: str) -> RunRecord | None:
        """The record of a run; None if it is missing or damaged (a warning names the file)."""
        return _read(self.path(run_id), run_id)

    def save(self, record: RunRecord) -> Path:
        """Write a record atomically and return its path."""
        path = self.path(record.run_id)
        write_atomically(path, encode(record))
        return path

    def records(self) -> list[RunRecord]:
        """All readable records, sorted by run id; warnings name damaged files."""
        paths = sorted(self.folder.glob("*.json"))
        return [record for path in paths if (record := _read(path, path.stem)) is not None]

    def find(self, name: str) -> RunRecord:
        """The record with this id, unique prefix of an id, or file name; UserError otherwise."""
        if name.endswith(".json"):
            return read_record_file(Path(name))
        paths = sorted(self.folder.glob(f"{name}*.json")) if name.isalnum() else []
        if not paths:
            raise UserError(f"no run {name!r} in {self.folder}", hint="see --store")
        if len(paths) > 1:
            ids = ", ".join(path.stem for path in paths[:4])
            raise UserError(f"{len(paths)} runs begin with {name!r}", hint=f"e.g. {ids}")
        return read_record_file(paths[0])

    def load_trial(self, trial_id: str) -> Trial | None:
        """A stored tuning trial; None if it is missing or damaged (a warning names the file)."""
        path = self.folder / "trials" / f"{trial_id}.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=Trial)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, OSError) as error:
            warnings.warn(
                f"{path}: ignored, not a tuning trial: {error}", StoreWarning, stacklevel=2
            )
            return None

    def save_trial(self, trial_id: str, trial: Trial) -> None:
        """Store a tuning trial."""
        path = self.folder / "trials" / f"{trial_id}.json"
        write_atomically(path, msgspec.json.encode(trial) + b"\n")


def read_record_file(path: Path) -> RunRecord:
    """Read a record; UserError with the file name if it cannot be read."""
    try:
        return decode(path.read_bytes())
    except UserError as error:
        raise UserError(error.message, file=path) from error
    except OSError as error:
        raise UserError(error.strerror or str(error), file=path) from error


def _read(path: Path, run_id: str) -> RunRecord | None:
    """The record of this run; None, with a warning, for a damaged file or another run's record."""
    if not path.exists():
        return None
    try:
        record = read_record_file(path)
        if record.run_id != run_id:
            raise UserError(f"holds the record of run {record.run_id}", file=path)
    except UserError as error:
        warnings.warn(f"{error}; ignored", StoreWarning, stacklevel=3)
        return None
    return record
