"""The files of a board: tables, the page and a picture; equal records give equal bytes."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sslbench.engine.errors import UserError, printable
from sslbench.engine.files.atomic import write_atomically
from sslbench.report.board import Board
from sslbench.report.escape import csv_cell, markdown_text
from sslbench.report.latex import latex
from sslbench.report.leaderboard import Table
from sslbench.report.overview import overview, overview_table, pareto_svg
from sslbench.report.page.build import Sources, page
from sslbench.report.rows import Row
from sslbench.report.wording import (
    HEADINGS,
    LEGEND,
    about,
    cells,
    head,
    heading,
    notes,
    percent,
    power,
    remarks,
)

#: columns of a summary, as in `overview_table`
SUMMARY = ("method", "mean gain", "group", "CPU s")


def board_files(board: Board, name: str, sources: Sources) -> dict[str, bytes]:
    """All files of a board, by name. name: of the board, without an ending."""
    pictures = (pareto_svg(overview(board, size)) for size in board.sizes)
    texts = {
        f"{name}.md": markdown(board, sources.summary),
        f"{name}.csv": csv_text(board.tables),
        f"{name}.tex": latex(board, name),
        f"{name}.html": page(board, sources, name),
        f"{name}.svg": next(filter(None, pictures), ""),
    }
    return {file: text.encode() for file, text in texts.items() if text}


def changed_files(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Names of the files that are missing in `folder` or differ from `files`."""
    return sorted(
        name
        for name, data in files.items()
        if not (folder / name).is_file() or (folder / name).read_bytes() != data
    )


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write changed files and return their names."""
    changed = changed_files(folder, files)
    for name in changed:
        write_atomically(folder / name, files[name])
    return changed


def markdown(board: Board, summary: str = "") -> str:
    """The board and its tables in GitHub-flavored Markdown."""
    lines = [f"# {markdown_text(board.title)}", ""]
    lines += [f"{markdown_text(text)}\n" for text in (board.about, summary) if text]
    for size in board.sizes:
        if sum(column.size == size for column in board.columns) > 1:
            lines += [f"## {markdown_text(size)} labeled", ""]
            lines += [*means(board, size), "", *scores(board, size), ""]
    for table in board.tables:
        lines += [f"## {markdown_text(heading(table))}", "", markdown_text(about(table)), ""]
        numeric = [each.numeric for each in HEADINGS]
        lines += markdown_table(head(table), [cells(row, table) for row in table.rows], numeric)
        lines += ["", markdown_text(power(table)), ""]
    lines += [f"- {markdown_text(line)}" for line in [*board.gaps, *LEGEND]]
    return "\n".join(map(_wrapped, "\n".join(lines).split("\n"))) + "\n"


def _wrapped(line: str) -> str:
    """A line of Markdown in lines of at most 120 characters; headings and tables stay whole."""
    if line.startswith(("#", "|")):
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(
        line, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def means(board: Board, size: str) -> list[str]:
    """The means over datasets at a size as lines of Markdown."""
    view = overview(board, size)
    return markdown_table(*overview_table(view)) if len(view.columns) > 1 else []


def summary(board: Board, size: str, names: Sequence[str]) -> list[str]:
    """The means of some lines in four columns of Markdown; UserError for a line without means."""
    headings, rows = overview_table(overview(board, size))
    unknown = set(names) - {row[0] for row in rows}
    if unknown:
        raise UserError(f"no means of {', '.join(sorted(unknown))} at {size} labeled")
    shown = [headings.index(name) for name in SUMMARY if name in headings]
    texts = [[row[i] for i in shown] for row in rows if row[0] in names]
    return markdown_table([headings[i] for i in shown], texts)


def scores(board: Board, size: str) -> list[str]:
    """Methods by datasets at a size as lines of Markdown."""
    names, rows = grid(board, size)
    return markdown_table(["method", *names], rows)


def markdown_table(
    names: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool] = ()
) -> list[str]:
    """Lines of Markdown. numeric: which columns are numbers; () = all but the first."""
    right = numeric or [False, *[True] * (len(names) - 1)]
    rule = _line(["---:" if each else ":---" for each in right])
    escaped = [_line([markdown_text(text) for text in row]) for row in [names, *rows]]
    return [escaped[0], rule, *escaped[1:]]


def _line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def grid(board: Board, size: str) -> tuple[list[str], list[list[str]]]:
    """Methods by datasets at a size: names of columns, and lines of texts with their names."""
    view = overview(board, size)
    with_mean = len(view.columns) > 1
    names = ["mean rank"] * with_mean + [board.columns[i].dataset for i in view.columns]
    rows = []
    for name in board.lines:
        if any((name, i) in board.places for i in view.columns):
            means_of = view.line(name)
            mean = "" if means_of is None else f"{means_of.rank:.2f}"
            cells_of = [board.score(name, i) for i in view.columns]
            texts = ["" if row is None else percent(row.mean or 0) for row in cells_of]
            rows.append([name, *[mean] * with_mean, *texts])
    return names, rows


def plain(tables: Sequence[Table], width: int = 100) -> str:
    """For a terminal: the tables with fewer columns, names wrapped to the width."""
    return "\n".join(_plain_table(table, width) for table in tables)


def _plain_table(table: Table, width: int) -> str:
    shown = [i for i, each in enumerate(HEADINGS) if each.short]
    heads = [HEADINGS[i].short.format(metric=table.metric) for i in shown]
    given = [heads, *([cells(row, table)[i] for i in shown] for row in table.rows)]
    rows = [list(map(printable, row)) for row in given]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    name = heads.index("method")
    others = sum(widths) - widths[name] + 2 * len(widths)
    widths[name] = max(12, min(widths[name], width - others))
    lines = textwrap.wrap(printable(heading(table)), width)
    for row in rows:
        parts = textwrap.wrap(row[name], widths[name]) or [""]
        for i, part in enumerate(parts):
            texts = [part if j == name else text * (i == 0) for j, text in enumerate(row)]
            padded = [text.ljust(size) for text, size in zip(texts, widths, strict=True)]
            lines.append("  " + "  ".join(padded).rstrip())
    for remark in [power(table), *remarks(table)]:
        remark = printable(remark)
        lines += textwrap.wrap(remark, width, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def csv_text(tables: Sequence[Table]) -> str:
    """A line per row of every table; metrics are in [0, 1].

    Numbers have twelve digits: the last ones of a p value depend on the kind of processor.
    """
    import pandas as pd

    rows = [
        {name: csv_cell(_rounded(value)) for name, value in _flat(table, row).items()}
        for table in tables
        for row in table.rows
    ]
    frame = pd.DataFrame(rows, columns=list(_FLAT))
    out = io.StringIO()
    frame.to_csv(out, index=False, lineterminator="\n")
    return out.getvalue()


def _rounded(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value


_OF_TABLE = ("dataset", "data", "protocol", "metric")
_OF_TEST = ("difference", "low", "high", "p")
_FLAT = (
    *_OF_TABLE,
    *("rank", "rank_low", "rank_high", "group", "method", "featurizer", "model", "params"),
    *("mean", "sd", "seeds", "missing_seeds", "failed"),
    *("draws", *_OF_TEST, "p_holm", "seen"),
    *("low_taggers", "high_taggers", "p_taggers", "p_taggers_holm"),
    *("wall_s", "cpu_s", "peak_rss_mb", "trials", "tune_cpu_s", "labeled_sentences"),
    *("code", "notes"),
)


def _flat(table: Table, row: Row) -> dict[str, Any]:
    values = {name: getattr(row, name, None) for name in _FLAT}
    values |= {name: getattr(table, name) for name in _OF_TABLE}
    values["seeds"] = " ".join(map(str, row.seeds))
    values["missing_seeds"] = " ".join(map(str, row.missing))
    values["code"] = " ".join(row.codes)
    values["notes"] = notes(row)
    values["p_taggers_holm"] = row.taggers_holm
    compared = row.paired or row.taggers
    values["difference"] = None if compared is None else compared.difference
    if row.paired is not None:
        values |= {"low": row.paired.low, "high": row.paired.high, "seen": row.paired.seen}
        values["p"] = row.paired.p_value
    if row.taggers is not None:
        values |= {"low_taggers": row.taggers.low, "high_taggers": row.taggers.high}
        values["p_taggers"] = row.taggers.p_value
    return values
