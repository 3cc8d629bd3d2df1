"""Plain text for terminals and pipes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import click

from sslbench.engine.errors import printable
from sslbench.plugins import Registry, registry

EXTRA_NOTE = " (only for external unlabeled text)"  # beside a file
_LABEL_WIDTH = 14


def echo(text: object = "", *, err: bool = False) -> None:
    """Write lines to standard output (err: error); what is not printable in them is escaped."""
    click.echo("\n".join(map(printable, str(text).split("\n"))), err=err)


def table(rows: Iterable[Sequence[str]], indent: str = "  ") -> str:
    """Rows with aligned columns, two spaces apart; the last column is not padded."""
    cells = [tuple(map(printable, row)) for row in rows]
    if not cells:
        return ""
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]) - 1)]
    lines = []
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append((indent + "  ".join([*padded, row[-1]])).rstrip())
    return "\n".join(lines)


def labeled(label: str, value: str) -> str:
    """A label and its value, which is wrapped to the width of the terminal beside the label."""
    import shutil  # imported here since `sslbench list` does not need it
    from textwrap import TextWrapper

    width = max(shutil.get_terminal_size((100, 24)).columns, 40)
    start = f"  {label.ljust(_LABEL_WIDTH - 1)} "
    wrapper = TextWrapper(
        width=width,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.fill(printable(" ".join(value.split())))


def counted(n: int, noun: str) -> str:
    """A number with its noun: "1 run", "2 runs"."""
    return f"{n} {noun}{'s' * (n != 1)}"


def percentages(metrics: Mapping[str, float]) -> str:
    """Metrics in [0, 1] as text: "accuracy 91.20, f1 88.01"."""
    return ", ".join(f"{name} {100 * value:.2f}" for name, value in metrics.items())


def checked_registry() -> Registry:
    """Return all plugins; warn of each one with errors, and of each package of a wrong version.

    With --debug, the traceback of an error is shown, too.
    """
    from sslbench.cli.requirements import unmet

    plugins = registry()
    for name, text in unmet():
        echo(f"sslbench: warning: {name}: {text}", err=True)
    for problem in plugins.problems:
        echo(f"sslbench: warning: {problem}", err=True)
        show_traceback(problem.traceback)
    return plugins


def show_traceback(text: str) -> None:
    """With --debug: write a traceback to standard error."""
    context = click.get_current_context(silent=True)
    if text and context is not None and context.find_root().params.get("debug"):
        echo(text.rstrip(), err=True)


def duration(seconds: float) -> str:
    """A time in the unit that fits it: "40 s", "12 min", "3.5 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
