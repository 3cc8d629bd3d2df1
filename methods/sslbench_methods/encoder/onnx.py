"""The layers of a transformer in a file of ONNX."""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from sslbench import UserError
from sslbench.engine.types import F32, I64
from sslbench_methods.neural.tokenizer import first_line, needed_library

MODEL = "model.onnx"
#: the entry "location" of a tensor whose numbers are in another file (ONNX's
#: TensorProto.external_data), and the length of the name that follows, as a Protocol Buffers varint
_LOCATION = re.compile(rb"\n\x08location\x12([\x80-\xff]?)([\x00-\x7f])")
#: what a model may ask for, of n pieces
INPUTS = {"input_ids": None, "attention_mask": 1, "token_type_ids": 0}


@dataclass(frozen=True)
class OnnxLayers:
    """An opened file. version: of the library."""

    path: str
    session: Any
    version: str

    @classmethod
    def open(cls, path: str) -> OnnxLayers:
        """UserError if the library is missing, or the file is none of a model."""
        library = needed_library("onnxruntime", "encoder")
        return cls(path, _session(library, path), str(library.__version__))

    def last(self, ids: I64) -> F32:
        """Return float32[n, D], the last layer; UserError if the model gives none.

        ids: int64[n], pieces.
        """
        return _layer(self.session, ids[None], self.path)


def files_of_weights(model: Path) -> list[str]:
    """The names of files beside the model that its weights are in.

    UserError for one that lies elsewhere, or is hidden: it would not be part of a run's identity.
    """
    if not model.is_file() or not model.stat().st_size:
        return []
    with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = set()
        for match in _LOCATION.finditer(data):
            low, high = (int.from_bytes(group) for group in match.groups())
            length = high * 128 + low - 128 if low else high
            found.add(data[match.end() : match.end() + length].decode(errors="surrogateescape"))
    names = []
    for path in map(PurePosixPath, sorted(found)):
        if len(path.parts) == 1 and not path.name.startswith("."):
            names.append(path.name)
        elif (model.parent / path).is_file():  # else the entry may be a note of another kind
            hint = "save it again with its weights in a file beside it"
            raise UserError(f"its weights are in {str(path)!r}", file=str(model), hint=hint)
    return names


def _session(library: Any, path: str) -> Any:
    """UserError if the file is no model of text."""
    options = library.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = library.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # of the library, one class per reason
        raise UserError(f"no model: {first_line(error)}", file=path) from None
    names = [each.name for each in session.get_inputs()]
    if "input_ids" not in names or not set(names) <= set(INPUTS):
        raise UserError(
            f"it reads {', '.join(names) or 'nothing'}, expected {', '.join(INPUTS)}", file=path
        )
    return session


def _layer(session: Any, ids: I64, path: str) -> F32:
    """float32[n, D]: the last layer. ids: int64[1, n].  UserError if the model gives none."""
    feed = {}
    for each in session.get_inputs():
        value = INPUTS[each.name]
        feed[each.name] = ids if value is None else np.full_like(ids, value)
    try:
        (layer,) = session.run([_output(session)], feed)
    except Exception as error:  # of the library, one class per reason
        raise UserError(f"the model fails: {first_line(error)}", file=path) from None
    shape = np.shape(layer)
    if len(shape) != 3 or shape[:2] != ids.shape or not shape[2]:
        expected = f"(1, {ids.shape[1]}, dimensions)"
        raise UserError(f"its output has shape {shape}, expected {expected}", file=path)
    result: F32 = np.asarray(layer[0], np.float32)
    if not np.isfinite(result).all():
        raise UserError("its output has numbers that are not finite", file=path)
    return result


def _output(session: Any) -> str:
    names = [each.name for each in session.get_outputs()]
    return "last_hidden_state" if "last_hidden_state" in names else str(names[0])
