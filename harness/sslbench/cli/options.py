"""Options that `run` and `train` share: which data, how much of it, which features."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sslbench.experiment.plan import Request

_OPTIONS = (
    click.option("--labeled", default="all", metavar="N|P%|all", help="Labeled sentences."),
    click.option("--unlabeled", type=click.IntRange(min=0), help="Cap on unlabeled sentences."),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Method parameter; METHOD.KEY or DATASET.KEY for one of them. May repeat.",
    ),
    click.option("--featurizer", help="Instead of the dataset's."),
    click.option("--model", help="Instead of the default."),
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
        help="Columns of your own files; _ leaves one out.",
    ),
    click.option("--tune", type=click.IntRange(min=0), help="Tuning trials, the same per method."),
)
_PASSED = ("unlabeled", "settings", "featurizer", "model", "data_path", "threads", "tune")


def problem_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command's function with the shared options."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def request_of(given: dict[str, Any], **more: Any) -> Request:
    """What was asked for; UserError when a value cannot be read.

    given: the parsed options of the command, at least the shared ones and `threads`.
    more: further fields of `Request`, methods at least.
    """
    from sslbench.experiment.plan import Request
    from sslbench.experiment.protocol import parse_labeled

    return Request(
        labeled=parse_labeled(given["labeled"]),
        columns=column_names(given["columns"]),
        **{name: given[name] for name in _PASSED},
        **more,
    )


def column_names(text: str) -> tuple[str, ...]:
    """The names in "word,pos,label"."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
