"""Predicted labels in a run record: who compares two runs wants to see where they differ."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from sslbench.errors import UserError

if TYPE_CHECKING:
    from sslbench.types import I32


class Predictions(msgspec.Struct, frozen=True):
    """What a run predicted for one split: labels, and a code into them per token, in text order.

    packed: the codes as little-endian int16, compressed with zlib, in base 64.
    """

    labels: tuple[str, ...]
    packed: str

    @classmethod
    def pack(cls, labels: Sequence[str], codes: I32) -> Predictions:
        """codes: int32[N] into `labels`, fewer than 2^15 of them."""
        raw = zlib.compress(codes.astype("<i2").tobytes(), 9)
        return cls(tuple(labels), base64.b64encode(raw).decode())

    def codes(self, n_tokens: int) -> I32:
        """int32[N]. UserError when they are not what `pack` made of so many tokens."""
        import numpy as np

        size = 2 * n_tokens
        unzip = zlib.decompressobj()
        try:
            raw = unzip.decompress(base64.b64decode(self.packed, validate=True), size + 1)
        except (zlib.error, ValueError) as error:
            raise UserError(f"predictions cannot be unpacked: {error}") from None
        codes = np.frombuffer(raw, "<i2").astype(np.int32) if len(raw) % 2 == 0 else None
        if codes is None or len(raw) != size or not _within(codes, len(self.labels)):
            raise UserError(f"predictions are not of {n_tokens} tokens, or not of their labels")
        return codes


def _within(codes: I32, n: int) -> bool:
    return not codes.size or bool(0 <= codes.min() <= codes.max() < n)
