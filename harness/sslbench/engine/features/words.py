"""What is known of words: classes and vectors, looked up for any text.

Features that are learned from unlabeled text often are a table by word. A table gives a column of
classes, which templates read like any other, and dense columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from sslbench.engine.checked import Saved, table, vector
from sslbench.engine.corpus import Column, Corpus, Vocabulary, sentence_ids
from sslbench.engine.lazy import lazy
from sslbench.engine.types import F32, F64, I32, Arrays

#: texts, and the text of each word as a number into them; int32[V]
Classes = tuple[Sequence[str], I32]


@dataclass(frozen=True)
class WordFeatures:
    """Tables over words; a word that is not in them is looked up in lower case.

    column: whose texts are the words.
    words: all different, in the order of the tables.
    offsets: places around a token that are looked up.
    classes: by name of the new column; unknown words have the text "".
    vectors: float32[V, D], finite; unknown words and places outside of the sentence have zeros.
    """

    column: str
    words: Sequence[str]
    offsets: tuple[int, ...]
    classes: Mapping[str, Classes] = field(default_factory=dict)
    vectors: F32 | None = None
    _tables: list[Any] = field(default_factory=list, repr=False, compare=False)
    UNKNOWN: ClassVar[str] = ""

    @property
    def templates(self) -> tuple[str, ...]:
        """Templates of the classes, one for each class and place."""
        return tuple(f"{name}[{k}]" for name in self.classes for k in self.offsets)

    @property
    def dense_columns(self) -> tuple[str, ...]:
        """Names of the columns that `dense` gives."""
        size = 0 if self.vectors is None else self.vectors.shape[1]
        return tuple(f"{self.column}[{k}]:{d}" for k in self.offsets for d in range(size))

    def rows(self, corpus: Corpus) -> I32:
        """Return int32[N]: the row of each token's word; -1 for an unknown one."""
        column = corpus.column(self.column)
        if not self._tables or self._tables[0] is not column.vocabulary:
            self._tables[:] = [column.vocabulary, np.empty(0, np.int32)]
        vocabulary, known = self._tables
        numbers, new = self._numbers, vocabulary.strings[len(known) :]
        rows = (numbers.get(text, numbers.get(text.lower(), -1)) for text in new)
        self._tables[1] = known = np.append(known, np.fromiter(rows, np.int32, len(new)))
        return known[column.codes]

    @lazy
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @lazy
    def _columns(self) -> dict[str, tuple[Vocabulary, I32]]:
        """Vocabulary of each class, and the codes of the words, then that of unknown ones."""
        columns: dict[str, tuple[Vocabulary, I32]] = {}
        for name, (texts, codes) in self.classes.items():
            vocabulary = Vocabulary()
            table = vocabulary.encode([*texts, self.UNKNOWN])
            columns[name] = vocabulary, table[np.append(codes, len(texts))]
        return columns

    def annotate(self, corpus: Corpus) -> Corpus:
        """Return the corpus with a column for each class."""
        if not self.classes:
            return corpus
        rows = self.rows(corpus)
        for name, (vocabulary, codes) in self._columns.items():
            corpus = corpus.with_column(name, Column(vocabulary, codes[rows]))
        return corpus

    def dense(self, corpus: Corpus) -> F64:
        """Return float64[N, offsets D]: the vectors around each token, place by place."""
        vectors = np.empty((0, 0), np.float32) if self.vectors is None else self.vectors
        size = vectors.shape[1]
        rows, sentence = self.rows(corpus), sentence_ids(corpus.offsets)
        out = np.zeros((len(rows), size * len(self.offsets)))
        for place, k in enumerate(self.offsets):
            token = np.arange(max(0, -k), min(len(rows), len(rows) - k))
            token = token[(sentence[token] == sentence[token + k]) & (rows[token + k] >= 0)]
            out[token, place * size : (place + 1) * size] = vectors[rows[token + k]]
        return out

    def arrays(self) -> Saved:
        """Return arrays and metadata that `from_arrays` restores the features from."""
        arrays: Arrays = {f"class.{name}": codes for name, (_, codes) in self.classes.items()}
        if self.vectors is not None:
            arrays["vectors"] = self.vectors
        return arrays, {
            "column": self.column,
            "words": list(self.words),
            "offsets": list(self.offsets),
            "classes": {name: list(texts) for name, (texts, _) in self.classes.items()},
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, metadata: dict[str, Any]) -> WordFeatures:
        """Restore; ValueError when arrays and metadata do not fit together."""
        words = [str(word) for word in metadata["words"]]
        if len(set(words)) != len(words):
            raise ValueError("a word occurs twice")
        classes = {}
        for name, texts in metadata["classes"].items():
            bounds = (0, len(texts))
            codes = vector(arrays, f"class.{name}", np.int32, len(words), bounds)
            classes[str(name)] = [str(text) for text in texts], codes
        vectors = None
        if "vectors" in arrays:
            vectors = table(arrays, "vectors", np.float32, (len(words), None))
            if not np.isfinite(vectors).all():
                raise ValueError("a word vector is not finite")
        offsets = tuple(int(k) for k in metadata["offsets"])
        return cls(str(metadata["column"]), words, offsets, classes, vectors)
