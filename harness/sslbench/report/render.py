"""Tables as Markdown, CSV and HTML, and learning curves; equal records give equal bytes."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sslbench.atomic import write_atomically
from sslbench.report.curves import curve_files
from sslbench.report.leaderboard import Row, Table

HEADINGS = (
    "rank",
    "method",
    "{metric} (%)",
    "sd",
    "seeds",
    "vs supervised",
    "95 % interval",
    "p",
    "p (Holm)",
    "wall s",
    "CPU s",
    "peak MB",
    "failed",
    "notes",
)
NUMERIC = (0, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12)
_TITLE = "sslbench leaderboard"

_HTML = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{{ title }}</title>
<style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .5em 0; }
th, td { padding: .2em .5em; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
th { border-bottom: 2px solid #888; }
.n { text-align: right; }
.unranked td { color: #777; }
p.about { color: #555; margin: 0; }
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
{% for row in table.rows %}<tr{% if not row[0] %} class="unranked"{% endif %}>
{%- for cell in row %}<td{% if loop.index0 in numeric %} class="n"{% endif %}>{{ cell }}</td>
{%- endfor %}</tr>
{% endfor %}</tbody>
</table></div>
{% endfor %}
{% for name in curves %}<p><img src="{{ name }}" alt="learning curve"></p>
{% endfor %}<ul>{% for line in legend %}<li>{{ line }}</li>{% endfor %}</ul>
</body>
</html>
"""

LEGEND = (
    "Scores and differences are percentages on the test split; mean and standard deviation (sd)"
    " are over seeds. Each seed draws its own labeled sample, the same for every method.",
    "vs supervised: mean difference on the common seeds, with a 95 % bootstrap interval over"
    " sentences and seeds; p: paired approximate randomization test over sentences, uncorrected and"
    " corrected by Holm's method for the comparisons of the table.",
    "Rows without a successful run for every seed of the table are not ranked.",
    "Wall time, CPU time and peak memory are medians over runs and include tuning trials, except"
    " those that the store had already. Compare them on one machine only.",
    "mixed code: the runs of the row are of more than one version of the code.",
)


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
        lines += [f"## {_heading(table)}", "", _about(table), ""]
        lines.append(_line([_escape(cell) for cell in _head(table)]))
        marks = ["---:" if i in NUMERIC else ":---" for i in range(len(HEADINGS))]
        lines.append(_line(marks))
        lines += [_line([_escape(cell) for cell in cells(row, table)]) for row in table.rows]
        lines.append("")
    lines += [f"![learning curve]({name})\n" for name in curves]
    lines += [f"- {line}" for line in LEGEND]
    return "\n".join(lines) + "\n"


def html(tables: Sequence[Table], curves: Sequence[str] = ()) -> str:
    """The tables as one page with embedded style; texts are escaped."""
    from jinja2 import Environment

    template = Environment(autoescape=True, trim_blocks=False).from_string(_HTML)
    return template.render(
        title=_TITLE,
        numeric=NUMERIC,
        curves=curves,
        legend=LEGEND,
        tables=[
            {
                "heading": _heading(table),
                "about": _about(table),
                "head": _head(table),
                "rows": [cells(row, table) for row in table.rows],
            }
            for table in tables
        ],
    )


def csv_text(tables: Sequence[Table]) -> str:
    """A line per row of every table; numbers are not rounded, metrics in [0, 1]."""
    import pandas as pd

    rows = [_flat(table, row) for table in tables for row in table.rows]
    frame = pd.DataFrame(rows, columns=list(_FLAT))
    out = io.StringIO()
    frame.to_csv(out, index=False, lineterminator="\n")
    return out.getvalue()


_FLAT = (
    "dataset",
    "data",
    "protocol",
    "metric",
    "rank",
    "method",
    "featurizer",
    "model",
    "params",
    "mean",
    "sd",
    "seeds",
    "missing_seeds",
    "failed",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "wall_s",
    "cpu_s",
    "peak_rss_mb",
    "labeled_sentences",
    "code",
)


def _flat(table: Table, row: Row) -> dict[str, Any]:
    paired = row.paired
    values = {name: getattr(row, name, None) for name in _FLAT}
    values |= {name: getattr(table, name) for name in ("dataset", "data", "protocol", "metric")}
    values["seeds"] = " ".join(map(str, row.seeds))
    values["missing_seeds"] = " ".join(map(str, row.missing))
    values["code"] = " ".join(row.codes)
    if paired is not None:
        values |= {name: getattr(paired, name) for name in ("difference", "low", "high")}
        values["p"] = paired.p_value
    return values


def cells(row: Row, table: Table) -> list[str]:
    """The cells of a row as text, in the order of `HEADINGS`."""
    paired = row.paired
    return [
        "" if row.rank is None else str(row.rank),
        row.name,
        percent(row.mean),
        percent(row.sd),
        f"{len(row.seeds)}/{len(table.seeds)}",
        "" if paired is None else f"{100 * paired.difference:+.2f}",
        "" if paired is None else f"{100 * paired.low:+.2f} to {100 * paired.high:+.2f}",
        "" if paired is None else _p(paired.p_value),
        "" if row.p_holm is None else _p(row.p_holm),
        _number(row.wall_s, 1),
        _number(row.cpu_s, 1),
        _number(row.peak_rss_mb, 0),
        str(row.failed) if row.failed else "",
        _notes(row),
    ]


_SHORT = (0, 1, 2, 3, 4, 5, 6, 8, 9, 13)


def plain(tables: Sequence[Table]) -> list[tuple[str, list[list[str]]]]:
    """For a terminal: heading and rows of each table with fewer columns, the column names first."""

    def rows(table: Table) -> list[list[str]]:
        every = [_head(table), *(cells(row, table) for row in table.rows)]
        return [[row[i] for i in _SHORT] for row in every]

    return [(_heading(table), rows(table)) for table in tables]


def percent(value: float | None) -> str:
    """A number in [0, 1] as a percentage with two digits; "" for None."""
    return "" if value is None else f"{100 * value:.2f}"


def _notes(row: Row) -> str:
    notes = []
    if row.missing:
        notes.append("no run for seed " + ", ".join(map(str, row.missing)))
    if row.mixed:
        notes.append("mixed code")
    return "; ".join(notes)


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _heading(table: Table) -> str:
    name = f"{table.dataset} ({table.options})" if table.options else table.dataset
    return f"{name}, {table.protocol}"


def _about(table: Table) -> str:
    return f"Data {table.data}, seeds {', '.join(map(str, table.seeds))}."


def _head(table: Table) -> list[str]:
    return [heading.format(metric=table.metric) for heading in HEADINGS]


def _line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _escape(text: str) -> str:
    """Escape Markdown and HTML: names come from plugins and files."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for char in "|_*[]`":
        text = text.replace(char, f"\\{char}")
    return " ".join(text.split())
