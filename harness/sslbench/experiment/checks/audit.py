"""Counts of sentences that occur in both training and test text, and of labels never seen.

The counts go into the run record; nothing is dropped. Runs on a user's own data also get a line on
each count that makes a score say little. Sentences are compared by 64-bit hashes of
their words: with 10^9 sentences of text and 10^4 of test, the probability of any false match is
below 10^-6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sslbench.engine.corpus import Column, Corpus, Shards, Vocabulary
from sslbench.engine.types import I64

U64 = NDArray[np.uint64]
#: share of the test above which repeated sentences are worth a line
NOTABLE = 0.01
_NAMED = 5
_REPEATED = {
    "labeled": "labeled sentences: the score is not that of new text",
    "unlabeled": "in the unlabeled text, which a method may have learned from",
}

#: constants of splitmix64 (Steele, Lea & Flood 2014), whose steps are bijections of 64 bits
_GOLDEN, _MIX_1, _MIX_2 = (
    np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def duplicates(
    labeled: Corpus, unlabeled: Shards, held_out: Mapping[str, Corpus]
) -> dict[str, int]:
    """Count the sentences of each part that also occur, word for word, in another part.

    Parameters
    ----------
    labeled: the labeled sample.
    unlabeled: read once, shard by shard; left out of the result if it is empty.
    held_out: development and test sentences by name of the split.

    Returns
    -------
    ``{"test_in_labeled": n, "test_in_unlabeled": n, ...}``: how many sentences of test, with
    repetitions, occur in the labeled sample, and so on. {} without a column "word".
    """
    if "word" not in labeled.columns:
        return {}
    words = labeled.column("word").vocabulary
    hashes = {"labeled": sentence_hashes(labeled, words)}
    counts = {}
    for name, corpus in held_out.items():
        hashes[name] = sentence_hashes(corpus, words)
        for other in list(hashes)[:-1]:
            counts[f"{name}_in_{other}"] = _count_in(hashes[name], hashes[other])
    if unlabeled.n_sentences:
        distinct = np.unique(np.concatenate(list(hashes.values())))
        seen = np.zeros(len(distinct), dtype=np.bool_)
        for shard in unlabeled:
            seen |= np.isin(distinct, sentence_hashes(shard, words))
        for name, ours in hashes.items():
            counts[f"{name}_in_unlabeled"] = _count_in(ours, distinct[seen])
    return counts


def unseen_labels(labeled: Corpus, test: Corpus) -> dict[str, int]:
    """Count the tokens of each label of the test that the labeled sample lacks."""
    seen = set(np.unique(labeled.column("label").strings()).tolist())
    return {
        label: n
        for label, n in sorted(Counter(test.column("label").strings()).items())
        if label not in seen
    }


def audit_warnings(
    audit: Mapping[str, Any], sentences: Mapping[str, int], method: str, needs_text: bool
) -> list[str]:
    """Return a line on each finding that a user should know.

    audit: with the keys "duplicates" and "unseen_labels".
    sentences: their number by part: "labeled", "unlabeled", "test".
    needs_text: the method is one that learns from unlabeled text.
    """
    lines = []
    for other, says in _REPEATED.items():
        n, total = audit["duplicates"].get(f"test_in_{other}", 0), sentences["test"]
        if n > NOTABLE * total:
            lines.append(f"{n} of {total} test sentences ({100 * n / total:.0f} %) are also {says}")
    if unseen := audit.get("unseen_labels"):
        named = [f"{label} ({n})" for label, n in list(unseen.items())[:_NAMED]]
        more = f" and {len(unseen) - _NAMED} more" if len(unseen) > _NAMED else ""
        names = ", ".join(named)
        lines.append(f"labels of the test that no labeled sentence has (tokens): {names}{more}")
    if needs_text and not sentences["unlabeled"]:
        lines.append(f"there is no unlabeled text, from which {method} would learn")
    return lines


def sentence_hashes(corpus: Corpus, words: Vocabulary) -> U64:
    """uint64[S]: a hash of the words of each sentence, from their codes in `words`.

    The hash is a sum over positions of mix(mix(code) + position * constant): it depends on the
    order of the words and needs no loop over sentences. A corpus with a vocabulary of its own is
    translated; its sentences with words outside `words` match no sentence of the splits.
    """
    text = corpus.column("word")
    codes: I64 = text.codes.astype(np.int64)
    if text.vocabulary is not words:
        codes = _translated(text, words)
    lengths = corpus.lengths
    position = np.arange(corpus.n_tokens) - np.repeat(corpus.offsets[:-1], lengths)
    terms = _mix(_mix(codes.astype(np.uint64)) + position.astype(np.uint64) * _GOLDEN)
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms)])  # exact modulo 2^64
    return _mix(total[corpus.offsets[1:]] - total[corpus.offsets[:-1]] + lengths.astype(np.uint64))


def _translated(column: Column, words: Vocabulary) -> I64:
    """int64[N]: the codes of a column in another vocabulary, -1 for strings outside it."""
    used, inverse = np.unique(column.codes, return_inverse=True)
    strings = column.vocabulary.strings
    codes = [words.lookup(strings[code]) for code in used.tolist()]
    return np.array(codes, dtype=np.int64)[inverse]


def _mix(x: U64) -> U64:
    """The finalizer of splitmix64, elementwise."""
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    mixed: U64 = x ^ (x >> np.uint64(31))
    return mixed


def _count_in(values: U64, others: U64) -> int:
    return int(np.isin(values, others).sum())
