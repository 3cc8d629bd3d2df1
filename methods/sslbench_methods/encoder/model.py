"""A transformer of a local folder: vectors of the words of a sentence.

The folder is that of ``optimum-cli export onnx``: ``model.onnx`` (with files of weights beside it
that it names, if it is large), ``tokenizer.json`` and ``config.json``. The vector of a word is the
mean of the last layer over its pieces, or that of its first piece. A sentence is computed alone, in
one thread: batches would need padding, and the last digits would depend on the sentences beside it.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np

from sslbench import UserError
from sslbench.engine.types import F32, I64
from sslbench_methods.encoder.pieces import (
    files_digest,
    first_line,
    most_positions,
    needed_library,
    open_tokenizers,
    windows,
)

MODEL, TOKENIZER, CONFIG = "model.onnx", "tokenizer.json", "config.json"
#: files of a folder that vectors depend on, beside those that the model names
FILES = (MODEL, "model.onnx_data", TOKENIZER, CONFIG)
#: the entry "location" of a tensor whose numbers are in another file (ONNX's
#: TensorProto.external_data), and the length of the name that follows, as a Protocol Buffers varint
_LOCATION = re.compile(rb"\n\x08location\x12([\x80-\xff]?)([\x00-\x7f])")
#: what a model may ask for, of n pieces
INPUTS = {"input_ids": None, "attention_mask": 1, "token_type_ids": 0}
_EXPORT = "make a folder with: optimum-cli export onnx --model NAME FOLDER"

Pooling = Literal["mean", "first"]


@dataclass(frozen=True)
class Transformer:
    """An opened model.

    tokenizer: cuts what is too long.  counter: the same, cuts nothing.
    limit: pieces that it reads at once, with those that begin and end a sentence.
    size: numbers of a vector.  version: of the library.
    """

    folder: str
    session: Any
    tokenizer: Any
    counter: Any
    limit: int
    pooling: Pooling
    size: int
    version: str

    @classmethod
    def open(cls, folder: str, pieces: int, pooling: Pooling) -> Transformer:
        """UserError if a library or a file is missing, or a file is none of a model.

        pieces: the most at once; less if the model's configuration says so.
        """
        onnxruntime = needed_library("onnxruntime", "encoder")
        for name in (MODEL, TOKENIZER):
            if not Path(folder, name).is_file():
                raise UserError(f"no {name} in it", file=folder, hint=_EXPORT)
        limit = min(pieces, most_positions(Path(folder, CONFIG)))
        tokenizer, counter = open_tokenizers(str(Path(folder, TOKENIZER)), limit)
        path = str(Path(folder, MODEL))
        session = _session(onnxruntime, path)
        size = _layer(session, np.zeros((1, 1), np.int64), path).shape[1]
        version = str(onnxruntime.__version__)
        return cls(folder, session, tokenizer, counter, limit, pooling, size, version)

    def vectors(self, words: Sequence[str]) -> F32:
        """Return float32[n, D] of a sentence; zeros for words that yield no piece.

        A sentence that is too long is read in windows that overlap by half; a word gets its vector
        where it is nearest to the middle. Of a word that is too long alone, the first pieces count.
        """
        pieces = self.counter.encode(list(words), is_pretokenized=True, add_special_tokens=False)
        counts = np.bincount(
            np.array([word for word in pieces.word_ids if word is not None], np.int64),
            minlength=len(words),
        )
        room = self.limit - self.tokenizer.num_special_tokens_to_add(False)
        parts = windows(counts.tolist(), room)
        outputs = [self._window(words[part.start : part.stop]) for part in parts]
        out = np.zeros((len(words), self.size), np.float32)
        centers = np.array([part.start + part.stop - 1 for part in parts])
        nearest = np.abs(centers - 2 * np.arange(len(words))[:, None]).argmin(axis=1)
        for number, (part, vectors) in enumerate(zip(parts, outputs, strict=True)):
            own_words = np.flatnonzero(nearest == number)
            out[own_words] = vectors[own_words - part.start]
        return out

    def _window(self, words: Sequence[str]) -> F32:
        """Return float32[n, D] of words that fit."""
        encoding = self.tokenizer.encode(list(words), is_pretokenized=True)
        ids = np.array([encoding.ids], np.int64)
        layer = _layer(self.session, ids, str(Path(self.folder, MODEL)))
        out = np.zeros((len(words), layer.shape[1]), np.float32)
        pieces = [i for i, word in enumerate(encoding.word_ids) if word is not None]
        owner = np.array([encoding.word_ids[i] for i in pieces], np.int64)
        covered, first, count = np.unique(owner, return_index=True, return_counts=True)
        if len(covered) and self.pooling == "first":
            out[covered] = layer[np.array(pieces)[first]]
        elif len(covered):
            sums = np.add.reduceat(layer[pieces].astype(np.float64), first, axis=0)
            out[covered] = sums / count[:, None]
        return out


def model_digest(folder: str) -> str:
    """Of the files that vectors depend on; UserError if one cannot be read."""
    names = [*FILES, *_files_of_weights(Path(folder, MODEL))]
    paths = {name: str(Path(folder, name)) for name in names if Path(folder, name).exists()}
    return files_digest(paths)


def _files_of_weights(model: Path) -> list[str]:
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
