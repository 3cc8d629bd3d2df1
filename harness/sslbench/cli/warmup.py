"""``sslbench warmup``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from sslbench.cli.text import counted, warn_of_problems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sslbench.experiment.execute.grid import GridResult

LABELED, UNLABELED = 40, 120  # sentences


@click.command("warmup")
@click.option(
    "--method", "methods", multiple=True, help="Name of a method. May repeat. Default: all."
)
@click.option("--model", "models", multiple=True, help="May repeat. Default: all.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="Runs at a time.")
@click.pass_context
def command(
    ctx: click.Context, /, methods: tuple[str, ...], models: tuple[str, ...], jobs: int
) -> None:
    """Compile what runs need, so that the first one does not wait: for images and servers.

    Each method is trained on a little text of each dataset that needs no files. Machine code is
    kept in the cache folder (SSLBENCH_CACHE); it fits this processor and these versions of Python,
    numba and sslbench.
    """
    from sslbench.cli.messages import tell
    from sslbench.engine.files.folders import tell_once
    from sslbench.plugins import registry

    tell_once("compiling what runs need", "compiling")
    known = registry()
    warn_of_problems(known)
    datasets = tuple(d.name for d in known.datasets.values() if not (d.files or d.own))
    result = _run(methods or tuple(known.methods), datasets, models or tuple(known.models), jobs)
    for record in result.failed:
        tell(f"{record.method}: {record.error}")
    seconds = sum(record.timing.get("compile", 0.0) for record in result.records)
    failed = f", {len(result.failed)} failed" if result.failed else ""
    runs = counted(len(result.records) - len(result.skipped), "run")
    tell(f"{runs}{failed}; {seconds:.0f} s of compilation")
    ctx.exit(result.exit_status)


def _run(
    methods: Sequence[str], datasets: Sequence[str], models: Sequence[str], jobs: int
) -> GridResult:
    from sslbench.cli.messages import GridProgress, tell
    from sslbench.experiment.execute.grid import GridOptions, run_grid
    from sslbench.experiment.planning.plan import Request, plan
    from sslbench.experiment.records.store import Store
    from sslbench.isolation.start import isolated

    with TemporaryDirectory(prefix="sslbench-warmup-") as folder:
        store = Store(Path(folder))
        tasks = [
            task
            for model in models
            for task in plan(
                Request(methods, datasets, (0,), LABELED, UNLABELED, model=model, jobs=jobs),
                store=store,
                notice=tell,
            )
        ]
        n_runs = sum(task.skip_reason is None for task in tasks)
        with GridProgress(n_runs) as progress:
            options = GridOptions(jobs=jobs, on_start=progress.start, on_end=progress.end)
            return run_grid(tasks, store, isolated, options)
