"""The text of a learning problem, encoded for one CRF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.corpus import Corpus
from sslbench.crf.model import ChainCRF
from sslbench.crf.objective import EncodedCorpus
from sslbench.crf.prune import prune
from sslbench.crf.terms import HardLabels
from sslbench.types import F64, I32, AnyArray


def split_tokens(values: AnyArray, corpora: Sequence[EncodedCorpus]) -> list[AnyArray]:
    """Values of the tokens of all corpora, cut into views for each: [N, ...] to [[n, ...], ...]."""
    ends = np.cumsum([data.offsets[-1] for data in corpora], dtype=np.int64)
    return np.split(values, ends)[:-1]


@dataclass(frozen=True)
class EncodedProblem:
    """Labeled, unlabeled and development text as one CRF reads it.

    labeled: the labeled sentences and their log-likelihood, a part of an objective.
    unlabeled: one encoded corpus per shard of the unlabeled text.
    dev: development sentences and their labels int32[N], -1 for a label that the labeled sample
    lacks; None without development data.
    """

    labeled: tuple[EncodedCorpus, HardLabels]
    unlabeled: list[EncodedCorpus]
    dev: tuple[EncodedCorpus, I32] | None = None

    @classmethod
    def build(
        cls,
        crf: ChainCRF,
        labeled: tuple[Corpus, I32],
        unlabeled: Iterable[Corpus],
        dev: tuple[Corpus, I32] | None,
    ) -> EncodedProblem:
        """Encode; labeled and dev are corpora with their label codes int32[N]."""
        gold = crf.encode(labeled[0]), HardLabels(labeled[1])
        text = [crf.encode(shard) for shard in unlabeled]
        return cls(gold, text, None if dev is None else (crf.encode(dev[0]), dev[1]))

    @property
    def corpora(self) -> list[EncodedCorpus]:
        """The labeled corpus, then the unlabeled ones."""
        return [self.labeled[0], *self.unlabeled]

    @property
    def labels(self) -> I32:
        """int32[N]: labels of the labeled sentences."""
        return self.labeled[1].labels

    def dev_accuracy(self, crf: ChainCRF) -> dict[str, float]:
        """{"dev_accuracy": share of development tokens that the CRF labels right}, or {}."""
        if self.dev is None:
            return {}
        data, labels = self.dev
        right = int(np.count_nonzero(crf.decode(data) == labels))
        return {"dev_accuracy": right / max(1, len(labels))}

    def pruned(
        self, crf: ChainCRF, marginals: Iterable[tuple[EncodedCorpus, F64]]
    ) -> tuple[ChainCRF, EncodedProblem]:
        """The CRF without implausible state weights (see `prune`), and the text encoded for it.

        marginals: corpora of this problem with node marginals float64[N, L].
        """
        small = prune(crf, self.labeled[0], self.labels, marginals)
        gold = small.reencode(self.labeled[0]), self.labeled[1]
        dev = None if self.dev is None else (small.reencode(self.dev[0]), self.dev[1])
        return small, EncodedProblem(gold, [small.reencode(x) for x in self.unlabeled], dev)
