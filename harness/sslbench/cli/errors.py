"""``sslbench errors``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import click

from sslbench.cli.options import STORE, format_option
from sslbench.cli.text import counted, echo, table
from sslbench.engine.errors import UserError
from sslbench.experiment.data import Dataset
from sslbench.plugins import registry

if TYPE_CHECKING:
    from sslbench.engine.corpus import Corpus
    from sslbench.engine.corpus.encodings import Scheme
    from sslbench.experiment.records.record import RunRecord
    from sslbench.report.patterns import Pattern


@click.command("errors")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN]")
@STORE
@click.option("--split", type=click.Choice(["dev", "test"]), default="test", show_default=True)
@click.option(
    "--top", type=click.IntRange(min=1), default=15, show_default=True, help="Rows per table."
)
@format_option(["table", "json"])
def command(runs: tuple[str, ...], store: str, split: str, top: int, form: str) -> None:
    """Show the errors of a run, or of two runs side by side.

    RUN: run ids, unique prefixes of ids, or record files. First the types of words or chunks that
    are missed, then the confusions of types. The files of the dataset are needed.
    """
    from dataclasses import asdict

    from sslbench.experiment.records.store import Store
    from sslbench.report.patterns import patterns

    if len(runs) > 2:
        raise UserError(f"{len(runs)} runs", hint="give one, or two to compare")
    records = [Store(store).find(name) for name in runs]
    dataset, corpus = _gold(records, split)
    gold = corpus.column("label")
    systems = [
        (r.predictions[split].labels, r.predictions[split].codes(corpus.n_tokens)) for r in records
    ]
    rows = patterns(
        (gold.vocabulary.strings, gold.codes),
        systems,
        corpus.offsets,
        None if dataset.task == "tagging" else cast("Scheme | None", dataset.encoding),
    )
    if form == "json":
        ids = [record.run_id for record in records]
        tree = {"runs": ids, "split": split, "patterns": [asdict(row) for row in rows]}
        echo(json.dumps(tree, indent=1))
        return
    for letter, record in zip("AB", records, strict=False):
        echo(f"{letter}  {record.run_id}  {record.method} on {record.dataset}")
    _show("missed", [row for row in rows if row.predicted is None], top)
    _show("confused", [row for row in rows if row.predicted is not None], top)


def _gold(records: list[RunRecord], split: str) -> tuple[Dataset, Corpus]:
    """The dataset of the runs and the split; UserError unless all runs predicted it."""
    from sslbench.experiment.identity import corpus_hash
    from sslbench.experiment.inputs.protocol import folds_in_order
    from sslbench.experiment.planning.task import RunTask, load_dataset

    for record in records:
        if split not in record.predictions:
            hint = "records of earlier versions have none; run it again"
            raise UserError(f"run {record.run_id} has no predictions of {split}", hint=hint)
    if len({record.data.get("test_sha256") for record in records}) > 1:
        raise UserError("the runs have different test sets", hint="give runs on one dataset")
    first = records[0]
    run_task = RunTask(first.spec, first.primary_metric, first.data.get("path"))
    dataset = load_dataset(run_task, registry())
    test = dataset.splits.get("test")
    if first.spec.protocol.folds:
        test = dataset.splits["train"].select(folds_in_order(dataset, first.spec.protocol))
    corpus = test if split == "test" else dataset.splits[split]
    if test is None or corpus is None or corpus_hash(test) != first.data["test_sha256"]:
        raise UserError(
            f"dataset {first.dataset} is not the one that run {first.run_id} was tested on",
            hint="run it again",
        )
    return dataset, corpus


def _show(title: str, rows: list[Pattern], top: int) -> None:
    if not rows:
        return
    total = [sum(errors) for errors in zip(*(row.errors for row in rows), strict=True)]
    echo(f"\n{title}: {', '.join(map(str, total))} in all")
    names = ["gold", "predicted", "of"] if rows[0].predicted else ["gold", "of"]
    letters = list("AB")[: len(total)]
    lines = [(*names, *letters, *(["change"] if len(total) == 2 else []))]
    for row in rows[:top]:
        predicted = [row.predicted] if row.predicted else []
        change = [f"{row.errors[1] - row.errors[0]:+d}"] if len(total) == 2 else []
        lines.append((row.gold, *predicted, str(row.units), *map(str, row.errors), *change))
    echo(table(lines))
    if len(rows) > top:
        echo(f"  and {counted(len(rows) - top, 'more type')} (--top)")
