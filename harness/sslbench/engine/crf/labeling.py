"""The labels of text as a pass over its units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sslbench.engine.checked import Saved, joined, part_of, vector
from sslbench.engine.corpus import Corpus, CorpusShards
from sslbench.engine.corpus.units import TextPass, TextUnits
from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.model import ChainCRF
from sslbench.engine.spread import is_shared, over
from sslbench.engine.types import I32, Arrays

#: tokens of a unit: they are labeled in a second or so
UNIT = 2**19


@dataclass(frozen=True)
class LabelPass(TextPass[I32]):
    """Labels of units of text by a CRF.

    posterior: the likeliest label of each token rather than the likeliest sequence.
    """

    crf: ChainCRF
    posterior: bool = False

    def encode(self, unit: Corpus) -> EncodedCorpus:
        """Encode a unit for the CRF; a subclass may add factor features."""
        return self.crf.encode(unit)

    def run(self, unit: Corpus) -> I32:
        """Return the labels of a unit, int32[N]."""
        data = self.encode(unit)
        if not self.posterior:
            return self.crf.decode(data)
        best: I32 = self.crf.marginals(data).argmax(axis=1).astype(np.int32)
        return best

    def packed(self) -> Saved | None:
        if self.crf.index.dense is not None:
            return None
        arrays, facts = joined(crf=self.crf.arrays())
        return arrays, {**facts, "posterior": self.posterior}

    @classmethod
    def unpacked(cls, arrays: Arrays, facts: dict[str, Any]) -> Self:
        crf = ChainCRF.from_arrays(*part_of(arrays, facts, "crf"))
        return cls(crf, bool(facts["posterior"]))

    def pack_result(self, result: I32) -> Arrays:
        return {"labels": result}

    def unpack_result(self, arrays: Arrays) -> I32:
        return vector(arrays, "labels", np.int32)


def spread_labels(tagger: Any, corpus: Corpus) -> I32 | None:
    """Return what a tagger predicts, int32[N], by workers; None if they cannot help.

    A tagger may have `labeling`, the `LabelPass` that it predicts with.
    """
    units = TextUnits(CorpusShards(corpus, UNIT), UNIT)
    labeling = LabelPass(tagger) if type(tagger) is ChainCRF else getattr(tagger, "labeling", None)
    if not is_shared() or not units.several or not isinstance(labeling, LabelPass):
        return None
    return np.concatenate(list(over(labeling, units)))
