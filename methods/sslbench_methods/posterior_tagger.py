"""A CRF that labels each token by its marginals."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
import numpy as np

from sslbench.corpus import Corpus
from sslbench.crf import ChainCRF, write_model
from sslbench.types import I32

Decoding = Annotated[
    Literal["posterior", "viterbi"],
    msgspec.Meta(description="likeliest label of each token, or likeliest sequence"),
]


@dataclass(frozen=True)
class PosteriorTagger:
    """A CRF that gives each token its likeliest label; sequences may be illegal, by definition.

    kind: name of the method whose `restore` reads the saved tagger.
    variants: taggers that training passed on its way, by name; not saved.
    """

    crf: ChainCRF
    kind: str
    variants: dict[str, PosteriorTagger] = field(default_factory=dict)

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
