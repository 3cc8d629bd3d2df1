"""Small corpora of words that tests write out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sslbench.engine.corpus import Column, Corpus, Vocabulary


def corpus_of(
    sentences: Sequence[Sequence[str]], vocabulary: Vocabulary | None = None, column: str = "word"
) -> Corpus:
    """A corpus with one column; vocabulary: to share with other corpora, it grows."""
    vocabulary = Vocabulary() if vocabulary is None else vocabulary
    codes = vocabulary.encode(word for sentence in sentences for word in sentence)
    offsets = np.cumsum([0, *map(len, sentences)], dtype=np.int64)
    return Corpus({column: Column(vocabulary, codes)}, offsets)
