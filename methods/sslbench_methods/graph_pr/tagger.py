"""A CRF that labels each token by its marginals."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from sslbench.corpus import Corpus
from sslbench.crf import ChainCRF, write_model
from sslbench.graph.lookup import NgramLookup
from sslbench.types import F64, I32

Arrays: TypeAlias = dict[str, NDArray[Any]]

Decoding = Annotated[
    Literal["posterior", "viterbi"],
    msgspec.Meta(description="likeliest label of each token, or likeliest sequence"),
]


@dataclass(frozen=True, eq=False)
class VertexShift:
    """Scores of labels that a token has besides the CRF's, by the vertex that its n-gram is.

    offset: float64[V + 1, L], the last row, of n-grams that are no vertices, zero.
    """

    lookup: NgramLookup
    offset: F64

    def of(self, corpus: Corpus) -> F64:
        """float64[N, L]."""
        return self.offset[self.lookup.vertices(corpus)]

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Arrays and JSON-able facts that `from_arrays` restores it from."""
        arrays, facts = self.lookup.arrays()
        return {**arrays, "offset": self.offset}, {"lookup": facts}

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any], n_labels: int) -> VertexShift:
        """Restore; ValueError when arrays and facts do not fit together."""
        lookup, offset = NgramLookup.from_arrays(arrays, facts["lookup"]), arrays["offset"]
        shape = len(lookup) + 1, n_labels
        if offset.dtype != np.float64 or offset.shape != shape or not np.isfinite(offset).all():
            raise ValueError(f"the offsets are {offset.dtype} {offset.shape}, or not finite")
        return cls(lookup, offset)


@dataclass(frozen=True)
class PosteriorTagger:
    """A CRF that gives each token its likeliest label; sequences may be illegal, by definition.

    kind: name of the method whose `restore` reads the saved tagger.
    variants: other taggers of the same training, by name; not saved.
    shift: added to the CRF's scores of labels; None = nothing.
    """

    decodes_sequences: ClassVar[bool] = False

    crf: ChainCRF
    kind: str
    variants: dict[str, PosteriorTagger] = field(default_factory=dict)
    shift: VertexShift | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        return self.crf.labels

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]: label codes of a corpus."""
        extra = None if self.shift is None else self.shift.of(corpus)
        found = self.crf.marginals(self.crf.encode(corpus), extra)
        best: I32 = found.argmax(axis=1).astype(np.int32)
        return best

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write weights, alphabets and what is added to their scores to one file."""
        arrays, facts = self.crf.arrays()
        more, others = ({}, {}) if self.shift is None else self.shift.arrays()
        write_model(path, self.kind, {**arrays, **more}, {**facts, **others})

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any], kind: str) -> PosteriorTagger:
        """Restore; ValueError when arrays and facts do not fit together."""
        crf, shift = ChainCRF.from_arrays(arrays, facts), None
        if "offset" in arrays:
            shift = VertexShift.from_arrays(arrays, facts, len(crf.labels))
        return cls(crf, kind, shift=shift)
