"""Input of the engine: attributes of a corpus, cut into batches of whole sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from sslbench.engine.lazy import lazy
from sslbench.engine.types import F64, I32, I64, Bool

#: sentences whose edge marginals are added up together
GROUP_SENTENCES = 8


class Attributes(Protocol):
    """Attributes of a corpus of N tokens, as a featurizer encodes them; -1 = none in that slot."""

    @property
    def node(self) -> I32:
        """int32[S, N]: attributes of labels, slot by slot."""
        ...

    @property
    def edge(self) -> I32:
        """int32[Se, N]: attributes of transitions."""
        ...

    @property
    def dense(self) -> F64 | None:
        """float64[N, D]: real-valued columns, if there are any."""
        ...

    @property
    def offsets(self) -> I64:
        """int64[n_sentences + 1]: first token of each sentence, and N."""
        ...


@dataclass(frozen=True)
class Batch:
    """Consecutive whole sentences of a corpus: tokens lo:hi, sentences sentence_lo:sentence_hi.

    offsets: int64[s + 1] first token of each sentence, counted from lo, and hi - lo.
    """

    lo: int
    hi: int
    sentence_lo: int
    sentence_hi: int
    offsets: I64

    @property
    def n_tokens(self) -> int:
        return self.hi - self.lo

    @property
    def tokens(self) -> slice:
        """The part of the batch in arrays over the tokens of the corpus."""
        return slice(self.lo, self.hi)

    @property
    def sentences(self) -> slice:
        """The part of the batch in arrays over the sentences of the corpus."""
        return slice(self.sentence_lo, self.sentence_hi)

    @lazy
    def first(self) -> Bool:
        """bool[n]: whether a token is the first of its sentence."""
        first = np.zeros(self.n_tokens, np.bool_)
        first[self.offsets[:-1]] = True
        return first

    @lazy
    def single(self) -> I64:
        """int64[k]: the tokens of the sentences of one token."""
        single: I64 = self.offsets[:-1][np.diff(self.offsets) == 1]
        return single

    @lazy
    def longest_first(self) -> I64:
        """int64[s]: the sentences, longest first; equal ones in their order."""
        return np.argsort(-np.diff(self.offsets), kind="stable")

    @lazy
    def longest_of_eight(self) -> int:
        """Sum over groups of eight sentences, in order of length, of the tokens of the longest."""
        return int(np.diff(self.offsets)[self.longest_first[::8]].sum())

    def groups(self, sentences_per_group: int = GROUP_SENTENCES) -> I64:
        """Return int64[G + 1]: the borders of sentence ranges that one thread handles at a time.

        They do not depend on the number of threads, nor do the sums over them.
        """
        n = self.sentence_hi - self.sentence_lo
        return np.minimum(np.arange(0, n + sentences_per_group, sentences_per_group), n)


# read by kernels
class SentenceGroups(NamedTuple):
    """The sentences of a batch, as kernels read them.

    offsets: int64[s + 1] as in `Batch`; groups: int64[G + 1] sentence ranges that one thread
    handles at a time; weights: float64[s] >= 0 of the sentences.
    """

    offsets: I64
    groups: I64
    weights: F64


class LabelTriples(NamedTuple):
    """Log-potentials of a second-order chain, or sums over a batch of marginals or derivatives.

    begin: float64[L, L] of the first two labels of a sentence; inner: float64[L, L, L] of any three
    in a row; end: float64[L, L] of the last two.
    """

    begin: F64
    inner: F64
    end: F64

    def pairs(self) -> F64:
        """Return float64[1, L, L]: sums over all positions, by pairs of labels in a row."""
        total: F64 = self.begin + self.inner.sum(axis=0)
        return total[None]

    def times(self, factor: float) -> LabelTriples:
        """Return the triples times a factor."""
        return LabelTriples(*(factor * part for part in self))

    def plus(self, other: LabelTriples, factor: float = 1.0) -> LabelTriples:
        """Return the triples plus other ones times a factor."""
        return LabelTriples(*(a + factor * b for a, b in zip(self, other, strict=True)))


def batches(offsets: I64, min_tokens: int) -> Iterator[Batch]:
    """Cut sentences into batches of at least min_tokens tokens (the last one may be smaller).

    offsets: int64[n_sentences + 1].
    Raises ValueError for a sentence without a token: the kernels would read and write beyond it.
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
    """Return the used slots, int32[<= S], ordered by group, and borders of groups, int64[G + 1].

    Slots of different groups share no attribute; the slots of a bag template share theirs.
    codes: int32[S, N].  The attributes of a template have consecutive numbers, so it is enough to
    compare ranges.
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
