"""The model files of CRFsuite 0.12.

Layout, from its public source (lib/crf/src/crf1d_model.c, lib/cqdb/src/cqdb.c), all little-endian:

- a header of 48 bytes: "lCRF", size, "FOMC", version, three numbers of items, five offsets;
- "FEAT": per feature, type (0 attribute, 1 transition), source, target, weight;
- two databases of names, of labels and attributes: per name, its number, length and bytes; 256 hash
  tables with open addressing; the offset of each number's name. Their offsets count from their
  beginning;
- "LFRF" and "AFRF": for each label and attribute, the numbers of the features that leave it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.engine.errors import UserError
from sslbench.engine.files.atomic import replacing
from sslbench.engine.types import F64, I32, I64

MAX_BYTES = 2**32 - 1
_HEADER = struct.Struct("<4sI4s9I")
_CHUNK = struct.Struct("<4sII")
_FEATURE = np.dtype([("type", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])
_VERSION = 100
_BYTE_ORDER = 0x62445371
_TABLES = 256
_DATABASE = struct.Struct("<4s5I")
_RECORDS = _DATABASE.size + 8 * _TABLES  # where the names of a database begin
_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class CRFsuiteModel:
    """A first-order CRF over named attributes.

    labels, attributes: names, each once.
    transitions: float64[L, L] from row to column.
    source: int32[n] attribute, target: int32[n] label and weight: float64[n] of state features, by
        ascending source.
    """

    labels: Sequence[str]
    attributes: Sequence[str]
    transitions: F64
    source: I32
    target: I32
    weight: F64

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file, without features of weight 0; UserError for more than 4 GiB."""
        features, n_states = self._features()
        parts = [b"", _chunk(b"FEAT", len(features), features.tobytes())]
        parts += [_database(self.labels), _database(self.attributes)]
        parts[-1] += bytes(-sum(map(len, parts)) % 4)
        offsets = np.cumsum([_HEADER.size, *map(len, parts)])[1:].tolist()
        inner, outer = features[n_states:], features[:n_states]
        by_label = np.bincount(inner["source"], minlength=len(self.labels))
        parts.append(_references(b"LFRF", by_label, n_states, offsets[-1]))
        offsets.append(offsets[-1] + len(parts[-1]))
        by_attribute = np.bincount(outer["source"], minlength=len(self.attributes))
        parts.append(_references(b"AFRF", by_attribute, 0, offsets[-1]))
        size = offsets[-1] + len(parts[-1])
        if size > MAX_BYTES:
            raise UserError(f"{size:,} bytes, a CRFsuite model has at most {MAX_BYTES:,}")
        counts = len(features), len(self.labels), len(self.attributes)
        parts[0] = _HEADER.pack(b"lCRF", size, b"FOMC", _VERSION, *counts, *offsets)
        with replacing(path) as file:
            file.writelines(parts)

    def _features(self) -> tuple[np.ndarray[tuple[int], np.dtype[np.void]], int]:
        """State features, then transitions; and the number of the former."""
        used = np.flatnonzero(self.weight)
        source, target = np.nonzero(self.transitions)
        features = np.zeros(len(used) + len(source), _FEATURE)
        features["type"][len(used) :] = 1
        features["source"] = np.concatenate([self.source[used], source])
        features["target"] = np.concatenate([self.target[used], target])
        features["weight"] = np.concatenate([self.weight[used], self.transitions[source, target]])
        return features, len(used)


def _chunk(name: bytes, count: int, data: bytes) -> bytes:
    return _CHUNK.pack(name, _CHUNK.size + len(data), count) + data


