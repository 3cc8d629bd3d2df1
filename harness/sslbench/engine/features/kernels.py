"""Compiled loops of feature extraction over flat arrays; -1 = absent.

Padded positions: each sentence has `padding` positions on both sides, so token t of sentence s is
at position offsets[s] + t + padding * (2 s + 1). A stream that is read at offsets low to high has
symbols at the positions t = low to length + high - 1 of a sentence, and -1 elsewhere.

Dictionary of pairs: an append-only map from int64 keys to ids in order of first occurrence, by open
addressing (linear probing, load at most 1/2). `keys` are the keys by id; `slots`, whose length is a
power of two, are ids or -1. Looking up the 211,727 word bigrams of CoNLL-2000 takes 1 ms; binary
search in sorted keys takes 21 ms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sslbench.engine.compilation.compiled import chunks, inline_kernel, kernel, parallel_kernel
from sslbench.engine.types import I8, I32, I64

UNRESOLVED = -2
"""In a table from vocabulary codes to symbols: the code has not occurred yet."""

_CHUNK = 64  # tokens of a task
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def unresolved(codes: I32, table: I32) -> I32:
    """Distinct codes whose table entry is UNRESOLVED, in order of first occurrence.

    The table is not changed, since other threads may read it.
    """
    seen = np.zeros(len(table), np.bool_)
    out = np.empty(len(table), np.int32)
    n = 0
    for code in codes:
        if table[code] == UNRESOLVED and not seen[code]:
            seen[code] = True
            out[n] = code
            n += 1
    return out[:n].copy()


@kernel
def write_column(
    codes: I32, table: I32, pads: I32, offsets: I64, low: int, high: int, out: I32
) -> None:
    """Write the symbols of a column, from `table` for tokens and from pads[2 * padding]."""
    padding = len(pads) // 2
    out[:] = -1
    for s in range(len(offsets) - 1):
        first = offsets[s]
        start = first + padding * (2 * s + 1)
        length = offsets[s + 1] - first
        for t in range(low, length + high):
            if t < 0:
                out[start + t] = pads[-t - 1]
            elif t >= length:
                out[start + t] = pads[padding + t - length]
            else:
                out[start + t] = table[codes[first + t]]


@kernel
def pair_keys(
    left: I32, shift: int, right: I32, offsets: I64, padding: int, low: int, high: int
) -> I64:
    """Keys left[p + shift] * 2**32 + right[p] of read positions; -1 where a half is absent."""
    out = np.full(len(right), -1, np.int64)
    for s in range(len(offsets) - 1):
        start = offsets[s] + padding * (2 * s + 1)
        for p in range(start + low, start + offsets[s + 1] - offsets[s] + high):
            if left[p + shift] >= 0 and right[p] >= 0:
                out[p] = (np.int64(left[p + shift]) << 32) | np.int64(right[p])
    return out


@inline_kernel
def _home(key: int, n_slots: int) -> Any:
    """First slot of the search for a key: Fibonacci hashing, from the high half of the product."""
    product = np.uint64(key) * _GOLDEN
    return np.int64((product >> np.uint64(32)) & np.uint64(n_slots - 1))


@kernel
def fill_slots(keys: I64, size: int, n_slots: int) -> I32:
    """Return the slots of keys[:size]; `n_slots` is a power of two above 2 * size."""
    slots = np.full(n_slots, -1, np.int32)
    for i in range(size):
        slot = _home(keys[i], n_slots)
        while slots[slot] >= 0:
            slot = (slot + 1) & (n_slots - 1)
        slots[slot] = i
    return slots


@kernel
def look_up(queries: I64, keys: I64, slots: I32, out: I32) -> None:
    """Write the id of each query; -1 for unknown keys and for -1."""
    n_slots = len(slots)
    for p in range(len(queries)):
        key = queries[p]
        symbol = np.int32(-1)
        if key >= 0:
            slot = _home(key, n_slots)
            while slots[slot] >= 0:
                if keys[slots[slot]] == key:
                    symbol = slots[slot]
                    break
                slot = (slot + 1) & (n_slots - 1)
        out[p] = symbol


@kernel
def learn(
    queries: I64, keys: I64, counts: I64, size: int, slots: I32, out: I32
) -> tuple[I64, I64, int, I32]:
    """Like `look_up`, but adds unknown keys and counts all.

    Returns keys, counts, size and slots; the arrays are new ones if they had to grow.
    """
    for p in range(len(queries)):
        key = queries[p]
        if key < 0:
            out[p] = -1
            continue
        slot = _home(key, len(slots))
        while slots[slot] >= 0 and keys[slots[slot]] != key:
            slot = (slot + 1) & (len(slots) - 1)
        symbol = slots[slot]
        if symbol < 0:
            symbol = np.int32(size)
            if size == len(keys):
                keys = np.concatenate((keys, np.empty_like(keys)))
                counts = np.concatenate((counts, np.zeros_like(counts)))
            keys[size] = key
            slots[slot] = symbol
            size += 1
            if 2 * size > len(slots):
                slots = fill_slots(keys, size, 2 * len(slots))
        counts[symbol] += 1
        out[p] = symbol
    return keys, counts, size, slots


@kernel
def count(symbols: I32, counts: I64) -> None:
    """Add the occurrences of symbols >= 0 to `counts`."""
    for symbol in symbols:
        if symbol >= 0:
            counts[symbol] += 1


@kernel
def count_at(codes: I32, position: I64, offset: int, counts: I64) -> None:
    """Add the occurrences of symbols >= 0 at one offset from each token to `counts`."""
    for p in position:
        symbol = codes[p + offset]
        if symbol >= 0:
            counts[symbol] += 1


@kernel
def gather(codes: I32, position: I64, offset: int, table: I32, out: I32) -> None:
    """Write out[n] = table[codes[position[n] + offset]], or -1 if the symbol is absent."""
    for n in range(len(position)):
        symbol = codes[position[n] + offset]
        out[n] = table[symbol] if symbol >= 0 else np.int32(-1)


@kernel
def gather_bag(
    codes: I32, position: I64, offsets: I64, low: int, table: I32, distinct: bool, out: I32
) -> None:
    """Write a row of `out` per window offset low, low + 1, ...; -1 outside of the sentence.

    With `distinct`, values of an earlier row for the same token become -1.
    """
    for s in range(len(offsets) - 1):
        for n in range(offsets[s], offsets[s + 1]):
            for row in range(len(out)):
                m = n + low + row
                out[row, n] = -1
                if offsets[s] <= m < offsets[s + 1] and codes[position[m]] >= 0:
                    value = table[codes[position[m]]]
                    repeated = False
                    for earlier in range(row):
                        repeated = repeated or out[earlier, n] == value
                    if not (distinct and repeated):
                        out[row, n] = value


@parallel_kernel(lambda codes, position, *_: chunks(len(position), _CHUNK))
def slot_rows(
    begin: int,
    end: int,
    codes: I32,
    position: I64,
    inside: I32,
    stream: I32,
    offset: I32,
    bag: I8,
    start: I64,
    unknown: int,
    out: I32,
) -> None:
    """Write the table row of every slot at every token, see `sslbench.engine.features.SymbolRows`.

    codes int32[P, padded]; position int64[n] padded position of the tokens; inside int32[n, 2]
    tokens to the left and to the right within the sentence; out int32[n, S].
    """
    for n in range(begin * _CHUNK, min(position.shape[0], end * _CHUNK)):
        for s in range(stream.shape[0]):
            o = offset[s]
            if bag[s] and (o < -inside[n, 0] or o > inside[n, 1]):
                out[n, s] = -1
                continue
            code = codes[stream[s], position[n] + o] + unknown
            out[n, s] = start[s] + code if code >= 0 else -1
