"""A folder with a transformer's files: a tokenizer of pieces and a model of one layer.

The vector of a piece is a row of a table, plus the mean of those of all pieces of the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sslbench.engine.types import F32

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: whole letters, letters inside a word, and one long piece
PIECES = (*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), "ab")
#: with that for masked ones
WITH_MASK = (*PIECES, "[MASK]")


def table(size: int = 5) -> F32:
    """float32[pieces, size]: the rows of the model."""
    return np.random.default_rng(3).normal(size=(len(PIECES), size)).astype(np.float32)


def expected(pieces: Sequence[str], size: int = 5) -> F32:
    """float32[pieces, size]: what the model gives."""
    rows = table(size)[[PIECES.index(piece) for piece in pieces]]
    return rows + rows.mean(axis=0, dtype=np.float32)


def write_encoder(folder: Path, *, size: int = 5, positions: int = 32) -> Path:
    """Write the files; the libraries must be there."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder)
    write_model(folder, size=size)
    (folder / "config.json").write_text(f'{{"max_position_embeddings": {positions}}}')
    return folder


def write_tokenizer(folder: Path, pieces: Sequence[str] = PIECES) -> None:
    """Pieces of words in small letters, between [CLS] and [SEP]; digits vanish."""
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import Lowercase, Replace
    from tokenizers.normalizers import Sequence as Normalizers
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = Normalizers([Lowercase(), Replace(Regex("[0-9]"), "")])
    tokenizer.pre_tokenizer = Whitespace()
    ends = [(piece, vocabulary[piece]) for piece in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    tokenizer.enable_truncation(3)  # what a file says here does not count
    tokenizer.save(str(folder / "tokenizer.json"))


def write_model(
    folder: Path,
    *,
    size: int = 5,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    flat: bool = False,
    scale: float = 1.0,
    weights: str = "",
) -> None:
    """flat: an output of two dimensions.  scale: of the table.  weights: the file that has it."""
    import onnx
    from onnx import helper, numpy_helper
    from onnx.onnx_pb import TensorProto

    def values(name: str, kind: int, *shape: Any) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    rows = numpy_helper.from_array(table(size) * np.float32(scale), "rows")
    nodes = [
        helper.make_node("Gather", ["rows", "input_ids"], ["own"]),
        helper.make_node("ReduceMean", ["own"], ["mean"], axes=[1], keepdims=1),
        helper.make_node("Add", ["own", "mean"], ["last_hidden_state"]),
        helper.make_node("ReduceMean", ["own"], ["pooled"], axes=[1], keepdims=0),
    ]
    given = [values(name, TensorProto.INT64, 1, "pieces") for name in inputs]
    made = [values("pooled", TensorProto.FLOAT, 1, size)]
    if not flat:
        made.append(values("last_hidden_state", TensorProto.FLOAT, 1, "pieces", size))
    graph = helper.make_graph(nodes, "tiny", given, made, [rows])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    outside: dict[str, Any] = {}
    if weights:
        (folder / weights).unlink(missing_ok=True)  # else it would be appended to
        outside = {"save_as_external_data": True, "location": weights, "size_threshold": 0}
    onnx.save(model, str(folder / "model.onnx"), **outside)
