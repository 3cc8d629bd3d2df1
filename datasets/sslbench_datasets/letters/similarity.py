"""Similarity of handwritten letters, by their images and those beside them in the word.

Source: He et al. (2013); docs/specs/graph.md, section 6. For letters u and v whose pixels have a
cosine above 0.3,

    sim(u, v) = 0.8 s(u, v) + beta (s(left of u, left of v) + s(right of u, right of v))
    s(u, v) = exp(-E(u, v) / 100), E the earth mover's distance of `emd`

with s = 0 for neighbors of a cosine of at most 0.3. Where both letters are the first of their
words, s(left, left) is 0.6, where only one is, 0; likewise at the end. beta is 0.2 in the paper and
0.1 in the authors' program.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sslbench.engine.compilation.compiled import chunks
from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.graph.neighbors import NeighborLists
from sslbench.engine.graph.options import GraphOptions, Progress, silent
from sslbench.engine.graph.similarity import Similarity
from sslbench.engine.graph.vertices import Vertices
from sslbench.engine.graph.words import CodedForms, Windows
from sslbench_datasets.letters.emd import FAR, PIXELS, U64
from sslbench_datasets.letters.search import ROWS, SCALE, VertexImages, search_blocks

NEIGHBOR_WEIGHT = 0.1
"""beta of the authors' program."""

_REPORTS = 10  # of progress, in one search
_IMAGE = re.compile(f"[0-9a-f]{{{PIXELS // 4}}}")


@dataclass(frozen=True)
class LetterSimilarity(Similarity):
    """The similarity "letters", over a column of images; every letter has a vertex.

    neighbor_weight: beta, the weight of each adjacent letter, >= 0.
    """

    neighbor_weight: float = NEIGHBOR_WEIGHT

    def __post_init__(self) -> None:
        if not self.neighbor_weight >= 0:
            raise UserError(f"neighbor_weight = {self.neighbor_weight}", hint="use 0 or more")

    def neighbors(
        self,
        text: Corpus,
        vertices: Vertices,
        options: GraphOptions,
        *,
        counting_text: Corpus | None = None,
        threads: int = 1,
        progress: Progress = silent,
    ) -> NeighborLists:
        """The exact neighbors; UserError for `counting_text`, `max_df` and approximate search."""
        if counting_text is not None or (options.max_df, options.search) != (None, "exact"):
            raise UserError(
                "letters are compared image by image",
                hint="leave out max_df, the approximate search and text for counts",
            )
        return nearest_letters(
            vertex_images(text, vertices),
            options.k,
            neighbor_weight=self.neighbor_weight,
            threads=threads,
            progress=progress,
        )

    def cache_key(self) -> Mapping[str, Any]:
        """The weight of the adjacent letters."""
        return {"neighbor_weight": self.neighbor_weight}

    def neighbor_digest(self, text: Corpus, vertices: Vertices) -> str | None:
        """SHA-256 of the images: neighbors do not depend on where in the text the images are.

        So one search serves all labeled samples of a corpus.
        """
        images = vertex_images(text, vertices)
        return hashlib.sha256(b"".join(map(np.ndarray.tobytes, images))).hexdigest()


def image_bits(images: Sequence[str]) -> U64:
    """uint64[n, 2], see `emd`; UserError for anything but 32 lower-case hexadecimal digits."""
    for text in images:
        if not _IMAGE.fullmatch(text):
            raise UserError(
                f"image {text!r} is not {PIXELS // 4} lower-case hexadecimal digits",
                hint="the similarity letters needs a column of images of 16 rows of 8 pixels",
            )
    words = np.frombuffer(bytes.fromhex("".join(images)), ">u8")
    return words.astype(np.uint64).reshape(-1, 2)


def vertex_images(text: Corpus, vertices: Vertices) -> VertexImages:
    """Images of trigram vertices that were made from `text`; UserError as for `image_bits`."""
    words = CodedForms.from_column(text.column(vertices.column))
    windows = Windows.from_sentences(words.codes, text.offsets, 1)
    pads = 2 * windows.reach
    bits = np.concatenate([np.zeros((pads, 2), np.uint64), image_bits(words.strings)])
    lit = np.unpackbits(bits.view(np.uint8), axis=1).sum(axis=1, dtype=np.int64)
    lit[:pads] = -1
    grams = np.stack([windows.at(offset)[vertices.first] for offset in (-1, 0, 1)])
    high, low = (np.ascontiguousarray(bits[grams, half]) for half in (0, 1))
    return VertexImages(high, low, lit[grams])


def nearest_letters(
    images: VertexImages,
    k: int,
    *,
    neighbor_weight: float = NEIGHBOR_WEIGHT,
    threads: int | None = None,
    progress: Progress = silent,
) -> NeighborLists:
    """The k most similar letters of each; the result does not depend on the number of threads.

    Cost: V^2 comparisons of a few nanoseconds and, for handwriting, some hundred distances per
    letter. UserError for k < 1.
    """
    if k < 1:
        raise UserError(f"{k} neighbors per vertex", hint="use 1 or more")
    n = images.lit.shape[1]
    sims, ids = np.zeros((n, k)), np.full((n, k), -1, np.int32)
    closeness = np.exp(-np.arange(int(FAR) * PIXELS + 1) / SCALE)
    borders = np.unique(np.linspace(0, n, _REPORTS + 1).astype(np.int64) // ROWS * ROWS)
    distances = 0
    with using_threads(threads):
        for start, end in zip(borders, np.append(borders[1:], n), strict=True):
            rows = np.arange(start, end)
            computed = np.zeros(chunks(len(rows), ROWS), np.int64)
            search_blocks(images, rows, neighbor_weight, closeness, sims, ids, computed)
            distances += int(computed.sum())
            progress(f"graph: {end:,} of {n:,} letters, {distances:,} distances")
    return NeighborLists(ids, sims)
