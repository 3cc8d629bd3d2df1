"""The values that the template of a page shows, made from a board."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from markupsafe import Markup, escape

from sslbench.engine.errors import printable
from sslbench.report.board import Board, Place, cost
from sslbench.report.curves import LABELED, Curve, curves
from sslbench.report.details import details
from sslbench.report.families import LEAST_FAMILIES
from sslbench.report.gains import Parts, gain_parts, labels_worth
from sslbench.report.leaderboard import Table
from sslbench.report.ledger import Line
from sslbench.report.overview import (
    LEAST_LINES,
    Overview,
    critical_svg,
    overview,
    overview_table,
    pairs_table,
    pareto_svg,
)
from sslbench.report.page.glance import glance
from sslbench.report.rows import Row
from sslbench.report.wording import (
    HEADINGS,
    LEGEND,
    about,
    cells,
    decimals,
    head,
    heading,
    percent,
    power,
)

_GAP = {"kind": "gap", "score": "", "gain": "", "cost": "", "place": None, "texts": ()}
QUESTIONS = ("words", "labels", "length")
#: functions that the template calls
_FUNCTIONS = (about, cells, head, heading, overview_table, pairs_table, power)
_LEDGER_HEAD = ("table", "row", "column", "printed", "data", "ours", "95 %", "verdict", "reason")


@dataclass(frozen=True)
class Sources:
    """The content of a page besides its board.

    stale: ids of stale runs.  ledger: printed numbers.  summary: a line on the runs.
    """

    stale: Collection[str] = ()
    ledger: Sequence[Line] = ()
    summary: str = ""


def page(board: Board, sources: Sources, name: str = "") -> str:
    """The page of a board: HTML that loads nothing; equal values give equal bytes.

    name: of the files beside it that it links to, without an ending; "" = there are none.
    """
    from jinja2 import Environment

    views = [overview(board, size) for size in board.sizes]
    heads, lines, places = _headline(board, views, sources)
    pictures = [(view, critical_svg(view) + pareto_svg(view)) for view in views]
    files = resources.files(__package__)
    css, script, template = (
        (files / name).read_text(encoding="utf-8") for name in ("page.css", "page.js", "page.html")
    )
    data = json.dumps(_numbered(places), separators=(",", ":")).replace("<", "\\u003c")
    environment = Environment(autoescape=True, finalize=_shown)
    environment.filters["breakable"] = _breakable
    environment.globals |= {each.__name__: each for each in _FUNCTIONS}
    return environment.from_string(template).render(
        board=board,
        name=name,
        summary=sources.summary,
        glance=glance(board, views),
        css=Markup(css),
        script=Markup(script),
        places=Markup(data),
        tasks=sorted({column.task for column in board.columns if column.task}),
        heads=heads,
        lines=lines,
        views=views,
        overviews=[(view, Markup(picture)) for view, picture in pictures if picture],
        least_families=LEAST_FAMILIES,
        least_lines=LEAST_LINES,
        datasets=_datasets(board),
        legend=LEGEND,
        headings=HEADINGS,
        ledger=sources.ledger,
        papers=_papers(sources.ledger),
        ledger_head=_LEDGER_HEAD,
    )


def _numbered(places: Mapping[str, Any]) -> dict[str, Any]:
    """Each text once, and numbers in their place: most are those of other places too."""
    texts: dict[str, int] = {}

    def number(value: Any) -> Any:
        if isinstance(value, str):
            return texts.setdefault(value, len(texts))
        return [number(part) for part in value]

    numbers = {key: number(place) for key, place in places.items()}
    return {"texts": list(texts), "places": numbers}


def _shown(value: object) -> object:
    """Texts with control characters and other invisible ones escaped."""
    return printable(value) if type(value) is str else value


def _breakable(name: str) -> Markup:
    """A name that may be broken after its underscores."""
    return Markup(escape(printable(name)).replace("_", Markup("_<wbr>")))


# --- methods by datasets -------------------------------------------------------------------------


def _headline(
    board: Board, views: Sequence[Overview], sources: Sources
) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Heads and lines of the first table, and the details of its places by id."""
    printed: dict[str, list[Line]] = {}
    for line in sources.ledger:
        for run_id in line.run_ids[0]:
            printed.setdefault(run_id, []).append(line)
    heads: list[Any] = []
    ranked = next((view.lines for view in views if len(view.columns) > 1), ())
    names = list(dict.fromkeys([*(line.name for line in ranked), *board.lines]))
    lines: list[Any] = [{"name": name, "cells": []} for name in names]
    places: dict[str, Any] = {}
    for view in views:
        if len(view.columns) > 1:
            heads.append({"name": "mean", "size": view.size, "task": None, "metric": "rank, gain"})
            for line in lines:
                line["cells"].append(_mean_cell(line["name"], view))
        for i in view.columns:
            column = board.columns[i]
            what = {"name": column.dataset, "metric": column.metric}
            heads.append({**what, "size": column.size, "task": column.task})
            for line in lines:
                place, key = board.places.get((line["name"], i)), f"p{len(places)}"
                line["cells"].append(_cell(place, key))
                if place is not None:
                    title = f"{line['name']} on {column.dataset}, {column.size} labeled"
                    parts = _parts(board, i, place)
                    entries = details(
                        column, place, sources.stale, parts, printed_of(place, printed)
                    )
                    places[key] = [printable(title), entries]
    return heads, lines, places


def printed_of(place: Place, printed: Mapping[str, list[Line]]) -> list[Line]:
    """The lines of the ledger that name a run of the place."""
    runs = [] if place.row is None else place.row.cells.values()
    lines = {id(line): line for run in runs for line in printed.get(run.run_id, ())}
    return list(lines.values())


