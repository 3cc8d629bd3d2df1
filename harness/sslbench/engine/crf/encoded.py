"""The text of a learning problem, encoded for one model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf.sequence import EncodedText, SequenceModel
from sslbench.engine.crf.terms import HardLabels
from sslbench.engine.dev_labels import DevLabels, HoldsDev, unseen
from sslbench.engine.types import F64, I32, AnyArray


def split_tokens(values: AnyArray, corpora: Sequence[EncodedText]) -> list[AnyArray]:
    """Values of the tokens of all corpora, cut into views for each: [N, ...] to [[n, ...], ...]."""
    ends = np.cumsum([data.offsets[-1] for data in corpora], dtype=np.int64)
    return np.split(values, ends)[:-1]


@dataclass(frozen=True)
class EncodedProblem(HoldsDev):
    """Labeled, unlabeled and development text as one model reads it, see `EncodedText`.

    labeled: the labeled sentences and their log-likelihood, a part of an objective.
    unlabeled: one encoded corpus per shard of the unlabeled text.
    dev: development sentences and their labels int32[N], -1 for a label that the labeled sample
    lacks; None without development data. Reading it counts as tuning.
    dev_labels: notes whether `dev` has been read.
    """

    labeled: tuple[Any, HardLabels]
    unlabeled: list[Any]
    dev: tuple[Any, I32] | None = None
    dev_labels: DevLabels = field(default_factory=DevLabels, repr=False, compare=False)

    @classmethod
    def build(
        cls,
        crf: SequenceModel,
        labeled: tuple[Corpus, I32],
        unlabeled: Iterable[Corpus],
        dev: tuple[Corpus, I32] | None,
        dev_labels: DevLabels,
    ) -> EncodedProblem:
        """Encode; labeled and dev are corpora with their label codes int32[N]."""
        gold = crf.encode(labeled[0]), HardLabels(labeled[1])
        text = [crf.encode(shard) for shard in unlabeled]
        coded = None if dev is None else (crf.encode(dev[0]), dev[1])
        return cls(gold, text, coded, dev_labels)

    @property
    def corpora(self) -> list[Any]:
        """The labeled corpus, then the unlabeled ones."""
        return [self.labeled[0], *self.unlabeled]

    @property
    def labels(self) -> I32:
        """int32[N]: labels of the labeled sentences."""
        return self.labeled[1].labels

    def dev_accuracy(self, crf: SequenceModel, *, record_only: bool = False) -> dict[str, float]:
        """{"dev_accuracy": share of development tokens that the model labels right}, or {}.

        record_only: the number goes into the record and decides nothing: it is no tuning.
        """
        dev: tuple[Any, I32] | None = unseen(self) if record_only else self.dev
        if dev is None:
            return {}
        data, labels = dev
        right = int(np.count_nonzero(crf.decode(data) == labels))
        return {"dev_accuracy": right / max(1, len(labels))}

    def pruned(
        self, crf: SequenceModel, marginals: Iterable[tuple[Any, F64]]
    ) -> tuple[SequenceModel, EncodedProblem]:
        """The model without implausible parameters, and the text encoded for it.

        marginals: texts of this problem with node marginals float64[N, L]; not read for a model
        that cannot be pruned, which is returned as it is.
        """
        small = crf.pruned(self.labeled[0], self.labels, marginals)
        if small is crf:
            return crf, self
        gold = small.reencode(self.labeled[0]), self.labeled[1]
        dev: tuple[Any, I32] | None = unseen(self)
        if dev is not None:
            dev = small.reencode(dev[0]), dev[1]
        # methods over a graph score this text in every step
        unlabeled = [small.reencode(text, reused=True) for text in self.unlabeled]
        return small, EncodedProblem(gold, unlabeled, dev, self.dev_labels)
