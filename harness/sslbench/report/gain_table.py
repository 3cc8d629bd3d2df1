"""Tables of gains over the baseline, for chosen columns."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from sslbench.engine.errors import UserError
from sslbench.report.board import Board, Column
from sslbench.report.intervals import interval_of_metric, metric_values
from sslbench.report.render import markdown_table
from sslbench.report.rows import Row
from sslbench.report.wording import heading


def gain_table(board: Board, columns: str, metrics: Sequence[str], lines: str = "*") -> list[str]:
    """Lines of Markdown: for each metric the mean, and the gain with its 95 % interval, in percent.

    columns: pattern of their headings, "DATASET (OPTIONS), PROTOCOL"; * stands for any characters.
    metrics: named as in the ledger.  lines: pattern of the names of the lines that are shown.
    A gain is over the draws that a line shares with the first baseline that the column has.
    UserError without such a column, line or metric.
    """
    numbers = [i for i, each in enumerate(board.columns) if fnmatchcase(_text(each), columns)]
    if not numbers:
        there = "; ".join(map(_text, board.columns))
        raise UserError(f"no column {columns}", hint=f"there are: {there}")
    several, rows = len(numbers) > 1, []
    for number in numbers:
        place = [_text(board.columns[number])] * several
        scored = {line: board.score(line, number) for line in board.lines}
        base = next((scored[name] for name in board.baselines if scored[name]), None)
        for line, row in scored.items():
            if row is not None and fnmatchcase(line, lines):
                other = None if row is base else base
                shown = [text for metric in metrics for text in _cells(row, other, metric)]
                rows.append([*place, line, *shown])
    if not rows:
        raise UserError(f"no line {lines} with a score", hint=", ".join(board.lines))
    heads = [text for metric in metrics for text in (metric, "gain")]
    return markdown_table([*["data"] * several, "method", *heads], rows)


def _text(column: Column) -> str:
    if column.table is not None:
        return heading(column.table)
    return f"{column.dataset}, {column.protocol}"


def _cells(row: Row, base: Row | None, metric: str) -> tuple[str, str]:
    """The mean over all draws, and the gain over those that both have."""
    ours = [row.cells[seed] for seed in row.seeds]
    mean = f"{metric_values(ours, metric).mean():.2f}"
    common = [] if base is None else [seed for seed in row.seeds if seed in base.seeds]
    if base is None or not common:
        return mean, ""
    sides = ([each.cells[seed] for seed in common] for each in (row, base))
    gain, low, high = interval_of_metric(metric, *sides)
    return mean, f"{gain:+.2f} ({low:+.2f} to {high:+.2f})"
