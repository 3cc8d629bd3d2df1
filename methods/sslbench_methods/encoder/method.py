"""Contextual vectors of words as features: the last layer of a transformer in a local folder.

The vectors are centered, and each dimension is divided by its standard deviation, both in the
labeled sentences. The transformer is not trained. Each sentence is computed once and kept in the
cache of derived data, for all runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from sslbench import Corpus, Problem, RunContext, SearchAxis, TrainingParams, UserError, doc
from sslbench.engine.checked import Saved, vector
from sslbench.engine.compilation.threads import number_of_threads
from sslbench.engine.types import F32, F64, Arrays
from sslbench.experiment.planning.values import UserFile
from sslbench_methods.encoder.model import Pooling, Transformer, model_digest
from sslbench_methods.encoder.store import VectorStore
from sslbench_methods.on_text_features import OnTextFeatures

_PART = 2**26  # numbers of a part of the store, about: what a killed run computes again

Folder = Annotated[
    UserFile, doc("of the model: model.onnx or model.safetensors, tokenizer.json, config.json")
]
OfPieces = Annotated[Pooling, doc("vector of a word, of those of its pieces")]
Pieces = Annotated[int, doc("read at once, at most; longer text: in windows", ge=3, le=2**31)]
Scale = Annotated[float, doc("length of the vectors (root mean square)", gt=0, le=1e3)]
EncoderColumn = Annotated[str, doc("whose words are encoded")]


class Encoder:
    """Vectors of a transformer."""

    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """Where the model is, and how its vectors become features."""

        folder: Folder = ""
        pooling: OfPieces = "mean"
        pieces: Pieces = 512
        scale: Scale = 3.0
        column: EncoderColumn = "word"

    def learn(self, problem: Problem, params: Params, run: RunContext) -> EncodedWords:
        """Open the model and measure its vectors of the labeled sentences; UserError without one.

        The unlabeled text is encoded by the method that reads it.
        """
        if not params.folder:
            raise UserError(
                "the encoder has no model", hint="give its folder: --set encoder.folder=PATH"
            )
        folder = str(Path(params.folder).absolute())
        source = Source(folder, model_digest(folder), params.pooling, params.pieces, run.cache)
        raw = source.vectors(problem.labeled, params.column).astype(np.float64)
        present = raw[raw.any(axis=1)]
        if not len(present):
            raise UserError("no word of the labeled sentences yields a piece", file=folder)
        mean, spread = present.mean(axis=0), present.std(axis=0)
        scale = params.scale / np.sqrt(max(1, int(np.count_nonzero(spread))))
        factor = np.where(spread > 0, scale / np.where(spread > 0, spread, 1.0), 0.0)
        run.trace["dimensions"] = len(mean)
        return EncodedWords(source, params.column, mean, factor)

    @staticmethod
    def restore(arrays: Arrays, facts: dict[str, Any]) -> EncodedWords:
        """Return features of a saved tagger, whose model is opened when it is needed.

        What it labels is not kept: it is seldom the same text again.
        """
        mean = vector(arrays, "mean", np.float64)
        factor = vector(arrays, "factor", np.float64, len(mean))
        if not (np.isfinite(mean).all() and np.isfinite(factor).all()):
            raise ValueError("a number of the encoder is not finite")
        folder, digest, column = (str(facts[key]) for key in ("folder", "digest", "column"))
        if facts["pooling"] not in ("mean", "first"):
            raise ValueError(f"no pooling {facts['pooling']!r}")
        source = Source(folder, digest, facts["pooling"], int(facts["pieces"]), None)
        return EncodedWords(source, column, mean, factor)


class EncoderCRF(OnTextFeatures):
    """A supervised CRF that reads the vectors."""

    name = "encoder"
    learner = Encoder
    uses_unlabeled = False

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Those of the training and of the vectors."""

        folder: Folder = ""
        pooling: OfPieces = "mean"
        pieces: Pieces = 512
        scale: Scale = 3.0
        column: EncoderColumn = "word"
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("scale", low=0.1, high=30, log=True),
            SearchAxis("pooling", ("mean", "first")),
        )


