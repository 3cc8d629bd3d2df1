"""Chunks of a labeling as arrays of borders and types, and alternatives that a task accepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sslbench.engine.corpus.columns import Vocabulary, first_tokens
from sslbench.engine.corpus.encodings import Scheme, TagTable, describe, mark_chunks
from sslbench.engine.errors import UserError
from sslbench.engine.types import I32, I64, AnyArray, Bool

Labels = tuple[Sequence[str], AnyArray]  # label names, and int[N] codes into them


@dataclass(frozen=True, eq=False)
class ChunkList:
    """K chunks from left to right, int[K] each; `last` is inside, `kind` codes the type."""

    start: NDArray[np.intp]
    last: NDArray[np.intp]
    kind: I32

    def where(self, mask: Bool) -> ChunkList:
        """Some of the chunks; mask: bool[K]."""
        return ChunkList(self.start[mask], self.last[mask], self.kind[mask])

    def untyped(self) -> ChunkList:
        """The same chunks, all of one type."""
        return ChunkList(self.start, self.last, np.zeros_like(self.kind))

    def per_sentence(self, offsets: I64) -> I64:
        """int64[S]: number of chunks in each sentence."""
        sentence = np.searchsorted(offsets, self.start, side="right") - 1
        return np.bincount(sentence, minlength=len(offsets) - 1)


def find_chunks(labels: Labels, offsets: I64, encoding: Scheme, kinds: Vocabulary) -> ChunkList:
    """The chunks of a labeling, whose types are added to `kinds`.

    offsets: int64[S + 1]. UserError for a label that occurs and is illegal in `encoding`.
    """
    names, codes = labels
    table = TagTable.from_tags(names, encoding, kinds)
    prefix, kind = table.prefix[codes], table.type[codes]
    if len(prefix) and prefix.min() < 0:
        label = names[codes[int(np.argmin(prefix))]]
        raise UserError(f"label {label!r} does not fit {encoding}", hint=describe(encoding))
    chunks = mark_chunks(prefix, kind, first_tokens(offsets))
    start = np.flatnonzero(chunks.start)
    return ChunkList(start, np.flatnonzero(chunks.last), kind[start])


def is_in(chunks: ChunkList, others: ChunkList, n_tokens: int) -> Bool:
    """bool[K]: whether the chunk is one of `others`, with the same borders and type."""
    last_at = np.full(n_tokens, -1, dtype=np.int64)
    kind_at = np.full(n_tokens, -1, dtype=np.int64)
    last_at[others.start] = others.last
    kind_at[others.start] = others.kind
    same: Bool = last_at[chunks.start] == chunks.last
    same &= kind_at[chunks.start] == chunks.kind
    return same


def per_sentence(flags: Bool, offsets: I64) -> I64:
    """int64[S]: number of tokens in each sentence with a true flag; flags: bool[N]."""
    before: I64 = np.concatenate([[0], np.cumsum(flags)])
    return before[offsets[1:]] - before[offsets[:-1]]


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Spans of tokens that are accepted besides the gold chunks of a corpus.

    first, last: int64[A], the first and last token of each span, both inside it and in the same
        sentence, as indices into all tokens of the corpus. In any order.

    They count as in BioCreative I task 1A (alt_eval.perl of GENETAG, L. Tanabe et al. 2005): a gold
    chunk is correct if it is predicted, or if a predicted alternative shares a token with it. A
    predicted chunk that is a gold chunk or an alternative is no false positive. Several answers for
    one gold chunk thus count once, and one answer may match two gold chunks that it covers.
    Alternatives have no type: they are for labels of one type.
    """

    first: I64
    last: I64

    def select(self, offsets: I64, sentences: I64) -> Alternatives:
        """The alternatives of a corpus made of some of the sentences.

        offsets: int64[S + 1] of this corpus; sentences: indices of the others, each once, in order.
        """
        lengths = np.diff(offsets)[sentences]
        shift = np.full(len(offsets) - 1, -1, dtype=np.int64)
        selected = np.zeros(len(shift), dtype=np.bool_)
        shift[sentences] = np.cumsum(lengths) - lengths - offsets[:-1][sentences]
        selected[sentences] = True
        sentence = np.searchsorted(offsets, self.first, side="right") - 1
        moved, mask = shift[sentence], selected[sentence]
        return Alternatives((self.first + moved)[mask], (self.last + moved)[mask])


def alternative_lists(
    gold: ChunkList, predicted: ChunkList, alternatives: Alternatives, n_tokens: int
) -> dict[str, ChunkList]:
    """The chunks that `SentenceCounts.correct_alternatives` and `.false_positives` count."""
    last_at = np.full(n_tokens, -1, dtype=np.int64)
    last_at[predicted.start] = predicted.last
    starts = alternatives.first[last_at[alternatives.first] == alternatives.last]
    accepted = np.zeros(n_tokens, dtype=np.bool_)  # at the first token of predicted alternatives
    accepted[starts] = True
    answers = predicted.where(accepted[predicted.start])
    # Gold chunks and answers are each disjoint and ordered: a gold chunk overlaps an answer iff it
    # overlaps the first answer that does not end before the chunk starts.
    last = np.append(answers.last, n_tokens)
    start = np.append(answers.start, n_tokens)
    overlaps = start[np.searchsorted(last[:-1], gold.start)] <= gold.last
    correct = gold.where(overlaps | is_in(gold, predicted, n_tokens))
    right = accepted[predicted.start] | is_in(predicted, gold, n_tokens)
    return {"correct_alternatives": correct, "false_positives": predicted.where(~right)}
