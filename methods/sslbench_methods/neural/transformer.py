"""A pretrained transformer of a local folder, trained with a chain on top.

All layers are trained; the vectors of pieces and positions stay what they are. The score of a label
for a token is the mean over its pieces of a linear function of the last layer. The prior is a
Gaussian around the pretrained weights, and around 0 for the scores of labels and transitions.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from sslbench import Corpus, SearchAxis, UserError, doc
from sslbench.engine.checked import Saved
from sslbench.engine.corpus import LabelConstraint
from sslbench.engine.crf import Batch, MaskedWords, Options, Parts, TrainingParams, TrainingResult
from sslbench.engine.lazy import lazy
from sslbench.engine.types import F32, F64, I32, I64, Arrays, Bool
from sslbench.experiment.planning.values import UserFile
from sslbench_methods.neural.chain import NetworkModel, Weights
from sslbench_methods.neural.folder import TOKENIZER, Pretrained, folder_digest
from sslbench_methods.neural.masked import Guesser
from sslbench_methods.neural.network import Network
from sslbench_methods.neural.pieces import Cutter, Pieces, Rows

Folder = Annotated[UserFile, doc("of the model: config.json, tokenizer.json, model.safetensors")]


class TransformerParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the transformer is, and how it is trained."""

    folder: Folder = ""
    steps: Annotated[int, doc("of all trainings of a run together", ge=1, le=10**6)] = 240
    rate: Annotated[float, doc("largest step of a weight of the layers", gt=0, le=1)] = 1e-4
    head_rate: Annotated[float, doc("the same, of the scores of labels", gt=0, le=1)] = 5e-3
    dropout: Annotated[float, doc("share of numbers set to 0 in training", ge=0, le=0.9)] = 0.1
    pieces: Annotated[int, doc("read at once, at most; longer text: in windows", ge=3, le=512)] = (
        128
    )
    column: Annotated[str, doc("whose words are read")] = "word"
    #: not the number of steps: it is the same for all methods
    search: ClassVar[tuple[SearchAxis, ...]] = (SearchAxis("rate", low=2e-5, high=5e-4, log=True),)


@dataclass(frozen=True)
class Source:
    """A folder, opened when it is needed. digest: of its files."""

    params: TransformerParams
    digest: str

    @lazy
    def pretrained(self) -> Pretrained:
        """The weights; UserError if the files are not those of the training."""
        folder = self.params.folder
        if folder_digest(folder) != self.digest:
            raise UserError("the model is another one than at the training", file=folder)
        return Pretrained.read(folder)

    @lazy
    def length(self) -> int:
        """Pieces of a row."""
        return min(self.params.pieces, self.pretrained.config.positions)

    @lazy
    def cutter(self) -> Cutter:
        """The tokenizer."""
        return Cutter(os.path.join(self.params.folder, TOKENIZER), self.length)

    @lazy
    def network(self) -> Network:
        """The layers."""
        return Network(self.pretrained.config, self.params.dropout)

    def inputs(self, rows: Rows, ids: I64, positions: I64) -> F32:
        """Return float32[rows, length, D], what the first layer reads of pieces in rows."""
        inputs = np.zeros((*rows.window.shape, self.pretrained.config.hidden_size), np.float32)
        inputs[rows.row, rows.column] = self.pretrained.inputs(ids, positions)
        return inputs


