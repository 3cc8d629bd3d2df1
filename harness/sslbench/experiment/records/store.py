"""The store: a folder of run records, a JSON file per run, named by the hash of its spec."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from sslbench.engine.errors import UserError
from sslbench.engine.files.atomic import remove_abandoned, temporary_name, write_atomically
from sslbench.engine.files.folders import check_name
from sslbench.experiment.records.catalog import Catalog
from sslbench.experiment.records.reading import (
    RECORD,
    StoreWarning,
    content_of,
    listed,
    read_record_file,
)
from sslbench.experiment.records.record import RunRecord, encode, tree_digest
from sslbench.experiment.records.trials import PartScore


class Store(Catalog):
    """A folder of run records (``<run_id>.json``) and tuning trials (``trials/<id>.json``).

    Names are hashes of identities, so stores of several machines are merged by copying files. The
    folder ``claims`` says which runs are in progress, ``segments`` has packed records (see
    `sslbench.experiment.records.archive`). Of several records of a run, that of a file of its own
    counts, then the newest.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(Path(folder))
        check_name(self.folder.absolute())
        if os.path.lexists(self.folder) and not os.path.isdir(self.folder):
            raise UserError("not a folder", file=self.folder, hint="give another --store")

    def probe(self) -> None:
        """Make the folder and check that a file can be written, renamed and read back.

        UserError with the reason if not: better before a training than after it.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            same = _keeps_files(self.folder)
        except OSError as error:
            reason = f"cannot be written: {error.strerror or error}"
            raise UserError(reason, file=self.folder, hint="give another --store") from error
        if not same:
            raise UserError("a file changes when it is written there", file=self.folder)

    def path(self, run_id: str) -> Path:
        """The file of the record of a run."""
        return self.folder / f"{run_id}.json"

    def load(self, run_id: str) -> RunRecord | None:
        """The record of a run; None if it is missing or damaged (a warning names the file)."""
        return _read(self.path(run_id), run_id) or self.load_packed(run_id)

    def has(self, run_id: str) -> bool:
        """Whether there is something in the place of the record of a run."""
        return os.path.lexists(self.path(run_id)) or run_id in self.packed_ids()

    def save(self, record: RunRecord) -> Path:
        """Write a record atomically and return its path.

        What lies there and is no record of the run gets the name with ``.damaged``.
        """
        path = self.path(record.run_id)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoreWarning)
            damaged = os.path.lexists(path) and _read(path, record.run_id) is None
        if damaged:
            with suppress(OSError):
                os.replace(path, path.with_name(f"{path.name}.damaged"))
        write_atomically(path, encode(record))
        return path

    def find(self, name: str) -> RunRecord:
        """The record with this id, unique prefix of an id, or file name; UserError otherwise."""
        if name.endswith(".json"):
            return read_record_file(Path(name))
        loose = {file.removesuffix(RECORD) for file in listed(self.folder, RECORD)}
        packed = self.packed_ids()
        run_ids = sorted(run_id for run_id in loose | packed if name and run_id.startswith(name))
        if not run_ids:
            raise UserError(f"no run {name!r} in {self.folder}", hint="see --store")
        if len(run_ids) > 1:
            ids = ", ".join(run_ids[:4])
            raise UserError(f"{len(run_ids)} runs begin with {name!r}", hint=f"e.g. {ids}")
        if run_ids[0] not in packed:
            return read_record_file(self.path(run_ids[0]))
        record = self.load(run_ids[0])
        if record is None:
            raise UserError(f"the record of run {run_ids[0]} is damaged", file=self.folder)
        return record

    def load_trial(self, trial_id: str) -> PartScore | None:
        """A part of a tuning trial; None if it is missing or damaged (a warning names the file)."""
        path = self._trial_path(trial_id)
        try:
            tree = msgspec.json.decode(content_of(path), type=dict[str, Any])
            if tree.pop("digest", None) != _trial_digest(trial_id, tree):
                raise ValueError("its digest is not that of its content")
            return msgspec.convert(tree, PartScore)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, ValueError, RecursionError, OSError) as error:
            warnings.warn(
                f"{path}: ignored, not a tuning trial: {error}", StoreWarning, stacklevel=2
            )
            return None

    def save_trial(self, trial_id: str, part: PartScore) -> None:
        """Store a part of a trial; one that cannot be written is left out, and is made again."""
        tree = msgspec.to_builtins(part)
        content = {**tree, "digest": _trial_digest(trial_id, tree)}
        with suppress(OSError):
            write_atomically(self._trial_path(trial_id), msgspec.json.encode(content) + b"\n")

    def _trial_path(self, trial_id: str) -> Path:
        return self.folder / "trials" / f"{trial_id}.json"


def _keeps_files(folder: Path) -> bool:
    """Whether a new file, of the size of a record, has the same content under another name."""
    remove_abandoned(folder, "probe")
    before, after = (temporary_name(folder / "probe") for _ in range(2))
    content = os.urandom(2**16)
    try:
        before.write_bytes(content)
        os.replace(before, after)
        return after.read_bytes() == content
    finally:
        for path in (before, after):
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _trial_digest(trial_id: str, tree: dict[str, Any]) -> str:
    return tree_digest({"trial": trial_id, **tree})


def _read(path: Path, run_id: str) -> RunRecord | None:
    """The record of this run; None, with a warning, for a damaged file or another run's record."""
    if not os.path.lexists(path):
        return None
    try:
        record = read_record_file(path)
        if record.run_id != run_id:
            raise UserError(f"holds the record of run {record.run_id}", file=path)
    except UserError as error:
        warnings.warn(f"{error}; ignored", StoreWarning, stacklevel=3)
        return None
    return record
