"""A board: lines (methods) by columns (datasets and sizes), from tables of records."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sslbench.experiment.records.cost import rest_cpu_s
from sslbench.experiment.records.record import RunRecord
from sslbench.report.leaderboard import Table
from sslbench.report.rows import Row, successful


@dataclass(frozen=True)
class Column:
    """A dataset under one protocol.

    Attributes
    ----------
    dataset, task, metric: name, task and primary metric of the dataset.
    family: the corpora that count as one with it, see `DatasetInfo.family`.
    size: size of the labeled sample as text.  protocol: the whole protocol in words.
    table: the table of the runs; None = there are no runs.
    """

    dataset: str
    task: str
    metric: str
    family: str
    size: str
    protocol: str
    table: Table | None = None


@dataclass(frozen=True)
class Place:
    """A line in a column.

    Attributes
    ----------
    row: the row of the table; None = there is no run.
    gap: the reason why there is no score, in a few words; "" = there is one.
    stale: whether a run is of an earlier version of the code.
    command: the command that makes the runs.
    """

    row: Row | None
    gap: str
    stale: bool
    command: str


@dataclass(frozen=True)
class Board:
    """Lines by columns.

    Attributes
    ----------
    title, about: texts for the reader.
    lines: names of the lines, the baselines first.
    baselines: the lines that others are compared with.
    places: the places by line and number of the column; without a key the method does not support
        the task.
    gaps: missing, stale and failed runs, a line for each line in a column.
    """

    title: str
    about: str
    lines: tuple[str, ...]
    baselines: tuple[str, ...]
    columns: tuple[Column, ...]
    places: Mapping[tuple[str, int], Place]
    gaps: tuple[str, ...] = field(default=())

    @property
    def tables(self) -> list[Table]:
        """The tables of the columns that have one."""
        return [column.table for column in self.columns if column.table is not None]

    @property
    def sizes(self) -> list[str]:
        """Labeled sizes in the order of the columns."""
        return list(dict.fromkeys(column.size for column in self.columns))

    def score(self, line: str, column: int) -> Row | None:
        """The row of a place that has a score."""
        place = self.places.get((line, column))
        return None if place is None or place.gap else place.row


def board_of_tables(
    tables: Sequence[Table],
    command: Callable[[Row], str],
    families: Mapping[str, str] | None = None,
) -> Board:
    """The board of a store: a line for each name of a row.

    families: the family of each dataset; a dataset without one is a family of its own.
    """
    columns = tuple(_column(table, families or {}) for table in tables)
    places = {
        (row.name, number): Place(row, gap_of(row, table), row.stale, command(row))
        for number, table in enumerate(tables)
        for row in table.rows
    }
    baselines = sorted({name for table in tables for name in table.baselines})
    lines = _ordered({name for name, _ in places}, baselines)
    return Board("sslbench leaderboard", "", lines, tuple(baselines), columns, places)


def _column(table: Table, families: Mapping[str, str]) -> Column:
    family = families.get(table.dataset) or table.dataset
    name = f"{table.dataset} ({table.options})" if table.options else table.dataset
    return Column(name, table.task, table.metric, family, str(table.labeled), table.protocol, table)


def _ordered(names: set[str], baselines: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: (name not in baselines, name)))


def gap_of(row: Row, table: Table) -> str:
    """Why a row has no score that others can be compared with; "" if it has one."""
    if row.rank is not None:
        return ""
    have = len(table.seeds) - len(row.missing)
    return f"{have} of {len(table.seeds)} draws" if table.seeds else "no score"


@dataclass(frozen=True)
class Cost:
    """CPU seconds: train_s of one training with its data, tune_s of the tuning trials of a draw."""

    train_s: float
    tune_s: float


def cost(row: Row) -> Cost | None:
    """Medians over the runs of a row; None if none was measured."""
    good = [record for record in row.cells.values() if successful(record)]
    trainings = [rest_cpu_s(record) for record in good if record.cpu_s is not None]
    if not trainings:
        return None
    tuning = [record.tuned.cpu_s for record in good]
    return Cost(statistics.median(trainings), statistics.median(tuning))


def good_records(row: Row) -> list[RunRecord]:
    """The successful runs of a row by seed."""
    return [row.cells[seed] for seed in sorted(row.cells) if successful(row.cells[seed])]
