"""Learning curves: the primary metric by the number of labeled or unlabeled sentences."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sslbench.report.leaderboard import Table
from sslbench.report.rows import Row, RowKey, row_names
from sslbench.report.svg import Plot

_Key = tuple[str, str, str, str]  # dataset, data hash, what the tables share, metric
_Point = tuple[int, float, float]  # sentences; mean and sd in percent


@dataclass(frozen=True)
class Axis:
    """The horizontal axis of a curve.

    shared: protocol text that all tables of one curve share.
    size: number of sentences of a row; None = unknown.
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


@dataclass(frozen=True)
class Curve:
    """Points of all methods on one dataset under one protocol.

    Attributes
    ----------
    dataset, protocol, metric: what the tables share.  axis: what is varied.
    tables: the tables that it joins, in the order of `leaderboard`.
    lines: see `curve_lines`.
    """

    dataset: str
    protocol: str
    metric: str
    axis: Axis
    tables: tuple[Table, ...]
    lines: dict[str, list[_Point]]

    def svg(self, names: Sequence[str] = ()) -> str:
        """The picture; a line has the color of its place in `names`, if it is there."""
        every = list(dict.fromkeys([*(name for name in names if name in self.lines), *self.lines]))
        places = list(dict.fromkeys([*names, *every]))
        points = [point for line in self.lines.values() for point in line]
        sizes = sorted({size for size, _, _ in points})
        ys = [mean + side * sd for _, mean, sd in points for side in (-1, 1)]
        plot = Plot(sizes, ys, self.axis.name, f"{self.metric} (%)", sizes)
        for name in every:
            plot.series(places.index(name), self.lines[name])
        plot.legend(every, [places.index(name) for name in every])
        return plot.render(f"{self.axis.name}: {self.dataset}, {self.protocol}")


def curves(tables: Sequence[Table]) -> list[Curve]:
    """A curve for each dataset, protocol and axis with at least two sizes."""
    joined_curves = []
    for axis in (LABELED, UNLABELED):
        groups: dict[_Key, list[Table]] = defaultdict(list)
        for table in tables:
            groups[table.dataset, table.data, axis.shared(table), table.metric].append(table)
        for dataset, data, protocol, metric in sorted(groups):
            joined = groups[dataset, data, protocol, metric]
            lines = curve_lines(joined, axis)
            if len({size for points in lines.values() for size, _, _ in points}) >= 2:
                joined_curves.append(Curve(dataset, protocol, metric, axis, tuple(joined), lines))
    return joined_curves


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
