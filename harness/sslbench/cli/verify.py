"""``sslbench verify``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.options import SECONDS
from sslbench.cli.text import counted, echo, warn_of_problems
from sslbench.engine.errors import UserError

if TYPE_CHECKING:
    from sslbench.experiment.identity.staleness import Verification
    from sslbench.experiment.records.record import RunRecord
    from sslbench.experiment.records.store import Store
    from sslbench.experiment.run.training import RunTask


@click.command("verify")
@click.argument("runs", nargs=-1)
@click.option("--store", default="runs", show_default=True, help="Folder of the run records.")
@click.option("--stale", is_flag=True, help="All records that today's code has not made.")
@click.option(
    "--canaries",
    is_flag=True,
    help="Of these, the cheapest of each method, model, featurizer, dataset family and code.",
)
@click.option(
    "--within",
    type=SECONDS,
    metavar="SECONDS",
    help="Leave out records whose run took more CPU seconds.",
)
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    metavar="TREE",
    help="Checkout of earlier code, replayed where today's differs: is it the processor?",
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="Replays at a time.")
@click.option("--timeout", type=SECONDS, help="Seconds per replay.")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Replay RUNS on today's code and compare the predictions, bit for bit.

    RUNS: run ids or unique prefixes; none = those that --stale or --canaries selects. Results are
    kept beside the records, so that tables show them as verified. A difference on another kind of
    processor than that of the record is printed, and not kept: it may be one of the last bits.
    With --reference, code that the record was made with or verified on is replayed, too: if it has
    today's predictions, today's code counts as the same. A record of schema 1 with the same
    predictions is replaced by that of the replay. Exit status: 0 all the same, 1 some differ or
    cannot be replayed.
    """
    from sslbench.cli.messages import plain_warnings, tell
    from sslbench.experiment.identity.reference import check_checkout
    from sslbench.experiment.records.store import Store
    from sslbench.plugins import registry

    warn_of_problems(registry())
    if given["reference"] is not None:
        check_checkout(given["reference"])
    store = Store(given["store"])
    with plain_warnings():
        records = _selected(store, given)
    if records:
        store.probe()
    outcomes: Counter[str] = Counter()
    for record, outcome, detail in _replays(records, store, given):
        outcomes[outcome] += 1
        spec = record.spec
        echo(
            f"{record.run_id}  {outcome:<9}  {spec.method} on {spec.dataset}, labeled"
            f" {spec.protocol.labeled}, seed {spec.protocol.seed}"
            + (f": {detail}" if detail else "")
        )
    text = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
    tell(f"{counted(len(records), 'record')}: {text}" if text else "no record to verify")
    ctx.exit(1 if set(outcomes) - {"same", "replaced"} else 0)


def _selected(store: Store, given: dict[str, Any]) -> list[RunRecord]:
    """The records to replay, cheapest first."""
    from sslbench.experiment.identity.replay import canaries
    from sslbench.experiment.identity.staleness import states
    from sslbench.plugins import registry

    if given["runs"]:
        records = [store.find(name) for name in given["runs"]]
    elif given["stale"] or given["canaries"]:
        everything = store.records()
        found = states(everything, store, registry())
        if given["canaries"]:
            records = canaries(everything, found, store, registry())
        else:
            records = [
                record
                for record in everything
                if found[record.run_id] not in ("current", "verified") and record.status == "ok"
            ]
    else:
        raise UserError("nothing to verify", hint="name runs, or give --stale or --canaries")
    limit = given["within"]
    if limit is not None:
        records = [record for record in records if (record.cpu_s or record.wall_s) <= limit]
    return sorted(records, key=lambda record: record.cpu_s or record.wall_s)


def _replays(
    records: list[RunRecord], store: Store, given: dict[str, Any]
) -> Iterator[tuple[RunRecord, str, str]]:
    """(record, outcome, detail) of each record; results are stored as they come."""
    import os

    from sslbench.experiment.execute.pool import run_all
    from sslbench.experiment.identity.replay import on_another_processor, replay_task, verification
    from sslbench.experiment.identity.staleness import save_verification
    from sslbench.experiment.records.record import SCHEMA
    from sslbench.isolation.start import isolated
    from sslbench.plugins import registry

    threads = max(1, (os.cpu_count() or 1) // given["jobs"])
    originals: dict[str, list[RunRecord]] = {}  # records of schema 1 may be of one run
    refused: list[tuple[RunRecord, str, str]] = []

    def tasks() -> Iterator[RunTask]:
        for record in records:
            try:
                task = replay_task(record, registry(), threads)
            except UserError as error:
                refused.append((record, "refused", str(error)))
                continue
            originals.setdefault(task.spec.run_id, []).append(record)
            yield task

    replays = run_all(
        tasks(), isolated, jobs=given["jobs"], threads=threads, timeout=given["timeout"]
    )
    for again in replays:
        yield from refused
        refused.clear()
        record = originals[again.run_id].pop(0)
        result = verification(record, again)
        detail = result.difference
        if again.status == "ok" and not result.same:
            result, detail = _of_processor(result, record, again, store, given["reference"])
        if again.status == "ok" and record.schema != SCHEMA and result.same:
            store.save(again)
            store.path(record.run_id).unlink(missing_ok=True)
            yield record, "replaced", f"by {again.run_id}"
            continue
        # On another kind of processor, a difference does not show that the code is another.
        counts = result.same or not on_another_processor(record, again)
        if again.status == "ok" and counts:
            save_verification(store, record, result)
        yield record, "same" if result.same else "different", detail
    yield from refused


def _of_processor(
    result: Verification, record: RunRecord, again: RunRecord, store: Store, tree: Path | None
) -> tuple[Verification, str]:
    """The result of a replay that differs, and its details: is it a difference of the processor?

    An earlier replay tells, or one of earlier code in `tree`.
    """
    from sslbench.experiment.identity.reference import replay_on
    from sslbench.experiment.identity.replay import as_before, compared

    known = as_before(store, record, again)
    if known is not None:
        return known, f"as an earlier replay on {known.processor}: {result.difference}"
    if tree is None:
        return result, result.difference
    try:
        reference = replay_on(tree, store, record, int(again.environment["threads"]))
        found = compared(store, record, again, reference)
    except UserError as error:  # the other replays go on
        return result, f"{result.difference}; {error}"
    return found, f"as {tree}, which differs here, too: {result.difference}"
