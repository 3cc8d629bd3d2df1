"""``sslbench train``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.options import SEED, problem_options, request_of
from sslbench.cli.text import counted, percentages, warn_of_problems
from sslbench.errors import UserError

if TYPE_CHECKING:
    from sslbench.experiment.training import RunSetup, Trained


@click.command("train")
@click.option("--method", required=True, help="See sslbench list methods.")
@click.option("--dataset", help="Name of a dataset; or give --data.")
@problem_options
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), help="Default: all cores.")
@click.option(
    "--save",
    "target",
    type=click.Path(path_type=Path),
    required=True,
    metavar="MODEL",
    help="File to write the tagger to.",
)
def command(**given: Any) -> None:
    """Train a method on labeled sentences and save the tagger, for `sslbench tag`.

    With --data, all sentences of the train file are used: none are held out for a test.
    """
    from sslbench.experiment.execute.threads import use_threads
    from sslbench.plugins import registry

    given["threads"] = use_threads(given["threads"])
    warn_of_problems(registry())
    target: Path = given["target"]
    if target.is_dir():
        raise UserError("is a folder", file=target, hint="give --save the name of a file")
    setup, trained = _train(given)
    from sslbench.experiment.saved import save_tagger

    save_tagger(target, setup, trained)
    _report(target, setup, trained)


def _train(given: dict[str, Any]) -> tuple[RunSetup, Trained]:
    from sslbench.cli.messages import tell
    from sslbench.experiment.context import RunContext
    from sslbench.experiment.plan import plan
    from sslbench.experiment.training import RunSetup, train
    from sslbench.plugins import registry

    request = request_of(
        given,
        methods=(given["method"],),
        datasets=(given["dataset"],) if given["dataset"] else (),
        seeds=(given["seed"],),
        cut=False,
        quiet=False,
    )
    (run_task,) = plan(request, store=None, notice=tell)
    if run_task.skip_reason is not None:
        method, dataset = run_task.spec.method, run_task.spec.dataset
        raise UserError(
            f"{method} cannot be trained on {dataset}: it is {run_task.skip_reason}",
            hint=f"see sslbench show {method}",
        )
    timer = RunContext(threads=run_task.threads, quiet=False)
    setup = RunSetup.open(run_task, registry(), timer)
    return setup, train(setup)


def _report(target: Path, setup: RunSetup, trained: Trained) -> None:
    """A line with the scores on each of dev and test, and one on the training."""
    from sslbench.cli.messages import tell
    from sslbench.experiment.training import predict, score_labels

    dataset, tagger, problem = setup.dataset, trained.tagger, trained.problem
    for line in trained.warnings:
        tell(f"warning: {line}")
    for name in ("dev", "test"):
        if name in dataset.splits:
            corpus = dataset.splits[name]
            codes = predict(tagger, corpus)
            scores = score_labels(dataset.task, dataset.encoding, corpus, tagger, codes)
            size = counted(corpus.n_sentences, "sentence")
            tell(f"{name}, {size}: {percentages(scores.metrics)}")
    tell(
        f"{setup.spec.method} trained on {problem.labeled.n_sentences} labeled and"
        f" {problem.unlabeled.n_sentences} unlabeled sentences in"
        f" {setup.timer.timing['fit']:.1f} s; saved to {target}"
    )
