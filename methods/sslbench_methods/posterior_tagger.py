"""CRFs that label each token by its marginals."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

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


@dataclass(frozen=True)
class PosteriorTagger:
    """A CRF that gives each token its likeliest label; sequences may be illegal, by definition.

    kind: name of the method whose `restore` reads the saved tagger.
    variants: other taggers of the same training, by name; not saved.
    """

    crf: ChainCRF
    kind: str
    variants: dict[str, PosteriorTagger | OffsetTagger] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.crf.labels

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]: label codes of a corpus."""
        best: I32 = self.crf.marginals(self.crf.encode(corpus)).argmax(axis=1).astype(np.int32)
        return best

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write weights and alphabets to one file."""
        write_model(path, self.kind, *self.crf.arrays())


@dataclass(frozen=True, eq=False)
class OffsetTagger:
    """A CRF whose scores of labels are shifted by the vertex that a token's n-gram is.

    offset: float64[V + 1, L], the last row, of n-grams that are no vertices, zero.
    kind, variants: as in `PosteriorTagger`.
    """

    crf: ChainCRF
    offset: F64
    lookup: NgramLookup
    kind: str
    variants: dict[str, PosteriorTagger | OffsetTagger] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.crf.labels

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]: label codes of a corpus."""
        shift = self.offset[self.lookup.vertices(corpus)]
        found = self.crf.marginals(self.crf.encode(corpus), shift)
        best: I32 = found.argmax(axis=1).astype(np.int32)
        return best

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write weights, alphabets, n-grams and their offsets to one file."""
        arrays, facts = self.crf.arrays()
        grams, of = self.lookup.arrays()
        write_model(
            path, self.kind, {**arrays, "offset": self.offset, **grams}, {**facts, "lookup": of}
        )

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any], kind: str) -> OffsetTagger:
        """Restore; ValueError when arrays and facts do not fit together."""
        crf = ChainCRF.from_arrays(arrays, facts)
        lookup = NgramLookup.from_arrays(arrays, facts["lookup"])
        offset, shape = arrays["offset"], (len(lookup) + 1, len(crf.labels))
        if offset.dtype != np.float64 or offset.shape != shape or not np.isfinite(offset).all():
            raise ValueError(f"the offsets are {offset.dtype} {offset.shape}, or not finite")
        return cls(crf, offset, lookup, kind)
