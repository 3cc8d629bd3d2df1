"""Blocks in other files, such as a README: what stands there is made from records.

A block begins with one of these lines, and ends with ``<!-- end -->``; what is between is replaced:

    <!-- suite NAME SIZE means -->         all means, or "scores": methods by datasets
    <!-- suite NAME SIZE summary LINE LINE ... -->       some lines, in four columns
    <!-- gains NAME | COLUMNS | METRIC METRIC ... -->         see `_gains`
    <!-- gains NAME | COLUMNS | METRIC METRIC ... | LINES -->
    <!-- ledger PAPER | TABLE -->          a table of a paper
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from sslbench.engine.errors import UserError
from sslbench.report.board import Board, Column
from sslbench.report.intervals import interval_of_metric, metric_values
from sslbench.report.ledger import Line
from sslbench.report.render import markdown_table, means, scores, summary
from sslbench.report.rows import Row
from sslbench.report.wording import heading

_BLOCK = re.compile(
    r"(?P<begin><!-- (?P<kind>suite|gains|ledger) (?P<about>[^\n]+?) -->\n)"
    r".*?(?P<end><!-- end -->)",
    re.S,
)


def with_blocks(
    board: Board, name: str, ledger: Sequence[Line], paths: Sequence[Path], folder: Path
) -> dict[str, bytes]:
    """The files with their blocks of this board and of the ledger, by path relative to `folder`.

    UserError for a file without a block of this suite or of the ledger, a block of a size, columns
    or metric that the board does not have, or of a table that the ledger does not have.
    """
    files = {}
    for path in paths:
        text = path.read_text(encoding="utf-8")
        if not any(_belongs(block, name) for block in _BLOCK.finditer(text)):
            hint = "or of the ledger: <!-- ledger PAPER | TABLE -->"
            raise UserError(f"no block <!-- suite {name} SIZE means -->", file=path, hint=hint)
        parts, at = [], 0
        for block in _BLOCK.finditer(text):
            if not _belongs(block, name):
                continue
            try:
                lines = _lines(block, board, ledger)
            except UserError as error:
                line = text[: block.start()].count("\n") + 1
                raise UserError(error.message, file=path, line=line, hint=error.hint) from None
            parts += [text[at : block.start()], block["begin"], *(f"{each}\n" for each in lines)]
            at = block.end() - len(block["end"])
        files[os.path.relpath(path, folder)] = "".join([*parts, text[at:]]).encode()
    return files


def _belongs(block: re.Match[str], name: str) -> bool:
    """Whether a block is of the suite `name`, or of the ledger."""
    return block["kind"] == "ledger" or block["about"].split()[0] == name


def _lines(block: re.Match[str], board: Board, ledger: Sequence[Line]) -> list[str]:
    """What stands in a block; UserError for a wrong one."""
    if block["kind"] == "suite":
        size, form, *names = [*block["about"].split(), "", ""][1:]
        if size not in board.sizes:
            raise UserError(f"no size {size}", hint=", ".join(board.sizes))
        if form == "summary":
            return summary(board, size, list(filter(None, names)))
        if form not in {"means", "scores"}:
            raise UserError(f"{form!r} is neither means, scores nor summary")
        return (means if form == "means" else scores)(board, size)
    words = block["about"].split(" | ")
    if block["kind"] == "gains":
        if len(words) not in {3, 4}:
            raise UserError(
                "a block of gains is <!-- gains NAME | COLUMNS | METRIC ... | LINES -->"
            )
        return _gains(board, words[1], words[2].split(), *words[3:])
    return _printed(
        block["about"], [e for e in ledger if f"{e.paper} | {e.table}" == block["about"]]
    )


def _printed(about: str, lines: Sequence[Line]) -> list[str]:
    """Rows and columns of the paper; in each place our value, its interval and what is printed."""
    if not lines:
        raise UserError(f"the ledger has no {about}")
    rows, columns = (
        list(dict.fromkeys(getattr(line, name) for line in lines)) for name in ("row", "column")
    )
    cells = {(line.row, line.column): _cell(line) for line in lines}
    texts = [[row, *(cells.get((row, column), "") for column in columns)] for row in rows]
    return markdown_table([lines[0].table, *columns], texts)


def _cell(line: Line) -> str:
    interval = f" ({line.low} to {line.high})" if line.low else ""
    return f"{line.ours}{interval}; paper {line.printed}" if line.ours else f"paper {line.printed}"


def _gains(board: Board, columns: str, metrics: Sequence[str], lines: str = "*") -> list[str]:
    """Lines of Markdown: for each metric the mean, and the gain with its 95 % interval, in percent.

    columns: pattern of their headings, "DATASET (OPTIONS), PROTOCOL"; * stands for any characters.
    metrics: named as in the ledger.  lines: pattern of the names of the lines that are shown.
    A gain is over the draws that a line shares with the first baseline that the column has.
    UserError without such a column, line or metric.
    """
    numbers = [i for i, each in enumerate(board.columns) if fnmatchcase(_heading(each), columns)]
    if not numbers:
        there = "; ".join(map(_heading, board.columns))
        raise UserError(f"no column {columns}", hint=f"there are: {there}")
    several, rows = len(numbers) > 1, []
    for number in numbers:
        place = [_heading(board.columns[number])] * several
        scored = {line: board.score(line, number) for line in board.lines}
        base = next((scored[name] for name in board.baselines if scored[name]), None)
        for line, row in scored.items():
            if row is not None and fnmatchcase(line, lines):
                other = None if row is base else base
                shown = [text for metric in metrics for text in _gain_cells(row, other, metric)]
                rows.append([*place, line, *shown])
    if not rows:
        raise UserError(f"no line {lines} with a score", hint=", ".join(board.lines))
    heads = [text for metric in metrics for text in (metric, "gain")]
    return markdown_table([*["data"] * several, "method", *heads], rows)


def _heading(column: Column) -> str:
    if column.table is not None:
        return heading(column.table)
    return f"{column.dataset}, {column.protocol}"


def _gain_cells(row: Row, base: Row | None, metric: str) -> tuple[str, str]:
    """The mean over all draws, and the gain over those that both have."""
    ours = [row.cells[seed] for seed in row.seeds]
    mean = f"{metric_values(ours, metric).mean():.2f}"
    common = [] if base is None else [seed for seed in row.seeds if seed in base.seeds]
    if base is None or not common:
        return mean, ""
    sides = ([each.cells[seed] for seed in common] for each in (row, base))
    gain, low, high = interval_of_metric(metric, *sides)
    return mean, f"{gain:+.2f} ({low:+.2f} to {high:+.2f})"
