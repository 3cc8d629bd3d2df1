"""Leaderboards: a table per dataset and protocol, a pure function of run records."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from sslbench.experiment.record import RunRecord, content_id
from sslbench.report.significance import Paired, compare_counts, count_table, holm

BASELINE = "supervised"
RowKey = tuple[str, str, str, str]  # method, featurizer, model, parameters as text


@dataclass(frozen=True)
class Row:
    """One method (with its featurizer, model and parameters) in a table.

    Attributes
    ----------
    name: the method, with what distinguishes it from other rows of the table.
    rank: 1 = best of the complete rows; None = not complete.
    mean, sd: of the primary metric over seeds, in [0, 1]; None without enough successful runs.
    seeds: with a successful run.  scores: primary metric of each.
    missing: seeds of the table without a successful run.  failed: number of failed runs.
    paired: comparison with the baseline on their common seeds.  p_holm: corrected for the table.
    wall_s, cpu_s, peak_rss_mb: medians over successful runs, in seconds and MiB.
    labeled_sentences: of the labeled sample.  codes: versions of the code of its runs.
    """

    name: str
    method: str
    featurizer: str
    model: str
    params: str
    mean: float | None
    sd: float | None
    seeds: tuple[int, ...]
    scores: tuple[float, ...]
    missing: tuple[int, ...]
    failed: int
    wall_s: float | None
    cpu_s: float | None
    peak_rss_mb: float | None
    labeled_sentences: int | None
    codes: tuple[str, ...]
    paired: Paired | None = None
    p_holm: float | None = None
    rank: int | None = None

    @property
    def key(self) -> RowKey:
        """Method, featurizer, model and parameters."""
        return self.method, self.featurizer, self.model, self.params

    @property
    def mixed(self) -> bool:
        """Whether its runs are of more than one version of the code."""
        return len(self.codes) > 1

    @property
    def complete(self) -> bool:
        """Whether every seed of the table has a successful run."""
        return bool(self.seeds) and not self.missing


@dataclass(frozen=True)
class Table:
    """The results for a dataset under one protocol.

    Attributes
    ----------
    options: of the dataset, as set by the user.
    protocol: as text.
    curve: the protocol without the labeled sample: tables that share it form a learning curve.
    text_curve: the protocol without the unlabeled text: likewise.
    unlabeled_sentences: available to every method.
    metric: the primary metric.
    data: hash of the files and options of the dataset.
    seeds: of all runs.
    """

    dataset: str
    options: str
    protocol: str
    curve: str
    text_curve: str
    unlabeled_sentences: int
    metric: str
    data: str
    seeds: tuple[int, ...]
    rows: tuple[Row, ...]


_TableKey = tuple[str, str, str, int, str]


def leaderboard(records: Iterable[RunRecord]) -> list[Table]:
    """Build all tables from records in any order; skipped runs are left out.

    Of several runs of one cell (same row and seed, other code) the newest counts.
    """
    groups: dict[_TableKey, list[RunRecord]] = defaultdict(list)
    for record in records:
        if record.status != "skipped":
            groups[_table_key(record)].append(record)
    return [_table(key, groups[key]) for key in sorted(groups)]


def row_key(record: RunRecord) -> RowKey:
    """The row of a run: method, featurizer, model and the parameters that the user set."""
    params = ", ".join(f"{key}={record.spec.params[key]}" for key in sorted(record.spec.params))
    return record.method, record.featurizer, record.model, params


def _table_key(record: RunRecord) -> _TableKey:
    protocol = record.spec.protocol
    labeled = protocol.labeled
    # Padded, so that numbers are sorted by value, before shares and "all".
    size = f"{labeled:012d}" if isinstance(labeled, int) else f"~{labeled}"
    return record.dataset, record.spec.data.table, _curve(record), protocol.tune, size


def _curve(record: RunRecord) -> str:
    """The protocol as text, without the labeled sample."""
    protocol = record.spec.protocol
    folds = f"{protocol.folds} folds; " if protocol.folds else ""
    return f"{folds}unlabeled text: {protocol.describe_text()}; {protocol.tuning()}"


def _text_curve(record: RunRecord) -> str:
    """The protocol as text, without the amount of unlabeled text."""
    protocol = msgspec.structs.replace(record.spec.protocol, unlabeled=None)
    folds = f"{protocol.folds} folds; " if protocol.folds else ""
    labeled = f"labeled: {protocol.labeled}; {folds}"
    return f"{labeled}unlabeled text: {protocol.describe_text()}; {protocol.tuning()}"


def _table(key: _TableKey, records: Sequence[RunRecord]) -> Table:
    newest = max(records, key=_age)
    seeds = tuple(sorted({record.spec.protocol.seed for record in records}))
    groups: dict[RowKey, dict[int, RunRecord]] = defaultdict(dict)
    for record in sorted(records, key=_age):  # newer runs replace older ones
        groups[row_key(record)][record.spec.protocol.seed] = record
    names = row_names(groups)
    rows = [_row(names[group], group, cells, seeds) for group, cells in sorted(groups.items())]
    rows = _compare(rows, [groups[row.key] for row in rows], newest.primary_metric)
    return Table(
        dataset=key[0],
        options=", ".join(f"{k}={v}" for k, v in sorted(newest.spec.data.options.items())),
        protocol=f"labeled: {newest.spec.protocol.labeled}; {key[2]}",
        curve=key[2],
        text_curve=_text_curve(newest),
        unlabeled_sentences=max(
            record.data.get("sentences", {}).get("unlabeled", 0) for record in records
        ),
        metric=newest.primary_metric,
        data=key[1],
        seeds=seeds,
        rows=_ranked(rows),
    )


def _age(record: RunRecord) -> tuple[str, str]:
    return record.created, record.run_id


def row_names(keys: Collection[RowKey]) -> dict[RowKey, str]:
    """Short names of rows: the method, and those of the other parts that differ among `keys`."""
    varied = [len({key[part] for key in keys}) > 1 for part in range(4)]
    names = {}
    for key in keys:
        extra = [key[part] for part in range(1, 4) if varied[part] and key[part]]
        names[key] = f"{key[0]} ({'; '.join(extra)})" if extra else key[0]
    return names


def _row(
    name: str,
    key: RowKey,
    cells: Mapping[int, RunRecord],
    seeds: Sequence[int],
) -> Row:
    good = [cells[seed] for seed in sorted(cells) if _successful(cells[seed])]
    values = [record.score for record in good if record.score is not None]
    good_seeds = tuple(record.spec.protocol.seed for record in good)
    sizes = [record.data.get("sentences", {}).get("labeled") for record in good]
    return Row(
        name=name,
        method=key[0],
        featurizer=key[1],
        model=key[2],
        params=key[3],
        mean=statistics.fmean(values) if values else None,
        sd=statistics.stdev(values) if len(values) > 1 else None,
        seeds=good_seeds,
        scores=tuple(values),
        missing=tuple(seed for seed in seeds if seed not in good_seeds),
        failed=sum(record.status != "ok" for record in cells.values()),
        wall_s=_median([record.wall_s for record in good]),
        cpu_s=_median([record.cpu_s for record in good]),
        peak_rss_mb=_median([record.peak_rss_mb for record in good]),
        labeled_sentences=sizes[0] if sizes else None,
        codes=tuple(sorted({content_id(record.code) for record in cells.values()})),
    )


def _successful(record: RunRecord) -> bool:
    return record.status == "ok" and record.score is not None


def _median(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return statistics.median(numbers) if numbers else None


def _compare(
    rows: Sequence[Row], cells: Sequence[Mapping[int, RunRecord]], metric: str
) -> list[Row]:
    """The rows with their comparison with the baseline and the corrected p-value."""
    compared = []
    for row, own in zip(rows, cells, strict=True):
        base = _baseline_of(row, rows)
        if base is None:
            compared.append(row)
            continue
        pairs = _pairs(own, cells[rows.index(base)])
        if pairs:
            ours, theirs = (count_table(side) for side in zip(*pairs, strict=True))
            row = replace(row, paired=compare_counts(ours, theirs, metric))
        compared.append(row)
    tested = [row for row in compared if row.paired is not None]
    corrected = holm([row.paired.p_value for row in tested if row.paired is not None])
    by_key = {row.key: p for row, p in zip(tested, corrected, strict=True)}
    return [replace(row, p_holm=by_key.get(row.key)) for row in compared]


def _baseline_of(row: Row, rows: Sequence[Row]) -> Row | None:
    """The supervised row with the same featurizer and model, if possible the same parameters."""
    if row.method == BASELINE:
        return None
    candidates = [
        other
        for other in rows
        if (other.method, other.featurizer, other.model) == (BASELINE, row.featurizer, row.model)
    ]
    same = [other for other in candidates if other.params == row.params]
    default = [other for other in candidates if not other.params]
    return next(iter([*same, *default, *candidates]), None)


def _pairs(
    ours: Mapping[int, RunRecord], theirs: Mapping[int, RunRecord]
) -> list[tuple[RunRecord, RunRecord]]:
    """Successful runs of both rows with the same seed and the same test sentences."""
    pairs = []
    for seed in sorted(set(ours) & set(theirs)):
        a, b = ours[seed], theirs[seed]
        same = a.data.get("test_sha256") == b.data.get("test_sha256")
        if _successful(a) and _successful(b) and same and "test" in a.counts and "test" in b.counts:
            pairs.append((a, b))
    return pairs


def _ranked(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Complete rows by mean, best first, then the others without a rank."""
    complete = sorted((r for r in rows if r.complete), key=lambda r: (-(r.mean or 0.0), r.name))
    others = sorted((r for r in rows if not r.complete), key=lambda r: r.name)
    ranked = [
        # Equal means share a rank.
        replace(row, rank=1 + sum((other.mean or 0) > (row.mean or 0) for other in complete))
        for row in complete
    ]
    return (*ranked, *others)
