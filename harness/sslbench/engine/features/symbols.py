"""Symbol dictionaries: of the values of one column, and of pairs of symbols of shorter patterns.

Symbols are numbered in order of first occurrence, so frequent symbols have nearby ids, ids do not
change while more text is read, and the result does not depend on how a text is split into shards.
Dictionaries have their own strings: they encode a corpus with any vocabularies.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sslbench.engine.checked import borders, vector
from sslbench.engine.corpus import Column, Corpus, Vocabulary, sentence_ids
from sslbench.engine.corpus.strings import pack_strings, unpack_strings
from sslbench.engine.features import kernels
from sslbench.engine.types import I32, I64, Arrays, Bool

ABSENT = -1


@dataclass(frozen=True)
class PaddedPositions:
    """Positions of tokens if each sentence has pads on both sides (see `kernels`).

    Attributes
    ----------
    offsets: int64[S + 1], sentence borders in tokens.
    padding: pads on each side of a sentence.
    position: int64[N], the padded position of each token.
    """

    offsets: I64
    padding: int
    position: I64

    @classmethod
    def of_corpus(cls, corpus: Corpus, padding: int) -> PaddedPositions:
        """Return the positions of a corpus."""
        offsets = np.ascontiguousarray(corpus.offsets, dtype=np.int64)
        position = np.arange(corpus.n_tokens) + padding * (2 * sentence_ids(offsets) + 1)
        return cls(offsets, padding, position)

    @property
    def n_positions(self) -> int:
        """Number of padded positions."""
        return len(self.position) + 2 * self.padding * (len(self.offsets) - 1)


class ColumnSymbols:
    """Symbol ids of the values of one column and of its pads.

    Attributes
    ----------
    low, high: first and last offset at which templates read the column.
    texts: value of each symbol. Pads are _B-1 (first position left of the sentence), _B-2, ...,
        _E+1, ...
    pads: int32[2 * padding], ids of _B-1, _B-2, ... and _E+1, ...; -1 where no template reads.
    counts: int64[len(texts)], occurrences at the positions that templates read.
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

    def encode(self, column: Column, padded: PaddedPositions, learn: bool, out: I32) -> None:
        """Write the symbols of a column into out[n_positions]; `learn` adds unknown ones."""
        table = self._table(column, learn)
        codes = np.ascontiguousarray(column.codes, dtype=np.int32)
        kernels.write_column(codes, table, self.pads, padded.offsets, self.low, self.high, out)
        if learn:
            more = np.zeros(len(self.texts) - len(self.counts), np.int64)
            self.counts = np.concatenate((self.counts, more))
            kernels.count(out, self.counts)

    def lookup(self, text: str) -> int:
        """Return the symbol of a value, -1 if it is unknown."""
        return self._ids.get(text, ABSENT)

    def _table(self, column: Column, learn: bool) -> I32:
        """int32[V]: symbol id of each vocabulary code; codes that do not occur are unresolved."""
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
            symbol = self.lookup(text)
            if symbol < 0 and learn:
                symbol = self._ids[text] = len(self.texts)
                self.texts.append(text)
            table[code] = symbol
        return table

    def merge(self, other: ColumnSymbols) -> I32:
        """Add the symbols of text that follows, all learned; return their ids here."""
        pads = int(np.count_nonzero(self.pads >= 0))
        ids = np.arange(len(other), dtype=np.int32)
        for number, text in enumerate(other.texts[pads:], pads):
            ids[number] = symbol = self._ids.setdefault(text, len(self.texts))
            if symbol == len(self.texts):
                self.texts.append(text)
        more = np.zeros(len(self.texts) - len(self.counts), np.int64)
        self.counts = np.concatenate((self.counts, more))
        self.counts[ids] += other.counts
        self._cache = None
        return ids

    def drop_rare(self, min_count: int) -> I32:
        """Drop values with fewer occurrences; returns the new id of each old id, -1 if dropped."""
        frequent = self.counts >= min_count
        new_ids = renumbering(frequent)
        is_pad = self._is_pad()
        self.texts = list(itertools.compress(self.texts, frequent.tolist()))
        self.counts = self.counts[frequent]
        read = self.pads >= 0
        self.pads[read] = new_ids[self.pads[read]]
        self._index(is_pad[frequent])
        return new_ids

    def _is_pad(self) -> Bool:
        is_pad = np.zeros(len(self.texts), np.bool_)
        is_pad[self.pads[self.pads >= 0]] = True
        return is_pad

    def _index(self, is_pad: Bool) -> None:
        flags = zip(self.texts, is_pad.tolist(), strict=True)
        self._ids = {text: i for i, (text, pad) in enumerate(flags) if not pad}
        self._cache = None

    def define(self, texts: Iterable[str]) -> None:
        """Add values, each of which has occurred once."""
        self.texts = [*self.texts, *texts]
        self.counts = np.ones(len(self.texts), np.int64)
        self._index(self._is_pad())

    def arrays(self) -> Arrays:
        """What `restore` needs."""
        text, ends = pack_strings(self.texts)
        return {"text": text, "ends": ends, "pads": self.pads, "counts": self.counts}

    def restore(self, arrays: Arrays) -> None:
        """Restore what `arrays` gave; ValueError if it cannot describe a dictionary."""
        text, ends = vector(arrays, "text", np.uint8), vector(arrays, "ends", np.int64)
        borders({"ends": np.append(0, ends)}, "ends", len(ends), len(text))
        self.texts = unpack_strings(text, ends)
        size = len(self.texts)
        self.pads = vector(arrays, "pads", np.int32, len(self.pads), (ABSENT, size))
        self.counts = vector(arrays, "counts", np.int64, size)
        self._index(self._is_pad())


