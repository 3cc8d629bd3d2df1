"""Images of letters to test with; distances and similarities computed from their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment, linprog

from sslbench.engine.corpus import Corpus
from support.texts import corpus_of

ROWS, COLUMNS = 16, 8
Y, X = np.divmod(np.arange(ROWS * COLUMNS), COLUMNS)
GROUND = np.minimum(3.0, np.hypot(Y[:, None] - Y, X[:, None] - X))


def image_of(*pixels: tuple[int, int]) -> str:
    """Hexadecimal digits of an image with these (row, column) lit."""
    lit = np.zeros((ROWS, COLUMNS), np.uint8)
    for pixel in pixels:
        lit[pixel] = 1
    return np.packbits(lit, axis=1).tobytes().hex()


def pixels_of(image: str) -> Any:
    """bool[128], row by row, digit by digit."""
    return np.array([bit == "1" for digit in image for bit in f"{int(digit, 16):04b}"])


def by_assignment(p: Any, q: Any) -> float:
    """The transport problem, common pixels included, as one assignment."""
    a, b = np.flatnonzero(p), np.flatnonzero(q)
    cost = GROUND[np.ix_(a, b)]
    i, j = linear_sum_assignment(cost)
    return float(cost[i, j].sum()) + 3.0 * abs(len(a) - len(b))


def by_flow(p: Any, q: Any) -> float:
    """The same as a linear program: at most 1 per pixel, min(|P|, |Q|) in all."""
    a, b = np.flatnonzero(p), np.flatnonzero(q)
    n, m = len(a), len(b)
    if not n or not m:
        return 3.0 * max(n, m)
    out = sparse.kron(sparse.eye(n), np.ones((1, m)))
    into = sparse.kron(np.ones((1, n)), sparse.eye(m))
    result = linprog(
        GROUND[np.ix_(a, b)].ravel(),
        A_ub=sparse.vstack([out, into]),
        b_ub=np.ones(n + m),
        A_eq=np.ones((1, n * m)),
        b_eq=[min(n, m)],
        method="highs",
    )
    return float(result.fun) + 3.0 * abs(n - m)


def closeness(p: Any, q: Any) -> float:
    """s of two images: 0 unless the cosine of their pixels is above 0.3."""
    norms = math.sqrt(p.sum() * q.sum())
    cosine = (p & q).sum() / norms if norms else 0.0
    return math.exp(-by_assignment(p, q) / 100) if cosine > 0.3 + 1e-12 else 0.0


def similarity(words: list[list[Any]], u: Any, v: Any, beta: float) -> float:
    """sim of two letters (word, place), from the definition."""
    own = closeness(words[u[0]][u[1]], words[v[0]][v[1]])
    if own == 0:
        return 0.0
    total = 0.8 * own
    for step in (-1, 1):
        here, there = u[1] + step, v[1] + step
        inside = 0 <= here < len(words[u[0]]), 0 <= there < len(words[v[0]])
        if inside == (True, True):
            total += beta * closeness(words[u[0]][here], words[v[0]][there])
        elif inside == (False, False):
            total += beta * 0.6
    return total


def random_images(rng: np.random.Generator, n: int) -> list[str]:
    """Noisy copies of a few strokes, some equal, one empty, one full."""
    shapes = [rng.random(ROWS * COLUMNS) < share for share in (0.1, 0.2, 0.25, 0.4)]
    result = ["0" * 32, "f" * 32]
    while len(result) < n:
        noise = rng.random(ROWS * COLUMNS) < rng.choice([0.0, 0.03, 0.1])
        bits = shapes[rng.integers(len(shapes))] ^ noise
        bits = np.roll(bits.reshape(ROWS, COLUMNS), rng.integers(-1, 2), axis=rng.integers(2))
        result.append(np.packbits(bits).tobytes().hex())
    return result


def random_words(seed: int, n: int) -> list[list[str]]:
    """Words of 1 to 5 letters, at least n letters in all."""
    rng = np.random.default_rng(seed)
    letters, words = random_images(rng, n), []
    while sum(map(len, words)) < n:
        words.append([str(x) for x in rng.choice(letters, rng.integers(1, 6))])
    return words


def text_of(words: list[list[str]]) -> Corpus:
    """A corpus with the column image."""
    corpus = corpus_of(words)
    return Corpus({"image": corpus.column("word")}, corpus.offsets)
