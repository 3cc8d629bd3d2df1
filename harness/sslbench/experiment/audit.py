"""Duplicate sentences between what a method learns from and what it is tested on.

They are counted and written in the run record; nothing is dropped. Sentences are compared by 64-bit
hashes of their words: among 10^9 sentences of text and 10^4 of test, the chance that two different
ones are ever taken for equal is below 10^-6.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sslbench.corpus import Column, Corpus, Shards, Vocabulary
from sslbench.types import I64

U64 = NDArray[np.uint64]

#: constants of splitmix64 (Steele, Lea & Flood 2014); every step is a bijection of 64 bits
_GOLDEN, _MIX_1, _MIX_2 = (
    np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def duplicates(
    labeled: Corpus, unlabeled: Shards, held_out: Mapping[str, Corpus], column: str = "word"
) -> dict[str, int]:
    """Count the sentences of one part whose words occur, in the same order, in another.

    Parameters
    ----------
    unlabeled: looked at only when it has sentences; one pass, shard by shard.
    held_out: development and test sentences by name.

    Returns
    -------
    ``{"test_in_labeled": n, "test_in_unlabeled": n, ...}``: how many sentences of test (each
    occurrence counts) are also sentences of the labeled sample, and so on. {} without the column.
    """
    if column not in labeled.columns:
        return {}
    words = labeled.column(column).vocabulary
    hashes = {"labeled": sentence_hashes(labeled, words, column)}
    found = {}
    for name, corpus in held_out.items():
        hashes[name] = sentence_hashes(corpus, words, column)
        for other in list(hashes)[:-1]:
            found[f"{name}_in_{other}"] = _count_in(hashes[name], hashes[other])
    if unlabeled.n_sentences:
        known = np.unique(np.concatenate(list(hashes.values())))
        seen = np.zeros(len(known), dtype=np.bool_)
        for shard in unlabeled:
            at = _find(sentence_hashes(shard, words, column), known)
            seen[at[at >= 0]] = True
        for name, own in hashes.items():
            found[f"{name}_in_unlabeled"] = _count_in(own, known[seen])
    return found


def sentence_hashes(corpus: Corpus, words: Vocabulary, column: str = "word") -> U64:
    """uint64[S]: a hash of the words of each sentence, given by their codes in `words`.

    The sum over positions of mix(code + position): order matters, and no loop over sentences is
    needed. The splits of a dataset share `words`; other text may bring a vocabulary of its own, and
    its sentences with words outside `words` then equal no sentence of the splits.
    """
    given = corpus.column(column)
    codes: I64 = given.codes.astype(np.int64)
    if given.vocabulary is not words:
        codes = _translated(given, words)
    lengths = corpus.lengths
    position = np.arange(corpus.n_tokens) - np.repeat(corpus.offsets[:-1], lengths)
    terms = _mix(_mix(codes.astype(np.uint64)) + position.astype(np.uint64) * _GOLDEN)
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms)])  # wraps around: exact
    return _mix(total[corpus.offsets[1:]] - total[corpus.offsets[:-1]] + lengths.astype(np.uint64))


def _translated(column: Column, words: Vocabulary) -> I64:
    """int64[N]: the codes of a column in another vocabulary, -1 for what is not there."""
    used, inverse = np.unique(column.codes, return_inverse=True)
    strings = column.vocabulary.strings
    codes = [words.lookup(strings[code]) for code in used.tolist()]
    return np.array(codes, dtype=np.int64)[inverse]


def _mix(x: U64) -> U64:
    """splitmix64's finaliser, elementwise."""
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    mixed: U64 = x ^ (x >> np.uint64(31))
    return mixed


def _find(wanted: U64, known: U64) -> I64:
    """int64[n]: where each value stands in `known` (ascending), -1 when it does not."""
    if not len(known):
        return np.full(len(wanted), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[at] == wanted, at, -1)


def _count_in(own: U64, other: U64) -> int:
    return int(np.isin(own, other).sum())
