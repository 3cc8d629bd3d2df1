"""A folder with a small transformer of the BERT family, and its scores by loops in numpy."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sslbench.engine.types import F64
from support.tiny_encoder import PIECES, WITH_MASK, write_tokenizer

CONFIG = {
    "model_type": "bert",
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 40,
    "vocab_size": len(PIECES),
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-6,
}


def shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The names and sizes of the weights in the file."""
    D, F = config["hidden_size"], config["intermediate_size"]
    named = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], D),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], D),
        "embeddings.token_type_embeddings.weight": (2, D),
        "embeddings.LayerNorm.weight": (D,),
        "embeddings.LayerNorm.bias": (D,),
    }
    for i in range(config["num_hidden_layers"]):
        of = f"encoder.layer.{i}"
        for part, rows, columns in (
            ("attention.self.query", D, D),
            ("attention.self.key", D, D),
            ("attention.self.value", D, D),
            ("attention.output.dense", D, D),
            ("intermediate.dense", F, D),
            ("output.dense", D, F),
        ):
            named |= {f"{of}.{part}.weight": (rows, columns), f"{of}.{part}.bias": (rows,)}
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            named |= {f"{of}.{part}.weight": (D,), f"{of}.{part}.bias": (D,)}
    return named


def weights_of(config: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """Random weights by the names of the file."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, shape in shapes(config).items():
        center = 1.0 if name.endswith("LayerNorm.weight") else 0.0
        made[name] = (center + 0.5 * rng.normal(size=shape)).astype(np.float32)
    return made


def write_transformer(
    folder: Path, *, prefix: str = "", weights: Mapping[str, Any] | None = None, **config: Any
) -> Path:
    """Write the files. prefix: of the names of the weights.  weights: None = random ones."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    settings = {**CONFIG, **config}
    write_tokenizer(folder, WITH_MASK[: settings["vocab_size"]])
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    made = weights_of(settings) if weights is None else weights
    named = {prefix + name: value for name, value in made.items()}
    save_file(named, folder / "model.safetensors")
    return folder


def last_layer(pieces: Sequence[str], first: int = 0, **config: Any) -> F64:
    """float64[n, D]: what the network makes of one window, piece by piece and head by head.

    first: the row of the first position.
    """
    settings = {**CONFIG, **config}
    w = {name: value.astype(np.float64) for name, value in weights_of(settings).items()}
    D, heads = settings["hidden_size"], settings["num_attention_heads"]
    size = D // heads

    def normed(x: F64, name: str) -> F64:
        spread = math.sqrt(float(np.mean((x - x.mean()) ** 2)) + settings["layer_norm_eps"])
        return (x - x.mean()) / spread * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x: F64, name: str) -> F64:
        return w[f"{name}.weight"] @ x + w[f"{name}.bias"]

    rows = []
    for i, piece in enumerate(pieces):
        x = w["embeddings.word_embeddings.weight"][WITH_MASK.index(piece)]
        x = x + w["embeddings.position_embeddings.weight"][first + i]
        x = x + w["embeddings.token_type_embeddings.weight"][0]
        rows.append(normed(x, "embeddings.LayerNorm"))
    for layer in range(settings["num_hidden_layers"]):
        of = f"encoder.layer.{layer}"
        q, k, v = (
            [linear(x, f"{of}.attention.self.{name}") for x in rows]
            for name in ("query", "key", "value")
        )
        after = []
        for i, x in enumerate(rows):
            mixed = np.zeros(D)
            for h in range(heads):
                own = slice(h * size, (h + 1) * size)
                raw = np.exp(
                    [float(q[i][own] @ k[j][own]) / math.sqrt(size) for j in range(len(k))]
                )
                mixed[own] = sum(p * v[j][own] for j, p in enumerate(raw / raw.sum()))
            y = normed(x + linear(mixed, f"{of}.attention.output.dense"),
                       f"{of}.attention.output.LayerNorm")  # fmt: skip
            inner = [z * 0.5 * (1 + math.erf(z / math.sqrt(2)))
                     for z in linear(y, f"{of}.intermediate.dense")]  # fmt: skip
            out = linear(np.array(inner), f"{of}.output.dense")
            after.append(normed(y + out, f"{of}.output.LayerNorm"))
        rows = after
    return np.array(rows)
