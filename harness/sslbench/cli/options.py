"""Options of commands, made from the parameters of a request."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from sslbench.experiment.request.parameters import HIDDEN, Parameter, parameters
from sslbench.experiment.request.request import MAX_SEED, RunRequest
from sslbench.plugins import registry

_UNITS = {"M": 2**20, "G": 2**30, "T": 2**40, "s": 1, "m": 60, "h": 3600}
_LEAST_MEMORY = 100 * _UNITS["M"]


class _Parsed(click.ParamType):  # type: ignore[type-arg]  # newer versions of click
    """A text that a function reads; a usage error where it returns None."""

    def __init__(self, name: str, read: Callable[[str], Any], form: str) -> None:
        self.name, self.read, self.form = name, read, form

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of a text; a default is a value already."""
        if not isinstance(value, str):
            return value
        parsed = self.read(value)
        if parsed is None:
            self.fail(f"{value!r} is no {self.form}", param, ctx)
        return parsed


class _Seconds(click.FloatRange):
    """A number of seconds above 0; the range of click lets NaN pass."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value} is not a number of seconds.", param, ctx)
        return seconds


def _memory(text: str) -> int | None:
    """Bytes of a number with the unit M, G or T."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)([MGT])i?B?", text, re.IGNORECASE)
    size = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    return size if size >= _LEAST_MEMORY else None


def _duration(text: str) -> float | None:
    """Seconds of a time with the unit s, m or h."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)([smh])", text)
    return float(match[1]) * _UNITS[match[2]] or None if match else None


def _seeds(text: str) -> tuple[int, ...] | None:
    """The seeds in a text such as "0-4,7", at most 10,000 in a range."""
    seeds: list[int] = []
    for part in text.split(","):
        ends = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", part.strip())
        first = int(ends[1]) if ends else 1
        last = int(ends[2] or first) if ends else 0
        if not 0 <= last - first < 10_000:
            return None
        seeds += range(first, last + 1)
    return tuple(seeds)


PATH = click.Path(path_type=Path)
MEMORY = _Parsed("size", _memory, "size of at least 100M, such as 8G")
DURATION = _Parsed("time", _duration, "time such as 90s, 10m or 1.5h")
SEEDS = _Parsed("seeds", _seeds, "list of seeds such as 0-4 or 0,1,7")
SECONDS = _Seconds(min=0, min_open=True)
SEED = click.IntRange(min=0, max=MAX_SEED)


def named(plural: str) -> Callable[[Any, Any, str], list[str]]:
    """Completion in the shell of names of this kind of plugin, e.g. "methods"."""

    def complete(_ctx: Any, _param: Any, typed: str) -> list[str]:

        return [name for name in getattr(registry(), plural) if name.startswith(typed)]

    return complete


def names_in(text: str | None) -> tuple[str, ...]:
    """The names in a text such as "word,pos,label"; none without a text."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _comma(_ctx: Any, _param: Any, given: str) -> tuple[str, ...]:
    return names_in(given)


#: options whose form on the command line does not follow from the type
_FORMS: dict[str, dict[str, Any]] = {
    "method": {"multiple": True, "shell_complete": named("methods")},
    "dataset": {"multiple": True, "shell_complete": named("datasets")},
    "data": {"type": PATH},
    "columns": {"callback": _comma, "default": ",".join},
    "label_names": {"callback": _comma, "default": ",".join},
    "params": {"multiple": True},
    "featurizer": {"shell_complete": named("featurizers")},
    "text_features": {
        "callback": _comma,
        "default": ",".join,
        "shell_complete": named("text_features"),
    },
    "weak_sources": {
        "callback": _comma,
        "default": ",".join,
        "shell_complete": named("weak_sources"),
    },
    "model": {"shell_complete": named("models")},
    "seeds": {"multiple": True, "type": SEED, "default": None},
    "memory": {"type": MEMORY},
}


def request_options(
    kind: type, *names: str, **changes: dict[str, Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add an option for each parameter of a request to the function of a command.

    The value is passed by the name of the parameter.
    names: of the parameters; none = all that have an option.
    changes: by parameter, arguments of `click.option` in which the command differs.
    """
    options = parameters(kind)

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(names or tuple(options)):
            if options[name].option != HIDDEN:
                option = _option(options[name], changes.get(name, {}), options)
                function = option(function)
        return function

    return add


def _option(
    each: Parameter, changes: dict[str, Any], options: dict[str, Parameter]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    form = {"help": _help(each, options), "metavar": each.metavar, **_typed(each)}
    form["default"] = None if each.default == () else each.default
    form["required"] = each.required
    form |= {**_FORMS.get(each.name, {}), **changes}
    if callable(form["default"]):
        form["default"] = form["default"](each.default)
    spelling = each.option
    if form.get("multiple"):
        form["help"] += " May repeat."
        form["default"] = ()
    elif form["default"] is True or (type(None) in each.types and bool in each.types):
        spelling = f"{each.option}/--no-{each.option.removeprefix('--')}"
    elif form["default"] and "show_default" not in form:
        form["show_default"] = True
    return click.option(spelling, each.name, **form)


def _typed(each: Parameter) -> dict[str, Any]:
    """The type of an option by that of its parameter."""
    if each.choices:
        return {"type": click.Choice(each.choices)}
    if bool in each.types:
        return {"is_flag": True}
    if float in each.types:
        return {"type": SECONDS}
    if int in each.types and str not in each.types:
        least, most = (None if math.isinf(end) else int(end) for end in (each.least, each.most))
        return {"type": click.IntRange(min=least, max=most)}
    return {}


def _help(each: Parameter, options: dict[str, Parameter]) -> str:
    """The documentation, with options in place of the names of parameters."""

    def spelled(name: re.Match[str]) -> str:
        return options[name[1]].option if name[1] in options else name[1]

    return re.sub(r"`(\w+)`", spelled, each.doc)


def shared(name: str, **changes: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """One option of `run` for another command."""
    return request_options(RunRequest, name, **{name: changes})


def format_option(forms: list[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--format",
        "form",
        type=click.Choice(forms),
        default=forms[0],
        help="Format of the results on standard output.",
    )


STORE = shared("store")
JOBS = shared("jobs")
THREADS = shared("threads", help="Default: all cores.")
