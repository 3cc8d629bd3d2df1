"""Comparisons of the rows of a table: with the baseline, and of all ranked rows in pairs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sslbench.engine.errors import UserError
from sslbench.engine.types import F64
from sslbench.experiment.metrics import CountTable
from sslbench.experiment.records.record import RunRecord
from sslbench.report.draws import MIN_DRAWS, MethodsTest, compare_methods, values
from sslbench.report.ranks import Pair, pairs_of
from sslbench.report.rows import Row, distinct, fingerprint, successful
from sslbench.report.significance import Paired, compare_taggers, count_table, holm

RunPair = tuple[RunRecord, RunRecord]


class Comparer:
    """Compares rows by a metric; the counts of a row are read once."""

    def __init__(self, metric: str) -> None:
        self._metric = metric
        self._tables: dict[tuple[str, ...], CountTable] = {}
        self._values: dict[tuple[str, ...], F64] = {}

    def methods(self, pairs: Sequence[RunPair]) -> MethodsTest | None:
        """The test of the methods; None with too few draws or sentences, or without counts."""
        sides = self._sides(pairs)
        if sides is None or len(pairs) < MIN_DRAWS or sides[0].rows.shape[1] < 2:
            return None
        try:
            return compare_methods(*(self._of_sentences(side) for side in _records(pairs)))
        except KeyError:
            return None

    def taggers(self, pairs: Sequence[RunPair]) -> Paired | None:
        """The test of these taggers; None without pairs or without counts for the metric."""
        sides = self._sides(pairs)
        try:
            return None if sides is None else compare_taggers(*sides, self._metric)
        except UserError:
            return None

    def _sides(self, pairs: Sequence[RunPair]) -> tuple[CountTable, CountTable] | None:
        if not pairs:
            return None
        try:
            ours, theirs = map(self._table, _records(pairs))
        except UserError:
            return None
        same = ours.rows.shape == theirs.rows.shape and ours.fields == theirs.fields
        return (ours, theirs) if same else None

    def _table(self, records: Sequence[RunRecord]) -> CountTable:
        runs = _runs(records)
        if runs not in self._tables:
            self._tables[runs] = count_table(records)
        return self._tables[runs]

    def _of_sentences(self, records: Sequence[RunRecord]) -> F64:
        runs = _runs(records)
        if runs not in self._values:
            self._values[runs] = values(self._table(records), self._metric)
        return self._values[runs]


def _records(pairs: Sequence[RunPair]) -> tuple[list[RunRecord], list[RunRecord]]:
    """Those of each side."""
    return [ours for ours, _ in pairs], [theirs for _, theirs in pairs]


def _runs(records: Sequence[RunRecord]) -> tuple[str, ...]:
    return tuple(record.run_id for record in records)


def run_pairs(ours: Row, theirs: Row) -> list[RunPair]:
    """Runs of both rows with the same seed and test sentences, without identical repeats.

    Ranked rows are compared on the seeds of their means.
    """
    seeds = sorted(set(ours.seeds) & set(theirs.seeds))
    if ours.complete and theirs.complete:
        shared = set(ours.counted) | set(theirs.counted)
        seeds = [seed for seed in seeds if seed in shared]
    pairs = {}
    for seed in seeds:
        a, b = ours.cells[seed], theirs.cells[seed]
        if successful(a) and successful(b) and _comparable(a, b):
            pairs[seed] = (a, b)
    marks = [(seed, _pair_print(pair)) for seed, pair in pairs.items()]
    return [pairs[seed] for seed in distinct(marks)] if marks else []


def _pair_print(pair: RunPair) -> str | None:
    a, b = map(fingerprint, pair)
    return None if a is None or b is None else f"{a} {b}"


def _comparable(a: RunRecord, b: RunRecord) -> bool:
    return _test_set(a) == _test_set(b) and "test" in a.counts and "test" in b.counts


def _test_set(record: RunRecord) -> str:
    return str(record.data.get("test_sha256"))


def with_baseline(
    rows: Sequence[Row], baselines: Sequence[str], comparer: Comparer
) -> tuple[list[Row], list[str]]:
    """Rows with their comparison with the baseline, and the methods that served as baseline."""
    compared, used = [], []
    for row in rows:
        base = baseline_of(row, rows, baselines)
        if base is not None:
            pairs = run_pairs(row, base)
            row = replace(
                row,
                paired=comparer.methods(pairs),
                taggers=comparer.taggers(pairs),
                draws=len(pairs),
            )
            used.append(base.method)
        compared.append(row)
    corrected = holm([row.paired.p_value for row in compared if row.paired])
    of_taggers = holm([row.taggers.p_value for row in compared if row.taggers])
    with_p = [
        replace(
            row,
            p_holm=corrected.pop(0) if row.paired else None,
            taggers_holm=of_taggers.pop(0) if row.taggers else None,
        )
        for row in compared
    ]
    return with_p, sorted(set(used))


def baseline_of(row: Row, rows: Sequence[Row], baselines: Collection[str]) -> Row | None:
    """The row that this one is compared with; None for a baseline itself.

    Of the rows of a baseline with the same featurizer and model, the one that differs in fewest of
    the parameters that both have.
    """
    if row.method in baselines:
        return None
    order = list(baselines)

    def distance(other: Row) -> tuple[int, int]:
        ours, theirs = dict(row.key.params), dict(other.key.params)
        differ = sum(ours[name] != theirs[name] for name in ours.keys() & theirs.keys())
        return order.index(other.method), differ

    candidates = [
        other
        for other in rows
        if other.method in baselines
        and (other.featurizer, other.key.featurizer_digest, other.model)
        == (row.featurizer, row.key.featurizer_digest, row.model)
    ]
    return min(candidates, key=distance, default=None)


def pair_p_values(rows: Sequence[Row], comparer: Comparer) -> dict[Pair, float] | None:
    """p of the methods for all pairs of ranked rows; None if a pair cannot be tested."""
    p_values = {}
    for a, b in pairs_of(sum(row.rank is not None for row in rows)):
        test = comparer.methods(run_pairs(rows[a], rows[b]))
        if test is None:
            return None
        p_values[a, b] = test.p_value
    return p_values
