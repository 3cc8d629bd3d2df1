"""The board of a suite: every line and column that its file names, with or without runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sslbench.plugins import Registry
from sslbench.report.board import Board, Column, Place, gap_of
from sslbench.report.leaderboard import Table, leaderboard, options_text
from sslbench.report.reproduce import Commands, changed_options, seed_ranges
from sslbench.report.rows import Row
from sslbench.suite.cells import Cell
from sslbench.suite.file import Suite

_SHOWN = ("done", "stale", "failed")


def suite_board(
    suite: Suite, cells: Sequence[Cell], stale: Collection[str], plugins: Registry
) -> Board:
    """Make the board of a suite. A row that lacks a draw of the file has no rank.

    cells: the cells with their records.  stale: ids of stale runs.
    """
    by_run = {cell.record.run_id: cell for cell in cells if cell.record is not None}
    shown = [cell.record for cell in cells if cell.record is not None and cell.state in _SHOWN]
    baselines = [name for name, info in plugins.methods.items() if info.baseline]
    wanted = {run_id: tuple(cell.request.seeds) for run_id, cell in by_run.items()}
    tables: dict[str, Table] = {}
    options = partial(changed_options, plugins=plugins)
    for table in leaderboard(shown, baselines, stale, wanted, options):
        first = next(iter(table.rows[0].cells.values()))
        tables[by_run[first.run_id].column] = _named(table, by_run)
    keys = list(dict.fromkeys(cell.column for cell in cells))
    columns = _columns(keys, cells, tables, plugins)
    lines = tuple(dict.fromkeys(cell.line for cell in cells))
    used = [name for name in baselines if name in lines]
    return Board(
        title=suite.title,
        about=suite.about,
        lines=tuple(sorted(lines, key=lambda name: (name not in used, lines.index(name)))),
        baselines=tuple(used),
        columns=columns,
        places=_places(keys, cells, columns, Commands(plugins)),
        gaps=tuple(gaps(cells)),
    )


def _named(table: Table, by_run: Mapping[str, Cell]) -> Table:
    """The table with the names of lines for its rows, where they distinguish rows."""

    def line(row: Row) -> str:
        return by_run[next(iter(row.cells.values())).run_id].line

    often = Counter(map(line, table.rows))
    rows = [replace(row, name=line(row)) if often[line(row)] == 1 else row for row in table.rows]
    return replace(table, rows=tuple(rows))


def _columns(
    keys: Sequence[str], cells: Sequence[Cell], tables: Mapping[str, Table], plugins: Registry
) -> tuple[Column, ...]:
    first = {cell.column: cell for cell in reversed(cells)}
    often = Counter((first[key].spec.dataset, first[key].spec.protocol.labeled) for key in keys)
    columns = []
    for key in keys:
        spec = first[key].spec
        info, protocol = plugins.dataset(spec.dataset), spec.protocol
        name = spec.dataset
        if often[name, protocol.labeled] > 1:
            options = options_text(changed_options(spec, plugins))
            name += f" ({options})" if options else ""
            name += f", {protocol.describe_text()}, {protocol.tuning()}"
        about = protocol.describe()
        family = info.family or spec.dataset
        size = str(protocol.labeled)
        columns.append(Column(name, info.task, info.metric, family, size, about, tables.get(key)))
    return tuple(columns)


def _places(
    keys: Sequence[str], cells: Sequence[Cell], columns: Sequence[Column], commands: Commands
) -> dict[tuple[str, int], Place]:
    groups: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.line, keys.index(cell.column)), []).append(cell)
    places = {}
    for (line, number), group in groups.items():
        table = columns[number].table
        rows = () if table is None else table.rows
        row = next((row for row in rows if row.name == line), None)
        if row is None or table is None:
            gap = f"0 of {len(group)} draws"
        else:
            gap = gap_of(row, table)
        record = next((cell.record for cell in group if cell.record is not None), None)
        spec, recorded = (group[0].spec, False) if record is None else (record.spec, True)
        text = recorded or group[0].request.text is not None
        command = commands.command(spec, [cell.seed for cell in group], text=text)
        places[line, number] = Place(row, gap, row is not None and row.stale, command)
    return places


def gaps(cells: Sequence[Cell]) -> list[str]:
    """What is not done, a line for each state of a line in a column."""
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.state != "done":
            groups.setdefault((cell.state, cell.line, cell.column), []).append(cell)
    return [
        f"{state}: {line} on {group[0].spec.dataset}, {group[0].spec.protocol.describe()},"
        f" seeds {seed_ranges([cell.seed for cell in group])}"
        for (state, line, _), group in groups.items()
    ]
