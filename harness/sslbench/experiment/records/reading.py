"""Reading of the files of a store: a record is whole, or it is refused with the reason."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from sslbench.engine.errors import InputWarning, UserError
from sslbench.experiment.metrics import SentenceCounts, metrics_from_counts
from sslbench.experiment.records.packing import DamageError
from sslbench.experiment.records.predictions import Predictions, predictions_sha256
from sslbench.experiment.records.record import SCHEMA, RunRecord, tree_digest

_TOLERANCE = 1e-12  # of metrics: sums of counts are exact, quotients are rounded
# A count, and the counts that it cannot exceed on any sentence.
_BOUNDS = (
    ("correct_tokens", ("n_tokens",)),
    ("gold_chunks", ("n_tokens",)),
    ("predicted_chunks", ("n_tokens",)),
    ("correct_chunks", ("gold_chunks", "predicted_chunks")),
    ("correct_words", ("gold_chunks", "predicted_chunks")),
    ("correct_tagged", ("gold_chunks", "predicted_chunks")),
    ("correct_alternatives", ("gold_chunks",)),
    ("false_positives", ("predicted_chunks",)),
    ("oov_words", ("gold_chunks",)),
    ("oov_correct", ("oov_words",)),
    ("oov_tagged", ("oov_words",)),
)


def decode(data: bytes) -> RunRecord:
    """Read a record from JSON.

    Raises
    ------
    UserError: not JSON, another schema, a wrong type (the message has its path), a digest or
        `run_id` that is not that of the content, metrics that are not those of the counts.
    """
    return checked(decode_tree(data))


def decode_tree(data: bytes) -> dict[str, Any]:
    """Read a record as plain values, the digest of which is right; UserError otherwise."""
    try:
        tree = msgspec.json.decode(data)
        if not isinstance(tree, dict):
            raise UserError("not a run record: not a JSON object")
        schema = tree.get("schema")
        if schema != SCHEMA:
            raise UserError(f"schema {schema}, but this version reads schema {SCHEMA}")
        if tree.get("digest") != tree_digest(tree):
            raise UserError("its digest is not that of its content: the file was changed")
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UserError(f"not a run record: {error}") from error
    return tree


def checked(tree: dict[str, Any]) -> RunRecord:
    """The record, if its parts do not contradict each other; UserError otherwise."""
    try:
        record = msgspec.convert(tree, RunRecord)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UserError(f"not a run record: {error}") from error
    _check(record)
    return record


def _check(record: RunRecord) -> None:
    """UserError if parts of a record contradict each other."""
    spec = record.spec
    if record.schema != SCHEMA:
        raise UserError(f"schema {record.schema}, but this version reads schema {SCHEMA}")
    if record.run_id != spec.run_id:
        raise UserError(f"run_id {record.run_id} is not that of its spec, {spec.run_id}")
    for name in ("method", "dataset", "featurizer", "model"):
        asked = spec.features if name == "featurizer" else getattr(spec, name)
        if getattr(record, name) != asked:
            raise UserError(f"{name} is {getattr(record, name)!r}, in its spec {asked!r}")
    _check_protocol(record)
    for name in ("wall_s", "cpu_s", "fit_cpu_s", "peak_rss_mb"):
        value = getattr(record, name)
        if value is not None and value < 0:
            raise UserError(f"{name} is {value}")
    for split, lists in record.counts.items():
        _check_counts(record, split, lists)
    for split, metrics in record.metrics.items():
        for name, value in metrics.items():
            if value is not None and not 0 <= value <= 1:
                raise UserError(f"metrics.{split}.{name} is {value}, not between 0 and 1")
    for split, predictions in record.predictions.items():
        _check_predictions(record, split, predictions)
    _check_anatomy(record)
    if record.status == "ok":
        if record.metrics.get("test", {}).get(record.primary_metric, None) is None:
            raise UserError(f"status ok, but no {record.primary_metric} of the test split")
        if "test" not in record.counts:
            raise UserError("status ok, but no counts of the test split")
    elif record.metrics or not record.error:
        raise UserError(f"status {record.status}, but with metrics or without an error")


def _check_protocol(record: RunRecord) -> None:
    stated = msgspec.to_builtins(record.spec.protocol)
    for name, value in record.protocol.items():
        if name in stated and stated[name] != value:
            raise UserError(f"protocol.{name} is {value!r}, in its spec {stated[name]!r}")


def _check_counts(record: RunRecord, split: str, lists: dict[str, list[int]]) -> None:
    """UserError if counts are impossible, or metrics are not those of the counts."""
    where = f"counts.{split}"
    sizes = {len(values) for values in lists.values()}
    expected = record.data.get("sentences", {}).get(split)
    if len(sizes) != 1 or (expected is not None and sizes != {expected}):
        raise UserError(f"{where}: lists of {sorted(sizes)} sentences, not {expected}")
    try:
        counts = SentenceCounts.from_lists(lists)
        columns = {name: np.asarray(values, dtype=np.int64) for name, values in lists.items()}
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"{where}: {error}") from error
    for name, values in columns.items():
        if (values < 0).any():
            raise UserError(f"{where}.{name} has a negative number")
    for name, bounds in _BOUNDS:
        for bound in bounds:
            if name in columns and bound in columns and (columns[name] > columns[bound]).any():
                raise UserError(f"{where}.{name} is above {bound} in some sentence")
    tokens = record.data.get("tokens", {}).get(split)
    if tokens is not None and int(columns["n_tokens"].sum()) != tokens:
        raise UserError(f"{where}.n_tokens has another sum than data.tokens.{split}, {tokens}")
    computed = metrics_from_counts(counts)
    for name, value in record.metrics.get(split, {}).items():
        right = computed.get(name)
        if right is not None and (value is None or abs(value - right) > _TOLERANCE):
            raise UserError(f"metrics.{split}.{name} is {value}, its counts give {right}")


def _check_anatomy(record: RunRecord) -> None:
    """UserError unless the parts of each question add up to the counts."""
    for question, parts in record.anatomy.items():
        if any(len(part) != 2 for part in parts.values()):
            raise UserError(f"a part of anatomy.{question} is not two numbers")
        sums = [sum(part[i] for part in parts.values()) for i in (0, 1)]
        counts = record.counts.get("test", {})
        names = ("n_tokens", "correct_tokens")
        if sums != [sum(counts.get(name, ())) for name in names]:
            raise UserError(f"the parts of anatomy.{question} do not add up to the counts of test")


def _check_predictions(record: RunRecord, split: str, predictions: Predictions) -> None:
    if split not in record.counts:
        raise UserError(f"predictions of {split} without counts")
    codes = predictions.codes(sum(record.counts[split]["n_tokens"]))
    if (
        split == "test"
        and predictions_sha256(predictions.labels, codes) != record.predictions_sha256
    ):
        raise UserError("predictions_sha256 is not that of the predictions")


RECORD = ".json"
_LARGEST = 2**30  # bytes of a file that is read; records have kilobytes


class StoreWarning(InputWarning):
    """A file in a store cannot be read or written. None is ever deleted."""


def listed(folder: Path, suffix: str) -> dict[str, str]:
    """The stamps of the files of a folder with this suffix, by name, ascending.

    Hidden ones are left out. UserError if the folder cannot be read; a missing one has no files.
    """
    try:
        with os.scandir(folder) as entries:
            stamps = {
                entry.name: _entry_stamp(entry)
                for entry in entries
                if entry.name.endswith(suffix) and entry.name[0] != "."
            }
    except (FileNotFoundError, NotADirectoryError):  # the second: a file is in place of a parent
        return {}
    except OSError as error:
        raise UserError(error.strerror or str(error), file=folder) from error
    return dict(sorted(stamps.items()))


def _entry_stamp(entry: os.DirEntry[str]) -> str:
    try:
        return stamp_of(entry.stat())
    except OSError:
        return "0 0 0 0"  # a link to nothing, or removed in the meantime: reading it tells


def stamp_of(status: os.stat_result) -> str:
    """What tells whether a file is the one that was read: size, times and inode."""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def read_record_file(path: Path) -> RunRecord:
    """Read a record; UserError with the file name if it cannot be read."""
    try:
        return decode(content_of(path))
    except UserError as error:
        raise UserError(error.message, file=path) from error
    except OSError as error:
        raise UserError(error.strerror or str(error), file=path) from error


def content_of(path: Path) -> bytes:
    """OSError also for a pipe or device, and for a file that is too large for a record."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(0, "is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "not a regular file")
    if status.st_size > _LARGEST:
        raise OSError(0, f"a file of {status.st_size} bytes")
    return path.read_bytes()


