"""``sslbench suite show | run | report | extend``."""

from __future__ import annotations

import os
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.messages import can_ask, tell
from sslbench.cli.options import DURATION, JOBS, PATH, request_options
from sslbench.cli.suite_cells import STATES, price_line, run_cells, state_row
from sslbench.cli.suite_costs import spent_table, suites_table
from sslbench.cli.suite_extend import command as extend
from sslbench.cli.text import checked_registry, counted, echo, table
from sslbench.engine.errors import UserError
from sslbench.experiment.request.request import RunRequest
from sslbench.plugins import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sslbench.experiment.records.cost import Prices
    from sslbench.experiment.records.store import Store
    from sslbench.report.board import Board
    from sslbench.report.page.build import Sources
    from sslbench.suite.cells import Cell
    from sslbench.suite.file import Suite

_FILE = click.argument("file", metavar="FILE")
_YES = click.option(
    "--yes",
    "accepted",
    is_flag=True,
    help="Write to the folders that the file names, wherever they are; otherwise you are asked.",
)


@click.group("suite")
def command() -> None:
    """Run a leaderboard from a TOML file: status and cost, missing runs, page.

    FILE is a suite file, or the name of one in leaderboards/suites or of the package.
    """


command.add_command(extend)


@command.command("show")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@JOBS
@click.option("--cells", "each", is_flag=True, help="A line for every cell, in the order of runs.")
@click.option("--costs", is_flag=True, help="What the runs took, by method and phase.")
def show(files: tuple[str, ...], jobs: int, each: bool, costs: bool) -> None:
    """List the cells: done, missing, estimated cost.

    Several FILEs get a line each; without FILE, all suites here, or those of the package.
    """
    from sslbench.suite.file import suite_files

    if each and costs:
        raise click.UsageError("--cells and --costs exclude each other")
    opened = [_opened(file) for file in files or suite_files()]
    if each and len(opened) > 1:
        raise click.UsageError("--cells is of one suite")
    if costs:
        echo(spent_table([cell for _, cells, _ in opened for cell in cells]))
    elif len(opened) > 1:
        echo(suites_table([(suite.name, cells, _prices(store)) for suite, cells, store in opened]))
    else:
        suite, cells, store = opened[0]
        _show_cells(suite, cells, _prices(store), jobs, each)


def _show_cells(suite: Suite, cells: Sequence[Cell], prices: Prices, jobs: int, each: bool) -> None:
    """A line for every dataset and size, or for every cell."""
    from sslbench.suite.cells import in_order

    if each:
        for cell in in_order(cells, prices):
            price = prices.of(cell.spec)
            cost = "?" if price is None else f"{'~' * price.guess}{price.cpu_s:.0f} s"
            echo(f"{cell.state}: {cell.describe()}: {cost}")
        return
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.spec.dataset, cell.spec.protocol.sample), []).append(cell)
    head = ("dataset", "labeled", "cells", *STATES, "to run, CPU")
    rows = [state_row(names, group, prices) for names, group in groups.items()]
    echo(f"{suite.title}: {suite.path}\n")
    echo(table([head, *rows], indent=""))
    echo(f"\n{price_line(cells, prices, jobs)}")


def _prices(store: Store) -> Prices:
    from sslbench.experiment.planning.published import prices_of

    return prices_of(store, registry())


@command.command("run")
@_FILE
@request_options(RunRequest, "jobs", "executor", "memory", "retry")
@click.option("--budget", type=DURATION, help="Start nothing that would end later, e.g. 2h.")
@_YES
@click.pass_context
def run(
    ctx: click.Context,
    /,
    file: str,
    jobs: int,
    budget: float | None,
    accepted: bool,
    **given: Any,
) -> None:
    """Run missing and stale cells, one seed at a time across all cells.

    Within a seed the cheap ones come first. Safe to interrupt; run it again to resume.
    """
    suite, cells, store = _opened(file)
    _ask(suite, [suite.store], accepted)
    ctx.exit(run_cells(cells, store, suite.timeout, jobs=jobs, budget=budget, **given))


