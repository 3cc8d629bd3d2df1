"""Plain text that reads the same on a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import click

from sslbench.plugins import Registry

_LABEL_WIDTH = 14


def table(rows: Iterable[Sequence[str]], indent: str = "  ") -> str:
    """Return rows with aligned columns, two spaces apart; the last column is as long as it is."""
    cells = [tuple(row) for row in rows]
    if not cells:
        return ""
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]) - 1)]
    lines = []
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append((indent + "  ".join([*padded, row[-1]])).rstrip())
    return "\n".join(lines)


def labeled(label: str, value: str) -> str:
    """Return "label  value", the value wrapped beside its label on a terminal of any width."""
    import shutil  # these two cost `sslbench list`, which has no use for them, some milliseconds
    from textwrap import TextWrapper

    width = max(shutil.get_terminal_size((100, 24)).columns, 40)
    start = f"  {label.ljust(_LABEL_WIDTH)}"
    wrapper = TextWrapper(
        width=width,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.fill(value)


def counted(n: int, noun: str) -> str:
    """Return "1 run", "2 runs"."""
    return f"{n} {noun}{'s' * (n != 1)}"


def percentages(metrics: Mapping[str, float]) -> str:
    """Return "accuracy 91.20, f1 88.01" of metrics in [0, 1]."""
    return ", ".join(f"{name} {100 * value:.2f}" for name, value in metrics.items())


def warn_of_problems(found: Registry) -> None:
    """Write one line on standard error for each broken plugin."""
    for problem in found.problems:
        click.echo(f"sslbench: warning: {problem}", err=True)
