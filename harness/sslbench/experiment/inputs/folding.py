"""Folds of a labeled sample: of random sentences, of documents, or of adjacent sentences.

Sentences of one document share names and topics. A fold of random sentences has such neighbors
among the sentences that its model is trained on, and promises a score that new text does not give.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sslbench.engine.corpus import Corpus, sentence_ids
from sslbench.engine.errors import UserError
from sslbench.engine.types import F64, I32, I64
from sslbench.experiment.records.record import FoldBy

#: sentences to train on, sentences held out; int64, ascending
Fold = tuple[I64, I64]
#: orders that adjacent sentences of a text in document order must be more similar than, all of them
PERMUTATIONS = 199
#: sentences of the text that the test reads
MOST_SENTENCES = 2000
#: words in more than this share of the sentences say nothing about a document
COMMON = 0.1
_STREAM = 0x626C6F63


def folds(n: int, k: int) -> list[Fold]:
    """Cut n items into k parts whose sizes differ by at most one; each is held out once.

    Item i is held out in fold i mod k. Of items in the order of a draw, folds are random, and those
    of a larger draw of the same seed contain those of a smaller one. UserError when n < k.
    """
    _check(n, k)
    return _parts(np.arange(n, dtype=np.int64) % k, k)


def grouped_folds(drawn: I64, k: int, documents: I32 | None, fold_by: FoldBy | None) -> list[Fold]:
    """Cut a labeled sample into k folds, as indices into `drawn`; each is held out once.

    Parameters
    ----------
    drawn: int64[n], sentences of train in the order of the draw.
    documents: int32[S], of all sentences of train; needed for folds of documents.
    fold_by: None = `folds`. "blocks": fold i has the i-th part of the sample in the order of train.
        "documents": whole documents, large ones first, each in the smallest fold until then; blocks
        if the sample has fewer documents than folds.

    Raises
    ------
    UserError: there are fewer sentences than folds.
    """
    if fold_by is None:
        return folds(len(drawn), k)
    _check(len(drawn), k)
    if fold_by == "documents" and documents is not None:
        _, number = np.unique(documents[drawn], return_inverse=True)
        if number.max() + 1 >= k:
            return _parts(_balanced(np.bincount(number), k)[number], k)
    part = np.empty(len(drawn), dtype=np.int64)
    part[np.argsort(drawn)] = np.arange(len(drawn)) * k // len(drawn)
    return _parts(part, k)


def _check(n: int, k: int) -> None:
    if not 2 <= k <= n:
        raise UserError(f"{n} labeled sentence{'s' * (n != 1)} cannot be cut into {k} folds")


def _parts(part: I64, k: int) -> list[Fold]:
    return [(np.flatnonzero(part != fold), np.flatnonzero(part == fold)) for fold in range(k)]


def _balanced(sizes: I64, k: int) -> I64:
    """int64[D]: the fold of each document, so that folds have about equally many sentences."""
    fold, filled = np.empty(len(sizes), dtype=np.int64), np.zeros(k, dtype=np.int64)
    for document in np.argsort(-sizes, kind="stable"):
        fold[document] = np.argmin(filled)
        filled[fold[document]] += sizes[document]
    return fold


def kept_together(train: Corpus) -> FoldBy | None:
    """What folds of a corpus keep together: its documents; else blocks if it is in their order."""
    if train.documents is not None:
        return "documents"
    return "blocks" if in_document_order(train) else None


def in_document_order(text: Corpus) -> bool:
    """Whether adjacent sentences share more rare words than they do in any of 199 random orders.

    If the order of the text says nothing, the answer is wrong in one of 200 texts (a permutation
    test at the level 1/200). The similarity of two sentences is the cosine of their vectors of
    words, weighted by the inverse of the number of sentences with the word.
    """
    head = text.between(0, min(MOST_SENTENCES, text.n_sentences))
    n = head.n_sentences
    similarity = similarities(head)
    rng = np.random.default_rng([_STREAM])
    observed = _adjacent(similarity, np.arange(n))
    orders = (rng.permutation(n) for _ in range(PERMUTATIONS))
    return all(observed > _adjacent(similarity, order) for order in orders)


def _adjacent(similarity: F64, order: I64) -> float:
    """Sum of the similarities of neighbors; similarity: float64[n, n].  order: int64[n]."""
    return float(similarity[order[:-1], order[1:]].sum())


def similarities(text: Corpus) -> F64:
    """float64[n, n]: the cosines of all pairs of sentences; 0 for one without rare words.

    Their vectors have a number for each word that occurs in some other sentence and is not common:
    the inverse of the number of sentences with it.
    """
    column = text.columns["word"] if "word" in text.columns else next(iter(text.columns.values()))
    n = text.n_sentences
    _, words = np.unique(column.codes, return_inverse=True)
    pairs = np.unique(np.stack([sentence_ids(text.offsets), words]), axis=1)
    frequency = np.bincount(pairs[1])
    rare = (frequency > 1) & (frequency <= max(2.0, COMMON * n))
    sentence, word = pairs[:, rare[pairs[1]]]
    weights = 1.0 / frequency[word]
    norms = np.sqrt(np.bincount(sentence, weights**2, minlength=n))
    vectors = sparse.csr_array(
        (weights / norms[sentence], (sentence, word)), shape=(n, len(frequency))
    )
    return np.asarray((vectors @ vectors.T).toarray(), dtype=np.float64)
