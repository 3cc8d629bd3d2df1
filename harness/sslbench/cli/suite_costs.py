"""What the runs of suites took: in all, by method, by phase."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from sslbench.cli.suite_cells import STATES, state_row
from sslbench.cli.text import duration, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sslbench.experiment.records.cost import Prices
    from sslbench.suite.cells import Cell

#: phases of a run that have phases of the method in them, and what is not this run's own time
_OUTER = frozenset({"fit", "tune", "tune_stored"})
_SHOWN = 3


def suites_table(suites: Sequence[tuple[str, Sequence[Cell], Prices]]) -> str:
    """A line per suite: its cells by state, CPU time of the runs, price of the missing ones."""
    head = ("suite", "CPU", "cells", *STATES, "to run, CPU")
    rows = [
        state_row((name, duration(_spent(cells))), cells, prices) for name, cells, prices in suites
    ]
    every = _once(cell for _, cells, _ in suites for cell in cells)
    states = Counter(cell.state for cell in every)
    total = duration(_spent(every))
    counts = (str(states[state] or "-") for state in STATES)
    last = ("all, each run once", total, str(len(every)), *counts, "")
    return table([head, *rows, last], indent="")


def spent_table(cells: Iterable[Cell]) -> str:
    """A line per method: its runs, failures, CPU time, and the phases that took most of it.

    CPU time is that of the whole runs, with all tuning trials. Shares are of the wall time of the
    phases that a run went through itself.
    """
    every = _once(cells)
    by_method: dict[str, list[Cell]] = defaultdict(list)
    for cell in every:
        by_method[cell.spec.method].append(cell)
    rows = [_row(method, group) for method, group in by_method.items()]
    total = _row("all", every)
    head = ("method", "runs", "failed", "CPU", "of it tuning", "per run", "phases")
    rows.sort(key=lambda row: -row[0])
    return table([head, *(row for _, row in rows), total[1]], indent="")


def _row(name: str, cells: Sequence[Cell]) -> tuple[float, tuple[str, ...]]:
    """The CPU seconds of some runs, and their line."""
    from sslbench.experiment.records.cost import trials_cpu_s

    records = [cell.record for cell in cells if cell.record is not None]
    phases = Counter[str]()
    for record in records:
        phases.update({key: value for key, value in record.timing.items() if key not in _OUTER})
    total, wall = _spent(cells), sum(phases.values()) or 1.0
    tuning = sum(map(trials_cpu_s, records))
    most = [f"{key} {100 * value / wall:.0f} %" for key, value in phases.most_common(_SHOWN)]
    failed = sum(cell.state == "failed" for cell in cells)
    share = f"{100 * tuning / total:.0f} %" if tuning else "-"
    per_run = f"{total / len(records):.1f} s" if records else "-"
    counts = (str(len(records)), str(failed or "-"))
    return total, (name, *counts, duration(total), share, per_run, ", ".join(most))


def _once(cells: Iterable[Cell]) -> list[Cell]:
    """The cells, each run once: suites share runs."""
    return list({cell.key: cell for cell in cells}.values())


def _spent(cells: Iterable[Cell]) -> float:
    """CPU seconds of the runs that have a record."""
    from sslbench.experiment.records.cost import whole_cpu_s

    return sum(whole_cpu_s(cell.record) for cell in cells if cell.record is not None)
