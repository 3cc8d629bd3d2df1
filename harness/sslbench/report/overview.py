"""A board at one size: means over families of datasets, and accuracy against cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from sslbench.engine.types import F64
from sslbench.report.board import Board, cost
from sslbench.report.families import (
    LEAST_FAMILIES,
    family_means,
    first_shares,
    mean_interval,
    set_apart,
)
from sslbench.report.ranks import Pair, group_letters
from sslbench.report.significance import LEVEL
from sslbench.report.svg import COLORS, Plot, line, picture, text

LEAST_LINES = 2
_FAR = 3.0  # times the best gain below zero


@dataclass(frozen=True)
class Means:
    """A line that has a score in every column of a size.

    Attributes
    ----------
    name: name of the line.
    rank: mean rank over the families.  ranks: its 95 % interval.
    group: letters; lines that share one do not differ significantly over the families.
    gain: mean difference to the baseline over the families, in points; None without a baseline.
    gains: its 95 % interval.
    first: probability of the best mean score if families and datasets were drawn again.
    by_task: the gain by task.  lowest: the lowest gain of a column, and its dataset.
    better, worse: number of columns with a significant gain, or loss, at a false-discovery rate of
        5 % over all columns of all lines.
    cpu_s: geometric mean of the CPU seconds of a training; None if one is not measured.
    scores: scores in percent, by column.
    """

    name: str
    rank: float
    ranks: tuple[float, float]
    group: str
    gain: float | None
    gains: tuple[float, float]
    first: float
    by_task: tuple[float, ...]
    lowest: tuple[float, str]
    better: int
    worse: int
    cpu_s: float | None
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Overview:
    """The means over all columns of a size.

    Attributes
    ----------
    size: size of the labeled sample.  columns: numbers of its columns.  families: their families.
    tasks: their tasks.
    lines: the lines with all scores, best mean rank first.
    apart: places of lines that share no letter.
    left_out: names of the other lines, and what each lacks.
    """

    size: str
    columns: tuple[int, ...]
    families: tuple[str, ...]
    tasks: tuple[str, ...]
    lines: tuple[Means, ...]
    apart: frozenset[Pair]
    left_out: tuple[tuple[str, str], ...]

    def line(self, name: str) -> Means | None:
        """The means of a line; None if it lacks a score."""
        return next((line for line in self.lines if line.name == name), None)


def overview(board: Board, size: str) -> Overview:
    """Return the means at a size. A line that lacks the score of a column has no mean."""
    columns = [i for i, column in enumerate(board.columns) if column.size == size]
    complete, left_out = [], []
    for name in board.lines:
        lacking = [i for i in columns if board.score(name, i) is None]
        if not lacking:
            complete.append(name)
        elif len(lacking) < len(columns):
            shown = ", ".join(board.columns[i].dataset for i in lacking[:3])
            more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
            left_out.append((name, shown + more))
    rows = [[board.score(name, i) for i in columns] for name in complete]
    scores = np.array([[row.mean for row in line if row] for line in rows], dtype=np.float64)
    scores = scores.reshape(len(complete), len(columns))
    lines, apart = _means(board, columns, complete, scores) if complete else ((), [])
    return Overview(
        size,
        tuple(columns),
        tuple(board.columns[i].family for i in columns),
        tuple(dict.fromkeys(board.columns[i].task for i in columns)),
        lines,
        frozenset(apart),
        tuple(left_out),
    )


def _means(
    board: Board, columns: Sequence[int], names: Sequence[str], scores: F64
) -> tuple[tuple[Means, ...], list[Pair]]:
    """Return the lines by mean rank, and the places of those that share no letter.

    scores: float64[names, columns], in [0, 1].
    """
    families = [board.columns[i].family for i in columns]
    ranks = family_means(stats.rankdata(-scores, axis=0), families)
    order = np.argsort(ranks.mean(axis=1), kind="stable").tolist()
    names, scores, ranks = [names[i] for i in order], scores[order], ranks[order]
    base = next((i for i, name in enumerate(names) if name in board.baselines), None)
    gains = 100 * (scores - (scores[base] if base is not None else np.nan))
    by_family = family_means(gains, families)
    apart = set_apart(family_means(scores, families))
    groups = group_letters(len(names), apart)
    first = first_shares(scores, families)
    better, worse = (_significant(board, names, columns, sign) for sign in (1, -1))
    lines = [
        Means(
            name=name,
            rank=float(ranks[i].mean()),
            ranks=mean_interval(ranks[i]),
            group=groups[i],
            gain=None if base is None else float(by_family[i].mean()),
            gains=mean_interval(by_family[i]),
            first=float(first[i]),
            by_task=_by_task(board, columns, gains[i]),
            lowest=(float(gains[i].min()), board.columns[columns[gains[i].argmin()]].dataset),
            better=better[i],
            worse=worse[i],
            cpu_s=_mean_cpu(board, name, columns),
            scores=tuple((100 * scores[i]).tolist()),
        )
        for i, name in enumerate(names)
    ]
    return tuple(lines), apart


def _by_task(board: Board, columns: Sequence[int], gains: F64) -> tuple[float, ...]:
    """Return the mean gain over the families of each task; gains: float64[columns]."""
    places: dict[str, list[int]] = {}
    for place, i in enumerate(columns):
        places.setdefault(board.columns[i].task, []).append(place)
    return tuple(
        float(
            family_means(gains[chosen], [board.columns[columns[p]].family for p in chosen]).mean()
        )
        for chosen in places.values()
    )


def _significant(
    board: Board, names: Sequence[str], columns: Sequence[int], sign: int
) -> list[int]:
    """Count, for each line, the columns in which it differs from the baseline with this sign."""
    rows = [[board.score(name, i) for i in columns] for name in names]
    tests = [[row.paired if row else None for row in line] for line in rows]
    p_values = [test.p_value for line in tests for test in line if test is not None]
    if not p_values:
        return [0] * len(names)
    adjusted = iter(stats.false_discovery_control(p_values))
    return [
        sum(
            next(adjusted) <= LEVEL and test.difference * sign > 0
            for test in line
            if test is not None
        )
        for line in tests
    ]


def overview_table(view: Overview) -> tuple[list[str], list[list[str]]]:
    """The means as text: headings, and a row for each line.

    There are gains if there is a baseline, and gains by task if there are several tasks.
    """
    tasks = view.tasks if len(view.tasks) > 1 else ()
    with_gains = any(each.gain is not None for each in view.lines)
    enough = len(set(view.families)) >= LEAST_FAMILIES
    headings = ["mean gain", "95 % of gain", *tasks, "lowest gain"] if with_gains else []
    rows = []
    for means in view.lines:
        gains = []
        if means.gain is not None:
            gains = [f"{means.gain:+.2f}", _interval(means.gains, "+.2f")]
            gains += [f"{value:+.2f}" for value in means.by_task[: len(tasks)]]
            gains.append("{:+.2f} {}".format(*means.lowest))
        cpu = "" if means.cpu_s is None else f"{means.cpu_s:.1f}"
        ranks = [
            f"{means.rank:.2f}",
            _interval(means.ranks, ".1f"),
            f"{means.first:.2f}" if enough else "",
        ]
        counts = [str(means.better), str(means.worse)]
        rows.append([means.name, *ranks, means.group, *gains, *counts, cpu])
    names = ["method", "mean rank", "95 % of rank", "first", "group"]
    return [*names, *headings, "better", "worse", "CPU s"], rows


def _interval(ends: tuple[float, float], form: str) -> str:
    """The ends as text; "" if there are too few families for an interval."""
    return f"{ends[0]:{form}} to {ends[1]:{form}}" if math.isfinite(ends[0]) else ""


def pairs_table(view: Overview) -> tuple[list[str], list[list[str]]]:
    """Headings, and a row for each line: its mean difference to each other line, wins and losses.

    The mean is over families. A win is a column with the higher score. "*" = a pair that is
    `apart`.
    """
    scores = np.array([each.scores for each in view.lines])
    rows = []
    for i, means in enumerate(view.lines):
        texts = [""] * len(view.lines)
        for j in range(len(texts)):
            difference = scores[i] - scores[j]
            mean = family_means(difference, view.families).mean()
            wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
            star = "*" if (min(i, j), max(i, j)) in view.apart else ""
            if i != j:
                texts[j] = f"{mean:+.2f}{star} ({wins}:{losses})"
        rows.append([means.name, *texts])
    return ["method", *(each.name for each in view.lines)], rows


def _mean_cpu(board: Board, name: str, columns: Sequence[int]) -> float | None:
    costs = [cost(row) for i in columns if (row := board.score(name, i)) is not None]
    seconds = [max(each.train_s, 0.01) for each in costs if each is not None]
    if len(seconds) < len(columns) or not seconds:
        return None
    return math.exp(sum(map(math.log, seconds)) / len(seconds))


def critical_svg(view: Overview) -> str:
    """Critical-difference diagram (J. Demsar 2006): mean ranks, a bar over lines of one group.

    Tests of pairs can set a line apart from one between others of its group: the bar leaves it out,
    and a thin line joins its parts. "" with too few lines or families for one.
    """
    n = len(view.lines)
    if n < LEAST_LINES or len(set(view.families)) < LEAST_FAMILIES:
        return ""
    width, left, right = 760.0, 230.0, 530.0
    letters = sorted({letter for each in view.lines for letter in each.group if letter.isalpha()})
    groups = [
        [i for i, each in enumerate(view.lines) if letter in each.group] for letter in letters
    ]
    groups = [group for group in groups if len(group) > 1]

    def at(rank: float) -> float:
        return left + (rank - 1) / max(n - 1, 1) * (right - left)

    parts = [line(left, 40, right, 40, "axis"), text((left + right) / 2, 14, "mean rank", "middle")]
    for rank in range(1, n + 1):
        parts += [line(at(rank), 36, at(rank), 40, "axis"), text(at(rank), 31, str(rank), "middle")]
    top = 50.0
    for place, group in enumerate(groups):
        y = top + 8 * place
        ends = [at(view.lines[i].rank) for i in (group[0], group[-1])]
        parts.append(line(*(ends[0], y), *(ends[1], y), "thin"))
        for first, last in _stretches(group):
            left_end, right_end = (at(view.lines[i].rank) for i in (first, last))
            parts.append(line(left_end - 3, y, right_end + 3, y, "bar"))
    below = top + 8 * len(groups) + 12
    half = (n + 1) // 2
    for i, each in enumerate(view.lines):
        first = i < half
        y = below + 18 * (i if first else n - 1 - i)
        end = left - 12 if first else right + 12
        parts.append(line(at(each.rank), 40, at(each.rank), y, "thin"))
        parts.append(line(at(each.rank), y, end, y, "thin"))
        words = f"{each.name} {each.rank:.2f}"
        parts.append(text(end - 4 if first else end + 4, y + 4, words, "end" if first else ""))
    n_families = len(set(view.families))
    title = f"Critical differences over {n_families} families of datasets, {view.size} labeled"
    return picture(width, below + 18 * half, parts, title)


def _stretches(places: Sequence[int]) -> list[tuple[int, int]]:
    """The first and last place of each stretch of adjacent places, which ascend."""
    stretches: list[tuple[int, int]] = []
    for place in places:
        if stretches and stretches[-1][1] == place - 1:
            stretches[-1] = stretches[-1][0], place
        else:
            stretches.append((place, place))
    return stretches


def _priced(view: Overview) -> list[tuple[float, float, str]]:
    """CPU seconds, gain and name of the lines that have both."""
    return [
        (line.cpu_s, line.gain, line.name)
        for line in view.lines
        if line.cpu_s is not None and line.gain is not None
    ]


def front(view: Overview) -> list[str]:
    """Names of the lines that no other one beats in both gain and cost, cheapest first.

    What is below the baseline is no bargain, however cheap.
    """
    best, names = -math.inf, list[str]()
    for _, gain, name in sorted(_priced(view), key=lambda each: (each[0], -each[1])):
        if gain > best and gain >= 0:
            best, names = gain, [*names, name]
    return names


def pareto_svg(view: Overview) -> str:
    """Mean gain against CPU seconds, and the front of those that nothing beats in both.

    A line far below the baseline is named but not drawn: it would compress the others.
    "" with too few lines.
    """
    priced = _priced(view)
    least = -_FAR * max(1.0, *(gain for _, gain, _ in priced)) if priced else 0.0
    near = [each for each in priced if each[1] >= least]
    drawn = near if len(near) >= LEAST_LINES else priced
    if len(drawn) < LEAST_LINES:
        return ""
    xs, ys = [cpu for cpu, _, _ in drawn], [gain for _, gain, _ in drawn]
    ys.append(min(*ys, -0.4 * max(ys)))  # room for names
    x_name = "CPU seconds of a training, geometric mean"
    plot = Plot(xs, ys, x_name, "mean gain, points", width=600, height=380)
    best = front(view)
    points = {name: (cpu, gain, 0.0) for cpu, gain, name in drawn}
    plot.series(0, [points[name] for name in best if name in points])
    far = [f"{name} {gain:+.1f}" for _, gain, name in priced if name not in points]
    if far:
        plot.label(50, 20, f"far below: {', '.join(far)}")
    for cpu, gain, name in sorted(drawn, key=lambda each: -each[1]):
        plot.dot(cpu, gain, COLORS[0] if name in best else COLORS[-1], 4)
        plot.label(plot.x(cpu), plot.y(gain), name)
    title = f"Gain against cost over {len(view.columns)} datasets, {view.size} labeled"
    return plot.render(title)
