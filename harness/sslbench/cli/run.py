"""``sslbench run``."""

from __future__ import annotations

from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.dry_run import show_price
from sslbench.cli.messages import GridProgress, describe, plain_warnings, tell
from sslbench.cli.options import SEEDS, format_option, request_options
from sslbench.cli.text import checked_registry, counted, echo
from sslbench.engine.errors import shortened
from sslbench.experiment.request.request import PathLike, RunRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sslbench.experiment.execute.grid import GridResult
    from sslbench.experiment.execute.pool import StartMethod
    from sslbench.experiment.planning.task import RunTask
    from sslbench.experiment.records.record import RunRecord
    from sslbench.processes import ForkServer


@click.command("run")
@request_options(RunRequest)
@click.option("--seeds", "ranges", type=SEEDS, default=(), help="Several, e.g. 0-4 or 0,1,7.")
@click.option(
    "--dry-run", is_flag=True, help="Show the runs and what they would cost, by stored records."
)
@format_option(["table", "json", "csv"])
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Run methods on datasets: every combination with every seed, each in its own process.

    Finished runs are in --store and are not run again. A method that is not for the task of a
    dataset or the model is skipped. Results go to standard output, messages to standard error.
    Exit status: 0 done, 1 some run failed, 2 wrong usage or bad input.
    """

    form, dry, ranges = given.pop("form"), given.pop("dry_run"), given.pop("ranges")
    seeds = tuple(dict.fromkeys([*given.pop("seeds"), *ranges])) or (0,)
    request = RunRequest(**given, seeds=seeds)
    with _server(request, dry) as server, plain_warnings():  # before plugins are imported
        checked_registry()
        tasks = _tasks(request, make_text=not dry)
        if dry:
            show_price(tasks, request)
            return
        result = run_shown(tasks, request.store, server=server, **request.execution())
    from sslbench.cli.run_results import print_results  # it imports numpy: after the server

    print_results(result.records, form)
    for warning in _warnings(result.records):
        tell(f"warning: {warning}")
    for line in dict.fromkeys(r.error for r in result.failed if r.error_kind == "input"):
        tell(str(line))
    if ctx.find_root().params.get("debug"):
        _show_tracebacks(result.failed)
    tell(summary(result))
    ctx.exit(result.exit_status)


@contextmanager
def _server(request: RunRequest, dry: bool) -> Iterator[ForkServer | None]:
    """An early server of processes where the runs are local, with the methods imported."""
    from sslbench.experiment.execute.startup import early_server

    if dry or request.executor != "local":
        yield None
        return
    names = [("methods", name) for name in request.methods]
    server = early_server(request.threads_per_run, names)
    with nullcontext() if server is None else closing(server):
        yield server


#: how many methods a warning names at most
NAMED = 3


def _tasks(request: RunRequest, *, make_text: bool) -> list[RunTask]:
    from sslbench.experiment.planning.plan import plan
    from sslbench.experiment.records.store import Store

    run_tasks = plan(request, store=Store(request.store), notice=tell, make_text=make_text)
    for line in dict.fromkeys(_skip_line(task) for task in run_tasks if task.skip_reason):
        echo(line, err=True)
    return run_tasks


def run_shown(
    run_tasks: Sequence[RunTask],
    store: PathLike,
    start_method: StartMethod | None = None,
    **options: Any,
) -> GridResult:
    """Run a grid with its progress on standard error.

    start_method: None = `isolated`.  options: of `GridOptions`.
    """
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
        return run_grid(run_tasks, Store(store), start_method or isolated, shown)


def _show_tracebacks(records: Sequence[RunRecord]) -> None:
    """The traceback that each record of a failed run has, on standard error."""

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
    methods_of: dict[tuple[str, str], dict[str, None]] = {}
    for record in records:
        for line in record.warnings:
            methods_of.setdefault((record.dataset, line), {})[record.method] = None
    lines = []
    for (dataset, line), methods in methods_of.items():
        names = ", ".join(methods) if len(methods) <= NAMED else f"{len(methods)} methods"
        lines.append(f"{names} on {dataset}: {line}")
    return lines


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
