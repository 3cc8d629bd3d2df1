"""The layers of a transformer of the BERT family, and derivatives by their weights.

Source: J. Devlin, M.-W. Chang, K. Lee, K. Toutanova: BERT: pre-training of deep bidirectional
transformers for language understanding, NAACL 2019; the layer is that of A. Vaswani et al.:
Attention is all you need, NeurIPS 2017, with its normalizations after the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from sslbench.engine.types import F32, I32, U8
from sslbench_methods.neural.chain import Weights
from sslbench_methods.neural.folder import Config
from sslbench_methods.neural.library import compiled, jax_library

#: names of weights above the layers begin so
HEADS = ("head.", "guess.")


class Network:
    """Scores of labels for pieces.

    Weights are those of `Pretrained.layers`, "head.weight" [D, L] and "head.bias" [L].

    config: of the layers.  dropout: share of the numbers that noise sets to 0, in training.
    """

    def __init__(self, config: Config, dropout: float) -> None:
        self.config = config
        self.dropout = dropout

    def scores(self, weights: Weights, inputs: F32, window: I32) -> F32:
        """Return float32[rows, length, L].

        inputs: float32[rows, length, D], what the first layer reads.
        window: int32[rows, length]; a piece sees those of its window alone.
        """
        plain, _, _ = _compiled(self.config, 0.0)
        return np.asarray(plain(weights, inputs, window, None))

    def open(
        self, weights: Weights, inputs: F32, window: I32, noise: np.random.Generator | None
    ) -> tuple[F32, Callable[[F32], Weights]]:
        """Return the scores, and what makes of derivatives by them ones by the weights.

        noise: for dropout; None = there is none.
        """
        dropout = 0.0 if noise is None else self.dropout
        _, opened, pulled = _compiled(self.config, dropout)
        kept = self.kept(inputs, noise) if noise is not None and dropout else None
        scores, back = opened(weights, inputs, window, kept)
        return np.asarray(scores), partial(pulled, back)

    def kept(self, inputs: F32, noise: np.random.Generator) -> U8:
        """Return 1 for what dropout leaves: of the inputs and of both sums of each layer."""
        shape = (2 * self.config.num_hidden_layers + 1, *inputs.shape)
        drawn = np.frombuffer(noise.bytes(math.prod(shape)), np.uint8).reshape(shape)
        return (drawn >= round(256 * self.dropout)).astype(np.uint8)


@cache
def _compiled(config: Config, dropout: float) -> tuple[Any, Any, Any]:
    """See `compiled`."""
    of = partial(_scores, jax_library(), config, dropout)

    return compiled(of)


def _scores(
    jax: Any, config: Config, dropout: float, weights: Weights, x: Any, window: Any, kept: Any
) -> Any:
    x = last_layer(jax, config, dropout, weights, x, window, kept)
    return x @ weights["head.weight"] + weights["head.bias"]


def last_layer(
    jax: Any, config: Config, dropout: float, weights: Weights, x: Any, window: Any, kept: Any
) -> Any:
    """Return float32[rows, length, D], for functions that are compiled.

    kept: uint8[1 + 2 * layers, rows, length, D], see `Network.kept`; None = no dropout.
    """
    np_ = jax.numpy
    seen = window[:, None, :, None] == window[:, None, None, :]
    distant = np_.where(seen, 0.0, -1e9)  # [rows, 1, length, length]
    layers = {name: value for name, value in weights.items() if not name.startswith(HEADS)}
    whole = 256 / (256 - round(256 * dropout))

    def drop(value: Any, keep: Any) -> Any:
        return value if keep is None else value * (keep * np_.float32(whole))

    def step(x: Any, given: Any) -> Any:
        layer, keep = given
        first, second = (None, None) if keep is None else (keep[0], keep[1])
        x = normed(
            jax, config, layer, "norm", x + drop(_attention(jax, config, layer, x, distant), first)
        )
        inner = activation(jax, config)(linear(np_, layer, "inner", x))
        out = drop(linear(np_, layer, "outer", inner), second)
        return normed(jax, config, layer, "last_norm", x + out), None

    pairs = None
    if kept is not None:
        x = drop(x, kept[0])
        pairs = kept[1:].reshape(-1, 2, *x.shape)
    return jax.lax.scan(step, x, (layers, pairs))[0]


def linear(np_: Any, layer: Weights, name: str, x: Any) -> Any:
    """Return x W' + b."""
    return x @ layer[f"{name}.weight"].T + layer[f"{name}.bias"]


def _attention(jax: Any, config: Config, layer: Weights, x: Any, distant: Any) -> Any:
    np_, heads = jax.numpy, config.num_attention_heads
    split = (*x.shape[:2], heads, x.shape[2] // heads)
    query, key, value = (linear(np_, layer, n, x).reshape(split) for n in ("query", "key", "value"))
    scores = np_.einsum("bqhd,bkhd->bhqk", query, key) / np.float32(math.sqrt(split[3]))
    weights = jax.nn.softmax(scores + distant, axis=-1)
    mixed = np_.einsum("bhqk,bkhd->bqhd", weights, value).reshape(x.shape)
    return linear(np_, layer, "out", mixed)


def normed(jax: Any, config: Config, layer: Weights, name: str, x: Any) -> Any:
    """Return the numbers of each piece with mean 0 and variance 1, scaled and shifted."""
    np_ = jax.numpy
    x = x - x.mean(axis=-1, keepdims=True)
    spread = np_.sqrt((x * x).mean(axis=-1, keepdims=True) + config.layer_norm_eps)
    return x / spread * layer[f"{name}.weight"] + layer[f"{name}.bias"]


def activation(jax: Any, config: Config) -> Callable[[Any], Any]:
    """Return the function between two linear ones."""
    if config.hidden_act == "relu":
        return jax.nn.relu  # type: ignore[no-any-return]
    return partial(jax.nn.gelu, approximate=config.hidden_act != "gelu")
