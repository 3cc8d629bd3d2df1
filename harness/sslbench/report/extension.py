"""Rows and columns that somebody adds to a suite, beside the published results of the others.

Published results are scores of draws. Ranks, gains and tests over families of datasets need no more
than their means over the draws of the suite; the tests within a dataset need the records (`sslbench
suite report`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, fields
from statistics import fmean, median, stdev

import numpy as np
from scipy import stats

from sslbench.experiment.planning.published import PublishedLines
from sslbench.experiment.records.cost import training_cpu_s
from sslbench.plugins import Registry
from sslbench.report.escape import csv_cell
from sslbench.report.families import family_means, mean_interval, set_apart
from sslbench.report.ranks import group_letters
from sslbench.report.rows import successful
from sslbench.suite.cells import Cell


@dataclass(frozen=True)
class Score:
    """A line in a column.

    Attributes
    ----------
    column: hash of what the scores of one column share.
    line, dataset, labeled, protocol, metric: which line, on what, measured how.
    source: "added" = by records of the store, "published" = by the published results.
    draws, wanted: number of draws that there are, and that the suite asks for.
    mean, sd: mean and standard deviation of the metric over the draws, in [0, 1]; None without.
    cpu_s: median CPU seconds of a training; None = not measured.
    """

    column: str
    line: str
    dataset: str
    labeled: str
    protocol: str
    metric: str
    source: str
    draws: int
    wanted: int
    mean: float | None
    sd: float | None
    cpu_s: float | None

    @property
    def complete(self) -> bool:
        """Whether there is a score of every draw."""
        return self.draws >= self.wanted


def scores(added: Sequence[Cell], others: Sequence[Cell], published: PublishedLines) -> list[Score]:
    """Return the scores of the added cells, and the published ones of the other lines.

    added: with their records.  others: one draw of each line and column, see `neighbors`.
    """
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in added:
        groups.setdefault((cell.line, cell.column), []).append(cell)
    seeds = {group[0].column: {cell.seed for cell in group} for group in groups.values()}
    ours = [_added(group) for group in groups.values()]
    theirs = [_published(cell, seeds[cell.column], published) for cell in others]
    return [*ours, *(score for score in theirs if score is not None)]


def _added(cells: Sequence[Cell]) -> Score:
    records = [cell.record for cell in cells if cell.state == "done" and cell.record is not None]
    good = [record for record in records if successful(record)]
    values = [record.score for record in good if record.score is not None]
    seconds = [cpu for record in good if (cpu := training_cpu_s(record)) is not None]
    return _score(cells[0], "added", values, len(cells), median(seconds) if seconds else None)


def _published(cell: Cell, seeds: Set[int], published: PublishedLines) -> Score | None:
    """Of the draws of a suite alone: a line has those of all suites with the same settings."""
    line = published.of(cell.spec, cell.task.metric, cell.by_text)
    if line is None:
        return None
    values = [score for seed, score in line.by_run if seed in seeds]
    return _score(cell, "published", values, len(seeds), float(line.cpu_s) if line.cpu_s else None)


def _score(
    cell: Cell, source: str, values: Sequence[float], wanted: int, cpu_s: float | None
) -> Score:
    """values: the metric of each draw."""
    protocol = cell.spec.protocol
    return Score(
        column=cell.column,
        line=cell.line,
        dataset=cell.spec.dataset,
        labeled=str(protocol.labeled),
        protocol=protocol.describe(),
        metric=cell.task.metric,
        source=source,
        draws=len(values),
        wanted=wanted,
        mean=fmean(values) if values else None,
        sd=stdev(values) if len(values) > 1 else None,
        cpu_s=cpu_s,
    )


@dataclass(frozen=True)
class Standing:
    """A line among those that have a score in all columns.

    Attributes
    ----------
    added: whether it is one of the added lines.
    rank, gain: mean rank, and mean gain over the baseline in points, over families of datasets;
        gain None without a baseline.
    gains: 95 % interval of the gain; infinite with too few families.
    group: letters; lines that share one are not set apart over the families.
    cpu_s: geometric mean of the CPU seconds of a training; None if one is not measured.
    """

    line: str
    added: bool
    rank: float
    gain: float | None
    gains: tuple[float, float]
    group: str
    cpu_s: float | None


def standings(table: Sequence[Score], plugins: Registry) -> tuple[list[Standing], int]:
    """Return the lines, best mean rank first, and the number of columns that they are ranked by.

    Columns count in which every added line has all draws. Lines that lack a score there are left
    out.

    table: the scores of one labeled size.
    """
    by_place = {(s.line, s.column): s for s in table if s.complete and s.mean is not None}
    ours = {score.line for score in table if score.source == "added"}
    asked = {score.column: score.dataset for score in table if score.source == "added"}
    columns = [column for column in asked if all((line, column) in by_place for line in ours)]
    names = [
        name
        for name in dict.fromkeys(score.line for score in table)
        if columns and all((name, column) in by_place for column in columns)
    ]
    if not names:
        return [], len(columns)
    families = [plugins.dataset(asked[key]).family or asked[key] for key in columns]
    places = [[by_place[name, column] for column in columns] for name in names]
    values = np.array([[each.mean for each in line] for line in places], dtype=np.float64)
    ranks = family_means(stats.rankdata(-values, axis=0), families).mean(axis=-1)
    order = np.argsort(ranks, kind="stable").tolist()
    letters = group_letters(len(order), set_apart(family_means(values[order], families)))
    base = next((i for i, name in enumerate(names) if _is_baseline(name, plugins)), None)
    lines = []
    for place, i in enumerate(order):
        gains = np.zeros(1) if base is None else family_means(values[i] - values[base], families)
        lines.append(
            Standing(
                line=names[i],
                added=names[i] in ours,
                rank=float(ranks[i]),
                gain=None if base is None else 100 * float(gains.mean()),
                gains=mean_interval(100 * gains),
                group=letters[place],
                cpu_s=_geometric([each.cpu_s for each in places[i]]),
            )
        )
    return lines, len(columns)


def _is_baseline(line: str, plugins: Registry) -> bool:
    return line in plugins.methods and plugins.method(line).baseline


def _geometric(seconds: Sequence[float | None]) -> float | None:
    values = [max(each, 0.01) for each in seconds if each is not None]
    return float(np.exp(np.log(values).mean())) if len(values) == len(seconds) else None


@dataclass(frozen=True)
class Comparison:
    """An added line in one column beside the published lines.

    Attributes
    ----------
    score: that of the line.
    base, best: the score of the baseline, and the best published one; None = not published.
    place, of: its place by mean among the complete lines, and their number; place 0 without.
    """

    score: Score
    base: Score | None
    best: Score | None
    place: int
    of: int


def comparisons(table: Sequence[Score], plugins: Registry) -> list[Comparison]:
    """Return every added line in each of its columns, in the order of the suite."""
    columns: dict[str, list[Score]] = {}
    for score in table:
        if score.complete and score.mean is not None:
            columns.setdefault(score.column, []).append(score)
    return [_compared(s, columns.get(s.column, []), plugins) for s in table if s.source == "added"]


def _compared(score: Score, column: Sequence[Score], plugins: Registry) -> Comparison:
    ranked = sorted(column, key=lambda each: -(each.mean or 0.0))
    better = sum((each.mean or 0.0) > (score.mean or 0.0) for each in ranked)
    others = [each for each in ranked if each.line != score.line]
    base = next((each for each in others if _is_baseline(each.line, plugins)), None)
    best = next(iter(others), None)
    return Comparison(score, base, best, 1 + better if score.complete else 0, len(ranked))


def csv_text(table: Sequence[Score]) -> str:
    """A line per score; metrics are in [0, 1]."""
    names = [each.name for each in fields(Score) if each.name != "column"]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for score in table:
        values = (getattr(score, name) for name in names)
        writer.writerow(csv_cell(_rounded(value)) for value in values)
    return out.getvalue()


def _rounded(value: object) -> object:
    return f"{value:.6f}" if isinstance(value, float) else value


def by_size(table: Sequence[Score]) -> Mapping[str, list[Score]]:
    """Return the scores of each labeled size with added lines."""
    sizes = dict.fromkeys(score.labeled for score in table if score.source == "added")
    return {size: [score for score in table if score.labeled == size] for size in sizes}
