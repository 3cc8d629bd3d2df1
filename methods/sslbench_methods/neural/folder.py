"""A pretrained transformer of the BERT family in a local folder: its configuration and weights.

The folder is that of ``save_pretrained`` of Hugging Face's transformers: ``config.json``,
``tokenizer.json`` and ``model.safetensors``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from sslbench import UserError
from sslbench.engine.types import F32, I64
from sslbench_methods.neural.tokenizer import files_digest, first_line, needed_library

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
FILES = (CONFIG, TOKENIZER, WEIGHTS)
_SAVE = (
    "save it with transformers: model.save_pretrained(FOLDER), tokenizer.save_pretrained(FOLDER)"
)
#: where positions are numbered from the padding on
_FROM_PADDING = ("roberta", "xlm-roberta", "camembert")
MODEL_TYPES = ("bert", *_FROM_PADDING)
#: weights of a layer by our name: the name in the file, and the axes of its shape
LAYER = {
    "query": ("attention.self.query", "DD"),
    "key": ("attention.self.key", "DD"),
    "value": ("attention.self.value", "DD"),
    "out": ("attention.output.dense", "DD"),
    "norm": ("attention.output.LayerNorm", "D"),
    "inner": ("intermediate.dense", "FD"),
    "outer": ("output.dense", "DF"),
    "last_norm": ("output.LayerNorm", "D"),
}


#: weights of what guesses masked pieces by our name: the axes, and the names in files
GUESSER = {
    "guess.inner.weight": ("DD", "transform.dense.weight", "dense.weight"),
    "guess.inner.bias": ("D", "transform.dense.bias", "dense.bias"),
    "guess.norm.weight": ("D", "transform.LayerNorm.weight", "layer_norm.weight"),
    "guess.norm.bias": ("D", "transform.LayerNorm.bias", "layer_norm.bias"),
    "guess.bias": ("V", "bias", "bias"),
}
#: where they are in files of BERT and of RoBERTa
_GUESSERS = ("cls.predictions.", "lm_head.")


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What a ``config.json`` says of the network; other entries are left alone."""

    model_type: str
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    vocab_size: int
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    position_embedding_type: str | None = "absolute"

    @classmethod
    def read(cls, path: Path) -> Config:
        """Raise UserError for a file that is none, or is of a network that is not known."""
        try:
            config = msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise UserError(f"no configuration of a model: {error}", file=str(path)) from None
        if reason := config.unknown():
            raise UserError(reason, file=str(path))
        return config

    def unknown(self) -> str:
        """Return what is not known about such a network; "" = it can be computed."""
        if self.model_type not in MODEL_TYPES:
            return f"a model of type {self.model_type!r}; known are {', '.join(MODEL_TYPES)}"
        if self.hidden_act not in ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu"):
            return f"no activation {self.hidden_act!r}"
        if self.position_embedding_type not in (None, "absolute"):
            return f"no positions {self.position_embedding_type!r}, only absolute ones"
        sizes = (self.hidden_size, self.num_hidden_layers, self.num_attention_heads)
        if min(*sizes, self.intermediate_size, self.vocab_size) < 1:
            return "a size is not positive"
        if self.hidden_size % self.num_attention_heads:
            return f"{self.hidden_size} numbers cannot be shared by {sizes[2]} heads"
        return "no room for positions" if self.positions < 3 else ""

    @property
    def first_position(self) -> int:
        """The row of the first piece in the table of positions."""
        if self.model_type in _FROM_PADDING:
            return (1 if self.pad_token_id is None else self.pad_token_id) + 1
        return 0

    @property
    def positions(self) -> int:
        """The most pieces that can be read at once."""
        return self.max_position_embeddings - self.first_position


