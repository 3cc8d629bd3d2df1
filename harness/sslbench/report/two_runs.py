"""The difference between the taggers of two runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from sslbench.engine.errors import UserError
from sslbench.engine.types import I64
from sslbench.experiment.metrics import CountTable, SentenceCounts, metrics_from_counts
from sslbench.experiment.records.record import RunRecord
from sslbench.report.significance import Paired, compare_taggers, count_table


@dataclass(frozen=True)
class RunComparison(Paired):
    """A paired test of two taggers on the same test sentences (docs/statistics.md).

    It says nothing about the methods: whether they differ is a question for several draws. The
    difference is the first score minus the second.

    Attributes
    ----------
    runs: the two run ids.  metric: name of the compared metric.
    scores: the metric of the two runs, in [0, 1].
    n_sentences: number of test sentences.
    warnings: further differences between the runs.
    """

    runs: tuple[str, str]
    metric: str
    scores: tuple[float, float]
    n_sentences: int
    warnings: tuple[str, ...]


def compare_runs(
    a: RunRecord, b: RunRecord, *, metric: str | None = None, groups: I64 | None = None
) -> RunComparison:
    """Test the difference between two taggers, sentence by sentence.

    metric: None = the primary metric of the first run.
    groups: int64[S], the document of each test sentence: the test then swaps whole documents.
    UserError for runs that have failed or have different test sentences.
    """
    _check(a, b)
    ours, theirs = count_table([a]), count_table([b])
    name = metric or a.primary_metric
    whole = ours, theirs
    if groups is not None:
        whole = _summed(ours, groups), _summed(theirs, groups)
    paired = compare_taggers(*whole, name)
    return RunComparison(
        **asdict(paired),
        runs=(a.run_id, b.run_id),
        metric=name,
        scores=(_score(a, name), _score(b, name)),
        n_sentences=ours.rows.shape[1],
        warnings=tuple(_differences(a, b)),
    )


def _summed(table: CountTable, groups: I64) -> CountTable:
    """The counts of groups of sentences."""
    _, group = np.unique(groups, return_inverse=True)
    by_sentence = table.rows.transpose(1, 0, 2)
    rows = np.zeros((int(group.max()) + 1, *by_sentence.shape[1:]), np.int64)
    np.add.at(rows, group, by_sentence)
    return CountTable(table.fields, rows.transpose(1, 0, 2))


def _score(run: RunRecord, metric: str) -> float:
    return metrics_from_counts(SentenceCounts.from_lists(run.counts["test"]))[metric]


def _check(a: RunRecord, b: RunRecord) -> None:
    """UserError unless both runs were successful on the same test sentences."""
    for run in (a, b):
        if run.status != "ok" or "test" not in run.counts:
            raise UserError(f"run {run.run_id} ({run.method}) is {run.status}: nothing to compare")
    if a.data.get("test_sha256") != b.data.get("test_sha256"):
        raise UserError(
            f"runs {a.run_id} and {b.run_id} have different test sets",
            hint="a paired test needs the same sentences",
        )


def _differences(a: RunRecord, b: RunRecord) -> list[str]:
    """Differences besides the method, which may also explain the difference of the scores."""
    sides = {
        "datasets": (a.dataset, b.dataset),
        "featurizers": (a.featurizer, b.featurizer),
        "models": (a.model, b.model),
        "seeds": (a.spec.protocol.seed, b.spec.protocol.seed),
        "protocols": (a.spec.protocol.describe(), b.spec.protocol.describe()),
    }
    lines = [f"the {what} differ: {x} and {y}" for what, (x, y) in sides.items() if x != y]
    components = sorted(name for name in {*a.code, *b.code} if a.code.get(name) != b.code.get(name))
    other = [name for name in components if name != "method" or a.method == b.method]
    if other:
        lines.append(f"the code differs: {', '.join(other)}")
    return lines
