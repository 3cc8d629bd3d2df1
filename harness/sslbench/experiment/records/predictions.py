"""Sentence numbers and predicted labels as text in a record."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from sslbench.engine.errors import UserError

if TYPE_CHECKING:
    from sslbench.engine.types import I32, I64


def pack_numbers(numbers: I64) -> str:
    """Numbers int64[n], 0 to 2^31 - 1: differences as little-endian int32, zlib, base 64."""
    steps = np.diff(numbers, prepend=0).astype("<i4")
    return base64.b64encode(zlib.compress(steps.tobytes(), 9)).decode()


def unpack_numbers(packed: str) -> I64:
    """The inverse of `pack_numbers`; UserError if the text is damaged."""
    try:
        raw = zlib.decompress(base64.b64decode(packed, validate=True))
        return np.cumsum(np.frombuffer(raw, "<i4"), dtype=np.int64)
    except (zlib.error, ValueError) as error:
        raise UserError(f"sentence numbers cannot be unpacked: {error}") from None


def predictions_sha256(labels: Sequence[str], codes: I32) -> str:
    """Sha256 of predicted labels; codes: int32[N], codes into `labels`."""
    names = "\0".join(labels).encode()
    return hashlib.sha256(names + b"\0\0" + codes.astype("<i4").tobytes()).hexdigest()


#: levels of zlib: of the records' files, and for predictions that are only read again
SMALLEST, STORED = 9, 0


class Predictions(msgspec.Struct, frozen=True):
    """The predictions for a split: a code into `labels` per token; int16, zlib, base 64."""

    labels: tuple[str, ...]
    packed: str

    @classmethod
    def pack(cls, labels: Sequence[str], codes: I32, level: int = SMALLEST) -> Predictions:
        """codes: int32[N], codes into `labels`, which are fewer than 2^15."""
        raw = zlib.compress(codes.astype("<i2").tobytes(), level)
        return cls(tuple(labels), base64.b64encode(raw).decode())

    def codes(self, n_tokens: int) -> I32:
        """int32[N]: the codes; UserError if they are damaged or not of `n_tokens` tokens."""
        size, n_labels = 2 * n_tokens, len(self.labels)
        unzip = zlib.decompressobj()
        try:
            raw = unzip.decompress(base64.b64decode(self.packed, validate=True), size + 1)
        except (zlib.error, ValueError) as error:
            raise UserError(f"predictions cannot be unpacked: {error}") from None
        codes = np.frombuffer(raw, "<i2").astype(np.int32) if len(raw) % 2 == 0 else None
        if codes is None or len(raw) != size or ((codes < 0) | (codes >= n_labels)).any():
            raise UserError(f"predictions are not of {n_tokens} tokens, or not of their labels")
        return codes
