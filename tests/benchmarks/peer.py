"""python-crfsuite on a CoNLL file: attribute strings, training with its log, tagging.

Imports nothing of sslbench, so that the memory of `python peer.py` is the peer's own.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pycrfsuite
from traces import Trace, peak_mb

Sentence = list[list[str]]  # columns of one sentence: word, pos, ..., label
Conjunction = tuple[tuple[int, int], ...]  # (offset, column) of each part
MACRO = re.compile(r"%x\[(-?\d+),(\d+)\]")

#: c2 |w|^2 is our |w|^2 / (2 sigma2) for sigma2 = 0.5
PARAMETERS = {"c1": 0.0, "c2": 1.0, "feature.possible_transitions": True}


def read_sentences(path: str) -> Iterator[Sentence]:
    """The sentences of a file with space-separated columns."""
    rows: list[list[str]] = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                rows.append(line.split())
            elif rows:
                yield [list(column) for column in zip(*rows, strict=True)]
                rows = []
    if rows:
        yield [list(column) for column in zip(*rows, strict=True)]


def read_templates(path: str) -> list[Conjunction]:
    """The unigram templates of a CRF++ file."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [
        tuple((int(offset), int(column)) for offset, column in MACRO.findall(line))
        for line in lines
        if line.startswith("U")
    ]


def attributes(sentence: Sentence, templates: Sequence[Conjunction]) -> list[list[str]]:
    """The attribute strings of every token, e.g. "5=of|the"; pads read _B-1, _E+1.

    Column by column rather than token by token: the fastest plain Python that was found.
    """
    reach = max((abs(offset) for atoms in templates for offset, _ in atoms), default=0)
    left = [f"_B-{k}" for k in range(reach, 0, -1)]
    right = [f"_E+{k}" for k in range(1, reach + 1)]
    columns = [[*left, *column, *right] for column in sentence]
    n = len(sentence[0])
    slots = []
    for number, atoms in enumerate(templates):
        parts = [columns[column][reach + offset :][:n] for offset, column in atoms]
        if len(parts) == 1:
            slots.append([f"{number}={value}" for value in parts[0]])
        elif parts:
            joined = map("|".join, zip(*parts, strict=True))
            slots.append([f"{number}={value}" for value in joined])
        else:
            slots.append(["bias"] * n)
    return [list(token) for token in zip(*slots, strict=True)]


class Trainer(pycrfsuite.Trainer):  # type: ignore[misc]
    """Notes the time of every iteration, and prints nothing."""

    def __init__(self) -> None:
        super().__init__(verbose=False)
        self.times: list[float] = []

    def message(self, message: str) -> None:
        super().message(message)
        if message.startswith("Seconds required for this iteration"):
            self.times.append(time.perf_counter())


def load(sentences: Iterable[Sentence], templates: Sequence[Conjunction]) -> Trainer:
    """A trainer that holds the attributes; no string outlives its sentence."""
    trainer = Trainer()
    for sentence in sentences:
        trainer.append(attributes(sentence, templates), sentence[-1])
    return trainer


def train(trainer: Trainer, model: str, iterations: int | None = None) -> Trace:
    """Train with L-BFGS to its own stop, or for so many iterations."""
    limit = {} if iterations is None else {"max_iterations": iterations}
    trainer.select("lbfgs")
    trainer.set_params({**PARAMETERS, **limit})
    began = time.perf_counter()
    trainer.train(model)
    log = trainer.logparser
    losses = [step["loss"] for step in log.iterations]
    trials = [step["linesearch_trials"] for step in log.iterations]
    seconds = [moment - began for moment in trainer.times]
    # By the clock on the wall, as for us; the log counts CPU seconds. The first iteration holds
    # what comes before it too.
    per_evaluation = (seconds[-1] - seconds[0]) / max(1, sum(trials[1:]))
    points = list(zip(seconds, losses, strict=True))
    return Trace(points, per_evaluation, log.featgen_num_features, sum(trials) + 1)


def tagger(model: str) -> pycrfsuite.Tagger:
    """The model, opened."""
    opened = pycrfsuite.Tagger()
    opened.open(model)
    return opened


def main() -> None:
    """Child process: train on FILE with TEMPLATES for ITERATIONS; print the peak memory."""
    file, templates, iterations, model = sys.argv[1:5]
    trainer = load(read_sentences(file), read_templates(templates))
    train(trainer, model, int(iterations))
    print(json.dumps({"peak_mb": peak_mb()}))


if __name__ == "__main__":
    main()
