"""What planning and tuning need to know of a method: plain data, which any process may read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sslbench.errors import UserError
from sslbench.experiment.space import SearchAxis, default_values, legal_ends, open_axes


class MethodDescription(msgspec.Struct, frozen=True):
    """A method with some of its parameters fixed.

    Attributes
    ----------
    params: all parameters, with their defaults.
    axes: what tuning may search; defaults: a value for each of them.
    ends: the least and greatest legal values of each of these parameters, where it has them.
    uses_unlabeled: the method reads unlabeled text.
    """

    params: dict[str, Any]
    axes: tuple[SearchAxis, ...] = ()
    defaults: dict[str, Any] = {}
    ends: dict[str, list[float]] = {}
    uses_unlabeled: bool = True


def describe(method: type[Any], fixed: Mapping[str, Any]) -> MethodDescription:
    """Describe a method; UserError for a fixed parameter that does not fit."""
    axes = open_axes(method.Params, fixed)
    return MethodDescription(
        params=msgspec.to_builtins(make_params(method, fixed)),
        axes=axes,
        defaults=default_values(method.Params, axes),
        ends={axis.param: legal_ends(method.Params, axis.param) for axis in axes},
        uses_unlabeled=bool(getattr(method, "uses_unlabeled", True)),
    )


def make_params(method: type[Any], values: Mapping[str, Any]) -> Any:
    """The method's `Params` from plain values; UserError names a field that does not fit."""
    try:
        return msgspec.convert(dict(values), method.Params, strict=False)
    except msgspec.ValidationError as error:
        raise UserError(
            f"parameter of {method.__name__}: {error}", hint="see sslbench show"
        ) from error
