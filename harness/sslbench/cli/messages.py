"""Messages on standard error: progress and results of a grid of runs, warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.text import counted
from sslbench.engine.errors import InputWarning, printable, shortened

if TYPE_CHECKING:
    from rich.progress import TaskID

    from sslbench.experiment.planning.task import RunTask
    from sslbench.experiment.records.record import RunRecord


def tell(text: str) -> None:
    """Write a line to standard error, after the name of the program."""
    click.echo(f"sslbench: {printable(text)}", err=True)


def can_ask() -> bool:
    """Whether somebody can answer a question."""
    return sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings on the input as one line each, without the source line that Python adds."""

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, InputWarning):
            tell(f"warning: {message}")
        else:
            default(message, category, *rest, **more)

    with warnings.catch_warnings():
        default: Callable[..., Any] = warnings.showwarning
        warnings.simplefilter("always", InputWarning)
        warnings.showwarning = show
        yield


class GridProgress:
    """A line per finished run; on a terminal also a live line per run in progress."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._bars = Progress(
            SpinnerColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self._done, self._total = 0, total
        self._all = self._bars.add_task("", total=None)
        self._lines: dict[str, TaskID] = {}

    def __enter__(self) -> GridProgress:
        self._show_count()
        if self._bars.console.is_terminal:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars.live.is_started:  # otherwise it prints an empty line
            self._bars.stop()

    def stored(self, record: RunRecord) -> None:
        """A run was in the store already."""
        self._total -= 1
        self._show_count()

    def start(self, run_task: RunTask) -> None:
        """A run has started."""
        line = self._bars.add_task(describe(run_task.spec), total=1)
        self._lines[run_task.spec.run_id] = line

    def end(self, record: RunRecord) -> None:
        """A run has ended."""
        line = self._lines.pop(record.run_id, None)
        if line is not None:
            self._bars.remove_task(line)
        self._done += 1
        self._show_count()
        text = _finished(record)
        self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def wait(self, number: int) -> None:
        """Only runs that other processes execute are left."""
        text = f"waiting for {counted(number, 'run')} of other processes"
        self._bars.console.print(text, markup=False, highlight=False)

    def _show_count(self) -> None:
        count = f"{self._done} of {counted(self._total, 'run')}"
        self._bars.update(self._all, description=count)


def describe(spec: Any) -> str:
    """A run in one phrase: method, dataset, labeled sample and seed."""
    return printable(
        f"{spec.title} on {spec.dataset}, labeled {spec.protocol.labeled},"
        f" seed {spec.protocol.seed}"
    )


def _finished(record: RunRecord) -> str:
    if record.status == "ok":
        value = "none" if record.score is None else f"{100 * record.score:.2f}"
        result = f"{record.primary_metric} {value}"
    else:
        result = shortened(record.error or "")
    return f"{record.status}: {describe(record.spec)}: {result} ({record.wall_s:.1f} s)"
