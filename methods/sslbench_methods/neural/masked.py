"""Training on words that a transformer does not see, for texts without labels.

A share of the pieces of words is masked; what stands there is guessed from the last layer. Of the
masked pieces 80 % are replaced by the piece for it, 10 % by any piece, and 10 % stay. Source:
J. Devlin, M.-W. Chang, K. Lee, K. Toutanova: BERT: pre-training of deep bidirectional transformers
for language understanding, NAACL 2019, section 3.1.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sslbench import UserError
from sslbench.engine.crf import Batch, TrainingParams, TrainingResult, ascend, batch_of_step
from sslbench.engine.types import F32, F64, I64
from sslbench_methods.neural.chain import Weights, from_center
from sslbench_methods.neural.folder import Config, read_guesser
from sslbench_methods.neural.library import compiled, jax_library
from sslbench_methods.neural.network import activation, last_layer, linear, normed
from sslbench_methods.neural.pieces import Pieces, Rows

if TYPE_CHECKING:
    from sslbench_methods.neural.transformer import Transformer

#: shares of the masked pieces that are any piece, and that stay
RANDOM, SAME = 0.1, 0.1
#: masked pieces are filled up to a multiple, so that few sizes are compiled
MULTIPLE = 16


@dataclass
class Guesser:
    """A transformer with what guesses pieces: numbers of the transformer first, then these.

    head: the pretrained weights by name, see `initial`.  parameters, center: float64 and
    float32[P], of both.  batches: of all texts, with their pieces.  share: of pieces, masked.
    """

    model: Transformer
    head: Weights
    parameters: F64
    center: F32
    batches: Sequence[tuple[Pieces, Batch]]
    share: float
    rate: float

    @classmethod
    def of(cls, model: Transformer, texts: Sequence[Any], share: float) -> Guesser:
        """Return the start of a training; UserError if no piece stands for masked ones.

        texts: as the model encodes them.
        """
        if model.source.cutter.mask is None:
            reason = "its tokenizer has no piece for masked words, [MASK] or <mask>"
            raise UserError(reason, file=model.source.params.folder)
        batches = [(text.content.content, batch) for text in texts for batch in text.batches]
        own, params = model.source.pretrained.config, model.source.params
        head = read_guesser(params.folder, own)
        rate = params.rate if head else params.head_rate
        head = head or initial(own, [text.content.content for text in texts])
        flat = np.concatenate([np.ravel(value) for value in head.values()])
        return cls(
            model, head, np.concatenate([model.parameters, flat]),
            np.concatenate([model.center, flat]), batches, share, rate,
        )  # fmt: skip

    def train(self, params: TrainingParams, steps: int, **tell: Any) -> TrainingResult:
        """Train for so many steps; the model gets its part of the parameters."""
        size, own = len(self.model.parameters), self.model.schedule()
        schedule = replace(own, rates=[*own.rates, (size, self.rate)])
        objective = _Masked(self, zlib.crc32(self.parameters.tobytes()))
        result = ascend(self, objective, params, steps, schedule, self.center, **tell)
        self.model.parameters = self.parameters[:size].copy()
        return result

    def penalty(self, params: TrainingParams) -> float:
        """Return that of both, as the model's."""
        return from_center(self.parameters, self.center, params)

    def weights(self) -> dict[str, F32]:
        """Return the weights of the layers and the head by name."""
        size = len(self.model.parameters)
        layers = self.model.with_parameters(self.parameters[:size]).weights()
        weights = {name: layers[name] for name in self.model.source.pretrained.layers}
        for name, begin, value in self.places():
            own = self.parameters[begin : begin + value.size]
            weights[name] = own.astype(np.float32).reshape(value.shape)
        return weights

    def places(self) -> list[tuple[str, int, F32]]:
        """Return name, begin among the parameters, and pretrained value of the head's weights."""
        begins = np.cumsum([len(self.model.parameters), *(v.size for v in self.head.values())])
        return [(n, int(b), v) for (n, v), b in zip(self.head.items(), begins, strict=False)]


def initial(config: Config, texts: Sequence[Pieces]) -> dict[str, F32]:
    """Return the weights of a head for a folder without: pieces are as frequent as in the texts."""
    D, V = config.hidden_size, config.vocab_size
    count = np.bincount(np.concatenate([text.ids for text in texts]), minlength=V)[:V] + 1.0
    made = {
        "guess.inner.weight": np.eye(D),
        "guess.inner.bias": np.zeros(D),
        "guess.norm.weight": np.ones(D),
        "guess.norm.bias": np.zeros(D),
        "guess.bias": np.log(count / count.sum()),
    }
    return {name: value.astype(np.float32) for name, value in made.items()}


