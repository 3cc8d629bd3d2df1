"""Options that `run` and `train` share: data, labeled sample, features, parameters."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sslbench.experiment.planning.plan import Request

_UNITS = {"M": 2**20, "G": 2**30, "T": 2**40}
_LEAST_MEMORY = 100 * _UNITS["M"]


class MemorySize(click.ParamType):  # type: ignore[type-arg]  # newer versions of click
    """A number with the unit M, G or T; bytes."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Bytes; a usage error for another text or less than 100M."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)([MGT])i?B?", value, re.IGNORECASE)
        size = int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
        if size < _LEAST_MEMORY:
            self.fail(f"{value!r} is no size of at least 100M, such as 8G", param, ctx)
        return size


class Duration(click.ParamType):  # type: ignore[type-arg]  # newer versions of click
    """A time such as 90s, 10m or 1.5h; seconds."""

    name = "time"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """A usage error for another text."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)([smh])", value)
        if not found or not float(found[1]):
            self.fail(f"{value!r} is no time such as 90s, 10m or 1.5h", param, ctx)
        return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


class _Seconds(click.FloatRange):
    """A number of seconds above 0; the range of click lets NaN pass."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value} is not a number of seconds.", param, ctx)
        return seconds


class SeedRange(click.ParamType):  # type: ignore[type-arg]  # newer versions of click
    """Seeds as a text such as "0-4,7"; a tuple of numbers."""

    name = "seeds"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        """A usage error for another text, or more than 10,000 seeds."""
        if isinstance(value, tuple):
            return value
        found: list[int] = []
        for part in value.split(","):
            ends = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", part.strip())
            first = int(ends[1]) if ends else 1
            last = int(ends[2] or first) if ends else 0
            if not 0 <= last - first < 10_000:
                self.fail(f"{value!r} is no list of seeds such as 0-4 or 0,1,7", param, ctx)
            found += range(first, last + 1)
        return tuple(found)


SECONDS = _Seconds(min=0, min_open=True)
SEED = click.IntRange(min=0, max=2**63 - 1)


def named(plural: str) -> Callable[[Any, Any, str], list[str]]:
    """Completion in the shell of names of this kind of plugin, e.g. "methods"."""

    def complete(_ctx: Any, _param: Any, typed: str) -> list[str]:
        from sslbench.plugins import registry

        return [name for name in getattr(registry(), plural) if name.startswith(typed)]

    return complete


def names_in(text: str | None) -> tuple[str, ...]:
    """The names in a text such as "word,pos,label"; none without a text."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


_OPTIONS = (
    click.option(
        "--labeled",
        default="all",
        show_default=True,
        metavar="N|P%|all",
        help="Number or share of labeled sentences; 0 for methods that learn without any.",
    ),
    click.option(
        "--text",
        type=click.Choice(["rest", "external", "all"]),
        help="Unlabeled text: the rest of train, the external text of the dataset, or both."
        " Default: rest with --labeled N, else external if there is any.",
    ),
    click.option(
        "--unlabeled",
        metavar="N|Nt",
        help="Cap on the unlabeled text: N sentences, or Nt = N tokens.",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Parameter of all methods that have it; METHOD.KEY, DATASET.KEY: of one. May repeat."
        " run: VALUE,VALUE is a run for each.",
    ),
    click.option(
        "--preset",
        metavar="NAME",
        help="Named parameters, e.g. paper: the values that the paper of a method prints."
        " sslbench show METHOD lists them; --set goes before it.",
    ),
    click.option(
        "--featurizer",
        help="Name, or a file of templates: TOML, CRF++, Wapiti. Default: that of the dataset.",
        shell_complete=named("featurizers"),
    ),
    click.option(
        "--with",
        "text_features",
        callback=lambda _ctx, _param, given: names_in(given),
        metavar="NAME,NAME",
        help="Features learned from the unlabeled text, on top of the others; see sslbench list"
        " text_features. --set NAME.KEY=VALUE.",
        shell_complete=named("text_features"),
    ),
    click.option(
        "--model",
        help="Default: the first of sslbench list models.",
        shell_complete=named("models"),
    ),
    click.option(
        "--data",
        "data_path",
        type=click.Path(path_type=Path),
        help="Your own CoNLL file, or folder with train, dev, test and unlabeled files.",
    ),
    click.option(
        "--columns",
        default="word,pos,label",
        show_default=True,
        help="Columns of your own files; _ skips one.",
    ),
    click.option(
        "--tune", type=click.IntRange(min=0, max=100_000), help="Tuning trials per method."
    ),
    click.option(
        "--tune-cpu",
        type=SECONDS,
        metavar="SECONDS",
        help="CPU seconds per method after which no tuning trial starts.",
    ),
)
_PASSED = (
    "text",
    "settings",
    "preset",
    "featurizer",
    "text_features",
    "model",
    "data_path",
    "threads",
    "tune",
    "tune_cpu",
)


def problem_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the shared options to the function of a command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def request_of(given: dict[str, Any], **more: Any) -> Request:
    """The request of a command; UserError for a value that cannot be parsed.

    given: the parsed options, with the shared ones and `threads`.
    more: further fields of `Request`, with `methods`.
    """
    from sslbench.experiment.inputs.protocol import parse_labeled, parse_unlabeled
    from sslbench.experiment.planning.plan import Request

    cap = given["unlabeled"]
    return Request(
        labeled=parse_labeled(given["labeled"]),
        unlabeled=None if cap is None else parse_unlabeled(cap),
        columns=names_in(given["columns"]),
        **{name: given[name] for name in _PASSED},
        **more,
    )