def _parts(board: Board, column: int, place: Place) -> dict[str, Parts]:
    base = _base(board, column)
    if base is None or place.row is None or place.row is base:
        return {}
    return {question: gain_parts(place.row, base, question) for question in QUESTIONS}


def _base(board: Board, column: int) -> Row | None:
    """The row of the baseline in a column."""
    rows = (board.score(name, column) for name in board.lines if name in board.baselines)
    return next((row for row in rows if row is not None), None)


def _cell(place: Place | None, key: str) -> dict[str, Any]:
    if place is None:
        return _GAP
    row = place.row
    if row is None or place.gap:
        return {**_GAP, "place": key, "texts": (place.gap, "", "", "")}
    spent = cost(row)
    seconds = None if spent is None else spent.train_s
    gain = None if row.paired is None else 100 * row.paired.difference
    return {
        "kind": " ".join(_kinds(row, place)),
        "score": decimals(row.mean or 0, 6),
        "gain": decimals(gain, 4),
        "cost": decimals(seconds, 2),
        "place": key,
        "texts": (percent(row.mean or 0), _ranks(row), _gain(row), _seconds(seconds)),
    }


def _seconds(number: float | None) -> str:
    return "" if number is None else f"{number:.0f} s"


def _kinds(row: Row, place: Place) -> Iterator[str]:
    if row.rank == 1 and row.rank_low is not None:
        yield "best"
    if row.paired is not None and row.paired.low > 0:
        yield "up"
    if row.paired is not None and row.paired.high < 0:
        yield "down"
    if place.stale:
        yield "stale"


def _ranks(row: Row) -> str:
    """Those that tests leave open; a single draw cannot be tested."""
    low, high = row.rank_low, row.rank_high
    if low is None:
        return "untested"
    return f"{low}" if low == high else f"{low}\u2013{high}"


def _gain(row: Row) -> str:
    test = row.paired or row.taggers
    if test is None:
        return ""
    one = "" if row.paired else " (one draw)"
    ends = f"{100 * test.low:+.1f} to {100 * test.high:+.1f}"
    return f"{100 * test.difference:+.2f} ({ends}){one}"


def _mean_cell(name: str, view: Overview) -> dict[str, Any]:
    """Mean rank, gain and cost of a line over the columns of a size, if it has all of them."""
    line = view.line(name)
    if line is None:
        return _GAP
    gain = "" if line.gain is None else f"{line.gain:+.2f}"
    return {
        "kind": "total",
        "score": decimals(line.rank, 4),
        "gain": decimals(line.gain, 4),
        "cost": decimals(line.cpu_s, 2),
        "place": None,
        "texts": (f"{line.rank:.2f}", line.group, gain, _seconds(line.cpu_s)),
    }


# --- pictures and sections -----------------------------------------------------------------------


def _datasets(board: Board) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(column.dataset for column in board.columns))
    every = curves(board.tables)
    sections = []
    for number, name in enumerate(names):
        columns = [(i, c.table) for i, c in enumerate(board.columns) if c.dataset == name]
        tables = [(i, table) for i, table in columns if table is not None]
        ids = {id(table) for _, table in tables}
        joined = [curve for curve in every if any(id(table) in ids for table in curve.tables)]
        sections.append(
            {
                "id": f"d{number}",
                "name": name,
                "curves": [_curve(curve, board) for curve in joined],
                "tables": [_table(board, i, table) for i, table in tables],
            }
        )
    return sections


def _curve(curve: Curve, board: Board) -> dict[str, Any]:
    """A picture beside its table: scores and, on the labeled axis, labels that a method saves."""
    sizes = sorted({size for points in curve.lines.values() for size, _, _ in points})
    base = next((curve.lines[name] for name in board.baselines if name in curve.lines), [])
    base_curve = [(size, mean) for size, mean, _ in base] if curve.axis is LABELED else []
    lines = []
    for name, points in curve.lines.items():
        by_size = {size: mean for size, mean, _ in points}
        texts = []
        for size in sizes:
            text = f"{by_size[size]:.2f}" if size in by_size else ""
            if text and len(base_curve) > 1 and name not in board.baselines:
                worth, mark = labels_worth(by_size[size], base_curve)
                text += f" = {mark}{worth:.0f}"
            texts.append(text)
        lines.append((name, *texts))
    caption = f"{curve.metric} (%) by {curve.axis.name}."
    if len(base_curve) > 1:
        caption += " After =: the labeled sentences that the baseline needs for the same score."
    svg = Markup(curve.svg(board.lines))
    title = f"{curve.metric} (%)"
    return {"svg": svg, "title": title, "caption": caption, "sizes": sizes, "lines": lines}


def _table(board: Board, number: int, table: Table) -> dict[str, Any]:
    """A table, and where the gains over the baseline come from."""
    base = _base(board, number)
    gains = (
        {}
        if base is None
        else {row.name: gain_parts(row, base, "words") for row in table.rows if row is not base}
    )
    names = list(dict.fromkeys(name for parts in gains.values() for name in parts))
    lines = [(line, *_part_texts(parts, names)) for line, parts in gains.items() if parts]
    return {"table": table, "base": base, "part_names": names, "parts": lines}


def _part_texts(parts: Parts, names: Sequence[str]) -> list[str]:
    total = sum(gain for _, gain in parts.values())
    return [*(f"{parts[n][1]:+.2f}" if n in parts else "" for n in names), f"{total:+.2f}"]


def _papers(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The lines of the ledger by paper."""
    papers: dict[str, list[Line]] = {}
    for line in lines:
        papers.setdefault(line.paper, []).append(line)
    return papers
