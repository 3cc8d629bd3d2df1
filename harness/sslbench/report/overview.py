"""A board at one size: mean ranks over datasets, and accuracy against cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from sslbench.engine.types import F64
from sslbench.report.board import Board, cost
from sslbench.report.ranks import Pair, group_letters
from sslbench.report.significance import LEVEL, holm
from sslbench.report.svg import COLORS, Plot, line, picture, text

LEAST_DATASETS = 3
LEAST_LINES = 2
_FAR = 3.0  # times the best gain below zero


@dataclass(frozen=True)
class Means:
    """A line that has a score in every column of a size.

    Attributes
    ----------
    name: name of the line.
    rank: mean rank over the columns.
    group: letters; lines that share one do not differ significantly over these datasets.
    gain: mean difference to the baseline in points; None without a baseline.
    by_task: the gain by task.  lowest: the lowest gain of a column, and its dataset.
    better, worse: number of columns where the interval of the gain lies above, or below, zero.
    cpu_s: geometric mean of the CPU seconds of a training; None if one is not measured.
    scores: scores in percent, by column.
    """

    name: str
    rank: float
    group: str
    gain: float | None
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
    size: size of the labeled sample.  columns: numbers of its columns.  tasks: their tasks.
    lines: the lines with all scores, best mean rank first.
    apart: places of lines that share no letter.
    left_out: names of the other lines, and what each lacks.
    """

    size: str
    columns: tuple[int, ...]
    tasks: tuple[str, ...]
    lines: tuple[Means, ...]
    apart: frozenset[Pair]
    left_out: tuple[tuple[str, str], ...]

    def line(self, name: str) -> Means | None:
        """The means of a line; None if it lacks a score."""
        return next((line for line in self.lines if line.name == name), None)


def overview(board: Board, size: str) -> Overview:
    """Means over all columns of a size. A line that lacks one has no mean."""
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
    tasks = tuple(dict.fromkeys(board.columns[i].task for i in columns))
    lines, apart = _means(board, columns, tasks, complete, scores)
    return Overview(size, tuple(columns), tasks, lines, frozenset(apart), tuple(left_out))


def _means(
    board: Board, columns: Sequence[int], tasks: Sequence[str], names: Sequence[str], scores: F64
) -> tuple[tuple[Means, ...], list[Pair]]:
    """The lines by mean rank, and the places of those that share no letter.

    scores: float64[names, columns], in [0, 1].
    """
    ranks = stats.rankdata(-scores, axis=0).mean(axis=1) if names else np.empty(0)
    order = np.argsort(ranks, kind="stable").tolist()
    names, scores, ranks = [names[i] for i in order], scores[order], ranks[order]
    base = next((i for i, name in enumerate(names) if name in board.baselines), None)
    gains = 100 * (scores - (scores[base] if base is not None else np.nan))
    kinds = np.array([board.columns[i].task for i in columns])
    apart = _apart(scores)
    groups = group_letters(len(names), apart)
    lines = [
        Means(
            name=name,
            rank=float(ranks[i]),
            group=groups[i],
            gain=None if base is None else float(gains[i].mean()),
            by_task=tuple(float(gains[i, kinds == task].mean()) for task in tasks),
            lowest=(float(gains[i].min()), board.columns[columns[gains[i].argmin()]].dataset),
            better=_count(board, name, columns, 1),
            worse=_count(board, name, columns, -1),
            cpu_s=_mean_cpu(board, name, columns),
            scores=tuple((100 * scores[i]).tolist()),
        )
        for i, name in enumerate(names)
    ]
    return tuple(lines), apart


def _apart(scores: F64) -> list[Pair]:
    """Pairs of lines that Wilcoxon's signed-rank test over datasets sets apart (Holm).

    scores: float64[lines, datasets].
    """
    pairs = list(combinations(range(len(scores)), 2))
    p_values = []
    for a, b in pairs:
        difference = scores[a] - scores[b]
        same = not difference.any()
        p_values.append(1.0 if same else float(stats.wilcoxon(difference).pvalue))
    corrected = holm(p_values)
    return [pair for pair, p in zip(pairs, corrected, strict=True) if p <= LEVEL]


