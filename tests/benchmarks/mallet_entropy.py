"""MALLET's entropy regularization (Jiao et al. 2006) on our attributes of genetag_jiao.

    python tests/benchmarks/mallet_entropy.py write FOLDER [SEED]    labeled, unlabeled, test
    javac -cp CLASSES -d FOLDER tests/benchmarks/MalletEntropy.java
    java -cp CLASSES:FOLDER MalletEntropy FOLDER GAMMA TRAININGS    writes FOLDER/test.GAMMA
    python tests/benchmarks/mallet_entropy.py score FOLDER           a line for each gamma

CLASSES: MALLET (github.com/mimno/Mallet) and the library hppc. A line of a file is a token: its
label, then its attributes and their values, those of the labeled sentences alone. All attributes
have a weight with each label, and each pair of adjacent labels has one. MALLET ends at a relative
change of 1e-4, far from the optimum: TRAININGS follow each other, each from where the last ended.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import ours

from sslbench.engine.features import Attributes
from sslbench.experiment.data import DataHome, Dataset
from sslbench.plugins import registry

NAME = "genetag_jiao"
PARTS = {"labeled": "train", "unlabeled": "transductive", "test": "test"}


def write(folder: Path, seed: int) -> None:
    """The sets A, B and E of a draw."""
    info = registry().dataset(NAME)
    sets: Dataset = info.load()(DataHome(offline=True), seed=seed)
    crf, _ = ours.prepare(sets.splits["train"], registry().featurizer(info.featurizer).load()())
    folder.mkdir(exist_ok=True)
    for name, split in PARTS.items():
        corpus = sets.splits[split]
        labels = corpus.column("label").strings()
        lines = [
            " ".join([label, *row]) + "\n"
            for label, row in zip(labels, rows(crf.encode(corpus).attributes), strict=True)
        ]
        ends = zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)
        text = "\n".join("".join(lines[first:last]) for first, last in ends)
        (folder / name).write_text(text + "\n")


def rows(attributes: Attributes) -> Iterator[list[str]]:
    """Of each token, NAME:VALUE of its attributes that are not 0."""
    dense = attributes.dense
    assert dense is not None
    for node, real in zip(attributes.node.T.tolist(), dense.tolist(), strict=True):
        names = [f"a{i}:1" for i in node if i >= 0]
        yield names + [f"d{i}:{value!r}" for i, value in enumerate(real) if value]


def score(folder: Path) -> None:
    """Precision, recall and F1 of each file of predictions."""
    tokens = (folder / "test").read_text().splitlines()
    starts = [i for i, line in enumerate(tokens) if not line]
    gold = chunks([line.split(" ")[0] for line in tokens])
    for file in sorted(folder.glob("test.*")):
        found = file.read_text().split()
        for place in starts:  # as in the file of the test
            found.insert(place, "")
        mine = chunks(found)
        right = len(gold & mine)
        precision, recall = right / max(len(mine), 1), right / len(gold)
        f1 = 2 * right / (len(gold) + len(mine))
        print(f"{file.name}: {precision:.3f} {recall:.3f} {f1:.3f}, {len(mine)} predicted")


def chunks(labels: list[str]) -> set[tuple[int, int]]:
    """Where names begin and end, labels being IOB2; "" between sentences."""
    return set(_chunks([*labels, ""]))


def _chunks(labels: list[str]) -> Iterator[tuple[int, int]]:
    first = None
    for place, label in enumerate(labels):
        if first is not None and label[:1] != "I":
            yield first, place
            first = None
        if label[:1] == "B" or (label[:1] == "I" and first is None):
            first = place


if __name__ == "__main__":
    command, name, *rest = sys.argv[1:]
    if command == "write":
        write(Path(name), int(rest[0]) if rest else 0)
    else:
        score(Path(name))
