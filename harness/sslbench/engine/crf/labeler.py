"""Models that give labels and no scores: programs of another kind behind the same interface."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf.chain_potentials import chain_potentials
from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.engine.crf.optim.lbfgs import Options, Progress
from sslbench.engine.crf.params import TrainingParams, TrainingResult
from sslbench.engine.crf.sequence import ModelText, Parts, Pullback, SequenceModel
from sslbench.engine.crf.terms import HardLabels, PotentialGradient
from sslbench.engine.errors import UserError
from sslbench.engine.types import F64, I32

#: score of the label that was given; the others have 0
SURE = 20.0


class Labeled(NamedTuple):
    """A text to learn from: its content as `read` gave it, with int64[S + 1] borders of sentences.

    labels: int32[N].  weights: float64[S] of the sentences; None = 1 for all.
    """

    content: Any
    offsets: Any
    labels: I32
    weights: F64 | None


@dataclass(frozen=True)
class _Text:
    content: Any
    forced: I32 | None


class Labeler(SequenceModel):
    """A model that is trained on labels and gives labels: of another library, or a list of rules.

    Methods that train on labels alone run on it, see the field ``labels_only`` of `MethodInfo`.
    A label that the transition mask or the label constraint forbids is replaced: of the allowed
    sequences of a sentence, one with the most of the labels is given. `marginals` are all but sure.

    What was learned is in `parameters`, as numbers: bytes of another program, too.
    """

    @abstractmethod
    def read(self, corpus: Corpus) -> Any:
        """Return what the model reads of a text."""

    @abstractmethod
    def learn(self, texts: Sequence[Labeled]) -> F64:
        """Return new parameters, float64[P]."""

    @abstractmethod
    def label(self, content: Any, batch: Batch) -> I32:
        """Return the labels of a batch, int32[n], by the parameters."""

    def encode(self, corpus: Corpus) -> ModelText:
        rule = self.label_constraint
        forced = None if rule is None else rule.forced_labels(corpus, self.labels)
        return ModelText(_Text(self.read(corpus), forced), corpus.offsets)

    def open(
        self, text: ModelText, batch: Batch, noise: np.random.Generator | None = None
    ) -> tuple[BatchPotentials, Pullback]:
        L, labels = len(self.labels), self.label(text.content.content, batch)
        node = np.zeros((batch.n_tokens, L))
        node[np.arange(batch.n_tokens), labels] = SURE
        given = {"mask": self.transition_mask, "forced_labels": text.content.forced}

        def pull(_: PotentialGradient, gradient: F64) -> None:
            raise UserError(f"the model {self.kind} is trained on labels alone")

        return chain_potentials(batch, node, np.zeros((L + 1, L)), **given), pull

    def train(
        self,
        parts: Parts,
        params: TrainingParams,
        *,
        options: Options | None = None,
        callback: Callable[[int, float, float], None] | None = None,
        progress: Progress | None = None,
    ) -> TrainingResult:
        """Learn from labels; UserError for other terms. All but `parts` is left alone."""
        texts = []
        for text, term in parts:
            if not isinstance(term, HardLabels):
                what = type(term).__name__
                raise UserError(f"the model {self.kind} is trained on labels alone, not {what}")
            texts.append(Labeled(text.content.content, text.offsets, term.labels, term.weights))
        self.parameters = self.learn(texts)
        return TrainingResult(0.0, "learned", True, 1, 1, 0.0, len(self.parameters))

    def penalty(self, params: TrainingParams) -> float:
        return 0.0
