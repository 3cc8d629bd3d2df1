"""Small taggers with text and labels at random."""

from __future__ import annotations

import numpy as np

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.crf import ChainCRF
from sslbench.engine.crf.weights.layout import build_layout
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import I32
from support.objective_toys import L

WORDS = ["a", "b", "c", "d", "e", "f", "g", "h"]


def text(rng: np.random.Generator, lengths: list[int], words: Vocabulary) -> Corpus:
    codes = rng.integers(0, len(words), sum(lengths)).astype(np.int32)
    return Corpus({"word": Column(words, codes)}, np.cumsum([0, *lengths]))


def tagger(
    seed: int,
    state_support: str,
    templates: tuple[str, ...] = ("word[0]", "word[-1]", "word[1]"),
) -> tuple[ChainCRF, Corpus, I32]:
    """A CRF over text in which many attributes occur once, in the same place as others."""
    rng = np.random.default_rng(seed)
    words = Vocabulary([f"{w}{i}" for w in WORDS for i in range(3)])
    corpus = text(rng, [1, 2, 5, 3, 4, 6, 2], words)
    labels = rng.integers(0, L, corpus.n_tokens).astype(np.int32)
    index = TemplateFeaturizer(templates).index(corpus)
    layout = build_layout(
        index.encode(corpus),
        labels,
        L,
        n_node=index.n_node,
        n_edge=index.n_edge,
        state_support=state_support,
    )
    return ChainCRF(("x", "y", "z"), index, layout, np.zeros(layout.size)), corpus, labels
