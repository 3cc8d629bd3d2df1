"""Dictionaries of symbols: of one column's values, and of pairs of symbols of two shorter streams.

Both give dense ids in order of first sight, so frequent symbols lie close together, results do not
depend on how a corpus is cut into shards, and nothing is renumbered while text streams in. They
hold their own strings: any corpus with the right columns can be encoded, whatever its
vocabularies.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sslbench.checked import borders, vector
from sslbench.corpus import Column, Corpus, Vocabulary
from sslbench.features import kernels
from sslbench.types import I32, I64

ABSENT = -1


@dataclass(frozen=True)
class Layout:
    """Where the tokens lie once every sentence is padded on both sides (see `kernels`)."""

    offsets: I64
    padding: int
    position: I64

    @classmethod
    def of(cls, corpus: Corpus, padding: int) -> Layout:
        offsets = np.ascontiguousarray(corpus.offsets, dtype=np.int64)
        return cls(offsets, padding, kernels.token_positions(offsets, padding))

    @property
    def n_positions(self) -> int:
        return len(self.position) + 2 * self.padding * (len(self.offsets) - 1)


def pack_strings(strings: Iterable[str]) -> tuple[NDArray[np.uint8], I64]:
    """Strings as one UTF-8 byte array and the end of each, in bytes; lone surrogates survive."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in strings]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), dtype=np.int64)
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


def unpack_strings(data: NDArray[np.uint8], ends: I64) -> list[str]:
    """The strings of `pack_strings`."""
    raw, borders = data.tobytes(), [0, *ends.tolist()]
    return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(borders)]


