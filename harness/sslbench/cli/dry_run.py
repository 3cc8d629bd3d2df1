"""``sslbench run --dry-run``: the runs of a command and their price."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sslbench.cli.text import counted, duration, echo, table
from sslbench.experiment.records.cost import Price

if TYPE_CHECKING:
    from sslbench.experiment.planning.task import RunTask
    from sslbench.experiment.records.record import RunSpec
    from sslbench.experiment.request.request import RunRequest

_STORED = Price(0.0, guess=False)


def show_price(run_tasks: Sequence[RunTask], request: RunRequest) -> None:
    """A line per group of runs that differ in the seed only, and the sum."""
    from sslbench.experiment.execute.grid import GridOptions, is_stored
    from sslbench.experiment.planning.published import prices_of
    from sslbench.experiment.records.store import Store
    from sslbench.plugins import registry

    store = Store(request.store)
    options = GridOptions(**request.execution())
    prices = prices_of(store, registry())
    groups: dict[tuple[str, ...], list[Price | None]] = {}
    for task in run_tasks:
        if task.skip_reason is None:
            price = _STORED if is_stored(task, store, options) else prices.of(task.spec)
            groups.setdefault(_group(task.spec), []).append(price)
    head = ("method", "dataset", "labeled", "tuning", "runs", "stored", "CPU s")
    echo(table([head, *(_row(group, each) for group, each in groups.items())], indent=""))
    each_run = [price for group in groups.values() for price in group]
    priced = [price for price in each_run if price is not None]
    total = f"{_about(priced)}{duration(sum(price.cpu_s for price in priced))}"
    note = "; ~: by runs of other sizes, data or methods" if _about(priced) else ""
    if len(priced) < len(each_run):
        note = f", without {counted(len(each_run) - len(priced), 'run')} of unknown price{note}"
    echo(f"{counted(len(each_run), 'run')}: {total} of CPU{note}")
    if lacking := dict.fromkeys(task.spec.dataset for task in run_tasks if task.lacks_text):
        names = ", ".join(lacking)
        echo(f"this leaves out the unlabeled text of {names}, which is made before the first run")


def _group(spec: RunSpec) -> tuple[str, ...]:
    protocol = spec.protocol
    return spec.title, spec.dataset, protocol.sample, protocol.tuning()


def _about(prices: Sequence[Price]) -> str:
    return "~" if any(price.guess for price in prices) else ""


def _row(group: tuple[str, ...], prices: Sequence[Price | None]) -> tuple[str, ...]:
    priced = [price for price in prices if price is not None]
    text = f"{_about(priced)}{sum(price.cpu_s for price in priced):.0f}"
    stored = sum(price is _STORED for price in prices)
    return (*group, str(len(prices)), str(stored), text if len(priced) == len(prices) else "?")
