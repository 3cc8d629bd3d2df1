"""Leaderboards: a table per dataset and protocol, a pure function of run records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from sslbench.experiment.records.record import ProtocolSpec, RunRecord, RunSpec, content_id
from sslbench.report.comparisons import Comparer, pair_p_values, with_baseline
from sslbench.report.ranks import ranked, shared_seeds, with_groups
from sslbench.report.rows import Row, RowKey, make_row, marked, row_key, row_names


@dataclass(frozen=True)
class Table:
    """The results for a dataset under one protocol.

    Attributes
    ----------
    options: the options of the dataset as text; see `leaderboard`.
    protocol: the protocol as text.
    curve: the protocol without the labeled sample: tables that share it form a learning curve.
    text_curve: the protocol without the amount of unlabeled text, for curves over it.
    unlabeled_sentences: how many are available to every method.
    metric: the primary metric.
    data: hash of the data.
    task: the task of the dataset.
    labeled: the requested size of the labeled sample.
    seeds: the seeds that all ranked rows have.
    baselines: the methods that others are compared with.
    """

    dataset: str
    options: str
    protocol: str
    curve: str
    text_curve: str
    unlabeled_sentences: int
    metric: str
    data: str
    task: str
    labeled: int | str
    seeds: tuple[int, ...]
    baselines: tuple[str, ...]
    rows: tuple[Row, ...]


Options = Callable[[RunSpec], Mapping[str, object]]
_TableKey = tuple[str, str, str, str, str]


def leaderboard(
    records: Iterable[RunRecord],
    baselines: Sequence[str] = (),
    stale: Collection[str] = (),
    wanted: Mapping[str, Sequence[int]] | None = None,
    options: Options | None = None,
) -> list[Table]:
    """Build all tables from records in any order; skipped runs are left out.

    Of several runs of one cell (same row and seed) the newest counts.

    baselines: methods that the others are compared with, the preferred one first.
    stale: ids of the runs that are not of today's versions of the code.
    wanted: the seeds that each row of a table should have, by run id; None = those over which
        most runs can be compared.
    options: selects the options of the dataset for the heading of a table; None = all.
    """
    shown = options or (lambda spec: spec.data.options)
    groups: dict[_TableKey, list[RunRecord]] = defaultdict(list)
    for record in records:
        if record.status != "skipped":
            groups[_table_key(record)].append(record)
    given = baselines, stale, wanted or {}, shown
    return [_table(groups[key], *given) for key in sorted(groups)]


def _table_key(record: RunRecord) -> _TableKey:
    labeled = record.spec.protocol.labeled
    # Padded, so that numbers are sorted by value, before shares and "all".
    size = f"{labeled:012d}" if isinstance(labeled, int) else f"~{labeled}"
    rest = content_id([_without(record, seed=0), record.primary_metric, record.spec.scorer])
    return record.dataset, record.spec.data.table, _curve(record), size, rest


def _without(record: RunRecord, **changes: object) -> ProtocolSpec:
    return msgspec.structs.replace(record.spec.protocol, **changes)


def _curve(record: RunRecord) -> str:
    """The protocol as text, without the size of the labeled sample."""
    return _without(record, labeled="any number").describe()


def _table(
    records: Sequence[RunRecord],
    baselines: Sequence[str],
    stale: Collection[str],
    wanted: Mapping[str, Sequence[int]],
    options: Options,
) -> Table:
    newest = max(records, key=_age)
    groups: dict[RowKey, dict[int, RunRecord]] = defaultdict(dict)
    for record in sorted(records, key=_age):  # newer runs replace older ones
        groups[row_key(record)][record.spec.protocol.seed] = record
    names = row_names(groups)
    asked = {seed for record in records for seed in wanted.get(record.run_id, ())}
    seeds = tuple(sorted(asked)) or shared_seeds(groups.values())
    rows = ranked([make_row(names[key], key, groups[key], seeds) for key in sorted(groups)])
    comparer = Comparer(newest.primary_metric)
    rows, used = with_baseline(rows, baselines, comparer)
    p_values = pair_p_values(rows, comparer)
    if p_values:
        rows = with_groups(rows, p_values)
    return Table(
        dataset=newest.dataset,
        options=options_text(options(newest.spec)),
        protocol=newest.spec.protocol.describe(),
        curve=_curve(newest),
        text_curve=_without(newest, unlabeled=None).describe(),
        unlabeled_sentences=max(
            record.data.get("sentences", {}).get("unlabeled", 0) for record in records
        ),
        metric=newest.primary_metric,
        data=newest.spec.data.table,
        task=str(newest.data.get("task", "")),
        labeled=newest.spec.protocol.labeled,
        seeds=seeds,
        baselines=tuple(used),
        rows=tuple(marked(row, stale) for row in rows),
    )


def options_text(options: Mapping[str, object]) -> str:
    """ "name=value, name=value"; "" if there are none."""
    return ", ".join(f"{name}={value}" for name, value in sorted(options.items()))


def _age(record: RunRecord) -> tuple[str, str]:
    return record.created, record.run_id
