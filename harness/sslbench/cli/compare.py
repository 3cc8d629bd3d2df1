"""``sslbench compare``."""

from __future__ import annotations

import json

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import STORE, format_option
from sslbench.cli.text import echo


@click.command("compare")
@click.argument("run_a")
@click.argument("run_b")
@STORE
@click.option("--metric", help="Default: the primary metric of the first run.")
@format_option(["table", "json"])
def command(run_a: str, run_b: str, store: str, metric: str | None, form: str) -> None:
    """Test the difference between the taggers of two runs, sentence by sentence.

    RUN_A, RUN_B: run ids, unique prefixes of ids, or record files. The difference is A - B. Whether
    the methods differ is a question for several draws: sslbench leaderboard.
    """
    from sslbench.experiment.records.store import Store
    from sslbench.report.two_runs import compare_runs

    records = Store(store)
    runs = [records.find(name) for name in (run_a, run_b)]
    paired = compare_runs(*runs, metric=metric)
    for line in paired.warnings:
        tell(f"warning: {line}")
    if form == "json":
        about = {"runs": paired.runs, "metric": paired.metric, "scores": paired.scores}
        tested = {name: getattr(paired, name) for name in ("difference", "low", "high", "p_value")}
        sizes = {"n_sentences": paired.n_sentences, "n_draws": 1}
        echo(json.dumps({**about, "question": "these taggers", **tested, **sizes}))
        return
    for label, run, value in zip("AB", runs, paired.scores, strict=True):
        score = f"{paired.metric} {100 * value:.2f}"
        echo(f"{label}  {run.run_id}  {run.method} on {run.dataset}: {score}")
    echo(
        f"A - B: {100 * paired.difference:+.2f}, these taggers: 95 % interval"
        f" {100 * paired.low:+.2f} to {100 * paired.high:+.2f}, p = {paired.p_value:.4f}"
        f" ({paired.n_sentences} sentences)"
    )
    echo("the methods: one draw, the spread between draws is unknown (sslbench leaderboard)")
