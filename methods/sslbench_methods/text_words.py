"""The words of a problem's text, numbered by frequency, and which stand side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sslbench import Problem
from sslbench.engine.corpus import sentence_ids
from sslbench.engine.types import I32, I64


@dataclass(frozen=True)
class TextWords:
    """Words that occur often enough in the labeled and the unlabeled sentences.

    words: the most frequent first, of equal ones in the order of their texts: neither the order of
        the sentences nor the codes of a vocabulary matter.
    counts: int64[V].
    number: int32[N], the word of each token; -1 for a rarer one.
    sentence: int64[N], of each token.
    """

    words: list[str]
    counts: I64
    number: I32
    sentence: I64

    @classmethod
    def of(cls, problem: Problem, column: str, min_count: int) -> TextWords:
        """Words with `min_count` occurrences. UserError for an unknown column."""
        text = problem.text(column)
        values = text.column(column)
        count = np.bincount(values.codes, minlength=len(values.vocabulary))
        strings = values.vocabulary.strings
        frequent = np.flatnonzero(count >= min_count).tolist()
        frequent.sort(key=lambda code: (-count[code], strings[code]))
        number = np.full(len(count), -1, np.int32)
        number[frequent] = np.arange(len(frequent))
        ids = sentence_ids(text.offsets)
        words = [strings[code] for code in frequent]
        return cls(words, count[frequent].astype(np.int64), number[values.codes], ids)

    def pairs(self, distance: int) -> sparse.csr_array:
        """int64[V, V]: how often word b comes `distance` tokens after word a in a sentence."""
        left, right = self.number[:-distance], self.number[distance:]
        both = (left >= 0) & (right >= 0) & (self.sentence[:-distance] == self.sentence[distance:])
        left, right = left[both], right[both]
        shape = len(self.words), len(self.words)
        ones = np.ones(len(left), np.int64)
        return sparse.csr_array(sparse.coo_array((ones, (left, right)), shape=shape))