@dataclass
class Transformer(NetworkModel):
    """The layers of a folder, and scores of labels."""

    source: Source = field(kw_only=True)
    kind = "transformer"

    @lazy
    def of_network(self) -> dict[str, tuple[int, ...]]:
        pretrained, L = self.source.pretrained, len(self.labels)
        layers = {name: value.shape for name, value in pretrained.layers.items()}
        return {**layers, "head.weight": (pretrained.config.hidden_size, L), "head.bias": (L,)}

    @lazy
    def center(self) -> F32:
        layers = self.source.pretrained.layers
        parts = [
            np.ravel(layers[name]) if name in layers else np.zeros(math.prod(shape), np.float32)
            for name, shape in self.shapes.items()
        ]
        return np.concatenate(parts)

    @property
    def rates(self) -> dict[str, float]:
        own = self.source.params
        return {next(iter(self.shapes)): own.rate, "head.weight": own.head_rate}

    def read(self, corpus: Corpus) -> Pieces:
        return self.source.cutter.cut(corpus, self.source.params.column)

    def scores(self, weights: Weights, content: Pieces, batch: Batch) -> F64:
        read = _Read.of(self.source, content, batch)
        return read.by_token(self.source.network.scores(weights, read.inputs, read.window))

    def opened(
        self, weights: Weights, content: Pieces, batch: Batch, noise: np.random.Generator | None
    ) -> tuple[F64, Callable[[F64], Weights]]:
        read = _Read.of(self.source, content, batch)
        scores, back = self.source.network.open(weights, read.inputs, read.window, noise)
        return read.by_token(scores), lambda slopes: back(read.by_score(slopes, scores.shape))

    def train(
        self, parts: Parts, params: TrainingParams, *, options: Options | None = None, **tell: Any
    ) -> TrainingResult:
        """Train on labels and the like, or on `MaskedWords` alone."""
        masked = [(text, term) for text, term in parts if isinstance(term, MaskedWords)]
        if not masked:
            return super().train(parts, params, options=options, **tell)
        if len(masked) < len(parts):
            raise TypeError("masked words beside another term")
        guesser = Guesser.of(self, [text for text, _ in masked], masked[0][1].share)
        return guesser.train(params, self.steps_of(params, options), **tell)

    def arrays(self) -> Saved:
        """Return the parameters, in single precision; the folder is needed to read them."""
        arrays, metadata = super().arrays()
        params = self.source.params
        where = {"folder": os.path.abspath(params.folder), "digest": self.source.digest}
        return arrays, {**metadata, **where, "params": msgspec.to_builtins(params)}


@dataclass(frozen=True)
class _Read:
    """A batch as the network reads it.

    inputs: float32[rows, length, D].  window: int32[rows, length].
    row, column, token, share: of the pieces that count; see `Pieces`, the token in the batch.
    """

    n_tokens: int
    inputs: F32
    window: I32
    row: I64
    column: I64
    token: I64
    share: F32

    @classmethod
    def of(cls, source: Source, pieces: Pieces, batch: Batch) -> _Read:
        rows = pieces.rows(batch, source.length)
        own = rows.pieces
        inputs = source.inputs(rows, pieces.ids[own], pieces.position[own])
        at = np.flatnonzero(pieces.token[own] >= 0)
        token, share = pieces.token[own][at] - batch.lo, pieces.share[own][at]
        places = rows.row[at], rows.column[at]
        return cls(batch.n_tokens, inputs, rows.window, *places, token, share)

    def by_token(self, scores: F32) -> F64:
        """Return float64[n, L], the means over the pieces of a token; 0 for a token without."""
        node = np.zeros((self.n_tokens, scores.shape[2]))
        np.add.at(node, self.token, self.share[:, None] * scores[self.row, self.column])
        return node

    def by_score(self, slopes: F64, shape: tuple[int, ...]) -> F32:
        """Return float32[rows, length, L], the derivatives by the scores of pieces."""
        by_piece = np.zeros(shape, np.float32)
        by_piece[self.row, self.column] = self.share[:, None] * slopes[self.token]
        return by_piece


class TransformerModel:
    """Makes the model of a problem."""

    Params = TransformerParams

    def __init__(self, params: TransformerParams, seed: int) -> None:
        self.params = params

    def prepare(
        self,
        featurizer: Any,
        corpus: Corpus,
        label_codes: I32,
        labels: Sequence[str],
        *,
        transition_mask: Bool | None,
        label_constraint: LabelConstraint | None,
        **other: Any,
    ) -> Transformer:
        """Return the pretrained model with scores of 0; UserError if the folder has none."""
        folder = self.params.folder
        if not folder:
            hint = "give its folder: --set transformer.folder=PATH"
            raise UserError("the transformer has no folder", hint=hint)
        corpus.column(self.params.column)
        source = Source(self.params, folder_digest(folder))
        model = Transformer(tuple(labels), transition_mask, label_constraint, source=source)
        model.parameters, model.steps = model.center.astype(np.float64), self.params.steps
        return model

    @staticmethod
    def restore(arrays: Arrays, metadata: dict[str, Any]) -> Transformer:
        """Return a saved model; ValueError if arrays and metadata do not fit together."""
        params = msgspec.convert(
            {**metadata["params"], "folder": metadata["folder"]}, TransformerParams
        )
        source = Source(params, metadata["digest"])
        model = Transformer(tuple(map(str, metadata["labels"])), source=source)
        model.put_back(arrays, metadata)
        return model
