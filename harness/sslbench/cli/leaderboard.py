"""``sslbench leaderboard``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import PATH, STORE
from sslbench.cli.text import checked_registry, counted, echo
from sslbench.engine.errors import UserError
from sslbench.plugins import Registry, registry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sslbench.experiment.records.record import RunRecord
    from sslbench.report.leaderboard import Table
    from sslbench.report.rows import Row


@click.command("leaderboard")
@STORE
@click.option(
    "--out", default="leaderboards", show_default=True, type=PATH, help="Folder of the tables."
)
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="NAME",
    help="Method that the others are compared with; default: those that are registered as one.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing; exit status 1 if files would change or a row rests on stale records.",
)
@click.pass_context
def command(
    ctx: click.Context, store: str, out: Path, baselines: tuple[str, ...], check: bool
) -> None:
    """Make tables (Markdown, CSV, LaTeX) and a page of all records of a store.

    Standard output gets a short form of the tables or, with --check, the files that would change
    and the rows that rest on stale records.
    """
    from sslbench.experiment.records.store import Store
    from sslbench.report.board import board_of_tables
    from sslbench.report.page.build import Sources
    from sslbench.report.render import board_files, changed_files, plain, write_files

    records = Store(store).records()
    if not records:
        raise UserError("no run records", file=store, hint="sslbench run makes them; see --store")
    tables, stale_ids = _tables(records, baselines)
    plugins = registry()
    families = {name: info.family for name, info in plugins.datasets.items()}
    board = board_of_tables(tables, _commands(plugins), families)
    summary = f"{counted(len(records), 'record')} in {counted(len(tables), 'table')}"
    files = board_files(board, "leaderboard", Sources(stale_ids, summary=summary))
    changed = changed_files(out, files) if check else write_files(out, files)
    stale = _stale_rows(tables)
    if check:
        for name in changed:
            echo(out / name)
        for line in stale:
            echo(f"stale: {line}")
    else:
        echo(plain(tables))
    what = "would change" if check else f"written to {out}"
    text = f"{counted(len(records), 'record')}, {len(changed)} of {len(files)} files {what}"
    tell(text + (f", {counted(len(stale), 'row')} on stale records" if stale else ""))
    ctx.exit(1 if check and (changed or stale) else 0)


def _tables(
    records: Sequence[RunRecord], baselines: tuple[str, ...]
) -> tuple[list[Table], frozenset[str]]:
    """The tables of the records of a store, and the ids of the stale ones."""
    from sslbench.experiment.identity import stale_runs
    from sslbench.report.leaderboard import leaderboard
    from sslbench.report.reproduce import changed_options

    plugins = checked_registry()
    methods = {record.method for record in records}
    for name in baselines:
        if name not in methods:
            raise UserError(
                f"--baseline {name}: no record of this method",
                hint=f"the store has {', '.join(sorted(methods))}",
            )
    registered = [name for name, info in plugins.methods.items() if info.baseline]
    stale = stale_runs(records, plugins)
    options = partial(changed_options, plugins=plugins)
    return leaderboard(records, baselines or registered, stale, options=options), stale


def _stale_rows(tables: Sequence[Table]) -> list[str]:
    """Rows that rest on stale records."""
    return [
        f"{table.dataset}, {table.protocol}: {row.name}"
        for table in tables
        for row in table.rows
        if row.stale
    ]


def _commands(plugins: Registry) -> Callable[[Row], str]:
    """Gives the command of a row."""
    from sslbench.report.reproduce import Commands

    commands = Commands(plugins)

    def command(row: Row) -> str:
        first = next(iter(row.cells.values()))
        return commands.command(first.spec, sorted(row.cells), first.data.get("path"))

    return command
