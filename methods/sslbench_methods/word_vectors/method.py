"""Word vectors as features: of a user's file, or learned from the text of the problem.

Turian et al. (2010): the vectors of the words in a window are real-valued features of the CRF.
They scale all numbers alike; here each vector has the same length, since those of the mutual
information are the longer the more neighbors a word has. Guo et al. (2014): discrete features,
clusters of the vectors or the signs of their large numbers. Without a file, vectors are those of
the shifted positive pointwise mutual information of words and their neighbors, factorized (Levy &
Goldberg 2014): max(0, log p(w, c) / (p(w) p(c)) - log shift). Neighbors at each place are counted
apart.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
from scipy import sparse

from sslbench import Count, Problem, RunContext, SearchAxis, TrainingParams, doc
from sslbench.engine.features.words import Classes, WordFeatures
from sslbench.engine.types import F32, F64, Arrays
from sslbench.experiment.planning.values import UserFile
from sslbench_methods.chinese.word_clusters import kmeans
from sslbench_methods.on_text_features import OnTextFeatures
from sslbench_methods.shared import WIDE, TaskDefaults, by_task
from sslbench_methods.singular import singular_rows
from sslbench_methods.text_words import TextWords
from sslbench_methods.word_vectors.files import read_vectors

VectorFile = Annotated[UserFile, doc("of word2vec, GloVe or fastText; none: learned from text")]
VectorLimit = Annotated[int, doc("vectors that are read: the first ones", ge=1, le=10**7)]
Dimensions = Annotated[int, doc("of learned vectors", ge=1, le=1_000)]
VectorMinCount = Annotated[Count, doc("rarer words have no learned vector")]
Shift = Annotated[float, doc("of the mutual information", ge=1, le=1e6)]
Neighbors = Annotated[int, doc("on each side, to learn from", ge=1, le=20)]
VectorForm = Annotated[
    Literal["real", "signs", "clusters"],
    doc("features: the numbers, signs of large ones, clusters of vectors"),
]
VectorLength = Annotated[float, doc("of a word's vector", gt=0, le=1e3)]
VectorClusters = Annotated[int, doc("of the vectors, for the form clusters", ge=1, le=100_000)]
VectorWindow = Annotated[int, doc("features of words up to so far away", ge=0, le=10)]
VectorColumn = Annotated[str, doc("whose words have vectors")]


class WordVectors:
    """Vectors of words."""

    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """Where the vectors are from, and which features they become."""

        vector_file: VectorFile = ""
        vector_limit: VectorLimit = 200_000
        dimensions: Dimensions = 25
        vector_min_count: VectorMinCount = 2
        shift: Shift = 1.0
        neighbors: Neighbors = 2
        vector_form: VectorForm = "real"
        vector_length: VectorLength = 1.0
        vector_clusters: VectorClusters = 100
        vector_window: VectorWindow = 1
        vector_column: VectorColumn = "word"

    def learn(self, problem: Problem, params: Params, run: RunContext) -> WordFeatures:
        """Read or learn the vectors; UserError for a file that holds none."""
        column = params.vector_column
        if params.vector_file:
            words, vectors = read_vectors(params.vector_file, params.vector_limit)
        else:
            text = TextWords.of(problem, column, params.vector_min_count)
            words, vectors = text.words, text_vectors(text, params, run.rng)
        run.trace["words"], run.trace["dimensions"] = vectors.shape
        window = tuple(range(-params.vector_window, params.vector_window + 1))
        directions = unit_rows(vectors)
        if params.vector_form == "real":
            numbers = (directions * params.vector_length).astype(np.float32)
            return WordFeatures(column, words, window, {}, numbers)
        if params.vector_form == "signs":
            return WordFeatures(column, words, window, signs(vectors))
        number = kmeans(directions, params.vector_clusters, run.rng)
        names = [str(k) for k in range(params.vector_clusters)]
        return WordFeatures(column, words, window, {"vectors": (names, number)})

    @staticmethod
    def restore(arrays: Arrays, facts: dict[str, Any]) -> WordFeatures:
        """Return features of a saved tagger."""
        return WordFeatures.from_arrays(arrays, facts)


class WordVectorsCRF(OnTextFeatures):
    """A supervised CRF that reads the vectors."""

    name = "word_vectors"
    learner = WordVectors

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Those of the training and of the vectors."""

        vector_file: VectorFile = ""
        vector_limit: VectorLimit = 200_000
        dimensions: Dimensions = 25
        vector_min_count: VectorMinCount = 2
        shift: Shift = 1.0
        neighbors: Neighbors = 2
        vector_form: VectorForm = "real"
        vector_length: VectorLength = 1.0
        vector_clusters: VectorClusters = 100
        vector_window: VectorWindow = 1
        vector_column: VectorColumn = "word"
        task_defaults: ClassVar[TaskDefaults] = by_task(WIDE, WIDE, WIDE, WIDE)
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("dimensions", (12, 25, 50, 100)),
            SearchAxis("vector_length", low=0.1, high=10, log=True),
            SearchAxis("vector_form", ("real", "signs", "clusters")),
        )


def text_vectors(text: TextWords, params: WordVectors.Params, rng: np.random.Generator) -> F32:
    """float32[V, at most D] of the words of a text; none of words without neighbors are missing."""
    if not text.words:
        return np.empty((0, params.dimensions), np.float32)
    sides = []
    for distance in range(1, params.neighbors + 1):
        after = text.pairs(distance)
        sides += [after, after.T.tocsr()]
    matrix = sparse.csr_array(sparse.hstack([ppmi(side, params.shift) for side in sides]))
    return singular_rows(matrix, params.dimensions, rng).astype(np.float32)


def unit_rows(vectors: F32) -> F64:
    """Each divided by its length; zeros stay."""
    rows = vectors.astype(np.float64)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows /= np.where(largest > 0, largest, 1.0)  # so that no square overflows or vanishes
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: F64 = rows / np.where(length > 0, length, 1.0)
    return unit


def ppmi(counts: sparse.csr_array, shift: float) -> sparse.csr_array:
    """Return max(0, log p(w, c) / (p(w) p(c)) - log shift), float64, of counts [V, contexts]."""
    pairs = counts.tocoo()
    row, column = np.asarray(counts.sum(axis=1)).ravel(), np.asarray(counts.sum(axis=0)).ravel()
    total = float(pairs.data.sum())
    expected = row[pairs.row].astype(np.float64) * column[pairs.col] * shift
    value: F64 = np.log(pairs.data * total / expected)
    positive = value > 0
    places = pairs.row[positive], pairs.col[positive]
    return sparse.csr_array(sparse.coo_array((value[positive], places), shape=counts.shape))


def signs(vectors: F32) -> dict[str, Classes]:
    """For each dimension a class: "+" or "-" where a number is larger than the mean of its sign.

    Source: Guo et al. (2014), section 3.1.
    """
    names = ["", "+", "-"]
    classes: dict[str, Classes] = {}
    for d, values in enumerate(vectors.T.astype(np.float64)):
        above = values > values[values > 0].mean() if (values > 0).any() else values > 0
        below = values < values[values < 0].mean() if (values < 0).any() else values < 0
        classes[f"vector{d}"] = names, (above + 2 * below).astype(np.int32)
    return classes
