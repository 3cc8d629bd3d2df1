"""``sslbench warmup``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import JOBS, shared
from sslbench.cli.text import checked_registry, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sslbench.experiment.execute.grid import GridResult

LABELED, UNLABELED = 40, 120  # sentences


@click.command("warmup")
@shared("method", required=False, help="To compile for. Default: all.")
@shared("model", multiple=True, help="To compile for. Default: all.")
@JOBS
@click.pass_context
def command(
    ctx: click.Context, /, method: tuple[str, ...], model: tuple[str, ...], jobs: int
) -> None:
    """Compile what runs need, so that the first one does not wait: for images and servers.

    Each method is trained on a little text of each dataset that needs no files. The cache folder
    (SSLBENCH_CACHE) gets the machine code, which fits this processor and these versions of Python,
    numba and sslbench. Plugins of others keep theirs in folders that only their runs read.
    """
    from sslbench.engine.files.folders import tell_once

    tell_once("compiling what runs need", "compiling")
    plugins = checked_registry()
    datasets = tuple(d.name for d in plugins.datasets.values() if not (d.files or d.own))
    result = _run(method or ("all",), datasets, model or tuple(plugins.models), jobs)
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
    from sslbench.cli.run import run_shown
    from sslbench.experiment.planning.plan import plan
    from sslbench.experiment.records.store import Store
    from sslbench.experiment.request.request import RunRequest
    from sslbench.isolation.start import compiling

    with TemporaryDirectory(prefix="sslbench-warmup-") as folder:
        store = Store(Path(folder))
        tasks = [
            task
            for model in models
            for task in plan(
                RunRequest(
                    methods, datasets, labeled=LABELED, unlabeled=UNLABELED, model=model, jobs=jobs
                ),
                store=store,
                notice=tell,
            )
        ]
        return run_shown(tasks, folder, compiling, jobs=jobs)