@dataclass(frozen=True)
class Pretrained:
    """The weights of a folder, float32.

    words: [pieces, D], vectors of pieces.  positions: [positions, D], added to them.
    norm: [2, D], scale and shift of what the first layer reads.
    layers: by name as in `LAYER`, with ".weight" or ".bias", of all layers in one array.
    """

    config: Config
    words: F32
    positions: F32
    norm: F32
    layers: Mapping[str, F32]

    @classmethod
    def read(cls, folder: str) -> Pretrained:
        """Raise UserError if a library is missing, or a file is none of such a model."""
        config, path = Config.read(Path(folder, CONFIG)), Path(folder, WEIGHTS)
        with _opened(path) as file:
            get = _reader(file, str(path))
            table = get("embeddings.position_embeddings.weight", "PD", config)
            types = get("embeddings.token_type_embeddings.weight", "*D", config)
            names = [f"embeddings.LayerNorm.{part}" for part in ("weight", "bias")]
            layers = {
                f"{ours}.{part}": np.stack([
                    get(f"encoder.layer.{i}.{theirs}.{part}", axes if part == "weight" else axes[0],
                        config)
                    for i in range(config.num_hidden_layers)
                ])
                for ours, (theirs, axes) in LAYER.items()
                for part in ("weight", "bias")
            }  # fmt: skip
            words = get("embeddings.word_embeddings.weight", "VD", config)
            norm = np.stack([get(name, "D", config) for name in names])
        return cls(config, words, table[config.first_position :] + types[0], norm, layers)

    def inputs(self, ids: I64, positions: I64) -> F32:
        """Return float32[n, D], what the first layer reads of pieces at positions (from 0)."""
        raw = self.words[ids] + self.positions[positions]
        raw -= raw.mean(axis=1, keepdims=True)
        spread = np.sqrt(np.square(raw).mean(axis=1, keepdims=True) + self.config.layer_norm_eps)
        scaled: F32 = (raw / spread * self.norm[0] + self.norm[1]).astype(np.float32)
        return scaled


def read_guesser(folder: str, config: Config) -> dict[str, F32]:
    """Return the weights of `GUESSER`, float32; {} if the folder has none, as of sentence models.

    UserError for a file that is damaged.
    """
    path = Path(folder, WEIGHTS)
    with _opened(path) as file:
        there = set(file.keys())
        for prefix, column in zip(_GUESSERS, (1, 2), strict=True):
            names = {ours: prefix + row[column] for ours, row in GUESSER.items()}
            if there.issuperset(names.values()):
                get = _reader(file, str(path))
                return {ours: get(name, GUESSER[ours][0], config) for ours, name in names.items()}
    return {}


def folder_digest(folder: str) -> str:
    """Return a digest of the files of a folder; UserError if one is missing or cannot be read."""
    for name in FILES:
        if not Path(folder, name).is_file():
            raise UserError(f"no {name} in it", file=folder, hint=_SAVE)
    return files_digest({name: str(Path(folder, name)) for name in FILES})


def _opened(path: Path) -> Any:
    library = needed_library("safetensors", "neural")
    try:
        return library.safe_open(str(path), framework="numpy")
    except Exception as error:  # whatever a damaged file raises
        raise UserError(f"no weights: {first_line(error)}", file=str(path)) from None


def _reader(file: Any, path: str) -> Callable[[str, str, Config], F32]:
    """Return a function that reads weights by name; UserError for what is not as expected."""
    there = set(file.keys())
    # saved with a head, the names have a prefix; "gamma" and "beta" are of old files
    prefixes = sorted({key.partition("embeddings.")[0] for key in there if "embeddings." in key})
    other = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}

    def get(name: str, axes: str, config: Config) -> F32:
        names = [name, *(name.replace(new, old) for new, old in other.items() if new in name)]
        keys = [prefix + each for prefix in ("", *prefixes) for each in names]
        key = next((key for key in keys if key in there), None)
        if key is None:
            raise UserError(f"no {name} in it", file=path)
        try:
            array = np.asarray(file.get_tensor(key))
        except Exception as error:  # of the library; numpy has no bfloat16
            raise UserError(f"{key} cannot be read: {first_line(error)}", file=path) from None
        return _checked(array, axes, config, key, path)

    return get


def _checked(array: Any, axes: str, config: Config, key: str, path: str) -> F32:
    """Return float32 numbers; UserError if the sizes are not those of the configuration."""
    sizes = {
        "D": config.hidden_size,
        "F": config.intermediate_size,
        "V": config.vocab_size,
        "P": config.max_position_embeddings,
    }
    expected = tuple(sizes.get(axis) for axis in axes)
    fits = len(array.shape) == len(expected) and all(
        size in (None, own) for own, size in zip(array.shape, expected, strict=True)
    )
    if not fits or array.dtype.kind != "f" or not array.size:
        shown = " x ".join("?" if size is None else str(size) for size in expected)
        what = f"{array.dtype}[{' x '.join(map(str, array.shape))}]"
        raise UserError(f"{key} is {what}, expected floats, {shown}", file=path)
    numbers: F32 = array.astype(np.float32)
    if not np.isfinite(numbers).all():
        raise UserError(f"{key} has numbers that are not finite", file=path)
    return numbers