@command.command("report")
@_FILE
@click.option("--dataset", "datasets", multiple=True, metavar="PATTERN", help="Only these.")
@click.option("--method", "methods", multiple=True, metavar="PATTERN", help="Only these.")
@click.option("--out", type=PATH, help="Folder; default: that of the file.")
@click.option(
    "--site", type=PATH, help="Folder of static files to host, which gets an index of its pages."
)
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing; exit status 1, with names, if a cell is missing, stale or failed, a file"
    " would change, or a line of the ledger is not that of its runs.",
)
@_YES
@click.pass_context
def report(
    ctx: click.Context,
    /,
    file: str,
    datasets: tuple[str, ...],
    methods: tuple[str, ...],
    out: Path | None,
    site: Path | None,
    check: bool,
    accepted: bool,
) -> None:
    """Make the page and the tables (Markdown, CSV, LaTeX) of a suite from its records."""
    from sslbench.report.blocks import with_blocks
    from sslbench.report.render import board_files, changed_files, write_files
    from sslbench.report.site import with_index

    if site is not None and out is not None:
        raise click.UsageError("--site is a folder in place of --out", ctx)
    suite, cells, store = _opened(file)
    cells = [c for c in cells if _wanted(c.spec.dataset, datasets) and _wanted(c.line, methods)]
    if not cells:
        raise UserError("no cell has such a dataset and method", file=suite.path)
    if out is None and not check:
        _ask(suite, [suite.out, *suite.include], accepted)
    board, sources, wrong = _board(suite, cells, store)
    files = board_files(board, suite.name, sources)
    folder = Path(os.path.normpath(site or out or suite.out))
    if site is not None:
        files = with_index(folder, files)
    elif out is None:
        files |= with_blocks(board, suite.name, sources.ledger, suite.include, folder)
    changed = changed_files(folder, files) if check else write_files(folder, files)
    if check:
        paths = [os.path.normpath(folder / name) for name in changed]
        for line in [*(f"would change: {path}" for path in paths), *wrong]:
            echo(line)
    else:
        _show_means(board)
    tell(f"{sources.summary} {len(changed)} of {len(files)} files changed in {folder}")
    ctx.exit(1 if check and (changed or wrong) else 0)


def _show_means(board: Board) -> None:
    from sslbench.report.render import grid

    for size in board.sizes:
        names, rows = grid(board, size)
        echo(table([(f"{size} labeled", *names), *rows], indent="") + "\n")


def _board(suite: Suite, cells: Sequence[Cell], store: Store) -> tuple[Board, Sources, list[str]]:
    """The board, extra page content, and problems that `--check` reports."""
    from sslbench.experiment.identity import stale_runs
    from sslbench.report.ledger import read_ledger, wrong_lines
    from sslbench.report.page.build import Sources
    from sslbench.report.suite_board import suite_board

    ledger = [] if suite.ledger is None else read_ledger(suite.ledger)
    ledger = [line for line in ledger if suite.paper in ("", line.paper)]
    records = [cell.record for cell in cells if cell.record is not None]
    stale = stale_runs(records, registry())
    board = suite_board(suite, cells, stale, registry())
    named = {run_id for line in ledger for ids in line.run_ids for run_id in ids}
    wrong = wrong_lines(ledger, {record.run_id: record for record in store.records(named)})
    return board, Sources(stale, ledger, _summary_line(cells)), [*board.gaps, *wrong]


def _wanted(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _summary_line(cells: Sequence[Cell]) -> str:
    """What the page rests on."""
    from sslbench.experiment.records.cost import whole_cpu_s

    states = Counter(cell.state for cell in cells)
    records = [cell.record for cell in cells if cell.record is not None]
    spent = sum(map(whole_cpu_s, records))
    counts = ", ".join(f"{states[state]} {state}" for state in STATES if states[state])
    text = f"{counted(len(cells), 'run')}: {counts}; {spent / 3600:.2f} CPU hours"
    days = sorted(record.created[:10] for record in records)
    versions = {str(record.environment.get("sslbench", "")) for record in records}
    if days:
        text += f", {' to '.join(dict.fromkeys([days[0], days[-1]]))}"
        text += f", sslbench {', '.join(sorted(filter(None, versions)))}" * any(versions)
    return f"{text}."


def _ask(suite: Suite, paths: Sequence[Path], accepted: bool) -> None:
    """Ask before writing where a stranger's file should not; UserError if it is not allowed."""
    others = suite.elsewhere(paths)
    if accepted or not others:
        return
    where = ", ".join(os.path.normpath(path) for path in others)
    if not can_ask():
        message = f"it would write to {where}, outside of the current folder and of its own"
        raise UserError(message, file=suite.path, hint="--yes allows it")
    tell(f"{suite.path} would write to {where}")
    if not click.confirm("Do you allow it?", err=True):
        raise UserError("nothing was written", file=suite.path)


def _opened(file: str) -> tuple[Suite, list[Cell], Store]:
    """The suite, its cells with their records, and its store."""
    from sslbench.experiment.records.store import Store
    from sslbench.suite.cells import suite_cells, with_records
    from sslbench.suite.file import read_suite

    plugins = checked_registry()
    suite = read_suite(file)
    store = Store(suite.store)
    return suite, with_records(suite_cells(suite, plugins), store, plugins), store
