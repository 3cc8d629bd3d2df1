"""Small vector graphics: plots with axes, whose colors follow the reader's light or dark theme."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from sslbench.engine.errors import printable

#: Okabe and Ito's colors, which color-blind readers can distinguish; further series are dashed
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a7a00", "#56b4e9", "#e69f00", "#7f7f7f")
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:var(--ink,#222)}"
    ".axis,.grid,.bar{stroke:var(--ink,#222);fill:none}.grid{opacity:.15}.bar{stroke-width:4}"
    ".thin{stroke:var(--ink,#222);fill:none;stroke-width:.7}"
    "polyline{fill:none;stroke-width:1.8}.end{text-anchor:end}.middle{text-anchor:middle}"
    "@media(prefers-color-scheme:dark){svg{--ink:#ddd}}"
)
_CHARACTER = 6.6  # about the width of one, in pixels
_LINES = 12  # how far a label may be from its point


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Words at a place; kind: "", "end" or "middle"."""
    where = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{where}>{escape(printable(words))}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line; kind: "axis", "grid", "thin" or "bar"."""
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def picture(width: float, height: float, parts: Sequence[str], title: str) -> str:
    """A complete graphic; title: its description for those who do not see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"'
        f' width="{width:.0f}" role="img" aria-label={quoteattr(printable(title))}>'
        f"<title>{escape(printable(title))}</title><style>{_STYLE}</style>{''.join(parts)}</svg>"
    )


def stroke(number: int) -> str:
    """Attributes of the line of a series."""
    color = COLORS[number % len(COLORS)]
    dash = ("", "6 3", "2 3")[min(number // len(COLORS), 2)]
    return f'stroke="{color}"' + (f' stroke-dasharray="{dash}"' if dash else "")


@dataclass
class Plot:
    """A plane, by default with a logarithmic horizontal axis.

    Attributes
    ----------
    xs, ys: values that the axes cover.  x_name, y_name: names of the axes.
    ticks: ticks of the horizontal axis; () = at steps, or at powers of ten, doubled and fivefold.
    names: names of the ticks; () = their values.
    logarithmic: whether the horizontal axis is.
    """

    xs: Sequence[float]
    ys: Sequence[float]
    x_name: str
    y_name: str
    ticks: Sequence[float] = ()
    names: Sequence[str] = ()
    width: float = 420
    height: float = 260
    logarithmic: bool = True
    parts: list[str] = field(default_factory=list)
    _taken: list[tuple[float, float, float]] = field(default_factory=list)  # left, right, y

    def __post_init__(self) -> None:
        self._x = _range([self._place(x) for x in self.xs], 0.1)
        self._y = _range(self.ys, 0.5)
        powers = _powers(min(self.xs), max(self.xs)) if self.logarithmic else _steps(*self._x)
        ticks = self.ticks or powers
        for x, name in zip(ticks, self.names or [f"{x:g}" for x in ticks], strict=True):
            self.parts.append(line(self.x(x), 10, self.x(x), self.height - 40, "grid"))
            self.parts.append(text(self.x(x), self.height - 25, name, "middle"))
        for y in _steps(*self._y):
            self.parts.append(line(50, self.y(y), self.width - 20, self.y(y), "grid"))
            self.parts.append(text(46, self.y(y) + 4, f"{y:g}", "end"))
        bottom = self.height - 40
        self.parts += [
            line(50, 10, 50, bottom, "axis"),
            line(50, bottom, self.width - 20, bottom, "axis"),
        ]
        self.parts.append(text(self.width / 2, self.height - 8, self.x_name, "middle"))
        turned = text(0, 0, self.y_name, "middle")
        self.parts.append(f'<g transform="translate(12 {bottom / 2:.0f}) rotate(-90)">{turned}</g>')

    def _place(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value

    def x(self, value: float) -> float:
        """The place of a value on the horizontal axis, in pixels."""
        low, high = self._x
        return 50 + (self._place(value) - low) / (high - low) * (self.width - 70)

    def y(self, value: float) -> float:
        """The place of a value on the vertical axis, in pixels."""
        low, high = self._y
        return self.height - 40 - (value - low) / (high - low) * (self.height - 50)

    def line(self, number: int, points: Iterable[tuple[float, float]]) -> None:
        """A line through points (x, y)."""
        places = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{places}" {stroke(number)}/>')

    def series(self, number: int, points: Sequence[tuple[float, float, float]]) -> None:
        """A line through points (x, y, sd) with their spread."""
        color = COLORS[number % len(COLORS)]
        self.line(number, ((x, y) for x, y, _ in points))
        for x, y, sd in points:
            self.dot(x, y, color)
            if sd:
                d = f"M{self.x(x):.1f} {self.y(y - sd):.1f}V{self.y(y + sd):.1f}"
                self.parts.append(f'<path d="{d}" stroke="{color}" fill="none"/>')

    def dot(self, x: float, y: float, color: str, size: float = 3) -> None:
        """A point."""
        place = f'cx="{self.x(x):.1f}" cy="{self.y(y):.1f}"'
        self.parts.append(f'<circle {place} r="{size:g}" fill="{color}"/>')

    def label(self, x: float, y: float, words: str) -> None:
        """Words beside a point, as near as other labels allow; right of it, or left near the end.

        x, y: in pixels.
        """
        length = _CHARACTER * len(words)
        end = x + 8 + length > self.width
        left = x - 8 - length if end else x + 8
        offsets = [4 + sign * 13 * i for i in range(_LINES) for sign in (1, -1)]
        place = next((y + each for each in offsets if self._free(left, left + length, y + each)), y)
        self._taken.append((left, left + length, place))
        if abs(place - y) > 13:
            self.parts.append(line(x, y, x - 8 if end else x + 8, place - 4, "grid"))
        self.parts.append(text(left, place, words))

    def _free(self, left: float, right: float, y: float) -> bool:
        inside = 12 <= y <= self.height - 44
        return inside and all(
            right < a or b < left or abs(y - other) >= 13 for a, b, other in self._taken
        )

    def legend(self, names: Sequence[str], numbers: Sequence[int]) -> None:
        """The names of the series, to the right; the graphic grows by them."""
        left = self.width + 6
        for place, (name, number) in enumerate(zip(names, numbers, strict=True)):
            y = 18 + 16 * place
            self.parts.append(f'<path d="M{left} {y - 4}h22" fill="none" {stroke(number)}/>')
            self.parts.append(text(left + 28, y, name))
        self.width = left + 40 + _CHARACTER * max(map(len, names), default=0)
        self.height = max(self.height, 24 + 16 * len(names))

    def render(self, title: str) -> str:
        """The graphic."""
        return picture(self.width, self.height, self.parts, title)


def _range(values: Sequence[float], least: float) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = max(0.06 * (high - low), least / 2)
    return low - margin, high + margin


def _powers(low: float, high: float) -> list[float]:
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [factor * 10.0**e for e in exponents for factor in (1, 2, 5)]
    inside = [value for value in values if low / 1.2 <= value <= high * 1.2]
    return inside[:: 1 + len(inside) // 8] or [low]


def _steps(low: float, high: float) -> list[float]:
    raw = (high - low) / 5
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw)
    first = math.ceil(low / step)
    return [round(step * k, 10) for k in range(first, math.floor(high / step) + 1)]
