"""Split a gain by kinds of tokens, and convert it to a number of labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from sslbench.experiment.metrics.anatomy import IN_TEXT, NOWHERE, UNSEEN, added
from sslbench.report.rows import Row

Parts = dict[str, tuple[float, float]]


def gain_parts(row: Row, base: Row, question: str) -> Parts:
    """By part: its share of the tokens, and what it adds to the gain in token accuracy, in points.

    question: a key of `anatomy`.
    The parts are over the seeds that both rows have, and add up to the gain. Return {} without
    counts, or if the test sets differ.
    """
    seeds = sorted(set(row.seeds) & set(base.seeds))
    records = [[each.cells[seed] for seed in seeds] for each in (row, base)]
    if not seeds or not all(record.anatomy for side in records for record in side):
        return {}
    ours, theirs = (added([record.anatomy for record in side]).get(question) for side in records)
    if ours is None or theirs is None:
        return {}
    if UNSEEN in ours or UNSEEN in theirs:
        ours, theirs = _merged(ours), _merged(theirs)
    sizes = {name: size for name, (size, _) in ours.items()}
    total = sum(sizes.values())
    if sizes != {name: size for name, (size, _) in theirs.items()} or not total:
        return {}
    return {
        name: (sizes[name] / total, 100 * (ours[name][1] - theirs[name][1]) / total)
        for name in sizes
    }


def _merged(parts: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """One part for all words that are in no labeled sentence."""
    merged: dict[str, list[int]] = {}
    for name, (size, right) in parts.items():
        sums = merged.setdefault(UNSEEN if name in (IN_TEXT, NOWHERE) else name, [0, 0])
        sums[0] += size
        sums[1] += right
    return merged


def labels_worth(score: float, curve: Sequence[tuple[int, float]]) -> tuple[float, str]:
    """How many labeled sentences the baseline needs for a score.

    curve: sizes and scores of the baseline, ascending by size. Between two sizes the score is
    linear in the logarithm of the size; of several crossings the first one counts. Returns the
    number, and "" or, beyond the ends of the curve, "<" or ">".
    """
    if score <= curve[0][1]:
        return curve[0][0], "" if score == curve[0][1] else "<"
    for (size, low), (next_size, high) in pairwise(curve):
        if score <= high:
            share = (score - low) / (high - low)
            return math.exp(math.log(size) + share * math.log(next_size / size)), ""
    return curve[-1][0], ">"
