"""How long an evaluation of an objective takes, told before a long one starts.

The constants are of one core of a server of 2024, for 10 to 300 labels. An estimate is within a
factor of three there: it says whether to wait minutes or days.
"""

from __future__ import annotations

import numpy as np

from sslbench.engine.crf.weights.layout import Layout
from sslbench.engine.files.folders import tell_once
from sslbench.engine.types import F64, Bool

#: per token and combination of adjacent labels (pairs, or triples with a second-order model)
PER_COMBINATION = {1: 2e-10, 2: 4e-10}
#: second order, sentences of more than LONG tokens: per token and pair of labels, since messages of
#: such a sentence do not fit into the processor's caches
PER_LONG_PAIR, LONG = 6e-8, 500
TOLD_FROM = 5.0


def combinations(n_labels: int, order: int, transition_mask: Bool | None) -> int:
    """Allowed pairs (order 1) or triples (order 2) of adjacent labels; mask: bool[L+1, L]."""
    if transition_mask is None:
        return int(n_labels ** (order + 1))
    pairs = transition_mask[:n_labels].astype(np.int64)
    return int(pairs.sum() if order == 1 else pairs.sum(axis=0) @ pairs.sum(axis=1))


def evaluation_seconds(lengths: F64, n_labels: int, order: int, combined: int) -> float:
    """Return the CPU seconds of an evaluation.

    lengths: tokens of each sentence; combined: see `combinations`.
    """
    seconds = PER_COMBINATION[order] * combined * float(lengths.sum())
    if order == 2:
        seconds += PER_LONG_PAIR * n_labels**2 * float(lengths[lengths > LONG].sum())
    return seconds


def tell_of_work(lengths: F64, layout: Layout, transition_mask: Bool | None) -> None:
    """Write a line to standard error if an evaluation takes long, once for all processes of a run.

    lengths: tokens of each sentence.
    """
    n_labels, order = layout.n_labels, layout.order
    combined = combinations(n_labels, order, transition_mask)
    seconds = evaluation_seconds(lengths, n_labels, order, combined)
    if seconds >= TOLD_FROM:
        kind = "triples" if order == 2 else "pairs"
        hint = "; --model crf1 is faster" if order == 2 else ""
        tell_once(
            f"warning: each step of the training takes about {seconds:,.0f} CPU seconds"
            f" ({lengths.sum():,.0f} tokens, {combined:,} {kind} of labels), and there may be"
            f" hundreds of steps{hint}",
            "work",
        )