def _count(board: Board, name: str, columns: Sequence[int], sign: int) -> int:
    """Columns where the test of the methods finds a gain of this sign."""
    tests = [row.paired for i in columns if (row := board.score(name, i)) is not None]
    return sum(test is not None and (test.low > 0 if sign > 0 else test.high < 0) for test in tests)


def overview_table(view: Overview) -> tuple[list[str], list[list[str]]]:
    """The means as text: headings, and a row for each line.

    There are gains if there is a baseline, and gains by task if there are several tasks.
    """
    tasks = view.tasks if len(view.tasks) > 1 else ()
    with_gains = any(each.gain is not None for each in view.lines)
    headings = ["mean gain", *tasks, "lowest gain"] if with_gains else []
    rows = []
    for means in view.lines:
        gains = []
        if means.gain is not None:
            values = [means.gain, *means.by_task[: len(tasks)]]
            gains = [*(f"{value:+.2f}" for value in values), "{:+.2f} {}".format(*means.lowest)]
        cpu = "" if means.cpu_s is None else f"{means.cpu_s:.1f}"
        counts = str(means.better), str(means.worse)
        rows.append([means.name, f"{means.rank:.2f}", means.group, *gains, *counts, cpu])
    return ["method", "mean rank", "group", *headings, "better", "worse", "CPU s"], rows


def pairs_table(view: Overview) -> tuple[list[str], list[list[str]]]:
    """Headings, and a row for each line: its mean difference to each other line, wins and losses.

    A win is a column with the higher score. "*" = a pair that is `apart`.
    """
    scores = np.array([each.scores for each in view.lines])
    rows = []
    for i, means in enumerate(view.lines):
        texts = [""] * len(view.lines)
        for j in range(len(texts)):
            difference = scores[i] - scores[j]
            wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
            star = "*" if (min(i, j), max(i, j)) in view.apart else ""
            if i != j:
                texts[j] = f"{difference.mean():+.2f}{star} ({wins}:{losses})"
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

    "" with too few lines or datasets for one.
    """
    n = len(view.lines)
    if n < LEAST_LINES or len(view.columns) < LEAST_DATASETS:
        return ""
    width, left, right = 760.0, 230.0, 530.0
    letters = sorted({letter for each in view.lines for letter in each.group if letter.isalpha()})
    bars = [[each.rank for each in view.lines if letter in each.group] for letter in letters]
    bars = [bar for bar in bars if len(bar) > 1]

    def at(rank: float) -> float:
        return left + (rank - 1) / max(n - 1, 1) * (right - left)

    parts = [line(left, 40, right, 40, "axis"), text((left + right) / 2, 14, "mean rank", "middle")]
    for rank in range(1, n + 1):
        parts += [line(at(rank), 36, at(rank), 40, "axis"), text(at(rank), 31, str(rank), "middle")]
    top = 50.0
    for place, bar in enumerate(bars):
        y = top + 8 * place
        parts.append(line(at(bar[0]) - 3, y, at(bar[-1]) + 3, y, "bar"))
    below = top + 8 * len(bars) + 12
    half = (n + 1) // 2
    for i, each in enumerate(view.lines):
        first = i < half
        y = below + 18 * (i if first else n - 1 - i)
        end = left - 12 if first else right + 12
        parts.append(line(at(each.rank), 40, at(each.rank), y, "thin"))
        parts.append(line(at(each.rank), y, end, y, "thin"))
        words = f"{each.name} {each.rank:.2f}"
        parts.append(text(end - 4 if first else end + 4, y + 4, words, "end" if first else ""))
    title = f"Critical differences over {len(view.columns)} datasets, {view.size} labeled"
    return picture(width, below + 18 * half, parts, title)


def _priced(view: Overview) -> list[tuple[float, float, str]]:
    """CPU seconds, gain and name of the lines that have both."""
    return [
        (line.cpu_s, line.gain, line.name)
        for line in view.lines
        if line.cpu_s is not None and line.gain is not None
    ]


def front(view: Overview) -> list[str]:
    """Names of the lines that no other one beats in both gain and cost, cheapest first."""
    best, names = -math.inf, list[str]()
    for _, gain, name in sorted(_priced(view), key=lambda each: (each[0], -each[1])):
        if gain > best:
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
