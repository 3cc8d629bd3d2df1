"""A transformer of a local folder: vectors of the words of a sentence.

The folder is that of ``optimum-cli export onnx``: ``model.onnx`` (with files of weights beside it
that it names, if it is large), ``tokenizer.json`` and ``config.json``; or it is that of
``save_pretrained``, with ``model.safetensors``. The vector of a word is the mean of the last layer
over its pieces, or that of its first piece. A sentence is computed alone, in one thread: batches
would need padding, and the last digits would depend on the sentences beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from sslbench import UserError
from sslbench.engine.types import F32, I64
from sslbench_methods.encoder.onnx import MODEL, OnnxLayers, files_of_weights
from sslbench_methods.neural.folder import CONFIG, TOKENIZER, WEIGHTS, Pretrained
from sslbench_methods.neural.frozen import FrozenLayers
from sslbench_methods.neural.pieces import Cutter
from sslbench_methods.neural.tokenizer import files_digest, most_positions

#: files of a folder that vectors depend on, beside those that the model names
FILES = ("model.onnx_data", TOKENIZER, CONFIG)
_EXPORT = "make a folder with: optimum-cli export onnx --model NAME FOLDER"

Pooling = Literal["mean", "first"]


class Layers(Protocol):
    """The layers of an opened model. version: of the library that computes them."""

    @property
    def version(self) -> str: ...

    def last(self, ids: I64) -> F32:
        """Return float32[n, D], the last layer of pieces int64[n] that are read at once."""


@dataclass(frozen=True)
class Transformer:
    """An opened model.

    limit: pieces that it reads at once, with those that begin and end a sentence.
    size: numbers of a vector.
    """

    layers: Layers
    cutter: Cutter
    limit: int
    pooling: Pooling
    size: int

    @classmethod
    def open(cls, folder: str, pieces: int, pooling: Pooling) -> Transformer:
        """UserError if a library or a file is missing, or a file is none of a model.

        pieces: the most at once; less if the model's configuration says so.
        """
        for name in (_weights_of(folder), TOKENIZER):
            if not Path(folder, name).is_file():
                raise UserError(f"no {name} in it", file=folder, hint=_EXPORT)
        limit = min(pieces, most_positions(Path(folder, CONFIG)))
        layers: Layers
        if _weights_of(folder) == MODEL:
            layers = OnnxLayers.open(str(Path(folder, MODEL)))
        else:
            pretrained = Pretrained.read(folder)
            limit = min(limit, pretrained.config.positions)
            layers = FrozenLayers(pretrained)
        cutter = Cutter(str(Path(folder, TOKENIZER)), limit)
        size = layers.last(np.zeros(1, np.int64)).shape[1]
        return cls(layers, cutter, limit, pooling, size)

    def vectors(self, words: Sequence[str]) -> F32:
        """Return float32[n, D] of a sentence; zeros for words that yield no piece.

        A sentence that is too long is read in windows, see `Cutter.windows`.
        """
        out = np.zeros((len(words), self.size), np.float32)
        for ids, owner in self.cutter.windows(words):
            layer, pieces = self.layers.last(ids), np.flatnonzero(owner >= 0)
            covered, first, count = np.unique(owner[pieces], return_index=True, return_counts=True)
            if len(covered) and self.pooling == "first":
                out[covered] = layer[pieces[first]]
            elif len(covered):
                sums = np.add.reduceat(layer[pieces].astype(np.float64), first, axis=0)
                out[covered] = sums / count[:, None]
        return out


def model_digest(folder: str) -> str:
    """Of the files that vectors depend on; UserError if one cannot be read."""
    names = [_weights_of(folder), *FILES, *files_of_weights(Path(folder, MODEL))]
    paths = {name: str(Path(folder, name)) for name in names if Path(folder, name).exists()}
    return files_digest(paths)


def _weights_of(folder: str) -> str:
    """The name of the file that is read: that of ONNX, if both are there or none is."""
    plain = not Path(folder, MODEL).exists() and Path(folder, WEIGHTS).exists()
    return WEIGHTS if plain else MODEL
