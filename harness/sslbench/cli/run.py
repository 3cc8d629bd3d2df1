"""``sslbench run``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.options import problem_options, request_of
from sslbench.cli.text import counted, warn_of_problems

if TYPE_CHECKING:
    from sslbench.experiment.plan import Outcome


def _seeds(values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(values)) or (0,)


@click.command("run")
@click.option("--method", "methods", multiple=True, required=True, help="May repeat.")
@click.option("--dataset", "datasets", multiple=True, help="May repeat; or give --data.")
@problem_options
@click.option("--seed", "seeds", type=click.IntRange(min=0), multiple=True, help="May repeat.")
@click.option("--store", default="runs", show_default=True, help="Folder of the run records.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="Runs at the same time.")
@click.option("--threads", type=click.IntRange(min=1), help="Per run. Default: cores / jobs.")
@click.option("--executor", default="local", show_default=True, help="local or dask[:ADDRESS].")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds per run.")
@click.option("--retry", is_flag=True, help="Run failed runs again.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    help="Of the results on standard output.",
)
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Run methods on datasets: every combination with every seed, each in its own process.

    Finished runs are in --store and are not run again. Results go to standard output, messages
    to standard error. Exit status: 0 done, 1 some run failed, 2 wrong usage or bad input.
    """
    from sslbench.cli.messages import plain_warnings, tell
    from sslbench.cli.results import print_results
    from sslbench.plugins import registry

    warn_of_problems(registry())
    with plain_warnings():
        outcome = _carry_out(given)
    print_results(outcome.records, given["form"])
    for line in dict.fromkeys(r.error for r in outcome.failed if r.error_kind == "input"):
        tell(str(line))
    tell(_summary(outcome))
    ctx.exit(outcome.exit_status)


def _carry_out(given: dict[str, Any]) -> Outcome:
    from sslbench.cli.messages import GridProgress, tell
    from sslbench.experiment.plan import carry_out, plan
    from sslbench.experiment.store import Store

    request = request_of(
        given,
        methods=tuple(dict.fromkeys(given["methods"])),
        datasets=tuple(dict.fromkeys(given["datasets"])),
        seeds=_seeds(given["seeds"]),
        jobs=given["jobs"],
    )
    store = Store(given["store"])
    tasks = plan(request, store=store, notice=tell)
    with GridProgress(len(tasks)) as progress:
        return carry_out(
            tasks,
            store,
            jobs=given["jobs"],
            timeout=given["timeout"],
            retry=given["retry"],
            executor=given["executor"],
            on_found=progress.found,
            on_start=progress.start,
            on_end=progress.end,
        )


def _summary(outcome: Outcome) -> str:
    parts = [counted(len(outcome.records), "run")]
    if outcome.skipped:
        parts.append(f"{outcome.skipped} of them found in the store")
    if outcome.failed:
        parts.append(f"{len(outcome.failed)} failed")
    if outcome.skipped_failed:
        parts.append(f"--retry runs {outcome.skipped_failed} earlier failed again")
    return ", ".join(parts)
