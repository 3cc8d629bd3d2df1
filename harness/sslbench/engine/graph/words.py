"""Graph text as integers: distinct forms, padded windows, n-grams packed into one number.

No string is made per token. Codes are positions among the sorted distinct forms of the text at
hand, so that what is built on them depends on that text alone: not on the order in which words were
read, nor on other words of a shared vocabulary (those of test sentences, say).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.engine.corpus import Column, Corpus
from sslbench.engine.corpus.columns import sentence_ids
from sslbench.engine.types import I32, I64

_LARGEST = 2**62  # bound of a packed number


@dataclass(frozen=True)
class CodedForms:
    """The distinct forms of a text in sorted order, and the form of every token.

    strings: the forms. codes: int32[N], indices into them.
    """

    strings: list[str]
    codes: I32

    @classmethod
    def from_column(cls, column: Column) -> CodedForms:
        """The words of a column; entries of its vocabulary that do not occur are left out."""
        known = column.vocabulary.strings
        occurs = np.flatnonzero(np.bincount(column.codes, minlength=len(known)))
        rank = np.empty(len(known), np.int32)
        rank[occurs] = np.arange(len(occurs), dtype=np.int32)
        return cls([known[code] for code in occurs.tolist()], rank[column.codes]).mapped(str)

    def mapped(self, form: Callable[[str], str]) -> CodedForms:
        """Every word replaced by its form; `form` runs once per distinct word."""
        forms = list(map(form, self.strings))
        strings, table = numbered(forms)
        return CodedForms(strings, table[self.codes])

    def digest(self, offsets: I64) -> str:
        """SHA-256 of words and sentence borders (int64[S + 1]): equal text, equal digest."""
        text = hashlib.sha256()
        for string in self.strings:  # length first: a word may hold any separator
            data = string.encode("utf-8", "surrogatepass")
            text.update(len(data).to_bytes(8, "little") + data)
        for array in (self.codes.astype("<i4"), offsets.astype("<i8")):
            text.update(len(array).to_bytes(8, "little") + array.tobytes())
        return text.hexdigest()


def numbered(values: Sequence[str]) -> tuple[list[str], I32]:
    """The distinct values, sorted, and int32[n]: the position of each of `values` among them."""
    strings = sorted(set(values))
    position = dict(zip(strings, range(len(strings)), strict=True))
    return strings, np.fromiter(map(position.__getitem__, values), np.int32, len(values))


@dataclass(frozen=True)
class Windows:
    """Tokens with their context: sentences end to end with pads between them.

    A pad differs by side and distance: code `d - 1` is <sd>, the pad d before the first token, code
    `reach + d - 1` is </sd>, the pad d after the last; word c has the code `2 * reach + c`.

    codes: int32[N + 2 * reach * S]. position: int64[N], the index of each token in them.
    """

    codes: I32
    position: I64
    reach: int

    @classmethod
    def from_sentences(cls, words: I32, offsets: I64, reach: int) -> Windows:
        """Pad the sentences of codes int32[N]; sentence i is offsets[i] .. offsets[i + 1] - 1."""
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
    """Offsets of the words of an n-gram from its center: -1, 0, 1 for n = 3."""
    return range(-(n // 2), n - n // 2)


def ngrams(words: CodedForms, offsets: I64, n: int) -> I64:
    """Return the n-gram around every token as int64[N], dense codes 0, 1, ... in sorted order."""
    windows = Windows.from_sentences(words.codes, offsets, n // 2)
    size = len(words.strings) + 2 * windows.reach
    codes, _ = packed([(windows.at(offset), size) for offset in ngram_offsets(n)])
    return codes


def packed(parts: Sequence[tuple[I32 | I64, int]]) -> tuple[I64, int]:
    """One dense code per tuple of codes: (codes int64[N], number of distinct tuples).

    `parts` are (codes >= 0, bound) each. Codes are in the order of the tuples. As many parts as fit
    go into one integer, which is then made dense before the next; memory is proportional to N.
    """
    codes, size = parts[0][0].astype(np.int64), parts[0][1]
    for more, bound in parts[1:]:
        if size > _LARGEST // bound:
            codes, size = _dense(codes, size)
        codes = codes * bound + more
        size *= bound
    return _dense(codes, size)


def _dense(codes: I64, size: int) -> tuple[I64, int]:
    if size <= 4 * len(codes):  # a table is faster than sorting
        occurs = np.bincount(codes, minlength=size) > 0
        return (np.cumsum(occurs) - 1)[codes], int(occurs.sum())
    values, codes = np.unique(codes, return_inverse=True)
    return codes, len(values)


def one_column(text: Corpus, column: str) -> Corpus:
    """Return the text with that column alone; UserError if it has none."""
    return Corpus({column: text.column(column)}, text.offsets)
