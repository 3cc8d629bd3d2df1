"""Summaries: a record without its counts and predictions, which are most of its bytes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec

from sslbench.experiment.records.packing import DamageError
from sslbench.experiment.records.record import RunRecord

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
