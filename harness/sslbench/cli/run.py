"""``sslbench run``."""

from __future__ import annotations

import os
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.dry_run import show_price
from sslbench.cli.options import (
    SECONDS,
    SEED,
    MemorySize,
    SeedRange,
    named,
    problem_options,
    request_of,
)
from sslbench.cli.text import counted, echo, warn_of_problems
from sslbench.engine.errors import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sslbench.experiment.execute.grid import GridResult
    from sslbench.experiment.records.record import RunRecord
    from sslbench.experiment.run.training import RunTask
    from sslbench.processes import ForkServer


@click.command("run")
@click.option(
    "--method",
    "methods",
    multiple=True,
    required=True,
    help="Name of a method, or all. May repeat.",
    shell_complete=named("methods"),
)
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    help="Name of a dataset. May repeat; or give --data.",
    shell_complete=named("datasets"),
)
@problem_options
@click.option("--seed", "seeds", type=SEED, multiple=True, help="May repeat. Default: 0.")
@click.option("--seeds", "ranges", type=SeedRange(), default=(), help="Several, e.g. 0-4 or 0,1,7.")
@click.option(
    "--tune-seed", type=SEED, help="Tune on the draw of this seed; default: on that of each run."
)
@click.option(
    "--folds",
    type=int,
    default=0,
    metavar="K",
    help="Cross-validation: test on the labeled sentences, cut into K folds.",
)
@click.option(
    "--guard",
    is_flag=True,
    help="Keep the baseline where held-out labeled sentences do not speak for the method.",
)
@click.option("--store", default="runs", show_default=True, help="Folder of the run records.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="Runs at a time.")
@click.option("--threads", type=click.IntRange(min=1), help="Per run. Default: cores / jobs.")
@click.option("--executor", default="local", show_default=True, help="local or dask[:ADDRESS].")
@click.option("--timeout", type=SECONDS, help="Seconds per run.")
@click.option(
    "--memory",
    type=MemorySize(),
    help="Per run, e.g. 8G or 500M. Default: 80 % of the machine's, divided by --jobs.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show the runs and what they would cost, by stored records."
)
@click.option("--retry", is_flag=True, help="Run again what failed earlier.")
@click.option(
    "--reuse",
    type=click.Choice(["current", "verified", "stale"]),
    default="current",
    show_default=True,
    help="Stored runs to use: of today's versions of the code (current or verified), or of any.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    help="Format of the results on standard output.",
)
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Run methods on datasets: every combination with every seed, each in its own process.

    Finished runs are in --store and are not run again. A method that is not for the task of a
    dataset or the model is skipped. Results go to standard output, messages to standard error.
    Exit status: 0 done, 1 some run failed, 2 wrong usage or bad input.
    """
    from sslbench.cli.messages import plain_warnings, tell
    from sslbench.plugins import registry

    with _server(given) as server, plain_warnings():  # before plugins are imported
        warn_of_problems(registry())
        tasks = _tasks(given)
        if given["dry_run"]:
            show_price(tasks, given)
            return
        options = {name: given[name] for name in _GRID}
        result = run_shown(tasks, given["store"], server=server, **options)
    from sslbench.cli.results import print_results  # it imports numpy: after the server

    print_results(result.records, given["form"])
    for warning in _warnings(result.records):
        tell(f"warning: {warning}")
    for line in dict.fromkeys(r.error for r in result.failed if r.error_kind == "input"):
        tell(str(line))
    if ctx.find_root().params.get("debug"):
        _show_tracebacks(result.failed)
    tell(summary(result))
    ctx.exit(result.exit_status)


@contextmanager
def _server(given: dict[str, Any]) -> Iterator[ForkServer | None]:
    """An early server of processes where the runs are local, with the methods imported."""
    from sslbench.experiment.execute.preload import early_server

    if given["dry_run"] or given["executor"] != "local":
        yield None
        return
    threads = given["threads"] or max(1, (os.cpu_count() or 1) // given["jobs"])
    server = early_server(threads, [("methods", name) for name in given["methods"]])
    with nullcontext() if server is None else closing(server):
        yield server


#: how many methods a warning names at most
NAMED = 3
_GRID = ("jobs", "timeout", "memory", "retry", "reuse", "executor")


def _tasks(given: dict[str, Any]) -> list[RunTask]:
    from sslbench.cli.messages import tell
    from sslbench.experiment.planning.plan import plan
    from sslbench.experiment.records.store import Store
    from sslbench.plugins import registry

    methods = given["methods"]
    if "all" in methods:
        methods = (*methods, *registry().methods)
    request = request_of(
        given,
        methods=tuple(name for name in dict.fromkeys(methods) if name != "all"),
        datasets=tuple(dict.fromkeys(given["datasets"])),
        seeds=tuple(dict.fromkeys([*given["seeds"], *given["ranges"]])) or (0,),
        folds=given["folds"],
        guard=given["guard"],
        tune_seed=given["tune_seed"],
        jobs=given["jobs"],
    )
    run_tasks = plan(request, store=Store(given["store"]), notice=tell)
    for line in dict.fromkeys(_skip_line(task) for task in run_tasks if task.skip_reason):
        echo(line, err=True)
    return run_tasks


def run_shown(run_tasks: Sequence[RunTask], store: str | Path, **options: Any) -> GridResult:
    """Run a grid with its progress on standard error. options: of `GridOptions`."""
    from sslbench.cli.messages import GridProgress
    from sslbench.experiment.execute.grid import GridOptions, run_grid
    from sslbench.experiment.records.store import Store
    from sslbench.isolation.start import isolated

    n_runs = sum(task.skip_reason is None for task in run_tasks)
    with GridProgress(n_runs) as progress:
        shown = GridOptions(
            **options,
            on_stored=progress.stored,
            on_start=progress.start,
            on_end=progress.end,
            on_wait=progress.wait,
        )
        return run_grid(run_tasks, Store(store), isolated, shown)


def _show_tracebacks(records: Sequence[RunRecord]) -> None:
    """The traceback that each record of a failed run has, on standard error."""
    from sslbench.cli.messages import describe

    for record in records:
        if record.traceback:
            lines = "\n".join(map(shortened, record.traceback))
            echo(f"{record.run_id}, {describe(record.spec)}:\n{lines}", err=True)


def _skip_line(run_task: RunTask) -> str:
    """Seeds are not named: the reason is the same for all."""
    spec = run_task.spec
    return f"skipped: {spec.method} on {spec.dataset}: {run_task.skip_reason}"


def _warnings(records: Sequence[RunRecord]) -> list[str]:
    """One line per warning and dataset, with the methods that it is about."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for record in records:
        for line in record.warnings:
            found.setdefault((record.dataset, line), {})[record.method] = None
    told = []
    for (dataset, line), methods in found.items():
        names = ", ".join(methods) if len(methods) <= NAMED else f"{len(methods)} methods"
        told.append(f"{names} on {dataset}: {line}")
    return told


def summary(result: GridResult) -> str:
    """How many runs there were, and how they ended."""
    parts = [counted(len(result.records) - len(result.skipped), "run")]
    if result.stored:
        parts.append(f"{result.stored} of them found in the store")
    if result.failed:
        parts.append(f"{len(result.failed)} failed")
    if result.skipped:
        parts.append(f"{len(result.skipped)} skipped")
    if result.stored_failed:
        parts.append(f"--retry repeats {result.stored_failed} that failed earlier")
    return ", ".join(parts)
