"""Cells of suites on the command line: their states, their prices, their runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sslbench.cli.messages import tell
from sslbench.cli.text import counted, duration
from sslbench.plugins import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sslbench.experiment.records.cost import Price, Prices
    from sslbench.experiment.records.store import Store
    from sslbench.suite.cells import Cell, CellState

STATES: tuple[CellState, ...] = ("done", "stale", "other data", "failed", "missing")


def state_row(names: tuple[str, ...], cells: Sequence[Cell], prices: Prices) -> tuple[str, ...]:
    """A row of a table: names, number of cells in each state, price of those that are to be run."""
    states = Counter(cell.state for cell in cells)
    counts = [str(states[state] or "-") for state in STATES]
    priced, unknown = _cost(cells, prices)
    cost = f"{_total(priced)}{' + ?' if unknown else ''}"
    return (*names, str(len(cells)), *counts, cost)


def _cost(cells: Sequence[Cell], prices: Prices) -> tuple[list[Price], int]:
    """The prices of the cells that are to be run, and how many of these have none."""
    todo = [prices.of(cell.spec) for cell in cells if cell.state not in ("done", "failed")]
    priced = [price for price in todo if price is not None]
    return priced, len(todo) - len(priced)


def _total(priced: Sequence[Price]) -> str:
    about = "~" if any(price.guess for price in priced) else ""
    return f"{about}{duration(sum(price.cpu_s for price in priced))}"


def price_line(cells: Sequence[Cell], prices: Prices, jobs: int) -> str:
    """The number of cells in each state, and the price of those that are to be run, in one line."""
    from sslbench.suite.cells import wall_seconds

    states = Counter(cell.state for cell in cells)
    parts = [f"{states[state]} {state}" for state in STATES if states[state]]
    priced, unknown = _cost(cells, prices)
    wall = wall_seconds([price.cpu_s for price in priced], jobs)
    line = f"{counted(len(cells), 'cell')}: {', '.join(parts)}; to run: {_total(priced)} of CPU"
    line += f", about {duration(wall)} with --jobs {jobs}"
    return line + (f", without {counted(unknown, 'cell')} of unknown price" if unknown else "")


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    timeout: float | None,
    *,
    jobs: int,
    budget: float | None,
    retry: bool,
    **given: Any,
) -> int:
    """Run the cells that are not done, and return the exit status.

    timeout: seconds of a run.  budget: wall seconds; None = no limit.
    retry: run failed cells again.  given: further options of `GridOptions`.
    """
    from sslbench.cli.run import run_shown, summary
    from sslbench.experiment.planning.published import prices_of
    from sslbench.suite.cells import Budget, planned

    prices = prices_of(store, registry())
    skip = ("done",) if retry else ("done", "failed")
    todo = [cell for cell in cells if cell.state not in skip]
    tell(price_line(cells, prices, jobs))
    tasks = planned(todo, prices, store, registry(), jobs=jobs, notice=tell)
    by_id = {task.spec.run_id: prices.of(task.spec) for task in tasks}
    priced = {run_id: price.cpu_s for run_id, price in by_id.items() if price is not None}
    limit = Budget(float("inf") if budget is None else budget, priced)
    options = {"jobs": jobs, "timeout": timeout, "admit": limit.admits, "retry": retry, **given}
    result = run_shown(tasks, store.folder, **options)
    tell(summary(result))
    if limit.left is not None:
        tell(f"--budget: {counted(len(tasks) - len(result.records), 'run')} left")
    return result.exit_status
