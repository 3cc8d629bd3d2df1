"""What msgspec says of a value that does not fit, in a person's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

_PLACE = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")
_WRONG = re.compile(r"Expected `(?P<type>[^`]+)`(?P<bounds>[^,]*)(?P<got>, got .*)?", re.DOTALL)
_ABSENT = re.compile(r"Object missing required field `(?P<name>.*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`")
_STEP = re.compile(r"(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]|\[\.\.\.\]")
_TYPES = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "array": "a list",
    "object": "a table of keys and values",
    "null": "none",
}
_LONGEST = 60  # characters of a value that is shown


def in_words(
    error: msgspec.MsgspecError,
    value: object = None,
    kind: type[Any] | None = None,
    names: Mapping[str, str] | None = None,
) -> str:
    """Return the message of an error of `msgspec.convert` as a sentence.

    Parameters
    ----------
    value: what was converted, for the part that does not fit.
    kind: the struct, for the values that a field may have.
    names: what the user calls the fields, if they have other names.
    """
    text, names = str(error), names or {}
    place = _PLACE.search(text)
    path = place["path"] if place else ""
    first = first_field(error) or "" if path else ""
    shown = names.get(first, first) + path.removeprefix(first).replace("[...]", "")
    if "[...]" in path:
        shown = f"a value of {shown}"
    problem = _PLACE.sub("", text)
    for pattern, what in ((_ABSENT, "is missing"), (_UNKNOWN, "is no key that can be given")):
        if match := pattern.fullmatch(problem):
            return f"{match['name']} {what}{f' (in {shown})' if shown else ''}"
    expected = _expected(problem, kind, first)
    if expected is None:
        return f"{shown}: {problem}" if shown else problem
    wrong = _part(value, path)
    given = f" is {_shown(wrong, 'got' in problem)}, but" if wrong is not msgspec.UNSET else ""
    return f"{shown or 'the value'}{given} must be {expected}"


def first_field(error: msgspec.MsgspecError) -> str | None:
    """Return the field that an error is about, which may be unknown; None = the value itself."""
    place = _PLACE.search(str(error))
    match = _STEP.match(place["path"]) if place else _UNKNOWN.fullmatch(str(error))
    return match["name"] if match else None


def _expected(problem: str, kind: type[Any] | None, name: str) -> str | None:
    """What a field must be; None for another problem."""
    if problem.startswith("Invalid enum value"):
        choices = _choices([get_type_hints(kind).get(name)]) if kind else []
        return " or ".join(choices) if choices else None
    match = _WRONG.fullmatch(problem)
    if match is None:
        return None
    kinds = [_TYPES.get(each, each) for each in match["type"].split(" | ")]
    return " or ".join(kinds) + match["bounds"].removesuffix(".0")


def _choices(kinds: Iterable[Any]) -> list[str]:
    """The values of the literals in types."""
    found: list[str] = []
    for kind in kinds:
        literal = get_origin(kind) is Literal
        found += map(str, get_args(kind)) if literal else _choices(get_args(kind))
    return found


def _part(value: Any, path: str) -> object:
    """The part of a value at a path; UNSET if the path does not say it."""
    for step in _STEP.finditer(path):
        try:
            value = value[step["name"] or int(step["index"])]
        except (TypeError, LookupError, ValueError):
            return msgspec.UNSET
    return msgspec.UNSET if value is None and not path else value


def _shown(value: object, quoted: bool) -> str:
    """A value; a text without quotation marks where it could be read as a number."""
    if value is None or isinstance(value, bool):
        return str({None: "none", True: "true", False: "false"}[value])
    text = str(value) if isinstance(value, str) and value and not quoted else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
