"""Lists counted in automatically analyzed text: of character n-grams and of words.

An entry of a list is the most frequent label of an n-gram (or tag of a word) and its frequency
class; what the text does not hold is "N".  Source: Wang et al. (2011), with the changes that
`cluster_features` lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sslbench.engine.checked import Saved, borders, vector
from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.corpus.strings import pack_strings, unpack_strings
from sslbench.engine.features import Streams, Template
from sslbench.engine.types import I32, I64, Arrays

UNSEEN = "N"
_CLASSES = "HML"
#: a list entry is of class H (M) when at most one in so many entries is as frequent or more
_ONE_IN_H, _ONE_IN_M = 20, 5

#: column of a list -> the n-gram around C_0 that it is about
NGRAMS = {
    "left": Template.parse("word[-1]|word[0]"),
    "right": Template.parse("word[0]|word[1]"),
    "both": Template.parse("word[-1]|word[0]|word[1]"),
}


def frequency_classes(counts: I64) -> I32:
    """0 high (top 5 % of the entries that occur), 1 middle (next 15 %), 2 low, 3 not seen.

    counts: int64[n].  Entries of one count are of one class, the lower one where a border cuts
    through them: of a short text, all singletons are low.
    """
    seen = np.sort(counts[counts > 0])
    as_frequent = len(seen) - np.searchsorted(seen, counts)
    cuts = [counts == 0, as_frequent * _ONE_IN_H <= len(seen), as_frequent * _ONE_IN_M <= len(seen)]
    return np.select(cuts, [3, 0, 1], 2).astype(np.int32)


def list_codes(counts: I64) -> I32:
    """int32[n]: 0 = not seen, else 1 + 3 label + class; the first of equally frequent labels.

    counts: int64[n, L].
    """
    total = counts.sum(axis=1)
    codes = 1 + len(_CLASSES) * counts.argmax(axis=1) + frequency_classes(total)
    return np.where(total > 0, codes, 0).astype(np.int32)


def list_names(labels: Sequence[str]) -> list[str]:
    """Return what the codes of `list_codes` stand for: N, B/H, B/M, B/L, M/H, ..."""
    return [UNSEEN, *(f"{label}/{kind}" for label in labels for kind in _CLASSES)]


def pair_counts(first: I32, second: I32, shape: tuple[int, int]) -> I64:
    """Return int64[shape]: how often two codes (int32[N], not negative) stand together."""
    pairs = first.astype(np.int64) * shape[1] + second
    return np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape)


class NgramCounts:
    """Counts of character n-grams and the label of C_0, by column of `NGRAMS`.

    streams: of the templates of `NGRAMS`, fitted to the text that will be counted.
    """

    def __init__(self, streams: Streams, labels: Sequence[str]) -> None:
        self.streams, self.labels = streams, tuple(labels)
        sizes = {name: streams.n_symbols[streams.pattern_of(t)[0]] for name, t in NGRAMS.items()}
        self.counts = {name: np.zeros((n, len(labels)), np.int64) for name, n in sizes.items()}

    def add(self, text: Corpus, codes: I32) -> None:
        """Count a piece of the text; codes: int32[N], the labels of its characters."""
        laid = self.streams.encode(text)
        for name, template in NGRAMS.items():
            symbols = self.streams.values(laid, template)[0]
            self.counts[name] += pair_counts(symbols, codes, self.counts[name].shape)

    def lists(self) -> NgramLists:
        """Return what has been counted."""
        codes = {name: list_codes(counts) for name, counts in self.counts.items()}
        return NgramLists(self.streams, codes, list_names(self.labels))


@dataclass(frozen=True)
class NgramLists:
    """Label and frequency class of character n-grams.

    codes: by column of `NGRAMS`, int32[symbols of its stream], codes of `names`.
    """

    streams: Streams
    codes: dict[str, I32]
    names: list[str]

    def annotate(self, text: Corpus) -> Corpus:
        """Return a text of characters with a column for every list."""
        laid, vocabulary = self.streams.encode(text), Vocabulary(self.names)
        for name, template in NGRAMS.items():
            table = np.append(self.codes[name], 0)  # symbol -1: not in the dictionary
            text = text.with_column(
                name, Column(vocabulary, table[self.streams.values(laid, template)[0]])
            )
        return text

    def sizes(self) -> dict[str, list[int]]:
        """Return n-grams of each list by class H, M, L."""
        return {name: by_class(codes) for name, codes in self.codes.items()}

    def arrays(self) -> Saved:
        """Return arrays and JSON-able facts."""
        arrays, facts = self.streams.arrays()
        lists = {f"list.{name}": codes for name, codes in self.codes.items()}
        return {**arrays, **lists}, {"streams": facts, "names": self.names}

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any]) -> NgramLists:
        """Restore what `arrays` gave; ValueError when it cannot be that."""
        names = list(map(str, facts["names"]))
        streams = Streams.from_arrays(arrays, facts["streams"])
        codes = {}
        for name, template in NGRAMS.items():
            size = streams.n_symbols[streams.pattern_of(template)[0]]
            codes[name] = vector(arrays, f"list.{name}", np.int32, size, (0, len(names)))
        return cls(streams, codes, names)


def by_class(codes: I32) -> list[int]:
    """Return entries of a list by class H, M, L."""
    kinds = (codes[codes > 0] - 1) % len(_CLASSES)
    found: list[int] = np.bincount(kinds, minlength=len(_CLASSES)).tolist()
    return found


@dataclass(frozen=True)
class WordLists:
    """What is known of words, by column.

    words: distinct.  codes: int32[words] by column, codes into its names; 0 is also that of any
    other word.
    """

    words: list[str]
    codes: dict[str, I32]
    names: dict[str, list[str]]

    def annotate(self, text: Corpus) -> Corpus:
        """Return a text of words with the columns of the lists."""
        column = text.column("word")
        strings = column.vocabulary.strings
        place = np.array([self._place.get(word, -1) for word in strings], np.int64)
        for name, codes in self.codes.items():
            table = np.append(codes, 0)[place]
            text = text.with_column(name, Column(Vocabulary(self.names[name]), table[column.codes]))
        return text

    @cached_property
    def _place(self) -> dict[str, int]:
        return dict(zip(self.words, range(len(self.words)), strict=True))

    def arrays(self) -> Saved:
        """Return arrays and JSON-able facts."""
        text, ends = pack_strings(self.words)
        lists = {f"list.{name}": codes for name, codes in self.codes.items()}
        return {"text": text, "ends": ends, **lists}, {"names": self.names}

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any]) -> WordLists:
        """Restore what `arrays` gave; ValueError when it cannot be that."""
        text, ends = vector(arrays, "text", np.uint8), vector(arrays, "ends", np.int64)
        borders({"ends": np.append(0, ends)}, "ends", len(ends), len(text))
        names = {str(name): list(map(str, texts)) for name, texts in facts["names"].items()}
        codes = {
            name: vector(arrays, f"list.{name}", np.int32, len(ends), (0, len(texts)))
            for name, texts in names.items()
        }
        return cls(unpack_strings(text, ends), codes, names)
