"""Do forecasts predict the sign of the gain? Forecasts of runs beside their gains.

A cell is a run with a forecast and the run of the baseline on the same draw. Over the cells, a
forecast is a good one if those with a gain have larger forecasts than those without: the area
under the ROC curve is the share of pairs of a gain and a loss that it puts in the right
order (Mann and Whitney's U), 0.5 by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from sslbench.experiment.checks.forecast import recorded_forecast
from sslbench.experiment.records.record import RunRecord
from sslbench.report.board import Board
from sslbench.report.rows import successful
from sslbench.report.svg import COLORS, line, picture, text

#: gains of fewer points may be chance: the second curve leaves them out
CLEAR = 0.5
#: cells of each sign that a number is made of
LEAST = 2
HEADINGS = ("method", "cells", "gains", "AUC", "cells beyond 0.5", "gains", "AUC", "sign right")
FORECAST_TEXT = (
    "Before its rounds a method tells what it would teach for labeled sentences that are held out."
    " Forecast: the cosine of that change of the model with the one that their labels would make,"
    " from -1 to 1; or, if that is less, the errors that it would add, relative to the model's. A"
    " cell is a run and the baseline's on the same draw. AUC: how often, of a gain and a loss, the"
    " gain has the larger forecast; 0.50 is chance."
)
_SIDE, _LEFT, _TOP = 240.0, 60.0, 24.0  # of a panel, in pixels


@dataclass(frozen=True)
class Cell:
    """forecast: see `RecordedForecast`.  gain: over the baseline on the same draw, in points."""

    method: str
    forecast: float
    gain: float


def board_cells(board: Board) -> list[Cell]:
    """The cells of a board, line by line."""
    cells: list[Cell] = []
    for name in board.lines:
        for number in range(len(board.columns)):
            row = board.score(name, number)
            rows = (board.score(other, number) for other in board.baselines)
            base = next((other for other in rows if other is not None), None)
            if row is not None and base is not None and row is not base:
                cells += cells_of(name, row.cells, base.cells)
    return cells


def cells_of(
    name: str, ours: Mapping[int, RunRecord], theirs: Mapping[int, RunRecord]
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
            yield Cell(name, forecast.value, gain)


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
    `CLEAR`.
    """
    names = list(dict.fromkeys(cell.method for cell in cells))
    groups = [(name, [cell for cell in cells if cell.method == name]) for name in names]
    return [_row(name, part) for name, part in [*groups, ("all", list(cells))]]


def _row(name: str, cells: Sequence[Cell]) -> tuple[str, ...]:
    large = clear(cells)
    right = sum((cell.forecast > 0) == (cell.gain > 0) for cell in large)
    return (name, *_counts(cells), *_counts(large), f"{right} of {len(large)}" if large else "")


def _counts(cells: Sequence[Cell]) -> tuple[str, str, str]:
    area = auc(cells)
    gains = sum(cell.gain > 0 for cell in cells)
    return str(len(cells)), str(gains), "" if area is None else f"{area:.2f}"


def forecast_svg(cells: Sequence[Cell]) -> str:
    """Gain by forecast, and the ROC curves; "" if there are too few gains or losses."""
    area = auc(cells)
    if area is None:
        return ""
    parts = [*_scatter(cells), *_curves(cells, 2 * _LEFT + _SIDE)]
    names = list(dict.fromkeys(cell.method for cell in cells))
    left = 2 * (_LEFT + _SIDE) + 30
    for place, name in enumerate(names):
        y = _TOP + 12 + 16 * place
        parts += [_dot(left, y - 4, place), text(left + 10, y, name)]
    width = left + 20 + 7 * max(map(len, names))
    height = max(_TOP + _SIDE + 44, _TOP + 24 + 16 * len(names))
    return picture(width, height, parts, f"Forecasts of {len(cells)} runs, AUC {area:.2f}")


def _scatter(cells: Sequence[Cell]) -> Iterator[str]:
    """A point for each cell; gains have the scale of their square roots."""
    size = max(0.1, *(abs(cell.forecast) for cell in cells))
    most = max(1.0, *(abs(cell.gain) for cell in cells))

    def x(agreement: float) -> float:
        return _LEFT + _SIDE * (agreement / size + 1) / 2

    def y(gain: float) -> float:
        root = float(np.sign(gain) * np.sqrt(abs(gain) / most))
        return _TOP + _SIDE * (1 - root) / 2

    bottom = _TOP + _SIDE
    yield line(x(0), _TOP, x(0), bottom, "axis")
    yield line(_LEFT, y(0), _LEFT + _SIDE, y(0), "axis")
    for gain in (-most, -most / 4, 0, most / 4, most):
        yield line(_LEFT, y(gain), _LEFT + _SIDE, y(gain), "grid")
        yield text(_LEFT - 4, y(gain) + 4, f"{gain:+.1f}" if gain else "0", "end")
    for agreement in (-size, 0.0, size):
        yield text(x(agreement), bottom + 16, f"{agreement:+.2f}" if agreement else "0", "middle")
    yield text(_LEFT + _SIDE / 2, bottom + 34, "forecast", "middle")
    yield text(_LEFT + _SIDE / 2, _TOP - 8, "gain, points", "middle")
    numbers = {name: i for i, name in enumerate(dict.fromkeys(cell.method for cell in cells))}
    for cell in cells:
        yield _dot(x(cell.forecast), y(cell.gain), numbers[cell.method])


def _curves(cells: Sequence[Cell], left: float) -> Iterator[str]:
    """Of all cells, and dashed of those beyond `CLEAR`."""
    bottom = _TOP + _SIDE
    yield line(left, bottom, left + _SIDE, _TOP, "grid")
    yield line(left, _TOP, left, bottom, "axis")
    yield line(left, bottom, left + _SIDE, bottom, "axis")
    shown = ((cells, "all", ""), (clear(cells), f"beyond {CLEAR:g}", ' stroke-dasharray="6 3"'))
    for place, (part, name, dash) in enumerate(shown):
        area = auc(part)
        if area is None:
            continue
        spots = (f"{left + _SIDE * x:.1f},{bottom - _SIDE * y:.1f}" for x, y in roc(part))
        yield f'<polyline points="{" ".join(spots)}" stroke="{COLORS[place]}"{dash}/>'
        y = bottom - 32 + 16 * place
        yield text(left + _SIDE - 4, y, f"{name}: AUC {area:.2f}", "end")
    for share in (0, 1):
        yield text(left + _SIDE * share, bottom + 16, f"{share}", "middle")
        yield text(left - 4, bottom - _SIDE * share + 4, f"{share}", "end")
    yield text(left + _SIDE / 2, bottom + 34, "share of losses", "middle")
    yield text(left + _SIDE / 2, _TOP - 8, "share of gains above the threshold", "middle")


def _dot(x: float, y: float, number: int) -> str:
    """Methods beyond the eighth have rings."""
    color = COLORS[number % len(COLORS)]
    look = f'fill="{color}"' if number < len(COLORS) else f'fill="none" stroke="{color}"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" {look}/>'
