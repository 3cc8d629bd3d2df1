"""Where a tagger is right: tokens and correct ones by word, by label and by length of sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sslbench.engine.types import I64, Bool
from sslbench.experiment.metrics.chunks import Labels
from sslbench.experiment.metrics.coverage import Coverage

#: by question ("words", "labels", "length") and part: number of tokens, number of correct ones.
#: The parts of a question add up to all tokens.
Anatomy = dict[str, dict[str, list[int]]]

#: shortest sentence of each part of "length"
LENGTHS = (1, 6, 11, 21, 41)
SEEN, IN_TEXT, NOWHERE, UNSEEN = "labeled text", "unlabeled text only", "neither", "not labeled"


def anatomy(
    gold: Labels, correct: Bool, offsets: I64, cover: Coverage | None, *, chunks: bool
) -> Anatomy:
    """Count the tokens of each part.

    Parameters
    ----------
    gold: (label names, int64[N] codes).  correct: bool[N].  offsets: int64[S + 1].
    cover: the coverage of the same N tokens; None = no question on words.
    chunks: labels are chunk tags, whose prefix is left out.
    """
    names = [name.partition("-")[2] or name if chunks else name for name in gold[0]]
    lengths = np.repeat(np.diff(offsets), np.diff(offsets))
    place = np.searchsorted(LENGTHS, lengths, side="right") - 1
    ends = [f"to {end - 1}" for end in LENGTHS[1:]] + ["and more"]
    questions = {
        "labels": _parts(names, gold[1], correct),
        "length": _parts(
            [f"{start} {end}" for start, end in zip(LENGTHS, ends, strict=True)], place, correct
        ),
    }
    if cover is None:
        return questions
    if cover.in_text is None:
        return {"words": _parts([SEEN, UNSEEN], cover.unseen, correct), **questions}
    where = np.where(cover.unseen, np.where(cover.in_text, 1, 2), 0)
    return {"words": _parts([SEEN, IN_TEXT, NOWHERE], where, correct), **questions}


def _parts(names: Sequence[str], codes: I64 | Bool, correct: Bool) -> dict[str, list[int]]:
    """Parts that occur; codes: int[N], into `names`, where a name may recur."""
    sizes = np.bincount(codes, minlength=len(names))
    right = np.bincount(codes, weights=correct, minlength=len(names))
    parts: dict[str, list[int]] = {}
    for name, size, n_right in zip(names, sizes.tolist(), right.tolist(), strict=True):
        if size:
            counts = parts.setdefault(name, [0, 0])
            counts[0] += size
            counts[1] += int(n_right)
    return parts


def added(all_parts: Sequence[Anatomy]) -> Anatomy:
    """The counts of several texts as those of one; questions that all of them answer alike."""
    total: Anatomy = {}
    for question in all_parts[0]:
        if all(question in other for other in all_parts):
            total[question] = _sum([other[question] for other in all_parts])
    return total


def _sum(tables: Sequence[Mapping[str, list[int]]]) -> dict[str, list[int]]:
    names = dict.fromkeys(name for table in tables for name in table)
    zero = [0, 0]
    return {
        name: [sum(table.get(name, zero)[i] for table in tables) for i in (0, 1)] for name in names
    }
