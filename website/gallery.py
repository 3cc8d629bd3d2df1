"""A page for each method: idea, equations, parameters, results, how to cite it.

All of it is made from what is written elsewhere: the registration, the docstrings of the method's
module and class, the sections of docs/specs that these cite, and leaderboards/standard.csv.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import logging
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from sslbench.cli.parameters import describe
from sslbench.engine.errors import UserError
from sslbench.experiment.planning.description import task_defaults_of
from sslbench.experiment.planning.space import search_space
from sslbench.plugins import registry
from sslbench.plugins.registrations import MethodInfo
from sslbench.report.escape import markdown_text

ROOT = Path(__file__).parents[1]
SPECS = ROOT / "docs" / "specs"
_NUMBER = r"\d+(?:\.\d+)*"
_SECTIONS = re.compile(
    rf"docs/specs/(\w+)\.md,\s+sections?\s+({_NUMBER}(?:(?:,| and)\s+{_NUMBER})*)"
)
_HEADING = re.compile(r"^(#{2,3}) (\d+(?:\.\d+)*)\.? (.*)$", re.MULTILINE)

Row = dict[str, str]


@cache
def names() -> list[str]:
    """The built-in methods in the order of their registration; a warning for one without code."""
    plugins, names = registry(), list[str]()
    for name, info in plugins.methods.items():
        if plugins.origins["methods", name].distribution != "sslbench":
            continue
        try:
            info.load()
            names.append(name)
        except UserError as problem:  # --strict fails, and tells all problems of the site
            logging.getLogger("mkdocs.hooks").warning(str(problem))
    return names


def pages() -> dict[str, str]:
    """Text of each page by its path."""
    methods = {name: registry().methods[name] for name in names()}
    by_name = {f"methods/{name}.md": _page(info) for name, info in methods.items()}
    lines = ["# Methods", ""]
    lines += _table(
        ("method", "", "rows better", "worse", "open"),
        [
            (f"[{name}]({name}.md)", info.summary, *map(str, _tally(_rows(name))))
            for name, info in methods.items()
        ],
    )
    lines += [
        "",
        "Rows of the [leaderboard](../../leaderboards/standard.md) that are better or worse than"
        " the baseline, by the 95 % interval of the difference, with any parameters.",
    ]
    return {"methods/index.md": "\n".join(lines), **by_name}


def _page(info: MethodInfo) -> str:
    cls = info.load()
    module = importlib.import_module(info.target.partition(":")[0])
    texts = [inspect.cleandoc(each.__doc__ or "") for each in (module, cls)]
    parts = [f"# {info.name}", f"{info.summary[0].upper()}{info.summary[1:]}."]
    parts += ["## Idea", *texts]
    if sections := list(_sections(" ".join(texts))):
        parts += ["## Equations", *sections]
    elif page := _page_of(info.name):
        parts += ["## Equations", f"On [{page}](../specs/{page}.md)."]
    parts += ["## When it helps", *_results(_rows(info.name))]
    parts += ["## Use", f"```sh\nsslbench run --method {info.name} --dataset DATASET\n```"]
    parts += [f"Tasks: {', '.join(info.tasks)}. Models: {', '.join(info.models) or 'all'}."]
    parts += _parameters(cls)
    parts += ["## Cite", f"> {info.reference}", "And [sslbench](../../README.md): `CITATION.cff`."]
    return "\n\n".join(parts) + "\n"


def _parameters(cls: type) -> list[str]:
    params = getattr(cls, "Params", None)
    if params is None:
        return []
    searched = {axis.param: axis.describe() for axis in search_space(params)}
    head = ("parameter", "type", "default", "bounds", "searched by --tune", "meaning")
    rows = [
        (f"`{p.name}`", p.type, p.default, p.bounds, searched.get(p.name, ""), p.meaning)
        for p in describe(params)
    ]
    escaped = [(row[0], *map(markdown_text, row[1:])) for row in rows]
    return ["\n".join(_table(head, escaped)), *_task_defaults(params)]


def _task_defaults(params: type) -> list[str]:
    by_task = task_defaults_of(params)
    if not by_task:
        return []
    rows = [
        (task, ", ".join(f"`{name}={value}`" for name, value in values.items()) or "none")
        for task, values in by_task.items()
    ]
    said = "On a task these are the defaults ([how they were chosen](../defaults.md)):"
    return [said, "\n".join(_table(("task", "defaults"), rows))]


# -- equations ---------------------------------------------------------------------------------
def _sections(text: str) -> Iterable[str]:
    """The sections of docs/specs that a text cites, each under its page's name."""
    for page, numbers in dict.fromkeys(_SECTIONS.findall(text)):
        for number in re.findall(_NUMBER, numbers):
            if (section := _section(page, number)) is None:
                continue  # the tests of citations tell it
            title, body = section
            yield f"### {title}"
            yield f"[{page}](../specs/{page}.md), section {number}."
            yield body


