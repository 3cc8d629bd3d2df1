"""A model that gives labels alone: for each word the label that it has most often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from sslbench import ModelInfo, hookimpl
from sslbench.engine.corpus import LabelConstraint
from sslbench.engine.crf import Batch, Labeled, Labeler


@hookimpl
def sslbench_models() -> list[ModelInfo]:
    return [
        ModelInfo(
            name="lexicon",
            summary="most frequent label of each word",
            reference="none",
            target="lexicon_model:LexiconModel",
            labels_only=True,
        )
    ]


@dataclass
class Lexicon(Labeler):
    labels: tuple[str, ...]
    words: dict[str, int]
    transition_mask: Any = None
    label_constraint: Any = None
    parameters: Any = None  # float64[words * L], how often each word has each label
    kind = "lexicon"

    def read(self, corpus: Any) -> Any:
        return np.array([self.words.get(w, 0) for w in corpus.column("word").strings()], int)

    def learn(self, texts: Sequence[Labeled]) -> Any:
        counts = np.zeros((len(self.words), len(self.labels)))
        for text in texts:
            sizes = np.diff(text.offsets)
            often = np.ones(len(sizes)) if text.weights is None else text.weights
            np.add.at(counts, (text.content, text.labels), np.repeat(often, sizes))
        counts[0] = counts.sum(axis=0)  # of an unknown word
        return counts.ravel()

    def label(self, content: Any, batch: Batch) -> Any:
        counts = self.parameters.reshape(-1, len(self.labels))
        return counts[content[batch.tokens]].argmax(axis=1).astype(np.int32)

    def arrays(self) -> Any:
        arrays = {"parameters": self.parameters}
        arrays |= {} if self.transition_mask is None else {"mask": self.transition_mask}
        rule = msgspec.to_builtins(self.label_constraint)
        return arrays, {"labels": list(self.labels), "words": list(self.words), "rule": rule}


class LexiconModel:
    def prepare(self, featurizer: Any, corpus: Any, label_codes: Any, labels: Any, *, text: Any,
                transition_mask: Any, label_constraint: Any, **_: Any) -> Lexicon:  # fmt: skip
        words = dict.fromkeys(w for c in (corpus, *text) for w in c.column("word").strings())
        numbers = {w: i for i, w in enumerate(["", *words])}
        start = np.zeros(len(numbers) * len(labels))
        return Lexicon(tuple(labels), numbers, transition_mask, label_constraint, start)

    @staticmethod
    def restore(arrays: Any, metadata: Any) -> Lexicon:
        numbers = {w: i for i, w in enumerate(metadata["words"])}
        rule = msgspec.convert(metadata["rule"], LabelConstraint | None)
        given = arrays.get("mask"), rule, arrays["parameters"]
        return Lexicon(tuple(metadata["labels"]), numbers, *given)
