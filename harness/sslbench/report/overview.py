"""A board at one size: mean ranks over datasets, and accuracy against cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from sslbench.report.board import Board, cost
from sslbench.report.ranks import Pair, group_letters
from sslbench.report.significance import LEVEL, holm
from sslbench.report.svg import COLORS, Plot, line, picture, text

LEAST_DATASETS = 3
LEAST_LINES = 2
_FAR = 3.0  # times the best gain below zero


@dataclass(frozen=True)
class Overview:
    """The lines that have a score in every column of a size.

    Attributes
    ----------
    size: of the labeled sample.  columns: numbers of its columns.
    lines: with all scores, best mean rank first.  ranks: their mean ranks over the columns.
    groups: letters; lines that share one cannot be told apart over these datasets.
    gains: mean difference to the baseline in points; () without a baseline among the lines.
    tasks, by_task: the tasks of the columns; of each line, the mean difference by task.
    lowest: of each line, the lowest difference in a column, and its dataset.
    scores: of each line, in percent by column.  apart: numbers of lines that share no letter.
    better, worse: in how many columns the interval of the gain lies above, or below, zero.
    cpu_s: geometric mean of the CPU seconds of a training.
    left_out: line and what it lacks.
    """

    size: str
    columns: tuple[int, ...]
    lines: tuple[str, ...]
    ranks: tuple[float, ...]
    groups: tuple[str, ...]
    gains: tuple[float, ...]
    tasks: tuple[str, ...]
    by_task: tuple[tuple[float, ...], ...]
    lowest: tuple[tuple[float, str], ...]
    scores: tuple[tuple[float, ...], ...]
    apart: frozenset[Pair]
    better: tuple[int, ...]
    worse: tuple[int, ...]
    cpu_s: tuple[float | None, ...]
    left_out: tuple[tuple[str, str], ...]


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
    ranks = stats.rankdata(-scores, axis=0).mean(axis=1) if complete else np.empty(0)
    order = np.argsort(ranks, kind="stable").tolist()
    scores = scores[order]
    names = [complete[i] for i in order]
    base = next((i for i, name in enumerate(names) if name in board.baselines), None)
    gains = 100 * (scores - (scores[base] if base is not None else np.nan))
    kinds = [board.columns[i].task for i in columns]
    tasks = tuple(dict.fromkeys(kinds))
    of_task = [gains[:, [kind == task for kind in kinds]].mean(axis=1) for task in tasks]
    lowest = [(float(line.min()), board.columns[columns[line.argmin()]].dataset) for line in gains]
    apart = _apart(scores)
    return Overview(
        size=size,
        columns=tuple(columns),
        lines=tuple(names),
        ranks=tuple(ranks[order].tolist()),
        groups=tuple(group_letters(len(names), apart)),
        gains=() if base is None else tuple(gains.mean(axis=1).tolist()),
        tasks=tasks,
        by_task=tuple(zip(*(of_task[i].tolist() for i in range(len(tasks))), strict=True)),
        lowest=tuple(lowest),
        scores=tuple(map(tuple, (100 * scores).tolist())),
        apart=frozenset(apart),
        better=tuple(_count(board, name, columns, 1) for name in names),
        worse=tuple(_count(board, name, columns, -1) for name in names),
        cpu_s=tuple(_mean_cpu(board, name, columns) for name in names),
        left_out=tuple(left_out),
    )


def _apart(scores: np.ndarray) -> list[Pair]:
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


def overview_table(found: Overview) -> tuple[list[str], list[list[str]]]:
    """The means in words: headings, and a row for each line.

    Gains stand there if there is a baseline, those by task if there are several.
    """
    tasks = found.tasks if len(found.tasks) > 1 else ()
    headings = ["mean gain", *tasks, "lowest gain"] if found.gains else []
    rows = []
    for i, name in enumerate(found.lines):
        gains = []
        if found.gains:
            lowest, dataset = found.lowest[i]
            means = [found.gains[i], *found.by_task[i][: len(tasks)]]
            gains = [*(f"{mean:+.2f}" for mean in means), f"{lowest:+.2f} {dataset}"]
        rows.append(
            [
                name,
                f"{found.ranks[i]:.2f}",
                found.groups[i],
                *gains,
                str(found.better[i]),
                str(found.worse[i]),
                "" if (cpu := found.cpu_s[i]) is None else f"{cpu:.1f}",
            ]
        )
    return ["method", "mean rank", "group", *headings, "better", "worse", "CPU s"], rows


def pairs_table(found: Overview) -> tuple[list[str], list[list[str]]]:
    """Headings, and a row for each line: its mean difference to each other line, wins and losses.

    A win is a column with the higher score. "*" = a pair that is `apart`.
    """
    scores = np.array(found.scores)
    rows = []
    for i, name in enumerate(found.lines):
        texts = [""] * len(found.lines)
        for j in range(len(texts)):
            difference = scores[i] - scores[j]
            wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
            star = "*" if (min(i, j), max(i, j)) in found.apart else ""
            if i != j:
                texts[j] = f"{difference.mean():+.2f}{star} ({wins}:{losses})"
        rows.append([name, *texts])
    return ["method", *found.lines], rows


def _mean_cpu(board: Board, name: str, columns: Sequence[int]) -> float | None:
    found = [cost(row) for i in columns if (row := board.score(name, i)) is not None]
    seconds = [max(each.train_s, 0.01) for each in found if each is not None]
    if len(seconds) < len(columns) or not seconds:
        return None
    return math.exp(sum(map(math.log, seconds)) / len(seconds))


def critical_svg(found: Overview) -> str:
    """Critical-difference diagram (J. Demsar 2006): mean ranks, a bar over lines of one group.

    "" with too few lines or datasets for one.
    """
    n = len(found.lines)
    if n < LEAST_LINES or len(found.columns) < LEAST_DATASETS:
        return ""
    width, left, right = 760.0, 230.0, 530.0
    letters = sorted({letter for group in found.groups for letter in group if letter.isalpha()})
    bars = [[i for i, g in enumerate(found.groups) if letter in g] for letter in letters]
    bars = [bar for bar in bars if len(bar) > 1]

    def at(rank: float) -> float:
        return left + (rank - 1) / max(n - 1, 1) * (right - left)

    parts = [line(left, 40, right, 40, "axis"), text((left + right) / 2, 14, "mean rank", "middle")]
    for rank in range(1, n + 1):
        parts += [line(at(rank), 36, at(rank), 40, "axis"), text(at(rank), 31, str(rank), "middle")]
    top = 50.0
    for place, bar in enumerate(bars):
        y = top + 8 * place
        parts.append(line(at(found.ranks[bar[0]]) - 3, y, at(found.ranks[bar[-1]]) + 3, y, "bar"))
    below = top + 8 * len(bars) + 12
    half = (n + 1) // 2
    for i, (name, mean) in enumerate(zip(found.lines, found.ranks, strict=True)):
        first = i < half
        y = below + 18 * (i if first else n - 1 - i)
        end = left - 12 if first else right + 12
        parts.append(line(at(mean), 40, at(mean), y, "thin"))
        parts.append(line(at(mean), y, end, y, "thin"))
        words = f"{name} {mean:.2f}"
        parts.append(text(end - 4 if first else end + 4, y + 4, words, "end" if first else ""))
    title = f"Critical differences over {len(found.columns)} datasets, {found.size} labeled"
    return picture(width, below + 18 * half, parts, title)


def front(found: Overview) -> list[int]:
    """Lines that no other one beats in both gain and cost; numbers, cheapest first."""
    known = [i for i, cpu in enumerate(found.cpu_s) if cpu is not None]
    by_cost = sorted(known, key=lambda i: (found.cpu_s[i] or 0.0, -found.gains[i]))
    best, kept = -math.inf, list[int]()
    for i in by_cost:
        if found.gains[i] > best:
            best, kept = found.gains[i], [*kept, i]
    return kept


def pareto_svg(found: Overview) -> str:
    """Mean gain against CPU seconds, and the front of those that nothing beats in both.

    Lines far below the baseline are named in place of drawn: they would press the others together.
    "" with too few lines.
    """
    priced = [i for i, cpu in enumerate(found.cpu_s) if cpu is not None and found.gains]
    least = -_FAR * max(1.0, *(found.gains[i] for i in priced)) if priced else 0.0
    near = [i for i in priced if found.gains[i] >= least]
    known = near if len(near) >= LEAST_LINES else priced
    if len(known) < LEAST_LINES:
        return ""
    xs = [found.cpu_s[i] or 0.0 for i in known]
    ys = [found.gains[i] for i in known]
    ys.append(min(*ys, -0.4 * max(ys)))  # room for names
    x_name = "CPU seconds of a training, geometric mean"
    plot = Plot(xs, ys, x_name, "mean gain, points", width=600, height=380)
    best = front(found)
    steps = [(found.cpu_s[i] or 0.0, found.gains[i], 0.0) for i in best if i in known]
    plot.series(0, steps)
    far = [f"{found.lines[i]} {found.gains[i]:+.1f}" for i in priced if i not in known]
    if far:
        plot.label(50, 20, f"far below: {', '.join(far)}")
    for i in sorted(known, key=lambda i: -found.gains[i]):
        x, y = found.cpu_s[i] or 0.0, found.gains[i]
        plot.dot(x, y, COLORS[0] if i in best else COLORS[-1], 4)
        plot.label(plot.x(x), plot.y(y), found.lines[i])
    return plot.render(
        f"Gain against cost over {len(found.columns)} datasets, {found.size} labeled"
    )
