"""Test scores against CPU seconds of training, beside the five trainers of CRFsuite.

    python tests/benchmarks/scores.py SENTENCES DATASET[:FEATURIZER] ...

0 SENTENCES = all of train. The same attributes and pairs for both sides (node templates of the
featurizer, observed pairs). A trainer is run anew for each number of rounds or tolerance. The third
column is the first time within CLOSE of the score of CRFsuite's L-BFGS at its end. CPU seconds of
this process, which has one thread: from attributes to a model; reading, attributes as strings and
tagging are left out.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import ours
import peer
import peer_features

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF, HardLabels, TrainingParams
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import I32
from sslbench.experiment.data import Dataset
from sslbench.experiment.metrics import score

CLOSE = 0.001
TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
#: by trainer of CRFsuite its settings, and rounds
PEERS: dict[str, tuple[dict[str, float], tuple[int, ...]]] = {
    "ap": ({}, (1, 2, 5, 10, 20)),
    "pa": ({}, (1, 2, 5, 10, 20)),
    "arow": ({}, (1, 2, 5, 10, 20)),
    "l2sgd": ({"c2": peer.PARAMETERS["c2"]}, (2, 5, 10, 30)),
    "lbfgs": (peer.PARAMETERS, (10, 20, 40, 500)),
}
NAMES = {
    "ap": "averaged perceptron",
    "pa": "passive-aggressive",
    "arow": "AROW",
    "l2sgd": "l2sgd",
    "lbfgs": "L-BFGS",
}


@dataclass(frozen=True)
class Task:
    """Labeled text, a test and its metric, encoded for both sides."""

    dataset: Dataset
    crf: ChainCRF
    train: Corpus
    codes: I32
    test: Corpus
    featurizer: TemplateFeaturizer

    def score(self, labels: list[str]) -> float:
        """The metric of the dataset."""
        names = sorted(set(labels))
        codes = {name: code for code, name in enumerate(names)}
        found = np.array([codes[label] for label in labels])
        gold = self.test.column("label")
        scores = score(
            self.dataset.task,
            (tuple(gold.vocabulary.strings), gold.codes),
            (tuple(names), found),
            self.test.offsets,
            encoding=self.dataset.encoding,
        )
        return scores.metrics[self.dataset.metric]


def task(word: str, sentences: int) -> Task:
    """Train, cut to so many sentences, and the test of a dataset; `word` is DATASET[:FEATURES]."""
    name, *features = word.split(":")
    train, featurizer = peer_features.problem(":".join([name, str(sentences), *features]))
    dataset = peer_features.dataset(name)
    crf, codes = ours.prepare(train, featurizer)
    return Task(dataset, crf, train, codes, dataset.splits["test"], featurizer)


Point = tuple[float, float]  # CPU seconds, score


def our_points(task: Task) -> Iterator[Point]:
    """Trainings to each tolerance."""
    for ftol in TOLERANCES:
        crf, _ = ours.prepare(task.train, task.featurizer)
        began = time.process_time()
        params = TrainingParams(sigma2=ours.SIGMA2, ftol=ftol)
        crf.train([(crf.encode(task.train), HardLabels(task.codes))], params)
        seconds = time.process_time() - began
        decoded = crf.decode(crf.encode(task.test))
        yield seconds, task.score([crf.labels[code] for code in decoded])


def peer_points(task: Task, algorithm: str) -> Iterator[Point]:
    """Trainings of so many rounds."""
    settings, rounds = PEERS[algorithm]
    rows = list(peer_features.rows(task.crf, task.test))
    for number in rounds:
        trainer = peer_features.strings(task.crf, task.train, task.codes)
        trainer.select(algorithm)
        trainer.set_params({**settings, "max_iterations": number})
        with tempfile.NamedTemporaryFile() as model:
            began = time.process_time()
            trainer.train(model.name)
            seconds = time.process_time() - began
            tagger = peer.tagger(model.name)
            yield seconds, task.score([label for row in rows for label in tagger.tag(row)])


def main() -> None:
    """A table in Markdown for each dataset."""
    sentences, *words = sys.argv[1:]
    for word in words:
        problem = task(word, int(sentences))
        ours.train(*peer_features.warm_up(problem.train, problem.featurizer))
        made: dict[str, Callable[[], Iterator[Point]]] = {
            f"CRFsuite, {NAMES[each]}": partial(peer_points, problem, each) for each in PEERS
        }
        points = {name: list(make()) for name, make in made.items()}
        points = {"sslbench": list(our_points(problem)), **points}
        print(f"\n{word}: {problem.train.n_sentences:,} sentences, {problem.dataset.metric}\n")
        print_table(points, points["CRFsuite, L-BFGS"][-1][1])


def print_table(points: dict[str, list[Point]], end: float) -> None:
    """A line for each trainer; `end`: the score of the optimum."""
    print(f"| trainer | CPU seconds, score | to {100 * (end - CLOSE):.2f}, s | ratio |")
    print("|---|---|---:|---:|")
    ended = {name: time_to(each, end - CLOSE) for name, each in points.items()}
    first = next(iter(ended.values()))
    for name, each in points.items():
        pairs = "; ".join(f"{seconds:.3g} {100 * value:.2f}" for seconds, value in each)
        took = ended[name]
        last = ("", "") if took is None else (f"{took:.3g}", f"{took / first:.1f}" if first else "")
        print(f"| {name} | {pairs} | {last[0]} | {last[1]} |", flush=True)


def time_to(points: list[Point], target: float) -> float | None:
    """The least CPU seconds with so high a score; None if there are none."""
    return min((seconds for seconds, value in points if value >= target), default=None)


if __name__ == "__main__":
    main()
