"""``sslbench run --dry-run``: the runs of a command and their price."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sslbench.cli.text import counted, duration, echo, table

if TYPE_CHECKING:
    from sslbench.experiment.planning.task import RunTask
    from sslbench.experiment.records.record import RunSpec
    from sslbench.experiment.request.request import RunRequest


def show_price(run_tasks: Sequence[RunTask], request: RunRequest) -> None:
    """A line per group of runs that differ in the seed only, and the sum."""
    from sslbench.experiment.execute.grid import GridOptions, is_stored
    from sslbench.experiment.planning.price import Prices
    from sslbench.experiment.records.store import Store

    store = Store(request.store)
    options = GridOptions(**request.execution())
    prices = Prices(store.records())
    groups: dict[tuple[str, ...], list[float | None]] = {}
    for task in run_tasks:
        if task.skip_reason is None:
            found = prices.of(task.spec)
            price = None if found is None or found.guess else found.cpu_s
            stored = is_stored(task, store, options)
            groups.setdefault(_group(task.spec), []).append(0.0 if stored else price)
    head = ("method", "dataset", "labeled", "tuning", "runs", "stored", "CPU s")
    echo(table([head, *(_row(group, each) for group, each in groups.items())], indent=""))
    each_run = [price for group in groups.values() for price in group]
    unknown = sum(price is None for price in each_run)
    note = f", without {counted(unknown, 'run')} like no stored one" if unknown else ""
    total = sum(price for price in each_run if price is not None)
    echo(f"{counted(len(each_run), 'run')}: {duration(total)} of CPU{note}")


def _group(spec: RunSpec) -> tuple[str, ...]:
    protocol = spec.protocol
    return spec.title, spec.dataset, str(protocol.labeled), protocol.tuning()


def _row(group: tuple[str, ...], prices: Sequence[float | None]) -> tuple[str, ...]:
    known = [price for price in prices if price is not None]
    text = f"{sum(known):.0f}" if len(known) == len(prices) else "?"
    return (*group, str(len(prices)), str(sum(price == 0.0 for price in prices)), text)