def _section(page: str, number: str) -> tuple[str, str] | None:
    """Title and text of a section, with its headings one level lower; None = there is none."""
    path = SPECS / f"{page}.md"
    text = path.read_text("utf-8") if path.is_file() else ""
    headings = list(_HEADING.finditer(text))
    place = next((i for i, each in enumerate(headings) if each[2] == number), None)
    if place is None:
        return None
    heading = headings[place]
    ends = (h.start() for h in headings[place + 1 :] if len(h[1]) <= len(heading[1]))
    body = text[heading.end() : next(ends, len(text))].strip("\n")  # code is indented
    return heading[3], _HEADING.sub(r"#### \3", body)


def _page_of(name: str) -> str | None:
    """The page that the list of specifications names for a method."""
    lines = (SPECS / "README.md").read_text("utf-8").splitlines()
    row = next((line for line in lines if line.startswith("| [") and f"`{name}`" in line), "")
    return row.partition("[")[2].partition(".md]")[0] or None


# -- results -----------------------------------------------------------------------------------
@cache
def _leaderboard() -> list[Row]:
    with (ROOT / "leaderboards" / "standard.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _rows(name: str) -> list[Row]:
    return [row for row in _leaderboard() if row["method"] == name]


def _tally(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Numbers of rows that are better, worse, neither."""
    compared = [row for row in rows if row["low"]]
    better = sum(float(row["low"]) > 0 for row in compared)
    worse = sum(float(row["high"]) < 0 for row in compared)
    return better, worse, len(compared) - better - worse


def _results(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return ["No records on the [leaderboard](../../leaderboards/standard.md)."]
    better, worse, rest = _tally(rows)
    text = "Its rows of the [leaderboard](../../leaderboards/standard.md)."
    if better + worse + rest:
        text += f" Compared with the baseline: {better} better, {worse} worse, {rest} open."
    if any("stale" in row["notes"] for row in rows):
        text += " *stale*: of an earlier version of the code."
    head = ("dataset", "protocol", "metric", "%", "difference", "95 % interval", "CPU s", "notes")
    return [text, "\n".join(_table(head, [_cells(row) for row in rows]))]


def _cells(row: Row) -> tuple[str, ...]:
    def percent(value: str, form: str) -> str:
        return f"{100 * float(value):{form}}" if value else ""

    interval = f"{percent(row['low'], '+.2f')} to {percent(row['high'], '+.2f')}"
    spread = f" ± {percent(row['sd'], '.2f')}" if row["sd"] else ""
    return (
        markdown_text(row["dataset"]),
        markdown_text(row["protocol"]),
        row["metric"],
        percent(row["mean"], ".2f") + spread,
        percent(row["difference"], "+.2f"),
        interval if row["low"] else "",
        f"{float(row['cpu_s']):,.0f}" if row["cpu_s"] else "",
        f"**{markdown_text(row['notes'])}**" if row["notes"] else "",
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]
