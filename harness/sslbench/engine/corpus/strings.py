"""Strings as arrays of bytes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from sslbench.engine.types import I64, U8


def pack_strings(strings: Iterable[str]) -> tuple[U8, I64]:
    """Strings as one UTF-8 byte array, and the end of each in bytes; keeps lone surrogates."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in strings]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), dtype=np.int64)
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


def unpack_strings(data: U8, ends: I64) -> list[str]:
    """Return the strings of `pack_strings`."""
    raw, edges = data.tobytes(), [0, *ends.tolist()]
    return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(edges)]
