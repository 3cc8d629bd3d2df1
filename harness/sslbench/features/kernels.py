"""Compiled loops of the feature extraction: flat arrays in, flat arrays out, -1 = absent.

Padded positions: sentence s (tokens offsets[s]..offsets[s+1]) is stored with `padding` positions
on both sides, so its token t lies at offsets[s] + t + padding * (2 s + 1). A stream with reach
(low, high) holds symbols at the positions t = low .. length + high - 1 of every sentence, and -1
elsewhere.

Dictionary of pairs: an append-only map from int64 keys to dense ids in order of first sight, by
open addressing (linear probing, load at most 1/2). `keys` holds the keys by id; `slots`, a power of
two long, holds ids or -1. Looking up the 211,727 word bigrams of CoNLL-2000 takes 1 ms so, and
21 ms by binary search in the sorted keys.
"""
# mypy: disallow-untyped-decorators=False, disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from sslbench.compiled import njit
from sslbench.types import I32, I64

UNRESOLVED = -2
"""In a table vocabulary code -> symbol: the code was not met yet."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def unresolved(codes: I32, table: I32) -> I32:
    """Codes whose table entry is UNRESOLVED, once each, in order of first sight.

    The table stays as it is: another thread that reads it must never see a half-made entry.
    """
    met = np.zeros(len(table), np.bool_)
    found = np.empty(len(table), np.int32)
    n = 0
    for code in codes:
        if table[code] == UNRESOLVED and not met[code]:
            met[code] = True
            found[n] = code
            n += 1
    return found[:n].copy()


@njit(cache=True, nogil=True)
def token_positions(offsets: I64, padding: int) -> I64:
    """Padded position of every token: int64[N]."""
    out = np.empty(offsets[-1], np.int64)
    for s in range(len(offsets) - 1):
        for n in range(offsets[s], offsets[s + 1]):
            out[n] = n + padding * (2 * s + 1)
    return out


@njit(cache=True, nogil=True)
def lay_column(
    codes: I32, table: I32, pads: I32, offsets: I64, low: int, high: int, out: I32
) -> None:
    """Symbols of one column on padded positions: tokens by `table`, pads by pads[2 * padding]."""
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


@njit(cache=True, nogil=True)
def pair_keys(
    left: I32, shift: int, right: I32, offsets: I64, padding: int, low: int, high: int
) -> I64:
    """Key left[p + shift] * 2**32 + right[p] at reached positions; -1 where a half is absent."""
    out = np.full(len(right), -1, np.int64)
    for s in range(len(offsets) - 1):
        start = offsets[s] + padding * (2 * s + 1)
        for p in range(start + low, start + offsets[s + 1] - offsets[s] + high):
            if left[p + shift] >= 0 and right[p] >= 0:
                out[p] = (np.int64(left[p + shift]) << 32) | np.int64(right[p])
    return out


@njit(cache=True, nogil=True, inline="always")
def _home(key: int, n_slots: int) -> Any:
    """Slot where the search for a key begins: the high half of a Fibonacci product, folded."""
    product = np.uint64(key) * _GOLDEN
    return np.int64((product >> np.uint64(32)) & np.uint64(n_slots - 1))


@njit(cache=True, nogil=True)
def fill_slots(keys: I64, size: int, n_slots: int) -> I32:
    """A table of slots for keys[:size]; n_slots is a power of two above 2 * size."""
    slots = np.full(n_slots, -1, np.int32)
    for i in range(size):
        slot = _home(keys[i], n_slots)
        while slots[slot] >= 0:
            slot = (slot + 1) & (n_slots - 1)
        slots[slot] = i
    return slots


@njit(cache=True, nogil=True)
def look_up(wanted: I64, keys: I64, slots: I32, out: I32) -> None:
    """Id of every wanted key, -1 when it is absent (or itself -1)."""
    n_slots = len(slots)
    for p in range(len(wanted)):
        key = wanted[p]
        found = np.int32(-1)
        if key >= 0:
            slot = _home(key, n_slots)
            while slots[slot] >= 0:
                if keys[slots[slot]] == key:
                    found = slots[slot]
                    break
                slot = (slot + 1) & (n_slots - 1)
        out[p] = found


@njit(cache=True, nogil=True)
def learn(
    wanted: I64, keys: I64, counts: I64, size: int, slots: I32, out: I32
) -> tuple[I64, I64, int, I32]:
    """As `look_up`, but new keys get the next ids and all are counted; returns grown arrays."""
    for p in range(len(wanted)):
        key = wanted[p]
        if key < 0:
            out[p] = -1
            continue
        slot = _home(key, len(slots))
        while slots[slot] >= 0 and keys[slots[slot]] != key:
            slot = (slot + 1) & (len(slots) - 1)
        found = slots[slot]
        if found < 0:
            found = np.int32(size)
            if size == len(keys):
                keys = np.concatenate((keys, np.empty_like(keys)))
                counts = np.concatenate((counts, np.zeros_like(counts)))
            keys[size] = key
            slots[slot] = found
            size += 1
            if 2 * size > len(slots):
                slots = fill_slots(keys, size, 2 * len(slots))
        counts[found] += 1
        out[p] = found
    return keys, counts, size, slots


@njit(cache=True, nogil=True)
def count(symbols: I32, counts: I64) -> None:
    """Add the occurrences of every symbol >= 0 to counts."""
    for symbol in symbols:
        if symbol >= 0:
            counts[symbol] += 1


@njit(cache=True, nogil=True)
def count_at(codes: I32, position: I64, offset: int, counts: I64) -> None:
    """Add the occurrences of the symbols that tokens see at one window offset."""
    for p in position:
        symbol = codes[p + offset]
        if symbol >= 0:
            counts[symbol] += 1


@njit(cache=True, nogil=True)
def gather(codes: I32, position: I64, offset: int, table: I32, out: I32) -> None:
    """out[n] = table[codes[position[n] + offset]], -1 where the symbol is absent."""
    for n in range(len(position)):
        symbol = codes[position[n] + offset]
        out[n] = table[symbol] if symbol >= 0 else np.int32(-1)


@njit(cache=True, nogil=True)
def gather_bag(
    codes: I32, position: I64, offsets: I64, low: int, table: I32, distinct: bool, out: I32
) -> None:
    """One row of out per window offset low, low + 1, ...: inside the sentence only.

    With `distinct`, a value that an earlier row holds for the same token becomes -1.
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
