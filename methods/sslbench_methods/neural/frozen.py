"""The last layer of a pretrained transformer, as it is."""

from __future__ import annotations

import numpy as np

from sslbench.engine.lazy import lazy
from sslbench.engine.types import F32, I64
from sslbench_methods.neural.chain import Weights
from sslbench_methods.neural.folder import Pretrained
from sslbench_methods.neural.library import jax_library
from sslbench_methods.neural.network import Network

#: pieces are padded to a multiple of it: each length is compiled once
_STEP = 32


class FrozenLayers:
    """The layers of a folder's weights."""

    def __init__(self, pretrained: Pretrained) -> None:
        self._pretrained = pretrained
        self._network = Network(pretrained.config, 0.0)

    @property
    def version(self) -> str:
        """Of the library that computes them."""
        return f"jax {jax_library().__version__}"

    def last(self, ids: I64) -> F32:
        """Return float32[n, D], the last layer of pieces int64[n] that are read at once."""
        n, size = len(ids), self._pretrained.config.hidden_size
        length = -(-n // _STEP) * _STEP
        inputs = np.zeros((1, length, size), np.float32)
        inputs[0, :n] = self._pretrained.inputs(ids, np.arange(n))
        window = np.where(np.arange(length) < n, 0, -1).astype(np.int32)[None]
        return self._network.scores(self._weights, inputs, window)[0, :n]

    @lazy
    def _weights(self) -> Weights:
        """The layers, handed to JAX once; the score of a label is a number of the last one."""
        size = self._pretrained.config.hidden_size
        head = {"head.weight": np.eye(size, dtype=np.float32), "head.bias": np.zeros(size)}
        given = {**self._pretrained.layers, **head}
        array = jax_library().numpy.asarray
        return {name: array(value, np.float32) for name, value in given.items()}