class ColumnSymbols:
    """Ids of the values of one column and of its pads.

    Attributes
    ----------
    texts: value of every id; pads read _B-1 (first position left of the sentence), _B-2, ...,
        _E+1, ...
    pads: int32[2 * padding], ids of _B-1.. and _E+1..; -1 where no template reaches.
    counts: int64[len(texts)], occurrences at the reached positions.
    """

    def __init__(self, padding: int, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.texts = [f"_B-{k}" for k in range(1, 1 - low)] + [
            f"_E+{k}" for k in range(1, high + 1)
        ]
        self.pads = np.full(2 * padding, ABSENT, np.int32)
        n_left = max(-low, 0)
        self.pads[:n_left] = np.arange(n_left)
        self.pads[padding : padding + max(high, 0)] = np.arange(n_left, len(self.texts))
        self.counts = np.zeros(len(self.texts), np.int64)
        self._ids: dict[str, int] = {}
        self._cache: tuple[Vocabulary, I32] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def lay(self, column: Column, layout: Layout, learn: bool, out: I32) -> None:
        """Write the symbols of a column into out[n_positions]; learning adds unseen ones."""
        table = self._table(column, learn)
        codes = np.ascontiguousarray(column.codes, dtype=np.int32)
        kernels.lay_column(codes, table, self.pads, layout.offsets, self.low, self.high, out)
        if learn:
            more = np.zeros(len(self.texts) - len(self.counts), np.int64)
            self.counts = np.concatenate((self.counts, more))
            kernels.count(out, self.counts)

    def _table(self, column: Column, learn: bool) -> I32:
        """Vocabulary code -> id; only codes that occur are ever looked up by their string."""
        vocabulary, size = column.vocabulary, len(column.vocabulary)
        if self._cache is None or self._cache[0] is not vocabulary:
            self._cache = (vocabulary, np.empty(0, np.int32))
        table = self._cache[1]
        if len(table) < size:
            more = np.full(size - len(table), kernels.UNRESOLVED, np.int32)
            table = np.concatenate((table, more))
            self._cache = (vocabulary, table)
        codes = np.ascontiguousarray(column.codes, dtype=np.int32)
        strings = vocabulary.strings
        for code in kernels.unresolved(codes, table).tolist():
            text = strings[code]
            known = self._ids.get(text, ABSENT)
            if known < 0 and learn:
                known = self._ids[text] = len(self.texts)
                self.texts.append(text)
            table[code] = known
        return table

    def cut(self, min_count: int) -> I32:
        """Forget values seen fewer times; returns old id -> new id, -1 for the forgotten."""
        keep = self.counts >= min_count
        renumbered = renumbering(keep)
        is_pad = self._is_pad()
        self.texts = [text for text, kept in zip(self.texts, keep.tolist(), strict=True) if kept]
        self.counts = self.counts[keep]
        reached = self.pads >= 0
        self.pads[reached] = renumbered[self.pads[reached]]
        self._index(is_pad[keep])
        return renumbered

    def _is_pad(self) -> NDArray[np.bool_]:
        is_pad = np.zeros(len(self.texts), np.bool_)
        is_pad[self.pads[self.pads >= 0]] = True
        return is_pad

    def _index(self, is_pad: NDArray[np.bool_]) -> None:
        flags = zip(self.texts, is_pad.tolist(), strict=True)
        self._ids = {text: i for i, (text, pad) in enumerate(flags) if not pad}
        self._cache = None

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        text, ends = pack_strings(self.texts)
        return {"text": text, "ends": ends, "pads": self.pads, "counts": self.counts}

    def restore(self, arrays: dict[str, NDArray[np.generic]]) -> None:
        """Take over what `arrays` gave; ValueError when it cannot be that."""
        text, ends = vector(arrays, "text", np.uint8), vector(arrays, "ends", np.int64)
        borders({"ends": np.append(0, ends)}, "ends", len(ends), len(text))
        self.texts = unpack_strings(text, ends)
        size = len(self.texts)
        self.pads = vector(arrays, "pads", np.int32, len(self.pads), (ABSENT, size))
        self.counts = vector(arrays, "counts", np.int64, size)
        self._index(self._is_pad())


class PairSymbols:
    """Ids of pairs (symbol of a shorter stream at p + shift, value of the last column at p).

    A longer pattern is a pair of its own beginning and its last atom, so keys never outgrow 64
    bits whatever the
    vocabularies and however long the pattern: both halves are dense ids below 2**31.
    """

    def __init__(self, shift: int, low: int, high: int) -> None:
        self.shift, self.low, self.high = shift, low, high
        self.keys = np.empty(0, np.int64)
        self.counts = np.empty(0, np.int64)
        self.slots = np.full(16, ABSENT, np.int32)

    def __len__(self) -> int:
        return len(self.keys)

    def lay(self, left: I32, right: I32, layout: Layout, learn: bool, out: I32) -> None:
        """Write the ids of the pairs into out[n_positions]; learning adds unseen ones."""
        wanted = kernels.pair_keys(
            left, self.shift, right, layout.offsets, layout.padding, self.low, self.high
        )
        if not learn:
            kernels.look_up(wanted, self.keys, self.slots, out)
            return
        keys, counts = self._with_room()
        keys, counts, size, self.slots = kernels.learn(
            wanted, keys, counts, len(self.keys), self.slots, out
        )
        self.keys, self.counts = keys[:size], counts[:size]

    def _with_room(self) -> tuple[I64, I64]:
        """The arrays with some free space; the kernel doubles them when it is used up."""
        size = len(self.keys)
        room = max(16, size // 8)
        keys = np.concatenate((self.keys, np.empty(room, np.int64)))
        return keys, np.concatenate((self.counts, np.zeros(room, np.int64)))

    def cut(self, min_count: int, left: I32, right: I32) -> I32:
        """Forget rare pairs, renumber the halves; returns old id -> new id (-1: forgotten).

        No kept pair loses a half: whatever position a pair was counted at, its halves were counted
            too.
        """
        keep = self.counts >= min_count
        old = self.keys[keep]
        self.keys = (left[old >> 32].astype(np.int64) << 32) | right[old & 0x7FFFFFFF]
        self.counts = self.counts[keep]
        self._hash()
        return renumbering(keep)

    def _hash(self) -> None:
        n_slots = max(16, 1 << int(2 * len(self.keys) + 1).bit_length())
        self.slots = kernels.fill_slots(self.keys, len(self.keys), n_slots)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        return {"keys": self.keys, "counts": self.counts}

    def restore(self, arrays: dict[str, NDArray[np.generic]]) -> None:
        """Take over what `arrays` gave; ValueError when it cannot be that."""
        self.keys = vector(arrays, "keys", np.int64, None, (0, np.iinfo(np.int64).max))
        self.counts = vector(arrays, "counts", np.int64, len(self.keys))
        self._hash()


def renumbering(keep: NDArray[np.bool_]) -> I32:
    """Old id -> id among the kept ones, -1 for the others."""
    return np.where(keep, np.cumsum(keep) - 1, ABSENT).astype(np.int32)
