"""``sslbench run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.text import warn_of_problems

if TYPE_CHECKING:
    from sslbench.experiment.plan import Outcome


_PASSED = (
    "unlabeled", "settings", "featurizer", "model", "data_path", "threads", "jobs", "tune",
)  # fmt: skip


def _seeds(values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(values)) or (0,)


@click.command("run")
@click.option("--method", "methods", multiple=True, required=True, help="May repeat.")
@click.option("--dataset", "datasets", multiple=True, help="May repeat; or give --data.")
@click.option("--labeled", default="all", metavar="N|P%|all", help="Labelled sentences.")
@click.option("--unlabeled", type=click.IntRange(min=0), help="Cap on unlabelled sentences.")
@click.option("--seed", "seeds", type=click.IntRange(min=0), multiple=True, help="May repeat.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE",
    help="Method parameter; METHOD.KEY or DATASET.KEY for one of them. May repeat.",
)  # fmt: skip
@click.option("--featurizer", help="Instead of the dataset's.")
@click.option("--model", help="Instead of the default.")
@click.option(
    "--data", "data_path", type=click.Path(path_type=Path),
    help="Your own CoNLL file, or folder with train, dev, test and unlabeled files.",
)  # fmt: skip
@click.option(
    "--columns", default="word,pos,label", show_default=True,
    help="Columns of your own files; _ leaves one out.",
)  # fmt: skip
@click.option("--store", default="runs", show_default=True, help="Folder of the run records.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="Runs at the same time.")
@click.option("--threads", type=click.IntRange(min=1), help="Per run. Default: cores / jobs.")
@click.option("--executor", default="local", show_default=True, help="local or dask[:ADDRESS].")
@click.option("--tune", type=click.IntRange(min=0), help="Tuning trials, the same per method.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds per run.")
@click.option("--retry", is_flag=True, help="Run failed runs again.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table",
    help="Of the results on standard output.",
)  # fmt: skip
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
    from sslbench.experiment.plan import Request, carry_out, plan
    from sslbench.experiment.protocol import parse_labeled
    from sslbench.experiment.store import Store

    request = Request(
        methods=tuple(dict.fromkeys(given["methods"])),
        datasets=tuple(dict.fromkeys(given["datasets"])),
        seeds=_seeds(given["seeds"]),
        labeled=parse_labeled(given["labeled"]),
        columns=tuple(name.strip() for name in given["columns"].split(",") if name.strip()),
        **{name: given[name] for name in _PASSED},
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
            on_start=progress.start,
            on_end=progress.end,
        )


def _summary(outcome: Outcome) -> str:
    parts = [f"{len(outcome.records)} runs"]
    if outcome.skipped:
        parts.append(f"{outcome.skipped} of them found in the store")
    if outcome.failed:
        parts.append(f"{len(outcome.failed)} failed")
    if outcome.skipped_failed:
        parts.append(f"--retry runs {outcome.skipped_failed} earlier failed again")
    return ", ".join(parts)
