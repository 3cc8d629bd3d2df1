"""Which trials of cross-validation end before the last fold.

After each fold but the last, a trial is compared with the best finished one on the sentences that
both have labeled by then. It leaves the race unless it is ahead, or behind by less than
`BOUNDS` standard errors of the difference. The standard error is the jackknife's over sentences
(Efron & Tibshirani 1993, equation 11.5), since a metric may be a ratio of sums. Races over
test cases: Maron & Moore 1994; with paired differences, as here: Birattari et al. 2002.

A trial that has left is not taken back, so the order of trials counts. The best one of all may be
lost. `tests/experiment/test_racing.py` simulates what is lost on average.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sslbench.experiment.metrics import SentenceCounts, metrics_from_counts
from sslbench.experiment.metrics.counts import ratio

#: standard errors by which a trial may be behind after each fold; from the third one on it has to
#: be ahead. See docs/statistics.md#racing for what other bounds lose and save.
BOUNDS = (1.0, 1.0, 0.0)


class Race:
    """The trials of one search, compared on one metric. bounds: see `BOUNDS`."""

    def __init__(self, metric: str, bounds: Sequence[float] = BOUNDS) -> None:
        self.metric = metric
        self.bounds = bounds
        self._best: Sequence[SentenceCounts] = ()
        self._score = -math.inf

    def is_behind(self, folds: Sequence[SentenceCounts]) -> bool:
        """Return whether a trial ends here. folds: the counts of its folds until now."""
        if not self._best:
            return False
        ours, theirs = map(SentenceCounts.concatenate, (folds, self._best[: len(folds)]))
        ahead, error = difference(ours, theirs, self.metric)
        return ahead <= -self.bounds[min(len(folds), len(self.bounds)) - 1] * error

    def finish(self, folds: Sequence[SentenceCounts]) -> None:
        """Enter a trial with all of its folds; of equal ones the first stays the best."""
        score = metrics_from_counts(SentenceCounts.concatenate(folds))[self.metric]
        if score > self._score:
            self._best, self._score = folds, score


def difference(ours: SentenceCounts, theirs: SentenceCounts, metric: str) -> tuple[float, float]:
    """Return the difference of two taggers on the same sentences and its standard error.

    The error is the jackknife's over sentences; that of a single sentence is infinite.
    """
    wholes, without = [], []
    for counts in (ours, theirs):
        table = counts.table()
        sums = table.rows.sum(axis=0)
        wholes.append(float(ratio(sums, table.fields, metric)))
        without.append(ratio(sums - table.rows, table.fields, metric))
    leaving_out = without[0] - without[1]
    n = len(leaving_out)
    error = math.sqrt((n - 1) * float(leaving_out.var())) if n > 1 else math.inf
    return wholes[0] - wholes[1], error
