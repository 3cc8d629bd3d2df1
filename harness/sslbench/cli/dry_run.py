"""``sslbench run --dry-run``: the runs of a command and their price."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from sslbench.cli.text import counted, echo, table

if TYPE_CHECKING:
    from sslbench.experiment.record import RunRecord, RunSpec
    from sslbench.experiment.training import RunTask


def show_price(run_tasks: Sequence[RunTask], given: dict[str, Any]) -> None:
    """A line per group of runs that differ in the seed only, and the sum.

    given: the options of the command.
    """
    from sslbench.experiment.execute.grid import GridOptions, is_stored
    from sslbench.experiment.store import Store

    store = Store(given["store"])
    options = GridOptions(retry=given["retry"], reuse=given["reuse"])
    records = store.records()
    groups: dict[tuple[str, ...], list[float | None]] = {}
    for task in run_tasks:
        if task.skip_reason is None:
            price = 0.0 if is_stored(task, store, options) else _price(task.spec, records)
            groups.setdefault(_group(task.spec), []).append(price)
    head = ("method", "dataset", "labeled", "tuning", "runs", "stored", "CPU s")
    echo(table([head, *(_row(group, prices) for group, prices in groups.items())], indent=""))
    prices = [price for group in groups.values() for price in group]
    unknown = sum(price is None for price in prices)
    note = f", without {counted(unknown, 'run')} like no stored one" if unknown else ""
    total = sum(price for price in prices if price is not None)
    echo(f"{counted(len(prices), 'run')}: {_duration(total)} of CPU{note}")


def _group(spec: RunSpec) -> tuple[str, ...]:
    protocol = spec.protocol
    return spec.title, spec.dataset, str(protocol.labeled), protocol.tuning()


def _row(group: tuple[str, ...], prices: Sequence[float | None]) -> tuple[str, ...]:
    known = [price for price in prices if price is not None]
    text = f"{sum(known):.0f}" if len(known) == len(prices) else "?"
    return (*group, str(len(prices)), str(sum(price == 0.0 for price in prices)), text)


def _price(spec: RunSpec, records: Iterable[RunRecord]) -> float | None:
    """CPU seconds of stored runs like this one: of the same protocol but for the seed; else None.

    A run that differs in the tuning budget only counts in proportion to the trainings.
    """
    alike = [
        record.cpu_s * _trainings(spec) / _trainings(record.spec)
        for record in records
        if record.status == "ok" and record.cpu_s and _is_alike(record.spec, spec)
    ]
    return median(alike) if alike else None


def _is_alike(a: RunSpec, b: RunSpec) -> bool:
    names = ("method", "dataset", "features", "model")
    same = all(getattr(a, name) == getattr(b, name) for name in names)
    p, q = a.protocol, b.protocol
    return same and (p.labeled, p.unlabeled, p.text) == (q.labeled, q.unlabeled, q.text)


def _trainings(spec: RunSpec) -> int:
    guard = 0 if spec.guard is None else spec.guard.folds
    return (1 + spec.protocol.tune + guard) * max(1, spec.protocol.folds)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
