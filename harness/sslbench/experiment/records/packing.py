"""The parts of a block of packed records.

Runs on one text have the same gold counts and similar predictions. A block has the records of
several such runs in three parts, each of which is compressed by itself:

- "counts": the counts of all sentences. Equal lists, such as the gold counts, are written once.
- "predictions": the codes of the predicted labels, the codes of all runs for a token side by side.
- "rest": everything else, as a JSON array with an object per record.

Predictions that another zlib has compressed stay in the rest, since their text would not come back.
"""

from __future__ import annotations

import base64
import hashlib
import lzma
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from sslbench.engine.types import I32
from sslbench.experiment.records.predictions import SMALLEST, Predictions

Tree = dict[str, Any]  # a record as plain values
Part = Literal["rest", "counts", "predictions"]
Array = NDArray[np.integer[Any]]
Arrays = dict[str, dict[str, Array]]  # by split and name

PARTS: tuple[Part, ...] = ("rest", "counts", "predictions")
_CODES = "codes"
_TYPES = tuple(np.dtype(name) for name in ("u1", "<u2", "<i4", "<i8"))
#: bytes that the decompressor may take
_MEMORY = 2**27


class DamageError(ValueError):
    """Bytes that are not those of a packed record; the message says why."""


class _Matrix(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Lists of one length. kind: number of the type of their entries."""

    rows: int
    columns: int
    kind: int


class _Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the lists are. runs: by split and name, the number of the matrix and of the row."""

    matrices: list[_Matrix]
    runs: list[dict[str, dict[str, tuple[int, int]]]]


def parts_of(trees: Sequence[Tree]) -> dict[Part, bytes]:
    """The parts of a block, not compressed."""
    rest = [dict(tree) for tree in trees]
    counts = [_take_counts(tree) for tree in rest]
    predictions = [_take_predictions(tree) for tree in rest]
    return {
        "rest": msgspec.json.encode(rest),
        "counts": _written(counts, side_by_side=False),
        "predictions": _written(predictions, side_by_side=True),
    }


def _take_counts(tree: Tree) -> Arrays:
    """Take the counts out of a record; what is left are the names of the splits."""
    taken: Arrays = {
        split: {name: np.array(values, np.int64) for name, values in lists.items()}
        for split, lists in tree.get("counts", {}).items()
    }
    if "counts" in tree:
        tree["counts"] = {split: {} for split in taken}
    return taken


def _take_predictions(tree: Tree) -> Arrays:
    """Take the packed codes out of a record, if they can be packed to the same text again."""
    taken: Arrays = {}
    left: dict[str, Any] = {}
    for split, each in tree.get("predictions", {}).items():
        codes = _codes(each["packed"])
        again = codes is not None and Predictions.pack(each["labels"], codes).packed
        left[split] = each
        if codes is not None and again == each["packed"]:
            left[split] = {name: value for name, value in each.items() if name != "packed"}
            taken[split] = {_CODES: codes}
    if "predictions" in tree:
        tree["predictions"] = left
    return taken


def _codes(packed: str) -> I32 | None:
    try:
        raw = zlib.decompress(base64.b64decode(packed, validate=True))
        return np.frombuffer(raw, "<i2").astype(np.int32)
    except (zlib.error, ValueError):
        return None


def _written(runs: Sequence[Arrays], *, side_by_side: bool) -> bytes:
    """A layout and the matrices. side_by_side: the entries of a column follow each other."""
    numbers: dict[tuple[str, str, int], int] = {}  # of matrices, by what their rows are
    rows: list[dict[bytes, tuple[int, Array]]] = []  # of each matrix, with their numbers

    def place(split: str, name: str, array: Array) -> tuple[int, int]:
        matrix = numbers.setdefault((split, name, len(array)), len(numbers))
        if matrix == len(rows):
            rows.append({})
        ours = rows[matrix]
        return matrix, ours.setdefault(array.tobytes(), (len(ours), array))[0]

    places = [
        {s: {n: place(s, n, a) for n, a in arrays.items()} for s, arrays in run.items()}
        for run in runs
    ]
    matrices, data = [], []
    for each in rows:
        matrix = np.stack([array for _, array in each.values()])
        low, high = (int(f(matrix, initial=0)) for f in (np.min, np.max))
        limits = map(np.iinfo, _TYPES)
        kind = next(i for i, t in enumerate(limits) if t.min <= low and high <= t.max)
        matrices.append(_Matrix(len(matrix), matrix.shape[1], kind))
        data.append((matrix.T if side_by_side else matrix).astype(_TYPES[kind]).tobytes())
    head = msgspec.json.encode(_Layout(matrices, places))
    return b"".join([len(head).to_bytes(4, "little"), head, *data])


class Block:
    """The lists of one part of a block: "counts" or "predictions".

    DamageError if the bytes are not those of such a part.
    """

    def __init__(self, data: bytes, part: Part) -> None:
        size = int.from_bytes(data[:4], "little")
        try:
            self._layout = msgspec.json.decode(data[4 : 4 + size], type=_Layout)
            self._matrices = list(_matrices(self._layout, data, 4 + size, part == "predictions"))
        except (ValueError, IndexError, OverflowError, msgspec.MsgspecError) as error:
            raise DamageError(f"{part}: {error}") from None

    def arrays(self, place: int) -> Arrays:
        """The lists of the run at this place of the block, by split and name."""
        try:
            return {
                split: {name: self._row(*where) for name, where in names.items()}
                for split, names in self._layout.runs[place].items()
            }
        except IndexError:
            raise DamageError("a list is missing") from None

    def _row(self, matrix: int, row: int) -> Array:
        if min(matrix, row) < 0:
            raise IndexError
        return cast(Array, self._matrices[matrix][row])


def _matrices(layout: _Layout, data: bytes, start: int, side_by_side: bool) -> Iterator[Array]:
    for rows, columns, kind in map(msgspec.structs.astuple, layout.matrices):
        if min(rows, columns, kind) < 0:
            raise ValueError("a negative size")
        flat: Array = np.zeros(0, _TYPES[kind])
        if rows * columns:
            flat = np.frombuffer(data, _TYPES[kind], rows * columns, start)
        start += flat.nbytes
        yield flat.reshape(columns, rows).T if side_by_side else flat.reshape(rows, columns)
    if start != len(data):
        raise ValueError(f"{len(data) - start} bytes too many")


def whole(tree: Tree, counts: Arrays, predictions: Arrays, level: int = SMALLEST) -> Tree:
    """The record again: what is left of it, with its counts and predictions.

    level: of the predictions' text, see `predictions.SMALLEST`.
    DamageError if these do not belong together.
    """
    try:
        for split, lists in counts.items():
            tree["counts"][split] = {name: array.tolist() for name, array in lists.items()}
        for split, each in predictions.items():
            left = tree["predictions"][split]
            codes = each[_CODES].astype(np.int32)
            left["packed"] = Predictions.pack(left["labels"], codes, level).packed
    except (KeyError, TypeError, AttributeError) as error:
        raise DamageError(f"the parts do not fit together: {error!r}") from None
    return tree


def content(tree: Mapping[str, Any], predictions: Arrays) -> str:
    """Sha256 of a record and its digest.

    The codes of predictions count, not the text that zlib makes of them: versions of zlib differ.
    """
    plain = dict(tree)
    hashes = {split: each[_CODES].astype("<i4") for split, each in predictions.items()}
    if hashes:
        plain["predictions"] = {
            split: {**each, "packed": hashlib.sha256(hashes[split].tobytes()).hexdigest()}
            if split in hashes
            else each
            for split, each in tree["predictions"].items()
        }
    return hashlib.sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()


def deflated(raw: bytes) -> bytes:
    """Compress a part."""
    return lzma.compress(raw, lzma.FORMAT_XZ, lzma.CHECK_CRC32, preset=6)


def inflated(data: bytes, size: int) -> bytes:
    """The inverse of `deflated`; DamageError unless the result has `size` bytes."""
    try:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
        raw = stream.decompress(data, max_length=size + 1)
    except (lzma.LZMAError, EOFError, MemoryError) as error:
        raise DamageError(str(error)) from None
    if len(raw) != size or not stream.eof or stream.unused_data:
        raise DamageError(f"not {size} bytes")
    return raw
