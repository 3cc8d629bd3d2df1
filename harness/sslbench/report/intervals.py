"""What a metric of runs is, with its 95 % interval, in percent.

A metric is named as in `sslbench.report.ledger.Line`: "" = the primary one on test, "dev.f1" = of
another part, "1-accuracy" = one minus a metric, "predicted_chunks" = the sum of a count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from scipy import stats

from sslbench.engine.errors import UserError
from sslbench.engine.types import F64
from sslbench.experiment.metrics import SentenceCounts
from sslbench.experiment.records.record import RunRecord
from sslbench.report.draws import MIN_DRAWS, crossed, values
from sslbench.report.significance import LEVEL, count_table

#: counts of sentences: their sums are no shares
COUNTS = frozenset(field.name for field in fields(SentenceCounts))
#: shares of sentences: of all, of those whose words are all in the labeled text, of the others
_SHARES = {
    "share_app": "all",
    "u_app": "all",
    "u_app_app": "known",
    "u_app_notapp": "others",
    "sentence_accuracy_app": "known",
    "sentence_accuracy_notapp": "others",
}


def interval_of_metric(
    metric: str,
    ours: Sequence[RunRecord],
    theirs: Sequence[RunRecord] = (),
    *,
    their_metric: str = "",
) -> tuple[float, float, float]:
    """Mean of a metric over runs, less its mean over others, with the ends of its interval.

    theirs: a run for each of `ours`, on the same draw. Runs on several datasets have the mean over
    datasets and an interval over these. their_metric: of these, if it is another one; then the
    interval is over draws. UserError without the metric, or if there is one number in all.
    """
    if their_metric not in ("", metric):
        first, second = metric_values(ours, metric), metric_values(theirs, their_metric)
        return _of_mean((first.mean(axis=1) - second.mean(axis=1))[:, None])
    sides = [side for side in (ours, theirs) if side]
    names = [list(dict.fromkeys(record.spec.dataset for record in side)) for side in sides]
    if len(names[0]) > 1:
        if any(set(each) != set(names[0]) for each in names):
            raise UserError("the runs and those that are subtracted are on different datasets")
        means = [[_mean(side, name, metric) for side in sides] for name in names[0]]
        return _of_mean(np.array([first - sum(rest) for first, *rest in means])[:, None])
    if all(len(side) == 1 and _sentences(side[0], metric) for side in sides):
        return _of_shares([side[0] for side in sides], metric)
    D, *others = (metric_values(side, metric) for side in sides)
    return _of_mean(D - sum(others))


def metric_values(records: Sequence[RunRecord], metric: str) -> F64:
    """float64[runs, sentences] with the metric as mean, in percent; the sum of a count.

    float64[runs, 1] of a metric that does not come from counts of sentences.
    """
    split, _, name = metric.removeprefix("1-").rpartition(".")
    split, name = split or "test", name or records[0].primary_metric
    if any(split not in record.counts for record in records):
        raise UserError(f"no part {split!r} in the records of {metric!r}")
    table = count_table(records, split)
    if name in table.fields:
        counts = table.rows[..., table.fields.index(name)].astype(np.float64)
        sums: F64 = counts * counts.shape[1]
        return sums
    try:
        values_of = values(table, name)
    except KeyError:
        scores = [record.metrics[split].get(name) for record in records]
        if None in scores:
            raise UserError(f"no metric {name!r} in the records") from None
        values_of = np.array(scores, np.float64)[:, None]
    percent: F64 = 100 * (1 - values_of) if metric.startswith("1-") else 100 * values_of
    return percent


def _mean(records: Sequence[RunRecord], dataset: str, metric: str) -> float:
    """Over the runs on a dataset."""
    runs = [record for record in records if record.spec.dataset == dataset]
    return float(metric_values(runs, metric).mean())


def _of_mean(D: F64) -> tuple[float, float, float]:
    """Mean and its interval: over draws and sentences, or over one of them if the other is alone.

    UserError if there is one number in all.
    """
    if D.size == 1:
        raise UserError("an interval needs two draws, or a metric of sentences")
    if min(D.shape) >= MIN_DRAWS:
        half = float(crossed(D).half_width())
    else:
        spread = D.std(ddof=1) / np.sqrt(D.size)
        half = float(stats.t.isf(LEVEL / 2, D.size - 1) * spread)
    return float(D.mean()), float(D.mean()) - half, float(D.mean()) + half


def _sentences(record: RunRecord, metric: str) -> int:
    """Sentences of which a metric of `_SHARES` is a share; 0 for other metrics."""
    split, _, name = metric.removeprefix("1-").rpartition(".")
    group, split = _SHARES.get(name), split or "test"
    if group is None or name not in record.metrics.get(split, {}):
        return 0
    n = len(record.counts[split]["n_tokens"])
    known = round((record.metrics[split]["share_app"] or 0) * n)
    return {"all": n, "known": known, "others": n - known}[group]


def _of_shares(sides: Sequence[RunRecord], metric: str) -> tuple[float, float, float]:
    """Share of one run, or of the first less that of the second, and its normal interval.

    The interval of a difference ignores that both have the same sentences, and is too wide.
    """
    split, _, name = metric.removeprefix("1-").rpartition(".")
    metrics = [record.metrics[split or "test"] for record in sides]
    shares = np.array([each[name] for each in metrics], dtype=np.float64)
    if metric.startswith("1-"):
        shares = 1 - shares
    variance = sum(shares * (1 - shares) / [_sentences(record, metric) for record in sides])
    half = 100 * float(stats.norm.isf(LEVEL / 2) * np.sqrt(variance))
    mean = 100 * float(shares[0] - sum(shares[1:]))
    return mean, mean - half, mean + half


def interval_of_sd(D: F64) -> tuple[float, float, float]:
    """Standard deviation over draws and its interval, if the means of draws are normal."""
    n = len(D)
    if n < MIN_DRAWS:
        raise UserError("a standard deviation needs two draws")
    sd = float(D.mean(axis=1).std(ddof=1))
    low, high = (
        sd * float(np.sqrt((n - 1) / stats.chi2.isf(tail, n - 1)))
        for tail in (LEVEL / 2, 1 - LEVEL / 2)
    )
    return sd, low, high