class _Masked:
    """The mean log-probability of masked pieces, times the number of pieces of words."""

    def __init__(self, guesser: Guesser, key: int) -> None:
        self.guesser, self.key = guesser, key
        counts = [_maskable(pieces, batch).size for pieces, batch in guesser.batches]
        self.batches = [own for own, n in zip(guesser.batches, counts, strict=True) if n]
        self.n_tokens = max(1.0, float(sum(counts)))
        self._gradient = np.empty_like(guesser.parameters)

    def at(self, step: int) -> tuple[float, F64]:
        """Return minus the mean, estimated by one batch, and the derivative of the objective."""
        self._gradient[:] = 0.0
        if not self.batches:
            return 0.0, self._gradient
        guesser, model = self.guesser, self.guesser.model
        noise = np.random.default_rng([self.key, step])
        pieces, batch = self.batches[batch_of_step(self.key, 0, len(self.batches), step)]
        source = model.source
        rows, pretrained = pieces.rows(batch, source.length), source.pretrained
        mask = source.cutter.mask or 0
        masked = Masked.drawn(pieces, batch, guesser.share, mask, len(pretrained.words), noise)
        inputs = source.inputs(rows, masked.ids, pieces.position[rows.pieces])
        dropout = source.network.dropout
        kept = source.network.kept(inputs, noise) if dropout else None
        _, opened, pulled = _compiled(pretrained.config, dropout)
        places = masked.padded(rows)
        weights = guesser.weights()
        value, back = opened(weights, inputs, rows.window, kept, *places, pretrained.words)
        n = len(masked.places)
        slopes = np.zeros(len(places[0]), np.float32)
        slopes[:n] = self.n_tokens / n
        by_weight = pulled(back, slopes)
        for name, own, _ in model.slices():
            if name in by_weight:
                self._gradient[own] += np.ravel(by_weight[name])
        for name, begin, given in guesser.places():
            self._gradient[begin : begin + given.size] += np.ravel(by_weight[name])
        return -float(math.fsum(np.asarray(value)[:n].tolist())) / n, self._gradient


@dataclass(frozen=True)
class Masked:
    """What is masked in a batch.

    ids: int64[n], the pieces that the network reads.  places: int64[m], the masked ones of these.
    target: int64[m], what was there.
    """

    ids: I64
    places: I64
    target: I64

    @classmethod
    def drawn(
        cls,
        pieces: Pieces,
        batch: Batch,
        share: float,
        mask: int,
        vocabulary: int,
        noise: np.random.Generator,
    ) -> Masked:
        """mask: the piece for masked ones.  vocabulary: number of pieces."""
        own = pieces.of(batch)
        ids, there = pieces.ids[own].copy(), _maskable(pieces, batch)
        n = max(1, round(share * len(there)))
        places = np.sort(noise.choice(there, n, replace=False))
        target, kind = ids[places], noise.random(n)
        any_piece = noise.integers(vocabulary, size=n)
        ids[places] = np.where(kind < RANDOM, any_piece, np.where(kind < 1 - SAME, mask, target))
        return cls(ids, places, target)

    def padded(self, rows: Rows) -> tuple[I64, I64, I64]:
        """Return row, column and target of each place; the first one fills up `MULTIPLE`."""
        n = len(self.places)
        take = np.concatenate([np.arange(n), np.zeros(-n % MULTIPLE, np.int64)])
        places = self.places[take]
        return rows.row[places], rows.column[places], self.target[take]


def _maskable(pieces: Pieces, batch: Batch) -> I64:
    """Return int64[m], the places of the batch's pieces that belong to a word."""
    return np.flatnonzero(pieces.token[pieces.of(batch)] >= 0)


@cache
def _compiled(config: Config, dropout: float) -> tuple[Any, Any, Any]:
    """See `compiled`."""
    return compiled(partial(_log_probabilities, jax_library(), config, dropout))


def _log_probabilities(
    jax: Any,
    config: Config,
    dropout: float,
    weights: Weights,
    x: Any,
    window: Any,
    kept: Any,
    row: Any,
    column: Any,
    target: Any,
    words: Any,
) -> Any:
    np_ = jax.numpy
    last = last_layer(jax, config, dropout, weights, x, window, kept)[row, column]
    inner = activation(jax, config)(linear(np_, weights, "guess.inner", last))
    inner = normed(jax, config, weights, "guess.norm", inner)
    scores = inner @ words.T + weights["guess.bias"]
    return jax.nn.log_softmax(scores)[np_.arange(len(target)), target]
