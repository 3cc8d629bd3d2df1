"""Similarity of handwritten letters, each with its neighbors in the word: no context features.

Source: He et al. (2013); docs/specs/graph.md, section 6. Letters u and v whose pixels have a cosine
above 0.3 are as similar as

    sim(u, v) = 0.8 s(u, v) + beta (s(left of u, left of v) + s(right of u, right of v))
    s(u, v) = exp(-E(u, v) / 100), E the earth mover's distance of `emd`

with s = 0 for neighbors of a smaller cosine. Where both letters are the first of their words,
s(left, left) is 0.6, where only one is, 0; likewise at the end. In the paper beta is 0.2, in its
release 0.1.

The k nearest are exact. Every pair gets an upper bound on its similarity from the numbers of
common and of other pixels; pairs are then compared in descending order of it, first by sharper
bounds, until none that is left can be among the k best.
"""
# mypy: disallow-untyped-decorators=False, disable-error-code="no-any-return"

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from sslbench.corpus import Corpus
from sslbench.errors import UserError
from sslbench.graph.neighbor_kernels import best_first, offer
from sslbench.graph.neighbors import Neighbors, using_threads
from sslbench.graph.vertices import Vertices
from sslbench.graph.words import Windows, Words
from sslbench.types import F64, I32, I64
from sslbench_datasets.letters.emd import (
    FAR,
    PIXELS,
    U64,
    Scratch,
    at_least,
    count,
    distance,
    scratch,
)

OWN_WEIGHT = 0.8
NEIGHBOR_WEIGHT = 0.1
SCALE = 100.0
"""What E is divided by (in the paper the square of 10, and called so)."""

BORDER = 0.6
"""s of what is beside two letters that both begin a word, or both end one."""

_LEFT, _OWN, _RIGHT = 0, 1, 2
_SLACK = 1e-12  # what rounding could take from a bound, many times over
_BUCKETS = 1024  # pairs are sorted by their bounds as finely as this
_ROWS = 64  # vertices that make a piece of work
_STEPS = 10  # reports of progress
_IMAGE = re.compile(f"[0-9a-f]{{{PIXELS // 4}}}")


class Letters(NamedTuple):
    """Images of V vertices, [3, V] each: letter to the left, letter, letter to the right.

    high, low: uint64, see `emd`; lit: int64, their lit pixels, -1 where the word has no letter.
    """

    high: U64
    low: U64
    lit: I64

    def digest(self) -> str:
        """Sha256 of the images."""
        parts = (np.ascontiguousarray(part).tobytes() for part in self)
        return hashlib.sha256(b"".join(parts)).hexdigest()


def image_bits(images: Sequence[str]) -> U64:
    """uint64[n, 2], see `emd`; UserError for what is not 32 lower-case hexadecimal digits."""
    for text in images:
        if not _IMAGE.fullmatch(text):
            raise UserError(
                f"image {text!r} is not {PIXELS // 4} lower-case hexadecimal digits",
                hint="the graph of letters is over a column of images of 16 rows of 8 pixels",
            )
    words = np.frombuffer(bytes.fromhex("".join(images)), ">u8")
    return words.astype(np.uint64).reshape(-1, 2)


def letters_of(text: Corpus, vertices: Vertices) -> Letters:
    """Images of trigram vertices that were made of `text`; UserError as for `image_bits`."""
    words = Words.of(text.column(vertices.column))
    windows = Windows.lay(words.codes, text.offsets, 1)
    pads = 2 * windows.reach
    bits = np.concatenate([np.zeros((pads, 2), np.uint64), image_bits(words.strings)])
    lit = np.unpackbits(bits.view(np.uint8), axis=1).sum(axis=1, dtype=np.int64)
    lit[:pads] = -1
    grams = np.stack([windows.at(place)[vertices.first] for place in (-1, 0, 1)])
    high, low = (np.ascontiguousarray(bits[grams, half]) for half in (0, 1))
    return Letters(high, low, lit[grams])


