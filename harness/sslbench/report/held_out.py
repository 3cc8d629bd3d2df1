"""What cross-validation on a labeled sample says of the score on new text, and how surely."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from sslbench.engine.types import F64, I64
from sslbench.experiment.data import Dataset
from sslbench.experiment.inputs.protocol import fold_draws
from sslbench.experiment.metrics import SentenceCounts, metrics_from_counts
from sslbench.experiment.records.record import RunRecord

LEVEL = 0.05
#: adjacent sentences that count as one witness where folds are blocks: about an abstract
BLOCK = 10


@dataclass(frozen=True)
class Range:
    """A score or a difference, in [-1, 1], with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half of the length of the interval, before it is cut at its limits."""
        return max(self.high - self.value, self.value - self.low)


def score_range(record: RunRecord, dataset: Dataset) -> Range:
    """The primary metric of a cross-validated run, and where that of new text is expected.

    The interval is Student's, over the scores of the folds. Their models share sentences, so the
    variance of the mean is taken as (1/k + 1/(k-1)) s^2, not s^2/k (Nadeau & Bengio 2003).
    """
    score = record.score or 0.0
    counts = SentenceCounts.from_lists(record.counts["test"])
    sizes = [len(held_out) for _, held_out in fold_draws(dataset, record.spec.protocol)]
    fold = np.repeat(np.arange(len(sizes)), sizes)
    name = record.primary_metric
    scores = [metrics_from_counts(counts, fold == i).get(name, math.nan) for i in range(len(sizes))]
    half = half_width(np.array([each for each in scores if not math.isnan(each)]))
    return Range(score, max(0.0, score - half), min(1.0, score + half))


def half_width(scores: F64) -> float:
    """Half of the 95 % interval of the mean of the scores of folds; 1 for fewer than two folds."""
    k = len(scores)
    if k < 2:
        return 1.0
    quantile = float(stats.t.ppf(1 - LEVEL / 2, k - 1))
    return quantile * math.sqrt(1 / k + 1 / (k - 1)) * float(np.std(scores, ddof=1))


def witnesses(record: RunRecord, dataset: Dataset) -> I64 | None:
    """int64[S]: the document or block of each tested sentence; None: each speaks for itself."""
    protocol = record.spec.protocol
    held_out = np.concatenate([held for _, held in fold_draws(dataset, protocol)])
    documents = dataset.splits["train"].documents
    if protocol.fold_by == "documents" and documents is not None:
        return np.unique(documents[held_out], return_inverse=True)[1].astype(np.int64)
    return held_out // BLOCK if protocol.fold_by == "blocks" else None
