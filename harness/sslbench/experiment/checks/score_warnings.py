"""What a user should know before believing a score."""

from __future__ import annotations

from math import sqrt

from sslbench.experiment.metrics import SentenceCounts

#: half the width of a 95 % interval above which a test is called small, in [0, 1]
WIDE = 0.05


def score_warnings(counts: SentenceCounts) -> list[str]:
    """Lines on a tagger that finds no chunk, and on a test that is too small to tell.

    The interval is that of a share of one half of as many independent tokens or chunks: the widest
    there is.
    """
    lines = []
    gold, predicted = counts.gold_chunks, counts.predicted_chunks
    if gold is not None and predicted is not None and gold.sum() and not predicted.sum():
        lines.append("the tagger finds nothing in the test: all of it is outside of spans")
    n, what = int(counts.n_tokens.sum()), "tokens"
    if gold is not None:
        n, what = int(gold.sum()), "gold spans"
    width = 1.96 * sqrt(0.25 / n) if n else 1.0
    if width > WIDE:
        lines.append(
            f"the test has {n} {what}: by chance, a score may be off by {100 * width:.0f} points"
            " (--folds K tests on all labeled sentences)"
        )
    return lines
