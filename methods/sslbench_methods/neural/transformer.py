"""A pretrained transformer of a local folder, trained with a chain on top.

All layers are trained; the vectors of pieces and positions stay what they are. The score of a label
for a token is the mean over its pieces of a linear function of the last layer. The prior is a
Gaussian around the pretrained weights, and around 0 for the scores of labels and transitions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import numpy as np

from sslbench import Corpus, UserError, doc
from sslbench.engine.checked import Saved, table, vector
from sslbench.engine.corpus import LabelConstraint
from sslbench.engine.crf import (
    Batch,
    BatchPotentials,
    ModelText,
    Options,
    Parts,
    PotentialGradient,
    Progress,
    Pullback,
    Schedule,
    SequenceModel,
    TrainingParams,
    TrainingResult,
    chain_potentials,
    descend,
    transition_slopes,
)
from sslbench.engine.lazy import lazy
from sslbench.engine.types import F32, F64, I32, I64, Arrays, Bool
from sslbench.experiment.planning.values import UserFile
from sslbench_methods.neural.folder import TOKENIZER, Pretrained, folder_digest
from sslbench_methods.neural.network import Network, Weights
from sslbench_methods.neural.pieces import Cutter, Pieces

#: tokens of a batch: enough for full rows, and for many steps on a small sample
TOKENS = 256
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


@dataclass(frozen=True)
class Text:
    """What the model reads of a text. forced: int32[N], see `LabelConstraint.forced_labels`."""

    pieces: Pieces
    forced: I32 | None


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


@dataclass
class Transformer(SequenceModel):
    """Layers, scores of labels, and transitions [L+1, L], in one vector in this order."""

    labels: tuple[str, ...]
    source: Source
    transition_mask: Bool | None = None
    label_constraint: LabelConstraint | None = None
    parameters: F64 = field(default_factory=lambda: np.empty(0), repr=False)
    kind = "transformer"

    @lazy
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the weights by name, in the order that they have among the parameters."""
        pretrained, L = self.source.pretrained, len(self.labels)
        layers = {name: value.shape for name, value in pretrained.layers.items()}
        size = pretrained.config.hidden_size
        return {**layers, "head.weight": (size, L), "head.bias": (L,), "transitions": (L + 1, L)}

    @lazy
    def center(self) -> F32:
        """float32[P]: where a training from the folder starts, and the prior is largest."""
        layers = self.source.pretrained.layers
        return np.concatenate(
            [
                np.ravel(layers[name]) if name in layers else np.zeros(shape, np.float32).ravel()
                for name, shape in self.shapes.items()
            ]
        )

    def _slices(self) -> Iterator[tuple[str, slice, tuple[int, ...]]]:
        begin = 0
        for name, shape in self.shapes.items():
            end = begin + int(np.prod(shape))
            yield name, slice(begin, end), shape
            begin = end

    def _weights(self) -> dict[str, Any]:
        """The weights in single precision, by name."""
        return {
            name: self.parameters[own].astype(np.float32).reshape(shape)
            for name, own, shape in self._slices()
        }

    def encode(self, corpus: Corpus) -> ModelText:
        constraint = self.label_constraint
        forced = None if constraint is None else constraint.forced_labels(corpus, self.labels)
        pieces = self.source.cutter.cut(corpus, self.source.params.column)
        return ModelText(Text(pieces, forced), corpus.offsets, TOKENS)

    def open(
        self, text: ModelText, batch: Batch, noise: np.random.Generator | None = None
    ) -> tuple[BatchPotentials, Pullback]:
        weights = self._weights()
        read = _Read.of(self.source, text.content.pieces, batch)
        scores, back = self.source.network.open(weights, read.inputs, read.window, noise)

        def pull(by_potential: PotentialGradient, gradient: F64) -> None:
            by_weight = back(read.by_score(by_potential, scores.shape))
            by_weight = {**by_weight, "transitions": transition_slopes(batch, by_potential)}
            for name, own, _ in self._slices():
                gradient[own] += np.ravel(by_weight[name])

        return self._chain(weights, text, batch, read.by_token(scores)), pull

    def scorer(
        self, text: ModelText, parameters: F64 | None = None
    ) -> Callable[[Batch], BatchPotentials]:
        model = self if parameters is None else self.with_parameters(parameters)
        weights = model._weights()

        def potentials(batch: Batch) -> BatchPotentials:
            read = _Read.of(self.source, text.content.pieces, batch)
            scores = self.source.network.scores(weights, read.inputs, read.window)
            return self._chain(weights, text, batch, read.by_token(scores))

        return potentials

    def _chain(self, weights: Weights, text: ModelText, batch: Batch, node: F64) -> BatchPotentials:
        transitions = weights["transitions"].astype(np.float64)
        given = {"mask": self.transition_mask, "forced_labels": text.content.forced}
        return chain_potentials(batch, node, transitions, **given)

    def train(
        self,
        parts: Parts,
        params: TrainingParams,
        *,
        options: Options | None = None,
        callback: Callable[[int, float, float], None] | None = None,
        progress: Progress | None = None,
    ) -> TrainingResult:
        own, most = self.source.params, (options or params.options()).max_iterations
        begin = next(where.start for name, where, _ in self._slices() if name == "head.weight")
        schedule = Schedule(((0, own.rate), (begin, own.head_rate)), course=self.course)
        steps, tell = min(own.steps, most), callback
        return descend(
            self, parts, params, steps, schedule, self.center, callback=tell, progress=progress
        )

    def penalty(self, params: TrainingParams) -> float:
        distance = self.parameters - self.center
        return float(distance @ distance) / (2 * params.sigma2)

    def arrays(self) -> Saved:
        """Return the parameters, in single precision; the folder is needed to read them."""
        arrays: Arrays = {"parameters": self.parameters.astype(np.float32)}
        if self.transition_mask is not None:
            arrays["mask"] = self.transition_mask
        source = self.source
        return arrays, {
            "labels": list(self.labels),
            "params": msgspec.to_builtins(source.params),
            "folder": os.path.abspath(source.params.folder),
            "digest": source.digest,
            "rule": msgspec.to_builtins(self.label_constraint),
        }


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
        rows, pretrained = pieces.rows(batch, source.length), source.pretrained
        inputs = np.zeros((*rows.window.shape, pretrained.config.hidden_size), np.float32)
        own = rows.pieces
        inputs[rows.row, rows.column] = pretrained.inputs(pieces.ids[own], pieces.position[own])
        at = np.flatnonzero(pieces.token[own] >= 0)
        token, share = pieces.token[own][at] - batch.lo, pieces.share[own][at]
        places = rows.row[at], rows.column[at]
        return cls(batch.n_tokens, inputs, rows.window, *places, token, share)

    def by_token(self, scores: F32) -> F64:
        """Return float64[n, L], the means over the pieces of a token; 0 for a token without."""
        node = np.zeros((self.n_tokens, scores.shape[2]))
        np.add.at(node, self.token, self.share[:, None] * scores[self.row, self.column])
        return node

    def by_score(self, by_potential: PotentialGradient, shape: tuple[int, ...]) -> F32:
        """Return float32[rows, length, L], the derivatives by the scores of pieces."""
        slopes = np.zeros(shape, np.float32)
        slopes[self.row, self.column] = self.share[:, None] * by_potential.node[self.token]
        return slopes


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
        model = Transformer(tuple(labels), source, transition_mask, label_constraint)
        model.parameters, model.steps = model.center.astype(np.float64), self.params.steps
        return model

    @staticmethod
    def restore(arrays: Arrays, metadata: dict[str, Any]) -> Transformer:
        """Return a saved model; ValueError if arrays and metadata do not fit together."""
        params = msgspec.convert(
            {**metadata["params"], "folder": metadata["folder"]}, TransformerParams
        )
        rule = msgspec.convert(metadata["rule"], LabelConstraint | None)
        labels, source = tuple(map(str, metadata["labels"])), Source(params, metadata["digest"])
        L = len(labels)
        mask = table(arrays, "mask", np.bool_, (L + 1, L)) if "mask" in arrays else None
        model = Transformer(labels, source, mask, rule)
        size = sum(int(np.prod(shape)) for shape in model.shapes.values())
        model.parameters = vector(arrays, "parameters", np.float32, size).astype(np.float64)
        return model