@dataclass
class Source:
    """A model, opened when it is needed, and the vectors that it has given.

    digest: of the model's files.  cache: folder of derived data; None = nothing is kept.
    """

    folder: str
    digest: str
    pooling: Pooling
    pieces: int
    cache: Path | None
    _open: list[tuple[Transformer, VectorStore]] = field(default_factory=list, repr=False)

    def vectors(self, corpus: Corpus, column: str) -> F32:
        """Return float32[N, D] of the words of a corpus; zeros for words that yield no piece."""
        model, store = self._opened()
        words = corpus.column(column).strings()
        sentences = [words[a:b] for a, b in pairwise(corpus.offsets.tolist())]
        keys = [hashlib.sha256("\0".join(each).encode()).digest() for each in sentences]
        vectors = {key: rows for key in dict.fromkeys(keys) if (rows := store.get(key)) is not None}
        missing = {k: each for k, each in zip(keys, sentences, strict=True) if k not in vectors}
        vectors |= _computed(model, store, missing)
        return np.concatenate(
            [np.empty((0, model.size), np.float32), *(vectors[key] for key in keys)]
        )

    def _opened(self) -> tuple[Transformer, VectorStore]:
        if not self._open:
            if model_digest(self.folder) != self.digest:
                raise UserError("the model is another one than at the training", file=self.folder)
            model = Transformer.open(self.folder, self.pieces, self.pooling)
            key = f"{self.digest} {self.pooling} {model.limit} {model.layers.version}"
            name = hashlib.sha256(key.encode()).hexdigest()[:32]
            folder = None if self.cache is None else self.cache / "encoder" / name
            self._open.append((model, VectorStore(folder, model.size)))
        return self._open[0]


def _computed(
    model: Transformer, store: VectorStore, sentences: Mapping[bytes, Sequence[str]]
) -> dict[bytes, F32]:
    """Return the vectors of sentences by key, which the store keeps part by part."""
    vectors: dict[bytes, F32] = {}
    part: dict[bytes, F32] = {}
    size = 0
    with ThreadPoolExecutor(number_of_threads()) as threads:
        computed = threads.map(model.vectors, sentences.values())
        for key, rows in zip(sentences, computed, strict=True):
            part[key] = rows
            size += rows.size
            if size > _PART:
                store.add(part)
                vectors, part, size = vectors | part, {}, 0
    store.add(part)
    return vectors | part


@dataclass(frozen=True)
class EncodedWords:
    """Dense columns of a text: the vectors of its words, (raw - mean) factor.

    mean, factor: float64[D].
    """

    source: Source
    column: str
    mean: F64
    factor: F64
    templates: ClassVar[tuple[str, ...]] = ()

    @property
    def dense_columns(self) -> tuple[str, ...]:
        """Names of the columns that `dense` gives."""
        return tuple(f"{self.column}:{d}" for d in range(len(self.mean)))

    def annotate(self, corpus: Corpus) -> Corpus:
        """Return the corpus itself: there are no further columns."""
        return corpus

    def dense(self, corpus: Corpus) -> F64:
        """Return float64[N, D]; zeros for words that yield no piece."""
        raw = self.source.vectors(corpus, self.column)
        if raw.shape[1] != len(self.mean):
            raise UserError(
                f"vectors of {raw.shape[1]} numbers, {len(self.mean)} at the training",
                file=self.source.folder,
            )
        values: F64 = (raw - self.mean) * self.factor
        values[~raw.any(axis=1)] = 0.0
        return values

    def arrays(self) -> Saved:
        """Return what `Encoder.restore` reads; the model stays in its folder."""
        source = self.source
        return {"mean": self.mean, "factor": self.factor}, {
            "folder": source.folder,
            "digest": source.digest,
            "pooling": source.pooling,
            "pieces": source.pieces,
            "column": self.column,
        }
