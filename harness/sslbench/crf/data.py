"""What the engine reads: attributes of a corpus, cut into batches of whole sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from sslbench.types import F64, I32, I64, Bool


class Attributes(Protocol):
    """Attributes of a corpus, as a featurizer encodes them (-1 = no attribute in that slot)."""

    @property
    def node(self) -> I32: ...  # int32[S, N] state attributes, slot-major
    @property
    def edge(self) -> I32: ...  # int32[Se, N] edge attributes
    @property
    def dense(self) -> F64 | None: ...  # float64[N, D] real-valued columns
    @property
    def offsets(self) -> I64: ...  # int64[n_sentences + 1]


@dataclass(frozen=True)
class Batch:
    """Consecutive whole sentences: tokens lo:hi, sentences sentence_lo:sentence_hi."""

    lo: int
    hi: int
    sentence_lo: int
    sentence_hi: int
    offsets: I64  # local to the batch, int64[s + 1]

    @property
    def n_tokens(self) -> int:
        return self.hi - self.lo

    @property
    def tokens(self) -> slice:
        return slice(self.lo, self.hi)

    @property
    def sentences(self) -> slice:
        return slice(self.sentence_lo, self.sentence_hi)

    @cached_property
    def first(self) -> Bool:
        """bool[n]: is the token the first of its sentence?"""
        mark = np.zeros(self.n_tokens, np.bool_)
        mark[self.offsets[:-1]] = True
        return mark

    @cached_property
    def single(self) -> I64:
        """Tokens that are sentences of their own."""
        alone: I64 = self.offsets[:-1][np.diff(self.offsets) == 1]
        return alone

    def groups(self, sentences_per_group: int = 8) -> I64:
        """Sentence ranges that one thread handles at a time (fixed, whatever the threads)."""
        n = self.sentence_hi - self.sentence_lo
        return np.append(np.arange(0, n, sentences_per_group), n).astype(np.int64)


def batches(offsets: I64, min_tokens: int) -> Iterator[Batch]:
    """Cut sentences into batches of at least min_tokens tokens (the last one may be smaller).

    ValueError if a sentence has no token: the kernels would read and write beyond it.
    """
    if (np.diff(offsets) <= 0).any():
        raise ValueError(f"sentence {int(np.argmax(np.diff(offsets) <= 0))} has no token")
    start, n = 0, len(offsets) - 1
    while start < n:
        stop = int(np.searchsorted(offsets, offsets[start] + min_tokens, side="left"))
        stop = min(max(stop, start + 1), n)
        lo, hi = int(offsets[start]), int(offsets[stop])
        yield Batch(lo, hi, start, stop, offsets[start : stop + 1] - lo)
        start = stop


def slot_groups(codes: I32) -> tuple[I32, I64]:
    """Order of the slots (int32[S]) and group borders (int64[G+1]) such that slots of different
    groups share no attribute (the slots of one bag template share theirs).

    codes: int32[S, N].  Attribute ids of one template are consecutive, so ranges decide.
    """
    ranges = []
    for s, row in enumerate(codes):
        used = row[row != -1]
        if len(used):
            ranges.append((int(used.min()), int(used.max()), s))
    ranges.sort()
    order: list[int] = []
    borders: list[int] = []
    top = None
    for low, high, s in ranges:
        if top is None or low > top:
            borders.append(len(order))
        top = high if top is None else max(top, high)
        order.append(s)
    borders.append(len(order))
    return np.asarray(order, np.int32), np.asarray(borders, np.int64)