def nearest_letters(
    letters: Letters,
    k: int,
    *,
    neighbor_weight: float = NEIGHBOR_WEIGHT,
    threads: int | None = None,
    progress: Callable[[str], None],
) -> Neighbors:
    """The k most similar letters of each, see above; the number of threads changes nothing.

    Takes V^2 comparisons of a few nanoseconds and, for handwriting, some hundred distances a
    letter. UserError for k < 1.
    """
    if k < 1:
        raise UserError(f"{k} neighbors a vertex", hint="take 1 or more")
    n = letters.lit.shape[1]
    sims, ids = np.zeros((n, k)), np.full((n, k), -1, np.int32)
    closeness = np.exp(-np.arange(int(FAR) * PIXELS + 1) / SCALE)
    borders = np.unique(np.linspace(0, n, _STEPS + 1).astype(np.int64) // _ROWS * _ROWS)
    compared = 0
    with using_threads(threads):
        for start, end in zip(borders, np.append(borders[1:], n), strict=True):
            rows = np.arange(start, end)
            compared += int(_search(letters, rows, neighbor_weight, closeness, sims, ids).sum())
            progress(f"graph: {end:,} of {n:,} letters, {compared:,} distances")
    return Neighbors(ids, sims)


# -- similarity ------------------------------------------------------------------------------------
@njit(cache=True, nogil=True, inline="always")
def _quick(v: Letters, side: int, i: int, j: int, closeness: F64) -> float:
    """Upper bound on s; s itself where no images are compared."""
    a, b = v.lit[side, i], v.lit[side, j]
    if a < 0 or b < 0:
        return BORDER if a == b else 0.0
    common = count(v.high[side, i] & v.high[side, j], v.low[side, i] & v.low[side, j])
    if 100 * common * common <= 9 * a * b:  # a cosine of 0.3 at most, in whole numbers
        return 0.0
    # A pixel that moves costs 1 or more, one too many FAR.
    more, less = max(a, b) - common, min(a, b) - common
    return closeness[3 * more - 2 * less]


@njit(cache=True, nogil=True, inline="always")
def _total(left: float, own: float, right: float, weight: float) -> float:
    return OWN_WEIGHT * own + weight * (left + right)


@njit(cache=True, nogil=True)
def _bound(v: Letters, i: int, j: int, weight: float, closeness: F64) -> float:
    """Upper bound on the similarity, 0 if it is 0."""
    own = _quick(v, _OWN, i, j, closeness)
    if own == 0.0:
        return 0.0
    left, right = _quick(v, _LEFT, i, j, closeness), _quick(v, _RIGHT, i, j, closeness)
    return _total(left, own, right, weight)


@njit(cache=True, nogil=True)
def _similarity(
    v: Letters, i: int, j: int, weight: float, closeness: F64, floor: float, part: F64, s: Scratch
) -> tuple[float, int]:
    """The similarity, or 0 if it is below the floor; and how many distances it took."""
    for side in range(3):
        part[side] = _quick(v, side, i, j, closeness)
    n = 0
    for exact in (False, True):
        for side in (_OWN, _LEFT, _RIGHT):
            if part[side] == 0.0 or v.lit[side, i] < 0:
                continue
            p0, p1 = v.high[side, i], v.low[side, i]
            q0, q1 = v.high[side, j], v.low[side, j]
            if exact:
                cost = distance(p0, p1, q0, q1, s)
                n += 1
            else:
                cost = at_least(p0, p1, q0, q1)
            part[side] = np.exp(-cost / SCALE)
            if _total(part[_LEFT], part[_OWN], part[_RIGHT], weight) < floor - _SLACK:
                return 0.0, n
    return _total(part[_LEFT], part[_OWN], part[_RIGHT], weight), n


# -- search ----------------------------------------------------------------------------------------
@njit(cache=True, nogil=True)
def _candidates(
    v: Letters, i: int, weight: float, closeness: F64, bound: F64, start: I64, order: I32
) -> int:
    """List all letters of similarity above 0 by descending bucket of their bounds; their number.

    bound: float64[V], is filled; start: int64[_BUCKETS + 1], room; order: int32[V], the list.
    """
    scale = (_BUCKETS - 1) / (OWN_WEIGHT + 2 * weight)
    start[:] = 0
    for j in range(len(bound)):
        bound[j] = _bound(v, i, j, weight, closeness)
        if bound[j] > 0.0 and j != i:
            start[_BUCKETS - int(bound[j] * scale)] += 1
    n = 0
    for b in range(_BUCKETS + 1):
        n, start[b] = n + start[b], n
    for j in range(len(bound)):
        if bound[j] > 0.0 and j != i:
            b = _BUCKETS - int(bound[j] * scale)
            order[start[b]] = j
            start[b] += 1
    return n


@njit(cache=True, nogil=True, parallel=True)
def _search(v: Letters, rows: I64, weight: float, closeness: F64, sims: F64, ids: I32) -> I64:
    """The k best of the rows; int64[blocks]: distances computed."""
    V, k = v.lit.shape[1], sims.shape[1]
    width = (OWN_WEIGHT + 2 * weight) / (_BUCKETS - 1)
    blocks = (len(rows) + _ROWS - 1) // _ROWS
    compared = np.zeros(blocks, np.int64)
    for b in prange(blocks):
        s, part = scratch(), np.empty(3)
        bound, order = np.empty(V), np.empty(V, np.int32)
        start = np.empty(_BUCKETS + 1, np.int64)
        for i in rows[b * _ROWS : (b + 1) * _ROWS]:
            size, floor = 0, 0.0
            n = _candidates(v, i, weight, closeness, bound, start, order)
            for t in range(n):
                j = order[t]
                # The bounds of a bucket are not sorted: they differ by its width.
                if bound[j] + width < floor - _SLACK:
                    break
                if bound[j] < floor - _SLACK:
                    continue
                sim, steps = _similarity(v, i, j, weight, closeness, floor, part, s)
                compared[b] += steps
                if sim > 0.0:
                    size = offer(sims[i], ids[i], size, sim, j)
                    floor = sims[i, 0] if size == k else 0.0
            best_first(sims[i], ids[i], size)
    return compared
