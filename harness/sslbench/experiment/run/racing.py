"""Successive halving of trials over the folds of the labeled sentences.

All trials are trained on the first fold. The best of them go on to the second, the best of these to
the third, and so on (successive halving: Karnin, Koren & Somekh 2013; Jamieson & Talwalkar 2016,
with folds for iterations). Trials are compared on all folds that they have been trained on, so a
trial that has left is not taken back. Of the last ones, the best on all folds is chosen: the best
of all trials may have left. docs/statistics.md#racing has what is lost and saved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sslbench.experiment.records.trials import Trial
from sslbench.experiment.run.trials import Attempt, Trials

#: the parts of all trials that go on after the first, the second, and each further fold
SHARES = (1 / 2, 3 / 8, 1 / 4)
#: of those, at least
LEAST = 2
#: folds per trial that a race of many trials takes
FOLDS = 1 + sum(SHARES) + SHARES[-1]


def survivors(trials: int, folds: int, shares: Sequence[float] = SHARES) -> int:
    """Return how many of so many trials go on when all were trained on so many folds."""
    share = shares[min(folds, len(shares)) - 1]
    return min(trials, max(LEAST, math.ceil(share * trials)))


class Race:
    """The trials of one search; see `sslbench.experiment.run.tuning.Contest`.

    shares: see `SHARES`.
    """

    def __init__(self, trials: Trials, shares: Sequence[float] = SHARES) -> None:
        self.trials = trials
        self.shares = shares
        self.attempts: list[Attempt] = []
        self._leader: Attempt | None = None

    def enter(self, params: Mapping[str, Any]) -> float:
        """Train on the first fold; the CPU seconds are those that a trial takes on average."""
        attempt = self.trials.attempt(params)
        self.attempts.append(attempt)
        self.trials.advance(attempt, 1)
        return FOLDS * attempt.cpu_s

    def leader(self) -> Mapping[str, Any]:
        """Return the best trial, after a fold, of those that were here when it was first asked."""
        if self._leader is None:
            self._leader = max(self.attempts, key=lambda each: self.trials.score(each, 1))
        return self._leader.params

    def finish(self) -> list[Trial]:
        """Let the trials race, and return all in the order of their entries."""
        self.run()
        return [self.trials.trial(attempt) for attempt in self.attempts]

    def run(self) -> None:
        """Let the trials race to the last fold."""
        left = self.attempts
        for folds in range(1, self.trials.n_parts):
            number = survivors(len(self.attempts), folds, self.shares)
            left = self._advanced(left, number, folds, folds + 1)
        while all(each.error is not None for each in left):  # the next best one takes their place
            left = [each for each in self.attempts if each.error is None]
            if not left:
                return
            left = self._advanced(left, 1, 1, self.trials.n_parts)

    def _advanced(
        self, attempts: list[Attempt], number: int, after: int, folds: int
    ) -> list[Attempt]:
        """Train the best so many after so many folds on further ones; return them.

        Of equal ones the first are the best.
        """
        scores = [-self.trials.score(attempt, after) for attempt in attempts]
        places = sorted(sorted(range(len(attempts)), key=scores.__getitem__)[:number])
        left = [attempts[place] for place in places]
        for attempt in left:
            self.trials.advance(attempt, folds)
        return left
