"""What tuning may choose: a space of parameters, the part that methods share given once.

Every method that trains a model gets the axes of `SHARED` and those of the model, the baseline like
any other; a method adds axes of its own parameters in ``Params.search``.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from operator import itemgetter
from typing import Any, Literal

import msgspec
from msgspec import inspect

from sslbench.engine.crf.params import TrainingParams
from sslbench.experiment.records.record import content_id

#: part of a range, at each end, that counts as its edge
EDGE = 0.1
#: of the search; raised when the same space and seed give other candidates
VERSION = 1
#: of the race; raised when it ends other trials
RACE = 3


@dataclass(frozen=True)
class SearchAxis:
    """One parameter to choose on development data, from a list or a range.

    Attributes
    ----------
    param: name of the field in the method's `Params`; MODEL.NAME for one of the model.
    values: the candidates of a list; numbers in rising or falling order have edges.
    low, high: the ends of a range, included.
    log: candidates are uniform in the logarithm.
    integer: candidates are integers.

    ValueError for an empty list or range, repeated values, a list and a range at a time, or the
    logarithm of a range that is not positive.
    """

    param: str
    values: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    log: bool = False
    integer: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.values, tuple):
            raise ValueError(f"values of {self.param!r} must be a tuple: {self.values!r}")
        ends = (self.low, self.high)
        if bool(self.values) == (ends != (None, None)) or (ends.count(None) == 1):
            raise ValueError(f"axis {self.param!r} needs either values or both low and high")
        if len({repr(value) for value in self.values}) < len(self.values):
            raise ValueError(f"values of {self.param!r} are repeated: {self.values}")
        if self.low is None or self.high is None:
            return
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise ValueError(f"range of {self.param!r} is empty: {self.low} to {self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"range of {self.param!r} must be positive for a logarithmic scale")
        if self.integer and any(end != int(end) for end in (self.low, self.high)):
            raise ValueError(f"range of {self.param!r} must have integer ends")

    def at(self, u: float) -> Any:
        """The candidate at a position in [0, 1); floats have three significant digits."""
        if self.low is None or self.high is None:
            return self.values[min(int(u * len(self.values)), len(self.values) - 1)]
        # An integer n stands for [n - 1/2, n + 1/2), so that the ends are as likely as the others.
        half = 0.5 if self.integer else 0.0
        low, high = self.low - half, self.high + half
        value = low * (high / low) ** u if self.log else low + u * (high - low)
        rounded = round(value) if self.integer else float(f"{value:.3g}")
        return min(max(rounded, self._end(self.low)), self._end(self.high))

    def _end(self, value: float) -> float:
        return int(value) if self.integer else float(value)

    @property
    def limits(self) -> tuple[Any, Any] | None:
        """The least and the greatest candidate; None for values without an order."""
        if self.low is not None and self.high is not None:
            return self._end(self.low), self._end(self.high)
        plain = all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)
        if not plain or len({a < b for a, b in pairwise(self.values)}) != 1:
            return None
        return min(self.values), max(self.values)

    def position(self, value: Any) -> float:
        """Where `at` gives a value, in [0, 1]; the middle for one that is not in the list."""
        if self.low is None or self.high is None:
            texts = [repr(each) for each in self.values]
            place = texts.index(repr(value)) if repr(value) in texts else (len(texts) - 1) / 2
            return (place + 0.5) / len(texts)
        half = 0.5 if self.integer else 0.0
        low, high = self.low - half, self.high + half
        inside: float = min(max(value, low), high)
        if self.log:
            return math.log(inside / low) / math.log(high / low)
        return (inside - low) / (high - low)

    def edge(self, value: Any) -> Literal["low", "high"] | None:
        """The edge of the axis at which a value lies: an end of a list, a tenth of a range."""
        if self.limits is None:
            return None
        low, high = self.limits
        place = 0.5 if self.values else self.position(value)
        if value <= low or place <= EDGE:
            return "low"
        return "high" if value >= high or place >= 1 - EDGE else None

    def describe(self) -> str:
        """The candidates in words, for ``sslbench show`` and messages."""
        if self.values:
            return ", ".join(str(value) for value in self.values)
        scale = ", log scale" if self.log else ""
        return f"{self.low:g} to {self.high:g}{scale}{', integers' if self.integer else ''}"


#: Tuned for every method whose Params derive from `TrainingParams`, with the same candidates.
SHARED = (SearchAxis("sigma2", low=0.01, high=1e4, log=True),)


def search_space(params: type[Any]) -> tuple[SearchAxis, ...]:
    """The axes of a method: the shared ones, then those that its `Params` declares.

    A shared parameter has the shared axis, whatever the method declares for it.
    """
    shared = SHARED if issubclass(params, TrainingParams) else ()
    names = {axis.param for axis in shared}
    others = (axis for axis in getattr(params, "search", ()) if axis.param not in names)
    return (*shared, *others)


def open_axes(params: type[Any], fixed: Container[str]) -> tuple[SearchAxis, ...]:
    """The axes of `search_space` that are searched: those of parameters that are not `fixed`."""
    return tuple(axis for axis in search_space(params) if axis.param not in fixed)


def model_axes(name: str, params: type[Any], fixed: Container[str]) -> tuple[SearchAxis, ...]:
    """The axes that the `Params` of a model declares, of parameters that are not `fixed`."""
    axes = (axis for axis in getattr(params, "search", ()) if axis.param not in fixed)
    return tuple(replace(axis, param=f"{name}.{axis.param}") for axis in axes)


def search_digest(axes: tuple[SearchAxis, ...], *, raced: bool = False) -> str:
    """A hash of the space that is searched, and of the race, if trials do; "" without a space."""
    if not axes:
        return ""
    searched = sorted(map(asdict, axes), key=itemgetter("param"))
    race = {"race": RACE} if raced else {}
    return content_id({"version": VERSION, "axes": searched, **race})


def edge_warning(axis: SearchAxis, value: Any, ends: Container[float]) -> str | None:
    """A line if the chosen value lies at an edge, unless the legal values end there: at `ends`."""
    edge = axis.edge(value)
    if edge is None or axis.limits is None:
        return None
    end = axis.limits[0 if edge == "low" else 1]
    if end in ends:
        return None
    return f"{axis.param}={value:g} was chosen at the {edge} edge of its space, {axis.describe()}"


def legal_ends(params: type[Any], name: str) -> list[float]:
    """The least and greatest legal values of a parameter, where it has them."""
    struct = inspect.type_info(params)
    assert isinstance(struct, inspect.StructType)
    kinds = [field.type for field in struct.fields if field.name == name]
    return sorted(set(_limits(kinds)))


def _limits(kinds: list[inspect.Type]) -> Iterator[float]:
    for kind in kinds:
        while isinstance(kind, inspect.Metadata):
            kind = kind.type
        if isinstance(kind, inspect.UnionType):
            yield from _limits(list(kind.types))
        for bound in (getattr(kind, "ge", None), getattr(kind, "le", None)):
            if bound is not None:
                yield bound


def default_values(params: type[Any], axes: tuple[SearchAxis, ...]) -> dict[str, Any]:
    """The values that `params` has for the parameters of axes, as plain values."""
    defaults = msgspec.to_builtins(params())
    return {axis.param: defaults[axis.param.rpartition(".")[2]] for axis in axes}
