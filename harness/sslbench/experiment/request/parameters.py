"""Parameters of a request: declared as fields of a dataclass, with a text and bounds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sslbench.engine.errors import UserError

#: in place of the spelling of a parameter that the command line does not have
HIDDEN = "-"
T = TypeVar("T")


@dataclass(frozen=True)
class Parameter:
    """A field of a request.

    Attributes
    ----------
    doc: sentences for the user; other parameters stand in them in backquotes.
    option: spelling on the command line; `HIDDEN` = it is not there.
    metavar: placeholder of the value in the help of the command line.
    least, most: bounds of a number.  above: the least value itself is too small.
    name, type, default, required: of the field.
    """

    doc: str
    option: str = ""
    metavar: str | None = None
    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    name: str = ""
    type: Any = None
    default: Any = None
    required: bool = False

    @property
    def types(self) -> tuple[Any, ...]:
        """The members of a union, or the type."""
        union = get_origin(self.type) in (Union, UnionType)
        return get_args(self.type) if union else (self.type,)

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that may be given; () for a parameter of another type."""
        return next((get_args(t) for t in self.types if get_origin(t) is Literal), ())

    def check(self, value: object) -> None:
        """UserError for a text that is no choice, a number out of bounds, and no number."""
        if value is None and type(None) in self.types:
            return
        if self.choices and value not in self.choices:
            raise UserError(f"{self.name} {value!r}", hint=f"give {' or '.join(self.choices)}")
        if bool in self.types and not isinstance(value, bool):
            raise UserError(f"{self.name} {value!r}", hint="give true or false")
        number = float if float in self.types else int
        if {number, str}.intersection(self.types) == {number} and not self._fits(value, number):
            kind = "a number" if number is float else "an integer"
            raise UserError(f"{self.name} {value!r}", hint=f"give {kind}{self._bounds()}")

    def _fits(self, value: Any, number: type) -> bool:
        if isinstance(value, str | bool):
            return False
        try:
            same = number(value) == value
        except (TypeError, ValueError, OverflowError):
            return False
        low = value > self.least if self.above else value >= self.least
        return bool(same and low and value <= self.most and abs(value) < math.inf)

    def _bounds(self) -> str:
        low = f" {'above' if self.above else 'from'} {self.least:.16g}" * (self.least > -math.inf)
        return low + f" up to {self.most:.16g}" * (self.most < math.inf)


def parameter(default: T, doc: str, **details: Any) -> T:
    """A field with this default; details: other attributes of its `Parameter`."""
    return field(default=default, metadata=described(doc, **details))


def described(doc: str, **details: Any) -> Mapping[str, Parameter]:
    """The metadata of a field."""
    return {"parameter": Parameter(doc, **details)}


def inherited(base: type, name: str, default: T) -> T:
    """The parameter of a base class with another default."""
    (again,) = (each for each in dataclasses.fields(base) if each.name == name)
    return field(default=default, metadata=again.metadata)


@cache
def parameters(kind: type[Any]) -> dict[str, Parameter]:
    """The parameters of a request by name, in the order of its signature."""
    types = get_type_hints(kind)
    by_name = {}
    for each in sorted(dataclasses.fields(kind), key=lambda each: bool(each.kw_only)):
        declared: Parameter | None = each.metadata.get("parameter")
        if declared is not None:
            option = declared.option or f"--{each.name.replace('_', '-')}"
            required = each.default is dataclasses.MISSING
            by_name[each.name] = dataclasses.replace(
                declared,
                option=option,
                name=each.name,
                type=types[each.name],
                default=None if required else each.default,
                required=required,
            )
    return by_name
