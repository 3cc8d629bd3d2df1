"""The pieces of a text in windows that a transformer reads, and batches of them in rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sslbench import Corpus
from sslbench.engine.crf import Batch
from sslbench.engine.types import F32, I32, I64
from sslbench_methods.neural.tokenizer import open_tokenizers, windows


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
        """Put the windows of a batch into rows, see `in_rows`."""
        numbers = range(self.sentences[batch.sentence_lo], self.sentences[batch.sentence_hi])
        sizes = np.diff(self.windows[numbers.start : numbers.stop + 1])
        return Rows(self.of(batch), *in_rows(sizes, length))

    def of(self, batch: Batch) -> slice:
        """Return the places of the pieces of a batch."""
        first, last = self.sentences[batch.sentence_lo], self.sentences[batch.sentence_hi]
        return slice(int(self.windows[first]), int(self.windows[last]))


def in_rows(sizes: I64, length: int) -> tuple[I64, I64, I32]:
    """Put parts of a text into as few rows as their order allows, a multiple of four.

    sizes: int64[W], of each part, at most `length`, that of a row.

    Returns row and column of each place in the parts, int64[n], and the number of the part at each
    place of the rows, int32[rows, length]; -1 = empty.
    """
    row_of, begin_of, used, row = [], [], 0, 0
    for size in sizes.tolist():
        if used + size > length:
            row, used = row + 1, 0
        row_of.append(row)
        begin_of.append(used)
        used += size
    number = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.array(row_of, np.int64)[number]
    within = np.arange(len(number)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    columns = np.array(begin_of, np.int64)[number] + within
    part = np.full((4 * (row // 4 + 1), length), -1, np.int32)
    part[rows, columns] = number
    return rows, columns, part


class Cutter:
    """Cuts the words of sentences into pieces; UserError if a folder's tokenizer cannot be read.

    limit: pieces of a window, with those that begin and end it.
    """

    def __init__(self, path: str, limit: int) -> None:
        self._tokenizer, self._counter = open_tokenizers(path, limit)
        self._room = limit - self._tokenizer.num_special_tokens_to_add(False)

    @property
    def mask(self) -> int | None:
        """The number of the piece that stands for a masked one; None = there is none."""
        numbers = map(self._tokenizer.token_to_id, ("[MASK]", "<mask>"))
        return next((number for number in numbers if number is not None), None)

    def cut(self, corpus: Corpus, column: str) -> Pieces:
        """Cut a whole text. column: whose words are read."""
        words, borders = corpus.column(column).strings(), corpus.offsets.tolist()
        of_sentences = [self.windows(words[a:b]) for a, b in pairwise(borders)]
        none = np.empty(0, np.int64)
        ids, token, sizes = [none], [none], []
        for first, windows_ in zip(borders, of_sentences, strict=False):
            for numbers, owner in windows_:
                ids.append(numbers)
                token.append(np.where(owner >= 0, first + owner, -1))
                sizes.append(len(numbers))
        owners = np.concatenate(token)
        count = np.bincount(owners[owners >= 0], minlength=len(words))
        share = np.where(owners >= 0, 1 / np.maximum(count, 1)[owners], 0.0).astype(np.float32)
        ends = np.cumsum([0, *sizes])
        position = np.arange(len(owners)) - np.repeat(ends[:-1], sizes)
        sentences = np.cumsum([0, *map(len, of_sentences)])
        return Pieces(np.concatenate(ids), position, owners, share, ends, sentences)

    def windows(self, words: Sequence[str]) -> list[tuple[I64, I64]]:
        """Return the pieces of each window of a sentence: numbers, and the word of each.

        Both are int64[n]. A word is that of the pieces in the window whose middle is nearest to it;
        -1: the piece counts for no word. Of a word that is too long alone, the first pieces are
        read.
        """
        whole = self._counter.encode(list(words), is_pretokenized=True, add_special_tokens=False)
        owners = np.array([word for word in whole.word_ids if word is not None], np.int64)
        parts = windows(np.bincount(owners, minlength=len(words)).tolist(), self._room)
        centers = np.array([part.start + part.stop - 1 for part in parts])
        nearest = np.abs(centers - 2 * np.arange(len(words))[:, None]).argmin(axis=1)
        made = []
        for number, part in enumerate(parts):
            read = self._tokenizer.encode(list(words[part.start : part.stop]), is_pretokenized=True)
            word = np.array([-1 if each is None else each for each in read.word_ids], np.int64)
            own = (word >= 0) & (nearest[part.start + word] == number)
            made.append((np.array(read.ids, np.int64), np.where(own, part.start + word, -1)))
        return made
