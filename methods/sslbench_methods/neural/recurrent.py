"""A bidirectional LSTM over words and their characters, and derivatives by its weights.

Source: X. Ma, E. Hovy: End-to-end sequence labeling via bi-directional LSTM-CNNs-CRF, ACL 2016
(without its pretrained vectors of words); the cell is that of F. A. Gers, J. Schmidhuber,
F. Cummins: Learning to forget, Neural Computation 2000.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from sslbench.engine.types import F32, I32, AnyArray
from sslbench_methods.neural.chain import Weights
from sslbench_methods.neural.library import compiled, jax_library

#: sizes of the vectors of words and characters, and of what the convolution gives; its width
WORD, CHARACTER, FILTERS, WIDTH = 100, 25, 30, 3


class Inputs(NamedTuple):
    """A batch in rows: numbers of words int32[rows, length], characters int32[rows, length, C].

    part: int32[rows, length], the sentence at each place; -1 = empty.
    """

    words: I32
    characters: I32
    part: I32


class Recurrent:
    """Scores of labels for words. dropout: share of the numbers that noise sets to 0."""

    def __init__(self, units: int, dropout: float) -> None:
        self.units = units
        self.dropout = dropout

    def shapes(self, words: int, characters: int, labels: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the weights by name; gates are in the order input, forget, output,
        candidate, directions forward, backward."""
        units, size = self.units, WORD + FILTERS
        return {
            "word": (words, WORD),
            "character": (characters, CHARACTER),
            "filter": (WIDTH * CHARACTER, FILTERS),
            "input": (2, size, 4 * units),
            "state": (2, units, 4 * units),
            "bias": (2, 4 * units),
            "head.weight": (2 * units, labels),
            "head.bias": (labels,),
        }

    def start(self, shapes: dict[str, tuple[int, ...]], rng: np.random.Generator) -> dict[str, F32]:
        """Return random weights, those of the head 0; a forget gate begins open (bias 1)."""
        made: dict[str, AnyArray] = {}
        for name, shape in shapes.items():
            scale = 0.1 if name in ("word", "character") else 1 / np.sqrt(shape[-2:][0])
            kept = name in ("word", "character", "filter", "input", "state")
            made[name] = scale * rng.normal(size=shape) if kept else np.zeros(shape)
        made["bias"][:, self.units : 2 * self.units] = 1.0
        return {name: value.astype(np.float32) for name, value in made.items()}

    def scores(self, weights: Weights, inputs: Inputs) -> F32:
        """Return float32[rows, length, L]."""
        plain, _, _ = _compiled(self.units)
        return np.asarray(plain(weights, *inputs, None))

    def open(
        self, weights: Weights, inputs: Inputs, noise: np.random.Generator | None
    ) -> tuple[F32, Callable[[F32], Weights]]:
        """Return the scores, and what makes of derivatives by them ones by the weights."""
        _, opened, pulled = _compiled(self.units)
        scores, back = opened(weights, *inputs, self._kept(inputs, noise))
        return np.asarray(scores), partial(pulled, back)

    def _kept(self, inputs: Inputs, noise: np.random.Generator | None) -> tuple[F32, F32] | None:
        """Return factors of what the cells read and give: 0, or what keeps the mean."""
        if noise is None or not self.dropout:
            return None
        sizes = (WORD + FILTERS, 2 * self.units)
        draws = (noise.random((*inputs.words.shape, size), np.float32) for size in sizes)
        share = np.float32(1 - self.dropout)
        first, second = ((draw < share).astype(np.float32) / share for draw in draws)
        return first, second


@cache
def _compiled(units: int) -> tuple[Any, Any, Any]:
    """See `compiled`."""
    of = partial(_scores, jax_library(), units)

    return compiled(of)


def _scores(
    jax: Any, units: int, w: Weights, words: Any, characters: Any, part: Any, kept: Any
) -> Any:
    np_ = jax.numpy
    x = np_.concatenate([w["word"][words], _spelling(np_, w, characters)], axis=-1)
    if kept is not None:
        x = x * kept[0]
    both = np_.stack([x, x[:, ::-1]])  # directions, rows, length, size
    gates = np_.einsum("drtx,dxg->tdrg", both, w["input"]) + w["bias"][:, None]
    parts = np_.stack([part, part[:, ::-1]]).transpose(2, 0, 1)
    before = np_.concatenate([np_.full_like(parts[:1], -1), parts[:-1]])
    goes_on = ((parts == before) & (parts >= 0)).astype(np.float32)[..., None]
    zero = np_.zeros((2, words.shape[0], units), np.float32)
    step = partial(_cell, jax, w["state"])
    _, given = jax.lax.scan(step, (zero, zero), (gates, goes_on))
    states = np_.concatenate([given[:, 0], given[::-1, 1]], axis=-1).transpose(1, 0, 2)
    if kept is not None:
        states = states * kept[1]
    return states @ w["head.weight"] + w["head.bias"]


def _cell(jax: Any, state: Any, before: Any, now: Any) -> Any:
    """Return the states after a place; where a sentence begins, those before it are 0."""
    (hidden, memory), (gates, goes_on) = before, now
    gates = gates + jax.numpy.einsum("drh,dhg->drg", hidden * goes_on, state)
    into, forget, out, new = jax.numpy.split(gates, 4, axis=-1)
    sigmoid = jax.nn.sigmoid
    memory = sigmoid(forget) * memory * goes_on + sigmoid(into) * jax.numpy.tanh(new)
    hidden = sigmoid(out) * jax.numpy.tanh(memory)
    return (hidden, memory), hidden


def _spelling(np_: Any, w: Weights, characters: Any) -> Any:
    """Return the largest value of each filter over the places of a word."""
    vectors = w["character"][characters]  # rows, length, C, size
    sides = np_.pad(vectors, ((0, 0), (0, 0), (1, 1), (0, 0)))
    n = characters.shape[-1]
    windows = np_.concatenate([sides[:, :, i : i + n] for i in range(WIDTH)], axis=-1)
    return np_.tanh(windows @ w["filter"]).max(axis=2)
