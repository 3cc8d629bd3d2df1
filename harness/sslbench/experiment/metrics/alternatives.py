"""Alternative answers that a task accepts besides the gold chunks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sslbench.engine.types import I64
from sslbench.experiment.metrics.chunks import ChunkList, is_in


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