class PairSymbols:
    """Symbol ids of pairs (symbol of a shorter pattern at p + shift, value of the last atom at p).

    A pattern is a pair of its beginning and its last atom. Both halves of a key are ids below
    2**31, so keys have 64 bits for patterns of any length.

    Attributes
    ----------
    shift: offset of the end of the shorter pattern.
    low, high: first and last offset at which the pattern is read.
    keys: int64[n], left id * 2**32 + right id of each symbol.
    counts: int64[n], occurrences.
    slots: hash table of `kernels`.
    """

    def __init__(self, shift: int, low: int, high: int) -> None:
        self.shift, self.low, self.high = shift, low, high
        self.keys = np.empty(0, np.int64)
        self.counts = np.empty(0, np.int64)
        self.slots = np.full(16, ABSENT, np.int32)

    def __len__(self) -> int:
        return len(self.keys)

    def encode(self, left: I32, right: I32, padded: PaddedPositions, learn: bool, out: I32) -> None:
        """Write the ids of the pairs into out[n_positions]; `learn` adds unknown ones."""
        pairs = kernels.pair_keys(
            left, self.shift, right, padded.offsets, padded.padding, self.low, self.high
        )
        if not learn:
            kernels.look_up(pairs, self.keys, self.slots, out)
            return
        self._learn(pairs, out)

    def merge(self, other: PairSymbols, left: I32, right: I32) -> I32:
        """Add the symbols of text that follows; return their ids here.

        left, right: ids here of the halves there.
        """
        ids = np.empty(len(other), np.int32)
        self._learn(_renumbered(other.keys, left, right), ids)
        self.counts[ids] += other.counts - 1  # each key was counted once
        return ids

    def _learn(self, pairs: I64, out: I32) -> None:
        keys, counts = self._with_room()
        keys, counts, size, self.slots = kernels.learn(
            pairs, keys, counts, len(self.keys), self.slots, out
        )
        self.keys, self.counts = keys[:size], counts[:size]

    def _with_room(self) -> tuple[I64, I64]:
        """Keys and counts with free space at the end; the kernel doubles them when it is used."""
        size = len(self.keys)
        room = max(16, size // 8)
        keys = np.concatenate((self.keys, np.empty(room, np.int64)))
        return keys, np.concatenate((self.counts, np.zeros(room, np.int64)))

    def drop_rare(self, min_count: int, left: I32, right: I32) -> I32:
        """Drop rare pairs, renumber the halves of the others; returns the new ids, -1 if dropped.

        A frequent pair has frequent halves: they are counted wherever the pair is.

        left, right: new ids of the halves.
        """
        frequent = self.counts >= min_count
        self.keys = _renumbered(self.keys[frequent], left, right)
        self.counts = self.counts[frequent]
        self._hash()
        return renumbering(frequent)

    def _hash(self) -> None:
        n_slots = max(16, 1 << int(2 * len(self.keys) + 1).bit_length())
        self.slots = kernels.fill_slots(self.keys, len(self.keys), n_slots)

    def define(self, keys: I64) -> None:
        """Take these keys, each of which has occurred once."""
        self.keys, self.counts = keys, np.ones(len(keys), np.int64)
        self._hash()

    def arrays(self) -> Arrays:
        """What `restore` needs."""
        return {"keys": self.keys, "counts": self.counts}

    def restore(self, arrays: Arrays) -> None:
        """Restore what `arrays` gave; ValueError if it cannot describe a dictionary."""
        self.keys = vector(arrays, "keys", np.int64, None, (0, np.iinfo(np.int64).max))
        self.counts = vector(arrays, "counts", np.int64, len(self.keys))
        self._hash()

    def check_halves(self, left: int, right: int) -> None:
        """ValueError unless the halves of every key are below `left` and `right`."""
        highest = (self.keys >> 32).max(initial=-1), (self.keys & 0xFFFFFFFF).max(initial=-1)
        if highest[0] >= left or highest[1] >= right:
            raise ValueError(f"a pair of symbols {highest}, of {left} and {right}")


def _renumbered(keys: I64, left: I32, right: I32) -> I64:
    """Keys of pairs whose halves have new ids."""
    renumbered: I64 = (left[keys >> 32].astype(np.int64) << 32) | right[keys & 0x7FFFFFFF]
    return renumbered


def renumbering(remaining: Bool) -> I32:
    """Return int32[n]: number of each id among the remaining ones, -1 for the others."""
    return np.where(remaining, np.cumsum(remaining) - 1, ABSENT).astype(np.int32)
