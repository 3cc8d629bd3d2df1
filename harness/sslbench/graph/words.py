"""Graph text as integers: distinct forms, padded windows, n-grams packed into one number.

No string per token anywhere. Codes are positions among the *sorted distinct* forms of the text at
hand, so that whatever is built on them depends on that text alone: not on the order in which words
were read, nor on other words (of test sentences, say) that the vocabulary of a dataset also holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.corpus import Column, Corpus
from sslbench.corpus.columns import sentence_ids
from sslbench.types import I32, I64

_LARGEST = 2**62


@dataclass(frozen=True)
class Words:
    """Distinct forms in sorted order, and the form of every token.

    strings: the forms. codes: int32[N], indices into them.
    """

    strings: list[str]
    codes: I32

    @classmethod
    def of(cls, column: Column) -> Words:
        """The words of a column, without those of its vocabulary that do not occur."""
        known = column.vocabulary.strings
        occurs = np.flatnonzero(np.bincount(column.codes, minlength=len(known)))
        rank = np.empty(len(known), np.int32)
        rank[occurs] = np.arange(len(occurs), dtype=np.int32)
        return cls([known[code] for code in occurs.tolist()], rank[column.codes]).mapped(str)

    def mapped(self, form: Callable[[str], str]) -> Words:
        """Every word replaced by its form; `form` runs once per distinct word."""
        forms = list(map(form, self.strings))
        strings, table = numbered(forms)
        return Words(strings, table[self.codes])

    def digest(self, offsets: I64) -> str:
        """sha256 of words and sentence borders (int64[S + 1]): equal text, equal digest."""
        text = hashlib.sha256()
        for string in self.strings:  # length first: no separator that a word could hold
            data = string.encode("utf-8", "surrogatepass")
            text.update(len(data).to_bytes(8, "little") + data)
        for array in (self.codes.astype("<i4"), offsets.astype("<i8")):
            text.update(len(array).to_bytes(8, "little") + array.tobytes())
        return text.hexdigest()


def numbered(values: Sequence[str]) -> tuple[list[str], I32]:
    """The distinct values, sorted, and int32[n]: where each of `values` stands among them."""
    strings = sorted(set(values))
    place = dict(zip(strings, range(len(strings)), strict=True))
    return strings, np.fromiter(map(place.__getitem__, values), np.int32, len(values))


@dataclass(frozen=True)
class Windows:
    """Tokens with their neighbors: sentences laid end to end with pads between them.

    A pad differs by side and distance: code `d - 1` is <sd>, the pad d before the first token, code
    `reach + d - 1` is </sd>, the pad d after the last; word c has the code `2 * reach + c`.

    codes: int32[N + 2 * reach * S]. position: int64[N], where each token stands in them.
    """

    codes: I32
    position: I64
    reach: int

    @classmethod
    def lay(cls, words: I32, offsets: I64, reach: int) -> Windows:
        """Lay out codes int32[N] in sentences offsets[i] .. offsets[i + 1] - 1."""
        pads = 2 * reach
        n_sentences, n_tokens = len(offsets) - 1, len(words)
        position = np.arange(n_tokens) + pads * sentence_ids(offsets) + reach
        codes = np.empty(n_tokens + pads * n_sentences, np.int32)
        before = offsets[:-1] + pads * np.arange(n_sentences) + reach
        after = before + np.diff(offsets) - 1
        for distance in range(1, reach + 1):
            codes[before - distance] = distance - 1
            codes[after + distance] = reach + distance - 1
        codes[position] = words + np.int32(pads)
        return cls(codes, position, reach)

    def at(self, offset: int) -> I32:
        """int32[N]: the code `offset` places to the right of every token, -reach .. reach."""
        codes: I32 = self.codes[self.position + offset]
        return codes


def ngram_offsets(n: int) -> range:
    """Places of an n-gram relative to the token it stands for: -1, 0, 1 for n = 3."""
    return range(-(n // 2), n - n // 2)


def ngrams(words: Words, offsets: I64, n: int) -> I64:
    """The n-gram around every token as int64[N], dense codes 0, 1, ... in sorted order."""
    windows = Windows.lay(words.codes, offsets, n // 2)
    size = len(words.strings) + 2 * windows.reach
    codes, _ = packed([(windows.at(offset), size) for offset in ngram_offsets(n)])
    return codes


def packed(parts: Sequence[tuple[I32 | I64, int]]) -> tuple[I64, int]:
    """One dense code per tuple of codes: (codes int64[N], how many different ones).

    `parts` are (codes >= 0, bound) each. Codes are in the order of the tuples. As many parts go
    into one integer as fit; then they are made dense, which takes as much room as N does.
    """
    codes, size = parts[0][0].astype(np.int64), parts[0][1]
    for more, bound in parts[1:]:
        if size > _LARGEST // bound:
            codes, size = _dense(codes, size)
        codes = codes * bound + more
        size *= bound
    return _dense(codes, size)


def _dense(codes: I64, size: int) -> tuple[I64, int]:
    if size <= 4 * len(codes):  # a table is quicker than sorting
        there = np.bincount(codes, minlength=size) > 0
        return (np.cumsum(there) - 1)[codes], int(there.sum())
    values, codes = np.unique(codes, return_inverse=True)
    return codes, len(values)


def one_column(text: Corpus, column: str) -> Corpus:
    """The text with that column alone; UserError if there is none."""
    return Corpus({column: text.column(column)}, text.offsets)
