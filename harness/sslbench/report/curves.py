"""Learning curves: the primary metric over the number of labelled sentences."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Sequence

from sslbench.report.leaderboard import Row, RowKey, Table, row_names

_Key = tuple[str, str, str, str]  # data set, data hash, protocol without size, metric
_Point = tuple[int, float, float]  # labelled sentences, mean, sd


def curve_files(tables: Sequence[Table]) -> dict[str, bytes]:
    """One SVG per data set and protocol with at least two labelled sizes, by file name."""
    groups: dict[_Key, list[Table]] = defaultdict(list)
    for table in tables:
        groups[table.dataset, table.data, table.curve, table.metric].append(table)
    files: dict[str, bytes] = {}
    for key in sorted(groups):
        lines = curve_lines(groups[key])
        sizes = {size for points in lines.values() for size, _, _ in points}
        if len(sizes) >= 2:
            stem = re.sub(r"[^A-Za-z0-9]+", "-", f"{key[0]}-{key[1]}-{key[2]}").strip("-")
            files[f"curve-{stem}.svg"] = _draw(key, lines)
    return files


def curve_lines(tables: Sequence[Table]) -> dict[str, list[_Point]]:
    """Points by row name, ascending; incomplete rows give no point.

    Rows are joined by what makes them, not by the name they have in their table, which leaves out
    what does not differ there.
    """
    lines: dict[RowKey, list[_Point]] = defaultdict(list)
    for table in tables:
        for row in table.rows:
            point = _point(row)
            if point is not None:
                lines[row.key].append(point)
    names = row_names(lines)
    return {names[key]: sorted(lines[key]) for key in sorted(lines)}


def _point(row: Row) -> _Point | None:
    if not row.complete or row.mean is None or row.labeled_sentences is None:
        return None
    return row.labeled_sentences, 100 * row.mean, 100 * (row.sd or 0.0)


def _draw(key: _Key, lines: dict[str, list[_Point]]) -> bytes:
    # Not pyplot: it would pick a window system and keep global state.
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    dataset, _, curve, metric = key
    # A fixed salt, text as text and no date: the same points give the same bytes.
    with matplotlib.rc_context({"svg.hashsalt": "sslbench", "svg.fonttype": "none"}):
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.add_subplot()
        for name, points in lines.items():
            sizes, means, sds = zip(*points, strict=True)
            axes.errorbar(sizes, means, yerr=sds, marker="o", capsize=3, label=name)
        axes.set_xscale("log")
        ticks = sorted({size for points in lines.values() for size, _, _ in points})
        axes.set_xticks(ticks, [str(size) for size in ticks])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("labelled sentences")
        axes.set_ylabel(f"{metric} (%), mean and sd over seeds")
        axes.set_title(f"{dataset}\n{curve}", fontsize=10)
        axes.grid(alpha=0.3)
        axes.legend()
        out = io.BytesIO()
        FigureCanvasSVG(figure)
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()
