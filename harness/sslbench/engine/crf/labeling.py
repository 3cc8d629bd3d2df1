"""The labels of text as a pass over its units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sslbench.engine.checked import Saved, joined, part_of, vector
from sslbench.engine.corpus import Corpus, CorpusShards
from sslbench.engine.corpus.units import TextPass, TextUnits
from sslbench.engine.crf.model import ChainCRF
from sslbench.engine.crf.symbol_tables import SymbolTables
from sslbench.engine.spread import is_shared, over
from sslbench.engine.types import I32, Arrays

#: tokens of a unit: they are labeled in a second or so
UNIT = 2**19


@dataclass(frozen=True)
class LabelPass(TextPass[I32]):
    """Labels of units of text by a CRF, with the factor features of tables if there are any.

    posterior: the likeliest label of each token rather than the likeliest sequence.
    """

    crf: ChainCRF
    tables: SymbolTables | None = None
    posterior: bool = False
    name = "labels"

    def run(self, unit: Corpus) -> I32:
        """int32[N]."""
        bound = None if self.tables is None else self.tables.bind(unit)
        data = self.crf.encode(unit, bound)
        if not self.posterior:
            return self.crf.decode(data)
        best: I32 = self.crf.marginals(data).argmax(axis=1).astype(np.int32)
        return best

    def packed(self) -> Saved | None:
        if self.crf.index.dense is not None:
            return None
        parts = {"crf": self.crf.arrays()}
        if self.tables is not None:
            parts["tables"] = self.tables.arrays()
        arrays, facts = joined(**parts)
        return arrays, {**facts, "posterior": self.posterior}

    @classmethod
    def unpacked(cls, arrays: Arrays, facts: dict[str, Any]) -> LabelPass:
        crf, tables = ChainCRF.from_arrays(*part_of(arrays, facts, "crf")), None
        if "tables" in facts:
            tables = SymbolTables.from_arrays(*part_of(arrays, facts, "tables"), len(crf.labels))
        return cls(crf, tables, bool(facts["posterior"]))

    def pack_result(self, result: I32) -> Arrays:
        return {"labels": result}

    def unpack_result(self, arrays: Arrays) -> I32:
        return vector(arrays, "labels", np.int32)


def spread_labels(tagger: Any, corpus: Corpus) -> I32 | None:
    """int32[N]: what a tagger predicts for much text, by workers; None if they cannot help.

    A tagger may have `labeling`, the `LabelPass` that it predicts with.
    """
    units = TextUnits(CorpusShards(corpus, UNIT), UNIT)
    labeling = LabelPass(tagger) if type(tagger) is ChainCRF else getattr(tagger, "labeling", None)
    if not is_shared() or not units.several or not isinstance(labeling, LabelPass):
        return None
    return np.concatenate(list(over(labeling, units)))
