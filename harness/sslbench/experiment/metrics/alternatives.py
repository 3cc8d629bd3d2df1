"""Other answers that a task accepts, and which gold chunks they find."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sslbench.experiment.metrics.chunks import ChunkList, is_in
from sslbench.types import I64, Bool


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Spans of tokens that are accepted besides the gold chunks of a corpus; int64[A] each.

    first, last: tokens of the span, numbered through all sentences; both are inside, and in the
        same sentence. The order does not matter.

    As BioCreative I task 1A counts them (alt_eval.perl of GENETAG, L. Tanabe et al. 2005): a gold
    chunk is found by a predicted chunk that is the same, or that is an alternative and shares a
    token with it. A predicted chunk that is a gold chunk or an alternative is no false positive.
    So several answers for one gold chunk count once, and one answer may find two that it covers.
    An alternative has no type: they are for labels of one type.
    """

    first: I64
    last: I64

    def select(self, offsets: I64, sentences: I64) -> Alternatives:
        """Those of some sentences (each once), numbered as in the corpus of these alone.

        offsets: int64[S + 1] of the corpus; sentences: their indices in their new order.
        """
        lengths = np.diff(offsets)[sentences]
        shift = np.full(len(offsets) - 1, -1, dtype=np.int64)
        kept = np.zeros(len(shift), dtype=np.bool_)
        shift[sentences] = np.cumsum(lengths) - lengths - offsets[:-1][sentences]
        kept[sentences] = True
        sentence = np.searchsorted(offsets, self.first, side="right") - 1
        moved, chosen = shift[sentence], kept[sentence]
        return Alternatives((self.first + moved)[chosen], (self.last + moved)[chosen])


def alternative_lists(
    gold: ChunkList, predicted: ChunkList, others: Alternatives, n_tokens: int
) -> dict[str, ChunkList]:
    """The chunks behind `SentenceCounts.correct_alternatives` and `.false_positives`."""
    given = others.first[_is_chunk(others, predicted, n_tokens)]  # first tokens of answers given
    accepted = np.zeros(n_tokens, dtype=np.bool_)
    accepted[given] = True
    answers = predicted.where(accepted[predicted.start])
    # Both lists are disjoint and ordered: a gold chunk shares a token with the answer that ends
    # first of those that do not end before it, or with none.
    last = np.append(answers.last, n_tokens)
    start = np.append(answers.start, n_tokens)
    by_other = start[np.searchsorted(last[:-1], gold.start)] <= gold.last
    found = gold.where(by_other | is_in(gold, predicted, n_tokens))
    right = accepted[predicted.start] | is_in(predicted, gold, n_tokens)
    return {"correct_alternatives": found, "false_positives": predicted.where(~right)}


def _is_chunk(others: Alternatives, predicted: ChunkList, n_tokens: int) -> Bool:
    last_at = np.full(n_tokens, -1, dtype=np.int64)
    last_at[predicted.start] = predicted.last
    same: Bool = last_at[others.first] == others.last
    return same
