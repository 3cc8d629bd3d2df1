"""``sslbench compare``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from sslbench.cli.text import echo
from sslbench.errors import UserError

if TYPE_CHECKING:
    from sslbench.experiment.record import RunRecord


@click.command("compare")
@click.argument("run_a")
@click.argument("run_b")
@click.option("--store", default="runs", show_default=True, help="Folder of the run records.")
@click.option("--metric", help="Default: the primary metric of the first run.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
def command(run_a: str, run_b: str, store: str, metric: str | None, form: str) -> None:
    """Test the difference between the taggers of two runs, sentence by sentence.

    RUN_A, RUN_B: run ids, unique prefixes of ids, or record files. The difference is A - B. Whether
    the methods differ is a question for several draws: sslbench leaderboard.
    """
    from dataclasses import asdict

    from sslbench.cli.messages import tell
    from sslbench.experiment.metrics import SentenceCounts, metrics_from_counts
    from sslbench.experiment.store import Store
    from sslbench.report.significance import compare_taggers, count_table

    runs = [Store(store).find(name) for name in (run_a, run_b)]
    _check(*runs)
    for line in _differences(*runs):
        tell(f"warning: {line}")
    name = metric or runs[0].primary_metric
    ours, theirs = (count_table([run]) for run in runs)
    n = ours.rows.shape[1]
    paired = compare_taggers(ours, theirs, name)
    scores = [metrics_from_counts(SentenceCounts.from_lists(r.counts["test"]))[name] for r in runs]
    if form == "json":
        ids = [run.run_id for run in runs]
        about = {"runs": ids, "metric": name, "scores": scores, "question": "these taggers"}
        echo(json.dumps({**about, **asdict(paired), "n_sentences": n, "n_draws": 1}))
        return
    for label, run, value in zip("AB", runs, scores, strict=True):
        echo(f"{label}  {run.run_id}  {run.method} on {run.dataset}: {name} {100 * value:.2f}")
    echo(
        f"A - B: {100 * paired.difference:+.2f}, these taggers: 95 % interval"
        f" {100 * paired.low:+.2f} to {100 * paired.high:+.2f}, p = {paired.p_value:.4f}"
        f" ({n} sentences)"
    )
    echo("the methods: one draw, the spread between draws is unknown (sslbench leaderboard)")


def _check(a: RunRecord, b: RunRecord) -> None:
    """UserError unless both runs were successful on the same test sentences."""
    for run in (a, b):
        if run.status != "ok" or "test" not in run.counts:
            raise UserError(f"run {run.run_id} ({run.method}) is {run.status}: nothing to compare")
    if a.data.get("test_sha256") != b.data.get("test_sha256"):
        raise UserError(
            f"runs {a.run_id} and {b.run_id} have different test sets",
            hint="a paired test needs the same sentences",
        )


def _differences(a: RunRecord, b: RunRecord) -> list[str]:
    """Differences besides the method, which may also explain the difference of the scores."""
    sides = {
        "datasets": (a.dataset, b.dataset),
        "featurizers": (a.featurizer, b.featurizer),
        "models": (a.model, b.model),
        "seeds": (a.spec.protocol.seed, b.spec.protocol.seed),
        "protocols": (a.spec.protocol.describe(), b.spec.protocol.describe()),
    }
    lines = [f"the {what} differ: {x} and {y}" for what, (x, y) in sides.items() if x != y]
    components = sorted(name for name in {*a.code, *b.code} if a.code.get(name) != b.code.get(name))
    other = [name for name in components if name != "method" or a.method == b.method]
    if other:
        lines.append(f"the code differs: {', '.join(other)}")
    return lines
