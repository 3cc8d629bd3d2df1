"""The tagger of JESS-CM: Viterbi on a CRF times its embedded models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sslbench.engine.checked import Saved, joined, part_of
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF, EncodedCorpus, LabelPass, NBest
from sslbench.engine.types import F64, I32, Arrays
from sslbench.taggers import CRFTagger
from sslbench_methods.jess_cm.models import EmbeddedModels


@dataclass(frozen=True, kw_only=True)
class JointLabelPass(LabelPass):
    """Labels of units of text by a CRF with embedded models."""

    models: EmbeddedModels

    def encode(self, unit: Corpus) -> EncodedCorpus:
        return self.crf.encode(unit, self.models.bind(unit))

    def packed(self) -> Saved | None:
        if self.crf.index.dense is not None:
            return None
        return joined(crf=self.crf.arrays(), models=self.models.arrays())

    @classmethod
    def unpacked(cls, arrays: Arrays, facts: dict[str, Any]) -> JointLabelPass:
        crf = ChainCRF.from_arrays(*part_of(arrays, facts, "crf"))
        models = EmbeddedModels.from_arrays(*part_of(arrays, facts, "models"), len(crf.labels))
        return cls(crf, models=models)


@dataclass
class JointTagger(CRFTagger):
    """A CRF with models beside its features; labels come from the combined potentials."""

    crf: ChainCRF
    models: EmbeddedModels

    def encode(self, corpus: Corpus) -> EncodedCorpus:
        """Encode a corpus for the CRF, with the models bound to it."""
        return self.crf.encode(corpus, self.models.bind(corpus))

    def predict(self, corpus: Corpus) -> I32:
        """Return label codes of a corpus, int32[N]."""
        return self.crf.decode(self.encode(corpus))

    def predict_marginals(self, corpus: Corpus) -> F64:
        """Return the probability of each label for each token, float64[N, L]."""
        return self.crf.marginals(self.encode(corpus))

    def predict_n_best(self, corpus: Corpus, number: int) -> list[NBest]:
        """Return the best label sequences of each sentence."""
        return self.crf.n_best(self.encode(corpus), number)


class JessCMTagger(JointTagger):
    """A CRF with its embedded models."""

    kind = "jess_cm"

    @property
    def labeling(self) -> JointLabelPass:
        """The pass that labels much text."""
        return JointLabelPass(self.crf, models=self.models)

    def arrays(self) -> Saved:
        (arrays, facts), (tables, more) = self.crf.arrays(), self.models.arrays()
        return arrays | tables, facts | more

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any]) -> JessCMTagger:
        """Restore a tagger; ValueError when arrays and facts do not fit together."""
        crf = ChainCRF.from_arrays(arrays, facts)
        models = EmbeddedModels.from_arrays(arrays, facts, len(crf.labels))
        if len(models.chain) != crf.layout.n_factors:
            raise ValueError(f"{len(models.chain)} models, {crf.layout.n_factors} weights of them")
        return cls(crf, models)