T = TypeVar("T")
#: fields of a record that are read from its file when they are asked for
DEFERRED = ("counts", "predictions")
_LARGEST = 2**26  # bytes of a summary


class _Splits(msgspec.Struct):
    """The splits of each field that a summary lacks."""

    deferred: dict[str, list[str]]


class Deferred(Mapping[str, T]):
    """A field of a record by split, which is read each time that it is asked for."""

    def __init__(self, splits: list[str], load: Callable[[], Mapping[str, T]]) -> None:
        self._splits = splits
        self._load = load

    def __getitem__(self, split: str) -> T:
        if split not in self._splits:
            raise KeyError(split)
        return self._load()[split]

    def __contains__(self, split: object) -> bool:
        return split in self._splits  # without reading

    def __iter__(self) -> Iterator[str]:
        return iter(self._splits)

    def __len__(self) -> int:
        return len(self._splits)

    def __repr__(self) -> str:
        return f"Deferred({self._splits})"


_SPLITS, _RECORD = msgspec.json.Decoder(_Splits), msgspec.json.Decoder(RunRecord)


def summary(tree: Mapping[str, Any]) -> bytes:
    """The summary of a record that is given as plain values, compressed."""
    short = {name: value for name, value in tree.items() if name not in DEFERRED}
    short["deferred"] = {name: list(tree.get(name, ())) for name in DEFERRED}
    return zlib.compress(msgspec.json.encode(short))


def from_summary(data: bytes, load: Callable[[str], Mapping[str, Any]]) -> RunRecord:
    """The record; load: reads a field of it. DamageError if these are no bytes of a summary."""
    try:
        stream = zlib.decompressobj()
        text = stream.decompress(data, _LARGEST)
        deferred = _SPLITS.decode(text).deferred
        record = _RECORD.decode(text)
    except (zlib.error, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise DamageError(f"not a summary: {error}") from None
    for name in DEFERRED:
        setattr(record, name, Deferred[Any](deferred.get(name, []), partial(load, name)))
    return record
