"""Typed values of a struct from what the user gave."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import msgspec

#: a parameter that names a file of the user, or a folder, whose content enters the identity of a
#: run; "" = none
UserFile = Annotated[str, msgspec.Meta(extra={"user_file": True})]
S = TypeVar("S", bound=msgspec.Struct)
#: integers are counts, sizes and seeds: numpy has no larger ones
GREATEST = 2**63 - 1


def typed_values(struct: type[S], values: Mapping[str, Any], *, strict: bool = False) -> S:
    """The struct with these plain values; unless strict, texts are converted to the fields' types.

    msgspec.ValidationError names a field that does not fit. That is also a number that is not
    finite or an integer of more than 64 bits, in any field: a range may lack an end.
    """
    made = msgspec.convert(dict(values), struct, strict=strict)
    for name in struct.__struct_fields__:
        for number in _numbers(getattr(made, name)):
            if not math.isfinite(number) if isinstance(number, float) else abs(number) > GREATEST:
                raise msgspec.ValidationError(f"{_shown(number)} is out of range - at `$.{name}`")
    return made


def file_params(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields of a struct that are declared as `UserFile`."""
    hints = get_type_hints(struct, include_extras=True)
    return tuple(
        name
        for name, kind in hints.items()
        if any((getattr(part, "extra", None) or {}).get("user_file") for part in get_args(kind)[1:])
    )


def _numbers(value: object) -> Iterable[float]:
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, Mapping):
        yield from _numbers(tuple(value.values()))


def _shown(number: float) -> str:
    """Python refuses to write integers of thousands of digits."""
    return str(number) if isinstance(number, float) else f"an integer of {number.bit_length()} bits"
