"""``sslbench train``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import PATH, request_options
from sslbench.cli.text import checked_registry, counted, percentages
from sslbench.engine.errors import UserError
from sslbench.experiment.execute.startup import use_threads
from sslbench.experiment.request.request import TrainRequest

if TYPE_CHECKING:
    from sslbench.experiment.run.saved import TrainedTagger


@click.command("train")
@request_options(
    TrainRequest,
    method={"multiple": False},
    dataset={"multiple": False},
    threads={"help": "Default: all cores."},
)
@click.option(
    "--save",
    "target",
    type=PATH,
    required=True,
    metavar="MODEL",
    help="File to write the tagger to.",
)
def command(**given: Any) -> None:
    """Train a method on labeled sentences and save the tagger, for `sslbench tag`.

    With --data, all sentences of the train file are used: none are held out for a test.
    """

    target: Path = given.pop("target")
    given["threads"] = use_threads(given["threads"])
    checked_registry()
    if target.is_dir():
        raise UserError("is a folder", file=target, hint="give --save the name of a file")
    from sslbench.experiment.run.saved import train_tagger

    request = TrainRequest(**{**given, "dataset": given["dataset"] or ()})
    tagger = train_tagger(request, notice=tell)
    tagger.save(target)
    _report(target, tagger)


def _report(target: Path, tagger: TrainedTagger) -> None:
    """A line with the scores on each of dev and test, and one on the training."""
    from sslbench.experiment.checks.guard import guard_line

    trained = tagger.trained
    method = trained.sample.spec.method
    guarded = guard_line(trained.run.trace, method)
    if guarded is not None:
        tell(f"{guarded} (--no-guard keeps {method})")
    for line in trained.warnings:
        tell(f"warning: {line}")
    for name, metrics in tagger.scores.items():
        size = counted(trained.sample.dataset.splits[name].n_sentences, "sentence")
        tell(f"{name}, {size}: {percentages(metrics)}")
    labeled, unlabeled = trained.problem.labeled, trained.problem.unlabeled
    guard = trained.run.trace.get("guard", {})
    saved = f"the tagger of {guard['baseline']}" if guard.get("kept") == "baseline" else "it"
    tell(
        f"{method} trained on {labeled.n_sentences} labeled and"
        f" {unlabeled.n_sentences} unlabeled sentences in"
        f" {tagger.session.clock.timing['fit']:.1f} s; {saved} is saved to {target}"
    )
