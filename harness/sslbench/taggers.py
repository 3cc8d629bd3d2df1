"""Taggers that methods return besides a CRF that decodes by Viterbi."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from sslbench.engine.checked import Saved
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import (
    ChainCRF,
    LabelPass,
    SavedModel,
    SequenceModel,
    restored_model,
    saved_model,
)
from sslbench.engine.graph.lookup import NgramScores
from sslbench.engine.parameters import doc
from sslbench.engine.types import F64, I32, Arrays

Decoding = Annotated[
    Literal["posterior", "viterbi"], doc("likeliest label of each token, or likeliest sequence")
]


class CRFTagger(SavedModel):
    """A model and what else it takes to label text; `labels` are those of the model."""

    crf: SequenceModel

    @property
    def labels(self) -> tuple[str, ...]:
        return self.crf.labels


@dataclass(frozen=True)
class PosteriorTagger(CRFTagger):
    """A model that gives each token its likeliest label; sequences may be illegal, by definition.

    kind: name of the method whose `restore` reads the saved tagger.
    variants: other taggers of the same training, by name; not saved.
    extra: added to the model's scores of labels; None = nothing.
    """

    decodes_sequences: ClassVar[bool] = False

    crf: SequenceModel
    kind: str
    variants: dict[str, PosteriorTagger] = field(default_factory=dict)
    extra: NgramScores | None = None

    @property
    def labeling(self) -> LabelPass | None:
        """How workers label text; None with extra scores, and for models of plugins."""
        if self.extra is not None or not isinstance(self.crf, ChainCRF):
            return None
        return LabelPass(self.crf, posterior=True)

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]: label codes of a corpus."""
        best: I32 = self.predict_marginals(corpus).argmax(axis=1).astype(np.int32)
        return best

    def predict_marginals(self, corpus: Corpus) -> F64:
        """float64[N, L]: the probability of each label for each token."""
        extra = None if self.extra is None else self.extra.of(corpus)
        return self.crf.marginals(self.crf.encode(corpus), extra)

    def arrays(self) -> Saved:
        arrays, metadata = saved_model(self.crf)
        more, others = ({}, {}) if self.extra is None else self.extra.arrays()
        return {**arrays, **more}, {**metadata, **others}

    @classmethod
    def from_arrays(cls, arrays: Arrays, metadata: dict[str, Any], kind: str) -> PosteriorTagger:
        """Restore; ValueError when arrays and metadata do not fit together."""
        crf, extra = restored_model(arrays, metadata), None
        if "offset" in arrays:
            extra = NgramScores.from_arrays(arrays, metadata, len(crf.labels))
        return cls(crf, kind, extra=extra)
