"""Descriptions of the parameters of a method, model or dataset, from its ``msgspec.Struct``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import inspect

from sslbench.engine.errors import UserError

_TYPE_NAMES = {"BoolType": "yes/no", "IntType": "integer", "FloatType": "number", "StrType": "text"}
_BOUNDS = (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))


@dataclass(frozen=True)
class Parameter:
    """A field of the struct as text; bounds and meaning may be empty."""

    name: str
    type: str
    default: str
    bounds: str
    meaning: str


def describe(struct: type[msgspec.Struct]) -> list[Parameter]:
    """The fields of a struct; UserError if it is no msgspec.Struct."""
    info = inspect.type_info(struct) if isinstance(struct, type) else None
    if not isinstance(info, inspect.StructType):
        raise UserError(f"{struct!r} does not describe parameters: it is no msgspec.Struct")
    return [_parameter(field) for field in info.fields]


def _parameter(field: inspect.Field) -> Parameter:
    meaning = ""
    kind: Any = field.type
    while isinstance(kind, inspect.Metadata):
        meaning = (kind.extra_json_schema or {}).get("description", meaning)
        kind = kind.type
    return Parameter(field.name, _type_name(kind), _default(field), _bounds(kind), meaning)


def _type_name(kind: Any) -> str:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    if isinstance(kind, inspect.LiteralType):
        return " | ".join(map(str, kind.values))
    if isinstance(kind, inspect.EnumType):
        return " | ".join(str(member.value) for member in kind.cls)
    if isinstance(kind, inspect.UnionType):
        return " | ".join(_type_name(part) for part in kind.types)
    if isinstance(kind, inspect.VarTupleType | inspect.ListType | inspect.SetType):
        return f"list of {_type_name(kind.item_type)}"
    name: str = type(kind).__name__
    return _TYPE_NAMES.get(name, name.removesuffix("Type").lower())


def _default(field: inspect.Field) -> str:
    if field.default is not msgspec.NODEFAULT:
        return _value_text(field.default)
    if field.default_factory is not msgspec.NODEFAULT:
        return _value_text(field.default_factory())
    return "(required)"


def _value_text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _bounds(kind: Any) -> str:
    if isinstance(kind, inspect.UnionType):
        return ", ".join(filter(None, (_bounds(part) for part in kind.types)))
    parts = []
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    for name, sign in _BOUNDS:
        bound = getattr(kind, name, None)
        if bound is not None:
            parts.append(f"{sign} {bound:g}")
    if getattr(kind, "multiple_of", None) is not None:
        parts.append(f"multiple of {kind.multiple_of:g}")
    return ", ".join(parts)
