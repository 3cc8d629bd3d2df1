"""A supervised tagger that adds a column to a corpus, e.g. part-of-speech tags."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.crf import ChainCRF, ChainModel, HardLabels, TrainingParams
from sslbench.engine.features import Template, TemplateFeaturizer

#: part of the key of cached tagged text: to be changed whenever the tagger's output may change
RECIPE = "crf1-observed-sigma2=1-2"


@dataclass(frozen=True)
class ColumnTagger:
    """A trained tagger of one column."""

    crf: ChainCRF
    vocabulary: Vocabulary

    @property
    def digest(self) -> str:
        """Sha256 of the weights, in hexadecimal."""
        return hashlib.sha256(self.crf.weights.tobytes()).hexdigest()

    def tag(self, corpus: Corpus) -> Column:
        """The predicted column of a corpus."""
        return Column(self.vocabulary, self.crf.predict(corpus))


@dataclass
class _Progress:
    """A line on standard error at the start and every `seconds`: loading a dataset takes long."""

    activity: str
    seconds: float = 10.0
    last: float = field(default_factory=time.monotonic)

    def __call__(self, iteration: int, _value: float, _gradient: float) -> None:
        now = time.monotonic()
        if iteration == 0 or now - self.last >= self.seconds:
            self.last = now
            print(f"{self.activity}: iteration {iteration}", file=sys.stderr, flush=True)


def train_tagger(corpus: Corpus, column: str, templates: Iterable[Template]) -> ColumnTagger:
    """Train a first-order CRF to predict a column of a corpus.

    Only observed (attribute, label) pairs get weights, which takes a tenth of the memory for 45
    tags. All of the text has gold labels, so that the other pairs matter little.
    """
    gold = corpus.column(column)
    codes = np.unique(gold.codes)
    labels = tuple(gold.vocabulary.strings[c] for c in codes)
    y = np.searchsorted(codes, gold.codes).astype(np.int32)
    featurizer = TemplateFeaturizer(templates)
    crf = ChainModel().prepare(featurizer, corpus, y, labels, state_support="observed")
    made = f"the column {column} of the newswire is made once, which takes minutes"
    say = _Progress(f"{made}: training a tagger with {len(labels)} labels")
    part = crf.encode(corpus), HardLabels(y)
    crf.train([part], TrainingParams(sigma2=1.0), callback=say)
    return ColumnTagger(crf, Vocabulary(labels))
