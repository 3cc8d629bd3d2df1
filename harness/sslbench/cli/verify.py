"""``sslbench verify``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import JOBS, SECONDS, STORE, shared
from sslbench.cli.text import checked_registry, counted, echo
from sslbench.engine.errors import UserError
from sslbench.engine.variables import processors
from sslbench.plugins import registry

if TYPE_CHECKING:
    from sslbench.experiment.planning.task import RunTask
    from sslbench.experiment.records.record import RunRecord
    from sslbench.experiment.records.store import Store

#: outcomes of replays that bear a record out
AS_RECORDED = frozenset({"same", "close"})


@click.command("verify")
@click.argument("runs", nargs=-1)
@STORE
@click.option("--stale", is_flag=True, help="All records of earlier versions of the code.")
@click.option(
    "--canaries",
    is_flag=True,
    help="The cheapest record, a stale one first, per method, model, featurizer, dataset family.",
)
@click.option(
    "--within",
    type=SECONDS,
    metavar="SECONDS",
    help="Leave out records whose run took more CPU seconds.",
)
@JOBS
@shared("timeout")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Replay RUNS on today's code and compare the predictions, bit for bit.

    RUNS: run ids or unique prefixes; none = those that --stale or --canaries selects. Nothing is
    stored. On another kind of processor than that of the record, last bits may differ: the line of
    a difference says so, and a model may declare how many labels may differ then ("close").
    Exit status: 0 all the same or close, 1 some differ or cannot be replayed.
    """
    from sslbench.experiment.records.store import Store

    checked_registry()
    records = _selected(Store(given["store"]), given)
    outcomes: Counter[str] = Counter()
    for record, outcome, detail in replays(records, given["jobs"], given["timeout"]):
        outcomes[outcome] += 1
        echo(replay_line(record, outcome, detail))
    text = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
    tell(f"{counted(len(records), 'record')}: {text}" if text else "no record to verify")
    ctx.exit(1 if set(outcomes) - AS_RECORDED else 0)


def _selected(store: Store, given: dict[str, Any]) -> list[RunRecord]:
    """The records to replay, cheapest first."""
    from sslbench.experiment.checks.replay import canaries
    from sslbench.experiment.identity import stale_runs

    if given["runs"]:
        records = [store.find(name) for name in given["runs"]]
    elif given["canaries"]:
        records = canaries(store.records(), registry())
    elif given["stale"]:
        records = [record for record in store.records() if record.status == "ok"]
        stale = stale_runs(records, registry())
        records = [record for record in records if record.run_id in stale]
    else:
        raise UserError("nothing to verify", hint="name runs, or give --stale or --canaries")
    limit = given["within"]
    if limit is not None:
        records = [record for record in records if (record.cpu_s or record.wall_s) <= limit]
    return sorted(records, key=lambda record: record.cpu_s or record.wall_s)


def replay_line(record: RunRecord, outcome: str, detail: str) -> str:
    """The outcome of a replay in one line."""
    spec = record.spec
    return (
        f"{record.run_id}  {outcome:<9}  {spec.method} on {spec.dataset}, labeled"
        f" {spec.protocol.labeled}, seed {spec.protocol.seed}" + (f": {detail}" if detail else "")
    )


def replays(
    records: list[RunRecord], jobs: int, timeout: float | None
) -> Iterator[tuple[RunRecord, str, str]]:
    """(record, outcome, detail) of each record, as they come; refused, or as `replay.outcome`."""

    from sslbench.experiment.checks.replay import outcome, replay_task
    from sslbench.experiment.execute.pool import run_all
    from sslbench.isolation.start import isolated

    threads = max(1, processors() // jobs)
    originals = {record.run_id: record for record in records}
    refused: list[tuple[RunRecord, str, str]] = []

    def tasks() -> Iterator[RunTask]:
        for record in originals.values():
            try:
                yield replay_task(record, registry(), threads)
            except UserError as error:
                refused.append((record, "refused", str(error)))

    for again in run_all(tasks(), isolated, jobs=jobs, threads=threads, timeout=timeout):
        yield from refused
        refused.clear()
        record = originals[again.run_id]
        yield record, *outcome(record, again, registry())
    yield from refused
