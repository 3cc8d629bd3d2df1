"""Trials of tuning: what is stored of one, and what a record says of all."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

#: parts into which the labeled sample is cut for tuning
TUNING_FOLDS = 5


class PartScore(msgspec.Struct, frozen=True):
    """One training of a trial, scored on labeled sentences that it was not trained on.

    counts: by sentence, see `sslbench.experiment.metrics.SentenceCounts.to_lists`.
    seconds, cpu_s: wall and CPU time.
    error: why the training failed; None = it did not.
    """

    counts: dict[str, list[int]]
    seconds: float
    cpu_s: float
    error: str | None = None


class Trial(msgspec.Struct, frozen=True):
    """One candidate and its score.

    Attributes
    ----------
    params: values of the parameters that are searched.
    score: of `metric`, in [0, 1]; None if training failed with `error`.
    seconds, cpu_s: wall and CPU time of all its trainings.
    dropped_after: the number of folds that its score is of, if it left the race before the last
        one; such a trial is not chosen. Unset = its score is of all folds, or of the development
        split.
    """

    params: dict[str, Any]
    metric: str
    score: float | None
    seconds: float
    cpu_s: float
    error: str | None = None
    dropped_after: int | msgspec.UnsetType = msgspec.UNSET


class TuningSpent(msgspec.Struct, frozen=True):
    """What tuning was, and what it took.

    Attributes
    ----------
    status: "off" without a budget; "tuned"; "untuned" when there was a budget and nothing to search
        since the method declares no space or the user set all of its parameters.
    searched: names of the parameters that were searched.
    trials, cpu_s, seconds: number of trials, their CPU and wall seconds; those that were found in
        the store with what they took when they were made.
    dropped: how many of the trials left the race before the last fold.
    """

    status: Literal["off", "tuned", "untuned"] = "off"
    searched: list[str] = []
    trials: int = 0
    cpu_s: float = 0.0
    seconds: float = 0.0
    dropped: int = 0
