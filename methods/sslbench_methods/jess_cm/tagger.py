"""The tagger of JESS-CM: a CRF with its embedded models, saved in one file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from sslbench.corpus import Corpus
from sslbench.crf import ChainCRF, write_model
from sslbench.features import Streams, Template
from sslbench.types import I32

from .hmm import EmbeddedModels


@dataclass
class JessCMTagger:
    """A CRF with its embedded models; labels come from Viterbi on the combined potentials."""

    crf: ChainCRF
    models: EmbeddedModels

    @property
    def labels(self) -> tuple[str, ...]:
        return self.crf.labels

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]."""
        return self.crf.decode(self.crf.encode(corpus, self.models.bind(corpus)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """One file: the CRF, the log tables and their dictionaries."""
        arrays, facts = self.crf.arrays()
        streams, stream_facts = self.models.streams.arrays()
        arrays |= {f"streams.{k}": v for k, v in streams.items()}
        arrays |= {"chain": self.models.chain, "state": self.models.state, "arc": self.models.arc}
        facts |= {
            "streams": stream_facts,
            "templates": [str(t) for t in self.models.templates],
            "unknown": self.models.unknown,
            "bare_chain": self.models.bare_chain,
        }
        write_model(path, "jess_cm", arrays, facts)

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any], facts: dict[str, Any]) -> JessCMTagger:
        """What `save` wrote; ValueError when arrays and facts do not fit together."""
        if arrays["state"].dtype.kind != "f" or facts["unknown"] not in (0, 1):
            raise ValueError(f"tables of {arrays['state'].dtype}, unknown = {facts['unknown']}")
        crf = ChainCRF.from_arrays(arrays, facts)
        start = "streams."
        mine = {k[len(start) :]: v for k, v in arrays.items() if k.startswith(start)}
        streams = Streams.from_arrays(mine, facts["streams"])
        templates = tuple(Template.parse(t) for t in facts["templates"])
        models = EmbeddedModels(
            templates,
            streams,
            len(crf.labels),
            arrays["state"].dtype,
            facts["unknown"],
            facts["bare_chain"],
        )
        for name in ("chain", "state", "arc"):
            table, expected = arrays[name], getattr(models, name)
            if (table.shape, table.dtype) != (expected.shape, expected.dtype):
                raise ValueError(f"table {name} is {table.dtype} {table.shape}")
            if np.isnan(table).any():
                raise ValueError(f"table {name} holds what is no number")
            setattr(models, name, arrays[name])
        if len(models.chain) != crf.layout.n_factors:
            raise ValueError(f"{len(models.chain)} models, {crf.layout.n_factors} weights of them")
        models.uniform = False
        return cls(crf, models)
