"""Text in units of a pass, and how a unit travels."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np

from sslbench.engine.checked import Saved, borders, vector
from sslbench.engine.corpus.columns import Column, Corpus, Vocabulary
from sslbench.engine.corpus.shards import CorpusShards
from sslbench.engine.corpus.strings import pack_strings, unpack_strings
from sslbench.engine.lazy import lazy
from sslbench.engine.spread import Pass
from sslbench.engine.types import Arrays

R = TypeVar("R")

#: A unit has at least so many tokens, and a text at most about so many units: the counts of a unit
#: take as much memory as those of the whole text, and have to be added to them.
LEAST, MOST = 2**20, 64


class TextUnits:
    """Shards of text put together, or cut between sentences, to units of about equal size.

    Their borders depend on the text alone.  text: may be iterated over repeatedly.
    least: tokens of a unit.
    """

    def __init__(self, text: Iterable[Corpus], least: int | None = None) -> None:
        self.text = text
        self.key = uuid.uuid4().hex
        self._least = LEAST if least is None else least
        self._next = 0
        self._rest: Iterator[Corpus] | None = None
        self._count: int | None = None  # of all units, once it is known

    @staticmethod
    def of(text: Iterable[Corpus] | TextUnits) -> TextUnits:
        """Return the units of a text, unless they are given."""
        return text if isinstance(text, TextUnits) else TextUnits(text)

    @lazy
    def _size(self) -> int:
        return max(self._least, getattr(self.text, "n_tokens", 0) // MOST)

    @property
    def several(self) -> bool:
        """Whether there are at least two."""
        return int(getattr(self.text, "n_tokens", 0)) > self._size

    def get(self, number: int) -> Corpus | None:
        """Unit number 0, 1, ...; None after the last one."""
        if self._count is not None and number >= self._count:
            return None
        if self._rest is None or number < self._next:
            self._rest, self._next = self._units(), 0
        for unit in self._rest:
            self._next += 1
            if self._next > number:
                return unit
        self._rest, self._count = None, self._next
        return None

    def _units(self) -> Iterator[Corpus]:
        parts: list[Corpus] = []
        size = 0
        for shard in self.text:
            for part in CorpusShards(shard, self._size):
                if parts and (size + part.n_tokens > self._size or not _alike(parts[0], part)):
                    yield _joined(parts)
                    parts, size = [], 0
                parts.append(part)
                size += part.n_tokens
        if parts:
            yield _joined(parts)


class TextPass(Pass[Corpus, R], Generic[R]):
    """A pass over units of text."""

    @staticmethod
    def pack_unit(unit: Corpus) -> Saved:
        return pack_corpus(unit)

    @staticmethod
    def unpack_unit(arrays: Arrays, metadata: dict[str, Any]) -> Corpus:
        return unpack_corpus(arrays, metadata)


def _joined(parts: list[Corpus]) -> Corpus:
    return parts[0] if len(parts) == 1 else Corpus.concatenate(parts)


def _alike(a: Corpus, b: Corpus) -> bool:
    """Return whether they can be put together."""
    own, other = ({n: c.vocabulary for n, c in corpus.columns.items()} for corpus in (a, b))
    return own.keys() == other.keys() and all(v is other[name] for name, v in own.items())


def pack_corpus(corpus: Corpus) -> Saved:
    """Return a corpus, with the words that occur in it alone."""
    arrays: Arrays = {"offsets": corpus.offsets}
    for number, column in enumerate(corpus.columns.values()):
        used, codes = np.unique(column.codes, return_inverse=True)
        words = column.vocabulary.strings
        text, ends = pack_strings(words[code] for code in used.tolist())
        arrays |= {f"codes{number}": codes.astype(np.int32)}
        arrays |= {f"text{number}": text, f"ends{number}": ends}
    return arrays, {"columns": list(corpus.columns)}


def unpack_corpus(arrays: Arrays, metadata: dict[str, Any]) -> Corpus:
    """What `pack_corpus` was given; ValueError or KeyError for something else."""
    columns = {}
    for number, name in enumerate(metadata["columns"]):
        text, ends = (vector(arrays, f"text{number}", np.uint8), arrays[f"ends{number}"])
        borders({"ends": np.append(0, ends)}, "ends", len(ends), len(text))
        words = Vocabulary(unpack_strings(text, ends))
        columns[str(name)] = Column(words, vector(arrays, f"codes{number}", np.int32))
    return Corpus(columns, vector(arrays, "offsets", np.int64))
