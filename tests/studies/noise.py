"""Curves of noise: what methods make of weak labels that are wrong on purpose.

``PYTHONPATH=tests python -m studies.noise conll03 FOLDER`` draws gold sentences of the train of a
registered dataset, gives its other sentences the gold labels as weak ones, damages a share of them,
and trains on both. FOLDER gets the files and the runs; docs/weak.md has the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pandas as pd

import sslbench
from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.planning.task import load_registered
from sslbench.plugins import registry

METHODS = ("supervised", "weak_vote", "fuzzy_crf", "noisy_channel", "weak_soft")
KINDS = ("missing", "type", "token")
STREAM = 0x6E6F6973


def damaged(
    labels: Sequence[str], kind: str, share: float, names: Sequence[str], rng: np.random.Generator
) -> list[str]:
    """Return labels of which a share is wrong.

    kind: "missing": so many chunks are O; "type": they have another type; "token": so many tokens
    have another label of `names`, the labels of the corpus. Chunks are those of IOB2.
    """
    wrong = list(labels)
    if kind == "token":
        for t in np.flatnonzero(rng.random(len(labels)) < share).tolist():
            others = [name for name in names if name != labels[t]]
            wrong[t] = others[rng.integers(len(others))]
        return wrong
    types = sorted({name[2:] for name in names if name != "O"})
    for first in [t for t, label in enumerate(labels) if label.startswith("B-")]:
        last = first + 1
        while last < len(labels) and labels[last].startswith("I-"):
            last += 1
        if rng.random() >= share:
            continue
        others = [name for name in types if name != labels[first][2:]]
        other = others[rng.integers(len(others))] if kind == "type" else ""
        for t in range(first, last):
            wrong[t] = f"{labels[t][:2]}{other}" if other else "O"
    return wrong


@dataclass(frozen=True)
class Sample:
    """Gold sentences, and others for weak labels."""

    dataset: Dataset
    labeled: int
    text: int

    def write(self, folder: Path, seed: int, kind: str, share: float) -> None:
        """Write train.txt, unlabeled.txt and test.txt."""
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng([seed, STREAM])
        train, names = self.dataset.splits["train"], self._labels
        drawn = rng.permutation(train.n_sentences)[: self.labeled + self.text]
        gold, text = train.select(drawn[: self.labeled]), train.select(drawn[self.labeled :])
        test = self.dataset.splits["test"]
        noise = np.random.default_rng([seed, STREAM, KINDS.index(kind)])
        weak = [
            damaged(part.column("label").strings(), kind, share, names, noise)
            for part in (gold, text)
        ]
        words, labels = gold.column("word").strings(), gold.column("label").strings()
        write(folder / "train.txt", gold, [words, labels, weak[0]])
        write(folder / "unlabeled.txt", text, [text.column("word").strings(), weak[1]])
        write(folder / "test.txt", test, [test.column(n).strings() for n in ("word", "label")])

    @property
    def _labels(self) -> list[str]:
        column = self.dataset.splits["train"].column("label")
        return [column.vocabulary.strings[code] for code in np.unique(column.codes)]


def write(path: Path, corpus: Corpus, columns: Sequence[Sequence[str]]) -> None:
    """Write columns of text, with a blank line after each sentence."""
    lines = ["\t".join(row) + "\n" for row in zip(*columns, strict=True)]
    for end in corpus.offsets[1:].tolist():
        lines[end - 1] += "\n"
    path.write_text("".join(lines), encoding="utf-8")


def scores(
    sample: Sample,
    folder: Path,
    shares: Sequence[int],
    kinds: Sequence[str],
    seeds: int,
    methods: Sequence[str] = METHODS,
) -> pd.DataFrame:
    """Return the test scores in points: a row per kind, share, method and seed."""
    rows = []
    for kind in kinds:
        for share in shares:
            for seed in range(seeds):
                data = folder / f"{kind}-{share}-{seed}"
                sample.write(data, seed, kind, share / 100)
                records = sslbench.run(
                    method=methods,
                    data=str(data),
                    columns=("word", "label", "weak:noise"),
                    store=str(folder / "runs"),
                )
                for each in records:
                    score = each.metrics.get("test", {}).get(each.primary_metric)
                    if score is None:
                        raise UserError(f"{each.method} on {data}: {each.error}")
                    rows.append((kind, share, each.method, seed, 100 * score))
    return pd.DataFrame(rows, columns=["kind", "share", "method", "seed", "score"])


@click.command()
@click.argument("name")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--labeled", default=100, help="Gold sentences.")
@click.option("--text", default=500, help="Sentences with weak labels.")
@click.option("--shares", default="0,25,50,75", help="Per cent of wrong labels.")
@click.option("--kinds", default="missing,type")
@click.option("--seeds", default=3)
@click.option("--method", "methods", multiple=True, default=METHODS)
def main(
    name: str,
    folder: Path,
    labeled: int,
    text: int,
    shares: str,
    kinds: str,
    seeds: int,
    methods: Sequence[str],
) -> None:
    """Print a table of each kind of noise: mean scores, a row per method."""
    home = DataHome(None, dataset=name)
    dataset = load_registered(registry().dataset(name), home, {}, 0)
    wanted = [int(each) for each in shares.split(",")]
    sample = Sample(dataset, labeled, text)
    table = scores(sample, folder, wanted, kinds.split(","), seeds, methods)
    for kind, part in table.groupby("kind", sort=False):
        means = part.pivot_table("score", "method", "share").loc[list(methods)]
        print(f"\n| {kind} | " + " | ".join(f"{share} %" for share in means.columns) + " |")
        print("|---|" + "---:|" * len(means.columns))
        for method, row in means.iterrows():
            print(f"| {method} | " + " | ".join(f"{value:.2f}" for value in row) + " |")


if __name__ == "__main__":
    main()
