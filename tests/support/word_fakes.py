"""A made-up language of words: characters determine where a word begins and ends, and its tag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sslbench.engine.corpus import Corpus, CorpusShards, Shards, Vocabulary
from sslbench.engine.crf import ChainModel
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.inputs.problem import Problem, relabeled, without_labels
from sslbench_datasets.chinese.text import SegmentedText, characters

HEADS, TAILS, VERBS = "天地人山水火木金", "上下左右前后里外", "看听说走"


def sentence(rng: np.random.Generator) -> list[tuple[str, str]]:
    """Words and tags: nouns of two characters, names of three, verbs of one, numbers of any."""

    def any_of(characters: str, n: int) -> str:
        return "".join(rng.choice(list(characters), n))

    def noun() -> tuple[str, str]:
        kind = rng.integers(0, 3)
        if kind == 0:
            return any_of("0123456789", rng.integers(1, 5)), "CD"
        if kind == 1:
            return "大" + any_of(TAILS, 2), "NR"
        return any_of(HEADS, 1) + any_of(TAILS, 1), "NN"

    result = []
    for _ in range(rng.integers(1, 4)):
        result += [noun(), (any_of(VERBS, 1), "VV")]
    return [*result, ("。", "PU")]


def sentences(n: int, seed: int) -> list[list[tuple[str, str]]]:
    rng = np.random.default_rng(seed)
    return [sentence(rng) for _ in range(n)]


def as_words(sentences: Sequence[Sequence[tuple[str, str]]], *, tags: bool = True) -> SegmentedText:
    pairs = [pair for one in sentences for pair in one]
    return SegmentedText(
        [word for word, _ in pairs],
        [tag if tags else "" for _, tag in pairs],
        [len(one) for one in sentences],
    )


def splits(train: int, test: int, *, tags: bool = True, dev: int = 0) -> dict[str, Corpus]:
    """Characters of both, over shared vocabularies."""
    vocabularies: dict[str, Vocabulary] = {}
    sizes = {"train": train, "test": test} | ({"dev": dev} if dev else {})
    return {
        name: characters(as_words(sentences(n, seed), tags=tags), vocabularies)
        for seed, (name, n) in enumerate(sizes.items())
    }


def problem_of(labeled: Corpus, unlabeled: Shards | None = None, **changes: Any) -> Problem:
    """A problem of labeled characters; unlabeled text: none by default."""
    own = relabeled(labeled.select(np.arange(labeled.n_sentences)))
    labels = tuple(own.column("label").vocabulary.strings)
    fields: dict[str, Any] = {
        "task": "joint" if "-" in labels[0] else "segmentation",
        "encoding": "BMES",
        "labels": labels,
        "labeled": own,
        "unlabeled": CorpusShards(without_labels(labeled.select([])))
        if unlabeled is None
        else unlabeled,
        "dev": None,
        "featurizer": TemplateFeaturizer(["word[0]"]),
        "model": ChainModel(),
    }
    return Problem(**{**fields, **changes})


def right(fit: Any, corpus: Corpus) -> float:
    """Share of characters whose label is right."""
    gold = corpus.column("label").strings()
    predicted = [fit.labels[code] for code in fit.predict(without_labels(corpus)).tolist()]
    return float(np.mean([a == b for a, b in zip(gold, predicted, strict=True)]))
