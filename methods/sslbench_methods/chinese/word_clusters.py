"""Clusters of words by their neighbors: PMI vectors, reduced, then k-means.

Positive pointwise mutual information of a word and its left and right neighbor, singular vectors
of that matrix, k-means on their directions.  In the place of Brown clusters (P. Brown et al.,
Class-based n-gram models of natural language, 1992).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
from scipy import sparse

from sslbench.engine.corpus import Corpus
from sslbench.engine.types import F64, I32, I64
from sslbench_methods.singular import singular_rows

_KMEANS_ROUNDS = 30  # at most
_NOTHING = 1e-9


def neighbor_pmi(text: Iterable[Corpus], number: I32, n: int) -> sparse.csr_array:
    """Return positive PMI of words and their neighbors, float64[n, 2 (n + 1)].

    text: words, one vocabulary.  number: int32[vocabulary], 0 .. n - 1 for the words to be
    described, -1 for others, which are no neighbors either.  Column n (2 n + 1) is the beginning
    (end) of a sentence as left (right) neighbor.
    """
    sides: list[list[I64]] = [[], []]
    for part in text:
        codes = number[part.column("word").codes].astype(np.int64)
        lefts, rights = np.full_like(codes, n), np.full_like(codes, n)
        lefts[1:], rights[:-1] = codes[:-1], codes[1:]
        lefts[part.offsets[:-1]], rights[part.offsets[1:] - 1] = n, n
        for pairs, others in zip(sides, (lefts, rights), strict=True):
            both = (codes >= 0) & (others >= 0)
            pairs.append(codes[both] * (n + 1) + others[both])
    return sparse.csr_array(sparse.hstack([_pmi(np.concatenate(pairs), n) for pairs in sides]))


def _pmi(pairs: I64, n: int) -> sparse.csr_array:
    """Return max(0, log p(w, c) / (p(w) p(c))) of pairs w (n + 1) + c, float64[n, n + 1]."""
    pair, count = np.unique(pairs, return_counts=True)
    word, other = pair // (n + 1), pair % (n + 1)
    of_word = np.bincount(word, count, minlength=n)
    of_other = np.bincount(other, count, minlength=n + 1)
    pmi = np.log(count * float(len(pairs)) / (of_word[word] * of_other[other]))
    kept = pmi > 0
    return sparse.csr_array((pmi[kept], (word[kept], other[kept])), shape=(n, n + 1))


def directions(matrix: sparse.csr_array, dimensions: int, rng: np.random.Generator) -> F64:
    """Rows of U sqrt(S) of a truncated singular value decomposition, scaled to length 1 (or 0)."""
    found = singular_rows(matrix, dimensions, rng)
    length = np.linalg.norm(found, axis=1, keepdims=True)
    # a row of rounding errors has no direction
    known = length > _NOTHING * length.max(initial=0.0)
    rows: F64 = np.divide(found, length, out=np.zeros_like(found), where=known)
    return rows


def kmeans(rows: F64, k: int, rng: np.random.Generator) -> I32:
    """Return int32[n]: the cluster of every row, 0 .. k - 1; k-means from k of the distinct rows.

    Fewer than k clusters when there are fewer distinct rows; some may be empty.
    """
    from scipy.cluster.vq import kmeans2  # slow to import

    if not len(rows):
        return np.empty(0, np.int32)
    distinct = np.unique(rows, axis=0)
    chosen = rng.choice(len(distinct), min(k, len(distinct)), replace=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty cluster keeps its center
        _, cluster = kmeans2(rows, distinct[np.sort(chosen)], _KMEANS_ROUNDS, minit="matrix")
    return cluster.astype(np.int32)
