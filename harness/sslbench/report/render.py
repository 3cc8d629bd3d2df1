"""Tables as Markdown, CSV and HTML, and learning curves; equal records give equal bytes."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sslbench.atomic import write_atomically
from sslbench.errors import printable
from sslbench.report.curves import curve_files
from sslbench.report.escape import csv_cell, markdown_text
from sslbench.report.leaderboard import Table
from sslbench.report.rows import Row
from sslbench.report.wording import (
    HEADINGS,
    LEGEND,
    NUMERIC,
    SHORT,
    WRAPPED,
    about,
    cells,
    head,
    heading,
    notes,
    power,
    remarks,
    short_cells,
    short_head,
)

_TITLE = "sslbench leaderboard"

_HTML = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 110em; padding: 0 1em; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .5em 0; }
th, td { padding: .2em .5em; border-bottom: 1px solid #ddd; text-align: left; }
th { vertical-align: bottom; }
td { white-space: nowrap; vertical-align: top; }
td.w { white-space: normal; min-width: 12em; max-width: 24em; overflow-wrap: anywhere; }
th { border-bottom: 2px solid #888; }
.n { text-align: right; }
.unranked td { color: #666; }
.stale td { background: #fff3d6; }
p.about { color: #555; margin: 0; max-width: 60em; }
ul { max-width: 60em; }
svg { max-width: 100%; height: auto; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
{% for table in tables %}
<h2>{{ table.heading }}</h2>
<p class="about">{{ table.about }}</p>
<div class="wide"><table>
<thead><tr>
{%- for cell in table.head %}<th{% if loop.index0 in numeric %} class="n"{% endif %}>{{ cell }}</th>
{%- endfor %}</tr></thead>
<tbody>
{% for row, texts in table.rows %}<tr class="{{ "" if row.rank else "unranked" }}
{{- " stale" if row.stale }}">
{%- for cell in texts %}<td class="
{{- "n" if loop.index0 in numeric }}{{ "w" if loop.index0 in wrapped }}">{{ cell }}</td>
{%- endfor %}</tr>
{% endfor %}</tbody>
</table></div>
<p class="about">{{ table.power }}</p>
{% endfor %}
{% for name in curves %}<p><img src="{{ name }}" alt="learning curve"></p>
{% endfor %}<ul>{% for line in legend %}<li>{{ line }}</li>{% endfor %}</ul>
</body>
</html>
"""


def table_files(tables: Sequence[Table]) -> dict[str, bytes]:
    """All files of these tables, by name."""
    curves = curve_files(tables)
    return {
        "leaderboard.md": markdown(tables, sorted(curves)).encode(),
        "leaderboard.csv": csv_text(tables).encode(),
        "leaderboard.html": html(tables, sorted(curves)).encode(),
        **curves,
    }


def changed_files(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Names of the files in `folder` that differ from `files`, are missing, or are obsolete."""
    changed = [
        name
        for name, data in files.items()
        if not (folder / name).is_file() or (folder / name).read_bytes() != data
    ]
    return sorted(changed + obsolete(folder, files))


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write changed files and delete obsolete curves; return the names of both."""
    changed = changed_files(folder, files)
    for name in changed:
        if name in files:
            write_atomically(folder / name, files[name])
        else:
            (folder / name).unlink()
    return changed


def obsolete(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Learning curves in the folder that are not among `files`."""
    return [path.name for path in folder.glob("curve-*.svg") if path.name not in files]


def markdown(tables: Sequence[Table], curves: Sequence[str] = ()) -> str:
    """The tables in GitHub-flavored Markdown."""
    lines = [f"# {_TITLE}", ""]
    for table in tables:
        lines += [f"## {markdown_text(heading(table))}", "", markdown_text(about(table)), ""]
        lines.append(_line([markdown_text(cell) for cell in head(table)]))
        lines.append(_line(["---:" if i in NUMERIC else ":---" for i in range(len(HEADINGS))]))
        lines += [_line([markdown_text(cell) for cell in cells(row, table)]) for row in table.rows]
        lines += ["", markdown_text(power(table)), ""]
    lines += [f"![learning curve]({name})\n" for name in curves]
    lines += [f"- {markdown_text(line)}" for line in LEGEND]
    return "\n".join(lines) + "\n"


def html(tables: Sequence[Table], curves: Sequence[str] = ()) -> str:
    """The tables as one page with embedded style; texts are escaped."""
    from jinja2 import Environment

    template = Environment(autoescape=True, trim_blocks=False).from_string(_HTML)
    return template.render(
        title=_TITLE,
        numeric=NUMERIC,
        wrapped=WRAPPED,
        curves=curves,
        legend=LEGEND,
        tables=[
            {
                "heading": printable(heading(table)),
                "about": printable(about(table)),
                "power": printable(power(table)),
                "head": map(printable, head(table)),
                "rows": [(row, map(printable, cells(row, table))) for row in table.rows],
            }
            for table in tables
        ],
    )


def plain(tables: Sequence[Table], width: int = 100) -> str:
    """For a terminal: the tables with fewer columns, names wrapped to the width."""
    return "\n".join(_plain_table(table, width) for table in tables)


def _plain_table(table: Table, width: int) -> str:
    given = [short_head(table), *(short_cells(row, table) for row in table.rows)]
    rows = [list(map(printable, row)) for row in given]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    name = SHORT.index(WRAPPED[0])
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
    """A line per row of every table; numbers are not rounded, metrics in [0, 1]."""
    import pandas as pd

    rows = [
        {name: csv_cell(value) for name, value in _flat(table, row).items()}
        for table in tables
        for row in table.rows
    ]
    frame = pd.DataFrame(rows, columns=list(_FLAT))
    out = io.StringIO()
    frame.to_csv(out, index=False, lineterminator="\n")
    return out.getvalue()


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


def _line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"
