"""Random tagging problems whose labels follow the word, for graph methods."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from sslbench.engine.corpus import Column, CorpusShards, Vocabulary
from sslbench.engine.crf import ChainModel
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.inputs.problem import Problem, relabeled
from support.graph_oracle import WORDS, he2013_excludes, random_sentences
from support.texts import corpus_of

LABELS = ("A", "B", "C", "P")
OPTIONS: dict[str, Any] = {"neighbors": 4, "symmetry": "mutual"}


def problem_of(sample: list[list[str]], gold: list[str], raw: list[list[str]]) -> Problem:
    """A tagging problem; the unlabeled sentences come in two shards."""
    text = corpus_of([*sample, *raw])
    labeled_text = text.select(np.arange(len(sample))).with_column(
        "label", Column(Vocabulary(LABELS), [LABELS.index(label) for label in gold])
    )
    labeled = relabeled(labeled_text)
    labels = tuple(labeled.column("label").vocabulary.strings)
    rest = text.select(np.arange(len(sample), text.n_sentences))
    shards = CorpusShards(rest, rest.n_tokens // 2 + 1)
    featurizer = TemplateFeaturizer(["word[0]", "word[-1]"])
    return Problem("tagging", None, labels, labeled, shards, None, featurizer, ChainModel())


def sentences(seed: int, n: int, words: list[str] = WORDS) -> list[list[str]]:
    return [sentence for sentence in random_sentences(seed, n, words) if sentence]


def random_problem(seed: int, marks: tuple[str, ...] = (",", ".")) -> Problem:
    """Labels follow the word for the most part; of the punctuation, only `marks` are labeled."""
    rng = np.random.default_rng(seed)
    plain = [word for word in WORDS if not he2013_excludes(word)]
    labeled = sentences(seed, 25, [*marks, *plain])
    gold = [
        "P"
        if he2013_excludes(word) and rng.random() < 0.9
        else "ABC"[int(rng.integers(0, 3))]
        if rng.random() < 0.2
        else "ABC"[len(word) % 3]
        for word in itertools.chain.from_iterable(labeled)
    ]
    return problem_of(labeled, gold, sentences(seed + 1, 60))
