"""``sslbench suite extend``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import DURATION, STORE, format_option, named, request_options
from sslbench.cli.suite_cells import STATES, price_line, run_cells, state_row
from sslbench.cli.text import checked_registry, counted, echo, table
from sslbench.experiment.request.request import RunRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sslbench.experiment.records.cost import Prices
    from sslbench.report.extension import Comparison, Score, Standing
    from sslbench.suite.cells import Cell
    from sslbench.suite.file import Suite


@click.command("extend")
@click.argument("file", metavar="SUITE")
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    shell_complete=named("methods"),
    help="A method that gets a row. May repeat.",
)
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    metavar="NAME",
    shell_complete=named("datasets"),
    help="A dataset that gets columns. May repeat.",
)
@STORE
@request_options(RunRequest, "jobs", "executor", "memory", "retry")
@click.option("--budget", type=DURATION, help="Start nothing that would end later, e.g. 2h.")
@click.option("--dry-run", is_flag=True, help="Show the cells and what they would cost.")
@format_option(["table", "csv"])
@click.pass_context
def command(ctx: click.Context, /, file: str, **given: Any) -> None:
    """Put a method or a dataset of your own on a published suite.

    SUITE is a suite file, or the name of one in leaderboards/suites or of the package. Only the
    cells that the method or dataset adds are run, in --store; the other rows are the published
    results. Safe to interrupt; run it again to resume.
    """
    from sslbench.experiment.planning.published import prices_of
    from sslbench.experiment.records.store import Store
    from sslbench.suite.cells import with_records
    from sslbench.suite.extension import added_cells
    from sslbench.suite.file import read_suite

    plugins = checked_registry()
    suite, store = read_suite(file), Store(given.pop("store"))
    added = added_cells(suite, given.pop("methods"), given.pop("datasets"), plugins)
    cells = with_records(added, store, plugins)
    form, dry = given.pop("form"), given.pop("dry_run")
    if dry:
        _show_price(cells, prices_of(store, plugins), given["jobs"])
        return
    status = run_cells(cells, store, suite.timeout, **given)
    _show_scores(suite, with_records(added, store, plugins), form)
    ctx.exit(status)


def _show_price(cells: Sequence[Cell], prices: Prices, jobs: int) -> None:
    """A line for each row of the suite in each column: states, and the price of what is missing."""
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        names = cell.line, cell.spec.dataset, cell.spec.protocol.sample
        groups.setdefault(names, []).append(cell)
    head = ("method", "dataset", "labeled", "cells", *STATES, "to run, CPU")
    echo(table([head, *(state_row(n, group, prices) for n, group in groups.items())], indent=""))
    echo(f"\n{price_line(cells, prices, jobs)}")


def _show_scores(suite: Suite, cells: Sequence[Cell], form: str) -> None:
    """The added lines among the published ones, as tables or as CSV."""
    from sslbench.experiment.planning.published import PublishedLines
    from sslbench.plugins import registry
    from sslbench.report.extension import by_size, comparisons, csv_text, scores, standings
    from sslbench.suite.extension import neighbors

    plugins = registry()
    shown = scores(cells, neighbors(suite, cells, plugins), PublishedLines())
    if form == "csv":
        click.echo(csv_text(shown), nl=False)
        return
    for size, part in by_size(shown).items():
        lines, n_columns = standings(part, plugins)
        if lines:
            echo(f"{size} labeled, {counted(n_columns, 'dataset')}; added rows have a >\n")
            echo(table(_standing_rows(lines)) + "\n")
        echo(f"{size} labeled, by dataset\n")
        echo(table(_comparison_rows(comparisons(part, plugins))) + "\n")
    if all(score.source == "added" for score in shown):
        tell("no published result of these columns: the rows are those of the store alone")


def _standing_rows(lines: Sequence[Standing]) -> list[tuple[str, ...]]:
    """Without intervals and groups where there are too few families for them."""
    head = ("", "method", "mean rank", "mean gain", "CPU s", "95 % of gain", "group")
    width = len(head) if math.isfinite(lines[0].gains[0]) else -2
    return [row[:width] for row in [head, *map(_standing_row, lines)]]


def _standing_row(line: Standing) -> tuple[str, ...]:
    return (
        ">" if line.added else "",
        line.line,
        f"{line.rank:.2f}",
        "" if line.gain is None else f"{line.gain:+.2f}",
        "" if line.cpu_s is None else f"{line.cpu_s:.1f}",
        "" if line.gain is None else "{:+.2f} to {:+.2f}".format(*line.gains),
        line.group,
    )


def _comparison_rows(each: Sequence[Comparison]) -> list[tuple[str, ...]]:
    head = (
        "method",
        "dataset",
        "metric",
        "draws",
        "score %",
        "baseline",
        "gain",
        "place",
        "best other",
    )
    return [head, *map(_comparison_row, each)]


def _comparison_row(one: Comparison) -> tuple[str, ...]:
    score, base = one.score, one.base
    gain = ""
    if one.place and score.mean is not None and base is not None and base.mean is not None:
        gain = f"{100 * (score.mean - base.mean):+.2f}"
    return (
        score.line,
        score.dataset,
        score.metric,
        f"{score.draws} of {score.wanted}",
        _percent(score),
        "" if base is None else _percent(base),
        gain,
        f"{one.place} of {one.of}" if one.place else "",
        "" if one.best is None else f"{_percent(one.best)} {one.best.line}",
    )


def _percent(score: Score) -> str:
    return "" if score.mean is None else f"{100 * score.mean:.2f}"
