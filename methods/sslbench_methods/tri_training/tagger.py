"""What tri-training gives: three CRFs that label together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sslbench.engine.checked import Saved, vector
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import SequenceModel, best_sequences, restored_model, saved_model
from sslbench.engine.types import F64, I32, Arrays
from sslbench.taggers import CRFTagger

Combine = Literal["mean", "majority"]

_FIRST = 1e-3  # of a vote: where all three differ, the first tagger decides


@dataclass(frozen=True)
class ThreeTaggers(CRFTagger):
    """Three models that differ in their parameters. weights: of the second and the third."""

    crf: SequenceModel
    weights: tuple[F64, F64]
    combine: str
    kind = "tri_training"

    @property
    def crfs(self) -> list[SequenceModel]:
        return [self.crf, *map(self.crf.with_parameters, self.weights)]

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]: the legal sequence with the largest sum of votes or of mean marginals."""
        scores, mask = self._scores(corpus), self.crf.transition_mask
        if mask is None:
            best: I32 = scores.argmax(axis=1).astype(np.int32)
            return best
        return best_sequences(scores, corpus.offsets, mask)

    def _scores(self, corpus: Corpus) -> F64:
        if self.combine == "mean":
            return self.predict_marginals(corpus)
        data = self.crf.encode(corpus)
        votes = np.zeros((corpus.n_tokens, len(self.labels)))
        for i, crf in enumerate(self.crfs):
            votes[np.arange(len(votes)), crf.decode(data)] += 1.0 if i else 1.0 + _FIRST
        return votes

    def predict_marginals(self, corpus: Corpus) -> F64:
        """Return float64[N, L]: the mean of the three taggers' probabilities."""
        data = self.crf.encode(corpus)
        mean: F64 = np.mean([crf.marginals(data) for crf in self.crfs], axis=0)
        return mean

    def arrays(self) -> Saved:
        arrays, facts = saved_model(self.crf)
        more = {f"weights{i}": weights for i, weights in enumerate(self.weights)}
        return arrays | more, {**facts, "combine": self.combine}

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any]) -> ThreeTaggers:
        """Restore an object; ValueError when arrays and facts do not fit together."""
        crf = restored_model(arrays, facts)
        first, second = (
            vector(arrays, f"weights{i}", np.float64, len(crf.parameters)) for i in range(2)
        )
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            raise ValueError("a weight is not finite")
        return cls(crf, (first, second), str(facts["combine"]))
