"""Do forecasts predict the sign of the gain? Forecasts of runs beside their gains.

A cell is a run with a forecast and the run of the baseline on the same draw. Over the cells, a
forecast is a good one if those with a gain have larger forecasts than those without: the area
under the ROC curve is the share of pairs of a gain and a loss that it puts in the right
order (Mann and Whitney's U), 0.5 by chance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy.stats import rankdata

from sslbench.experiment.checks.forecast import recorded_forecast
from sslbench.experiment.records.record import RunRecord
from sslbench.report.board import Board
from sslbench.report.rows import successful
from sslbench.report.svg import COLORS, Plot, line

#: gains of fewer points may be chance: the second curve leaves them out
CLEAR = 0.5
#: cells of each sign that a number is made of
LEAST = 2
HEADINGS = (
    *("method", "cells", "gains", "AUC", "cells beyond 0.5", "gains", "AUC"),
    *("sign right", "sign of other families right"),
)
FORECAST_TEXT = (
    "Before its rounds a method tells what it would teach for labeled sentences that are held out."
    " Forecast: the cosine of that change of the model with the one that their labels would make,"
    " from -1 to 1; or, if that is less, the errors that it would add, relative to the model's. A"
    " cell is a run and the baseline's on the same draw. AUC: how often, of a gain and a loss, the"
    " gain has the larger forecast; 0.50 is chance. Beside the sign of the forecast: that of the"
    " method's mean gain on the other families of corpora, which needs no forecast."
)


@dataclass(frozen=True)
class Cell:
    """forecast: see `RecordedForecast`.  gain: over the baseline on the same draw, in points.

    family: that of the dataset; "" = not known.
    """

    method: str
    forecast: float
    gain: float
    family: str = ""


def board_cells(board: Board) -> list[Cell]:
    """The cells of a board, line by line."""
    cells: list[Cell] = []
    for name in board.lines:
        for number in range(len(board.columns)):
            row = board.score(name, number)
            rows = (board.score(other, number) for other in board.baselines)
            base = next((other for other in rows if other is not None), None)
            if row is not None and base is not None and row is not base:
                family = board.columns[number].family
                cells += cells_of(name, row.cells, base.cells, family)
    return cells


def cells_of(
    name: str,
    ours: Mapping[int, RunRecord],
    theirs: Mapping[int, RunRecord],
    family: str = "",
) -> Iterator[Cell]:
    """The cells of a method and the baseline, by seed; a guarded run is no cell.

    A gain of exactly zero has no sign: it is left out.
    """
    for seed in sorted(set(ours) & set(theirs)):
        run, base = ours[seed], theirs[seed]
        forecast = recorded_forecast(run.trace)
        if forecast is None or not (successful(run) and successful(base)):
            continue
        gain = 100 * ((run.score or 0.0) - (base.score or 0.0))
        if gain and "guard" not in run.trace:
            yield Cell(name, forecast.value, gain, family)


def auc(cells: Sequence[Cell]) -> float | None:
    """The area under the ROC curve; None with too few gains or losses."""
    gains = np.array([cell.gain > 0 for cell in cells], dtype=bool)
    n, m = int(gains.sum()), int((~gains).sum())
    if min(n, m) < LEAST:
        return None
    ranks = rankdata([cell.forecast for cell in cells])
    return float((ranks[gains].sum() - n * (n + 1) / 2) / (n * m))


def roc(cells: Sequence[Cell]) -> list[tuple[float, float]]:
    """The curve: by threshold, from none to all cells, the share of losses and that of gains whose
    forecast reaches it.
    """
    forecasts = np.array([cell.forecast for cell in cells])
    gains = np.array([cell.gain > 0 for cell in cells], dtype=bool)
    points = [(0.0, 0.0)]
    for threshold in np.unique(forecasts)[::-1]:
        above = forecasts >= threshold
        points.append((float(above[~gains].mean()), float(above[gains].mean())))
    return points


def clear(cells: Iterable[Cell]) -> list[Cell]:
    """Those whose gain or loss is not small."""
    return [cell for cell in cells if abs(cell.gain) >= CLEAR]


def forecast_rows(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    """A row for each method, and one for all, in the order of `HEADINGS`.

    The sign is right where forecast and gain are both above zero or both not, of those beyond
    `CLEAR`; beside it what would be right without any forecast, see `elsewhere`.
    """
    names = list(dict.fromkeys(cell.method for cell in cells))
    groups = [[cell for cell in cells if cell.method == name] for name in names]
    guesses = [elsewhere(part) for part in groups]
    rows = [_row(*each) for each in zip(names, groups, guesses, strict=True)]
    together = [guess for part in guesses for guess in part]
    return [*rows, _row("all", [cell for part in groups for cell in part], together)]


def elsewhere(cells: Sequence[Cell]) -> list[float | None]:
    """For each cell of a method its mean gain on other families, each counted once; None: none."""
    by_family: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        by_family[cell.family].append(cell.gain)
    means = {family: fmean(gains) for family, gains in by_family.items()}
    others = {family: [mean for name, mean in means.items() if name != family] for family in means}
    return [fmean(others[cell.family]) if others[cell.family] else None for cell in cells]


def _row(name: str, cells: Sequence[Cell], guesses: Sequence[float | None]) -> tuple[str, ...]:
    large = clear(cells)
    guessed = [
        (guess > 0) == (cell.gain > 0)
        for cell, guess in zip(cells, guesses, strict=True)
        if guess is not None and abs(cell.gain) >= CLEAR
    ]
    right = [(cell.forecast > 0) == (cell.gain > 0) for cell in large]
    return (name, *_counts(cells), *_counts(large), _share(right), _share(guessed))


def _share(right: Sequence[bool]) -> str:
    return f"{sum(right)} of {len(right)}" if right else ""


def _counts(cells: Sequence[Cell]) -> tuple[str, str, str]:
    area = auc(cells)
    gains = sum(cell.gain > 0 for cell in cells)
    return str(len(cells)), str(gains), "" if area is None else f"{area:.2f}"


def forecast_svg(cells: Sequence[Cell]) -> list[str]:
    """Gain by forecast, and the ROC curves; [] if there are too few gains or losses."""
    area = auc(cells)
    if area is None:
        return []
    xs, ys = [cell.forecast for cell in cells], [cell.gain for cell in cells]
    ends = [sign * max(map(abs, xs)) or sign for sign in (-1, 1)]
    scatter = Plot(ends, [*ys, 0], "forecast", "gain, points", logarithmic=False)
    scatter.parts.append(line(scatter.x(0), 10, scatter.x(0), scatter.height - 40, "axis"))
    scatter.parts.append(line(50, scatter.y(0), scatter.width - 20, scatter.y(0), "axis"))
    names = list(dict.fromkeys(cell.method for cell in cells))
    for cell in cells:
        color = COLORS[names.index(cell.method) % len(COLORS)]
        scatter.dot(cell.forecast, cell.gain, color)
    scatter.legend(names, range(len(names)))
    title = f"Forecasts of {len(cells)} runs, AUC {area:.2f}"
    return [scatter.render(title), _curves(cells).render(f"{title}: gains and losses")]


def _curves(cells: Sequence[Cell]) -> Plot:
    """The ROC curves of all cells and of those beyond `CLEAR`."""
    ends, y_name = (0.0, 1.0), "share of gains above the threshold"
    plot = Plot(ends, ends, "share of losses", y_name, logarithmic=False)
    plot.parts.append(line(plot.x(0), plot.y(0), plot.x(1), plot.y(1), "grid"))
    named = ((cells, "all"), (clear(cells), f"beyond {CLEAR:g}"))
    areas = [(part, name, area) for part, name in named if (area := auc(part)) is not None]
    for number, (part, _, _) in enumerate(areas):
        plot.line(number, roc(part))
    plot.legend([f"{name}: AUC {area:.2f}" for _, name, area in areas], range(len(areas)))
    return plot