def _references(name: bytes, counts: I64, first: int, offset: int) -> bytes:
    """A chunk of numbers of features: counts[i] consecutive ones for item i, from `first` on.

    offset: offset of the chunk in the file.
    """
    n, total = len(counts), int(counts.sum())
    starts = np.cumsum(counts + 1) - (counts + 1)  # a count before the numbers of each item
    data = np.empty(n + total, "<u4")
    is_count = np.zeros(n + total, np.bool_)
    is_count[starts] = True
    data[is_count] = counts
    data[~is_count] = first + np.arange(total)
    places = offset + _CHUNK.size + 4 * n + 4 * starts
    return _chunk(name, n, places.astype("<u4").tobytes() + data.tobytes())


def _database(names: Sequence[str]) -> bytes:
    """Names with their numbers, to be looked up either way."""
    records, places = list[bytes](), list[int]()
    tables: list[list[tuple[int, int]]] = [[] for _ in range(_TABLES)]
    place = _RECORDS
    for number, name in enumerate(names):
        key = name.encode("utf-8", "surrogatepass") + b"\0"
        code = hash_of(key)
        tables[code % _TABLES].append((code, place))
        records.append(struct.pack("<II", number, len(key)) + key)
        places.append(place)
        place += len(records[-1])
    buckets, references = list[bytes](), list[int]()
    for table in tables:
        buckets.append(_buckets(table))
        references += [place if table else 0, 2 * len(table)]
        place += len(buckets[-1])
    backward = np.array(places, "<u4").tobytes()
    size = place + len(backward)
    head = _DATABASE.pack(b"CQDB", size, 0, _BYTE_ORDER, len(places), place if places else 0)
    table_refs = struct.pack(f"<{2 * _TABLES}I", *references)
    return b"".join([head, table_refs, *records, *buckets, backward])


def _buckets(entries: Sequence[tuple[int, int]]) -> bytes:
    """A hash table with twice as many places as entries; 0 = free."""
    size = 2 * len(entries)
    places = [(0, 0)] * size
    for code, offset in entries:
        k = (code >> 8) % size
        while places[k][1]:
            k = (k + 1) % size
        places[k] = code, offset
    return struct.pack(f"<{2 * size}I", *(number for place in places for number in place))


def hash_of(key: bytes) -> int:
    """The hash of a name with its final NUL: lookup3 of B. Jenkins (2006), in the public domain."""
    a = b = c = (0xDEADBEEF + len(key)) & _WORD
    blocks = list(_blocks(key))
    for x, y, z in blocks[:-1]:
        a, b, c = (a + x) & _WORD, (b + y) & _WORD, (c + z) & _WORD
        a, c = ((a - c) & _WORD) ^ _rotated(c, 4), (c + b) & _WORD
        b, a = ((b - a) & _WORD) ^ _rotated(a, 6), (a + c) & _WORD
        c, b = ((c - b) & _WORD) ^ _rotated(b, 8), (b + a) & _WORD
        a, c = ((a - c) & _WORD) ^ _rotated(c, 16), (c + b) & _WORD
        b, a = ((b - a) & _WORD) ^ _rotated(a, 19), (a + c) & _WORD
        c, b = ((c - b) & _WORD) ^ _rotated(b, 4), (b + a) & _WORD
    x, y, z = blocks[-1]
    a, b, c = (a + x) & _WORD, (b + y) & _WORD, (c + z) & _WORD
    c = ((c ^ b) - _rotated(b, 14)) & _WORD
    a = ((a ^ c) - _rotated(c, 11)) & _WORD
    b = ((b ^ a) - _rotated(a, 25)) & _WORD
    c = ((c ^ b) - _rotated(b, 16)) & _WORD
    a = ((a ^ c) - _rotated(c, 4)) & _WORD
    b = ((b ^ a) - _rotated(a, 14)) & _WORD
    return ((c ^ b) - _rotated(b, 24)) & _WORD


def _blocks(key: bytes) -> Iterator[tuple[int, int, int]]:
    """Three words at a time, the last ones filled with zeros."""
    return struct.iter_unpack("<3I", key + bytes(-len(key) % 12))


def _rotated(word: int, by: int) -> int:
    return ((word << by) | (word >> (32 - by))) & _WORD
