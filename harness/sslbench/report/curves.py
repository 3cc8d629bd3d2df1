"""Learning curves: the primary metric by the number of labeled or unlabeled sentences."""

from __future__ import annotations

import io
import re
import statistics
import textwrap
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sslbench.errors import printable
from sslbench.report.leaderboard import Table
from sslbench.report.rows import Row, RowKey, row_names

_Key = tuple[str, str, str, str]  # dataset, data hash, what the tables share, metric
_Point = tuple[int, float, float]  # sentences; mean and sd in percent

NAME_WIDTH = 100  # characters per line of the legend; names with parameters are long


@dataclass(frozen=True)
class Axis:
    """The horizontal axis of a curve.

    shared: protocol text that all tables of one curve share.
    size: number of sentences of a row; None = not known.
    """

    name: str
    shared: Callable[[Table], str]
    size: Callable[[Table, Row], int | None]


LABELED = Axis("labeled sentences", lambda table: table.curve, lambda _, row: row.labeled_sentences)
# The text available to any method, so that a supervised baseline is a line across the plot.
UNLABELED = Axis(
    "unlabeled sentences",
    lambda table: table.text_curve,
    lambda table, _: table.unlabeled_sentences or None,
)


def curve_files(tables: Sequence[Table]) -> dict[str, bytes]:
    """One SVG by file name for each dataset, protocol and axis with at least two sizes."""
    files: dict[str, bytes] = {}
    for axis in (LABELED, UNLABELED):
        groups: dict[_Key, list[Table]] = defaultdict(list)
        for table in tables:
            groups[table.dataset, table.data, axis.shared(table), table.metric].append(table)
        for key in sorted(groups):
            lines = curve_lines(groups[key], axis)
            sizes = {size for points in lines.values() for size, _, _ in points}
            if len(sizes) >= 2:
                stem = re.sub(r"[^A-Za-z0-9]+", "-", f"{key[0]}-{key[1]}-{key[2]}").strip("-")
                files[f"curve-{stem}.svg"] = _draw(key, axis, lines)
    return files


def curve_lines(tables: Sequence[Table], axis: Axis = LABELED) -> dict[str, list[_Point]]:
    """Points by row name, ascending by size; incomplete rows give no point.

    Rows of several tables are joined by their key: their names leave out what does not differ in
    one table. If the tables have common seeds, only these count, so that all points of a line
    come from the same draws.
    """
    common = set.intersection(*(set(table.seeds) for table in tables))
    lines: dict[RowKey, list[_Point]] = defaultdict(list)
    for table in tables:
        for row in table.rows:
            point = _point(row, axis.size(table, row), common or set(table.seeds))
            if point is not None:
                lines[row.key].append(point)
    names = row_names(lines)
    return {names[key]: sorted(lines[key]) for key in sorted(lines)}


def _point(row: Row, size: int | None, seeds: set[int]) -> _Point | None:
    if not row.complete or size is None:
        return None
    values = [
        100 * score for seed, score in zip(row.seeds, row.scores, strict=True) if seed in seeds
    ]
    return size, statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def _draw(key: _Key, axis: Axis, lines: dict[str, list[_Point]]) -> bytes:
    # Not pyplot, which chooses a window system and has global state.
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    dataset, _, curve, metric = map(printable, key)
    # Fixed salt, text as text and no date: equal points give equal bytes. No formulas in names.
    with matplotlib.rc_context(
        {"svg.hashsalt": "sslbench", "svg.fonttype": "none", "text.parse_math": False}
    ):
        names = {name: textwrap.fill(printable(name), NAME_WIDTH) for name in lines}
        rows = sum(1 + name.count("\n") for name in names.values())
        figure = Figure(figsize=(7, 4 + 0.2 * rows), layout="constrained")
        axes = figure.add_subplot()
        for name, points in lines.items():
            sizes, means, sds = zip(*points, strict=True)
            axes.errorbar(sizes, means, yerr=sds, marker="o", capsize=3, label=names[name])
        axes.set_xscale("log")
        ticks = sorted({size for points in lines.values() for size, _, _ in points})
        axes.set_xticks(ticks, [str(size) for size in ticks])
        axes.set_xticks([], minor=True)
        axes.set_xlabel(axis.name)
        axes.set_ylabel(f"{metric} (%), mean and sd over seeds")
        axes.set_title(f"{dataset}\n{curve}", fontsize=10)
        axes.grid(alpha=0.3)
        figure.legend(loc="outside lower left", fontsize=8)
        out = io.BytesIO()
        FigureCanvasSVG(figure)
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()
