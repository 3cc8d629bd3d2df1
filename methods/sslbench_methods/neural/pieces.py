"""The pieces of a text in windows that a transformer reads, and batches of them in rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from sslbench import Corpus
from sslbench.engine.crf import Batch
from sslbench.engine.types import F32, I32, I64
from sslbench_methods.encoder.pieces import open_tokenizers, windows


@dataclass(frozen=True)
class Rows:
    """Pieces of a batch in rows of one length, several windows to a row.

    pieces: their places in the text.  row, column: int64[n], where each is.
    window: int32[rows, length], the number of the window at each place; -1 = empty.
    """

    pieces: slice
    row: I64
    column: I64
    window: I32


@dataclass(frozen=True)
class Pieces:
    """The pieces of a text of N tokens, window after window.

    A sentence that is too long is read in windows that overlap by half; a token counts in the one
    whose middle is nearest.

    ids: int64[P], numbers of the vocabulary.  position: int64[P], in the window.
    token: int64[P], whose piece it is; -1 = nobody's.
    share: float32[P], of a token's score: one over the number of its pieces.
    windows: int64[W + 1], borders in the pieces.  sentences: int64[S + 1], borders in the windows.
    """

    ids: I64
    position: I64
    token: I64
    share: F32
    windows: I64
    sentences: I64

    def rows(self, batch: Batch, length: int) -> Rows:
        """Put the windows of a batch into as few rows as their order allows, a multiple of four."""
        numbers = range(self.sentences[batch.sentence_lo], self.sentences[batch.sentence_hi])
        pieces = slice(int(self.windows[numbers.start]), int(self.windows[numbers.stop]))
        sizes = np.diff(self.windows[numbers.start : numbers.stop + 1])
        row_of, begin_of, used, row = [], [], 0, 0
        for size in sizes.tolist():
            if used + size > length:
                row, used = row + 1, 0
            row_of.append(row)
            begin_of.append(used)
            used += size
        rows = np.repeat(np.array(row_of, np.int64), sizes)
        columns = np.repeat(np.array(begin_of, np.int64), sizes) + self.position[pieces]
        window = np.full((4 * (row // 4 + 1), length), -1, np.int32)
        window[rows, columns] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        return Rows(pieces, rows, columns, window)


class Cutter:
    """Cuts the words of sentences into pieces; UserError if a folder's tokenizer cannot be read.

    limit: pieces of a window, with those that begin and end it.
    """

    def __init__(self, path: str, limit: int) -> None:
        self._tokenizer, self._counter = open_tokenizers(path, limit)
        self._room = limit - self._tokenizer.num_special_tokens_to_add(False)

    def cut(self, corpus: Corpus, column: str) -> Pieces:
        """Cut a whole text. column: whose words are read."""
        words = corpus.column(column).strings()
        windows_of = [
            self._windows(words[a:b], a) for a, b in pairwise(corpus.offsets.tolist())
        ]  # fmt: skip
        flat = [window for sentence in windows_of for window in sentence]
        sizes = [len(ids) for ids, _ in flat]
        none = np.empty(0, np.int64)
        ids = np.concatenate([none, *(ids for ids, _ in flat)])
        token = np.concatenate([none, *(token for _, token in flat)])
        count = np.bincount(token[token >= 0], minlength=len(words))
        share = np.where(token >= 0, 1 / np.maximum(count, 1)[token], 0.0).astype(np.float32)
        borders = np.cumsum([0, *sizes])
        position = np.arange(len(ids)) - np.repeat(borders[:-1], sizes)
        sentences = np.cumsum([0, *map(len, windows_of)])
        return Pieces(ids, position, token, share, borders, sentences)

    def _windows(self, words: Any, first: int) -> list[tuple[I64, I64]]:
        """Return the pieces of each window of a sentence: numbers, and tokens from `first` on."""
        whole = self._counter.encode(list(words), is_pretokenized=True, add_special_tokens=False)
        owners = [word for word in whole.word_ids if word is not None]
        parts = windows(np.bincount(owners, minlength=len(words)).tolist(), self._room)
        centers = np.array([part.start + part.stop - 1 for part in parts])
        nearest = np.abs(centers - 2 * np.arange(len(words))[:, None]).argmin(axis=1)
        made = []
        for number, part in enumerate(parts):
            read = self._tokenizer.encode(list(words[part.start : part.stop]), is_pretokenized=True)
            word = np.array([-1 if each is None else each for each in read.word_ids], np.int64)
            own = (word >= 0) & (nearest[part.start + word] == number)
            token = np.where(own, first + part.start + word, -1)
            made.append((np.array(read.ids, np.int64), token))
        return made
