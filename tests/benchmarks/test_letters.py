"""Earth mover's distances of letters, ours and by scipy's assignment, and the search over them.

Images are generated: strokes of about 28 lit pixels, as handwriting has, and noisy copies of them.
Both sides get pixels that two images do not share; SSLBENCH_BENCH_LETTERS says how many letters.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from problem import OUT, ROUNDS, Figure
from scipy.optimize import linear_sum_assignment

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.graph.vertices import ngram_vertices
from sslbench_datasets.letters.emd import emd
from sslbench_datasets.letters.similarity import image_bits, nearest_letters, vertex_images

LETTERS = int(os.environ.get("SSLBENCH_BENCH_LETTERS", "10000" if OUT else "500"))
PAIRS = 20 * LETTERS
PEER_PAIRS = min(PAIRS, 5_000)  # of the peer, which is slower
NEIGHBORS = 20
DISTANCES = "letters: a distance (peer: scipy's assignment)"

_Y, _X = np.divmod(np.arange(128), 8)
_GROUND = np.minimum(3.0, np.hypot(_Y[:, None] - _Y, _X[:, None] - _X))


def handwriting(n: int) -> Any:
    """bool[n, 16, 8]: walks of three pixels' width, moved by a pixel, some pixels turned over."""
    rng = np.random.default_rng(0)
    shapes = np.zeros((26, 16, 8), np.bool_)
    for shape in shapes:
        y, x = 4, 3
        for dy, dx in rng.integers(-1, 2, (24, 2)):
            y, x = int(np.clip(y + dy, 1, 13)), int(np.clip(x + dx, 1, 6))
            shape[y, x : x + 2] = True
    pixels = shapes[rng.integers(0, 26, n)]
    moves = rng.integers(-1, 2, (n, 2))
    pixels = np.stack([np.roll(a, move, (0, 1)) for a, move in zip(pixels, moves, strict=True)])
    return pixels ^ (rng.random(pixels.shape) < 0.03)


def strings(images: Any) -> list[str]:
    return [np.packbits(image).tobytes().hex() for image in images]


@pytest.fixture(scope="session")
def images() -> Any:
    return handwriting(LETTERS)


def pairs(images: Any, n: int) -> Any:
    """Images of letters with a cosine above 0.6, as those have whose distances are asked for."""
    rng, flat = np.random.default_rng(1), images.reshape(len(images), -1).astype(np.float64)
    first, second = rng.integers(0, len(images), (2, 20 * n))
    norms = np.sqrt(flat.sum(axis=1))
    cosine = np.einsum("ij,ij->i", flat[first], flat[second]) / (norms[first] * norms[second])
    near = np.flatnonzero(cosine > 0.6)
    near = np.resize(near, n)
    return images[first[near]], images[second[near]]


def by_assignment(P: Any, Q: Any) -> list[float]:
    result = []
    for p, q in zip(P.reshape(len(P), -1), Q.reshape(len(Q), -1), strict=True):
        a, b = np.flatnonzero(p & ~q), np.flatnonzero(q & ~p)
        cost = _GROUND[np.ix_(a, b)]
        result.append(cost[linear_sum_assignment(cost)].sum() + 3.0 * abs(len(a) - len(b)))
    return result


def timed(benchmark: Any, work: Any) -> float:
    benchmark.pedantic(work, rounds=ROUNDS, iterations=1, warmup_rounds=0)
    return float(benchmark.stats.stats.median) if benchmark.enabled else float("nan")


def test_distances_ours(benchmark: Any, figure: Figure, images: Any) -> None:
    P, Q = (image_bits(strings(side)) for side in pairs(images, PAIRS))
    emd(P[:10], Q[:10])  # compile
    figure(DISTANCES, "us", ours=timed(benchmark, lambda: emd(P, Q)) / PAIRS * 1e6)


def test_distances_peer(benchmark: Any, figure: Figure, images: Any) -> None:
    P, Q = pairs(images, PEER_PAIRS)
    figure(DISTANCES, "us", peer=timed(benchmark, lambda: by_assignment(P, Q)) / PEER_PAIRS * 1e6)
    actual = emd(*(image_bits(strings(side)) for side in (P, Q)))
    np.testing.assert_allclose(actual, by_assignment(P, Q), rtol=0, atol=1e-10)


def test_neighbors(benchmark: Any, figure: Figure, images: Any) -> None:
    vocabulary = Vocabulary()
    column = Column(vocabulary, vocabulary.encode(strings(images)))
    text = Corpus({"image": column}, np.arange(0, LETTERS + 1, 5))
    letters = vertex_images(text, ngram_vertices(text, "image"))

    def work() -> object:
        return nearest_letters(letters, NEIGHBORS, threads=1, progress=lambda _: None)

    work()  # compile
    figure(f"letters: exact {NEIGHBORS} nearest of {LETTERS:,}", "s", ours=timed(benchmark, work))
