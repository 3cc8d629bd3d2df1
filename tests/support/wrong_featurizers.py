"""A featurizer that keeps all rules, and one for each way to break a rule."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from sslbench import Corpus, TemplateFeaturizer


def with_dense(dense: Callable[[Corpus], np.ndarray]) -> TemplateFeaturizer:
    return TemplateFeaturizer(["bias", "word[0]", "edge: word[-1]"], dense)


def lengths(corpus: Corpus) -> np.ndarray:
    """float64[N, 1]: letters of each word."""
    return np.array([[float(len(word))] for word in corpus.column("word").strings()]).reshape(-1, 1)


def honest() -> TemplateFeaturizer:
    return with_dense(lengths)


def not_a_featurizer() -> list[str]:
    return ["word[0]"]


def random_templates() -> TemplateFeaturizer:
    return TemplateFeaturizer([f"word[{random.randint(-100, 100)}]"])


def needs_another_column() -> TemplateFeaturizer:
    return TemplateFeaturizer(["word[0]", "pos[0]"])


def reads_labels() -> TemplateFeaturizer:
    return TemplateFeaturizer(["word[0]", "label[-1]"])


def uses_labels_where_there_are_any() -> TemplateFeaturizer:
    def dense(corpus: Corpus) -> np.ndarray:
        column = corpus.columns.get("label", corpus.column("word"))
        return np.array([[float(len(s) + ord(s[-1]))] for s in column.strings()]).reshape(-1, 1)

    return with_dense(dense)


def other_width_for_short_text() -> TemplateFeaturizer:
    return with_dense(lambda corpus: np.zeros((corpus.n_tokens, 1 + (corpus.n_sentences > 1))))


def not_a_number() -> TemplateFeaturizer:
    return with_dense(lambda corpus: lengths(corpus) / 0 * 0)


def place_in_the_corpus() -> TemplateFeaturizer:
    return with_dense(lambda corpus: np.arange(float(corpus.n_tokens))[:, None])


def share_of_the_corpus() -> TemplateFeaturizer:
    """How often the word occurs in the corpus."""

    def dense(corpus: Corpus) -> np.ndarray:
        codes = corpus.column("word").codes
        return np.bincount(codes, minlength=1)[codes][:, None].astype(float)

    return with_dense(dense)


def code_of_the_word() -> TemplateFeaturizer:
    return with_dense(lambda corpus: corpus.column("word").codes[:, None].astype(float))


def changes_words() -> TemplateFeaturizer:
    def dense(corpus: Corpus) -> np.ndarray:
        codes = corpus.column("word").codes
        codes.base[:1] = codes.max(initial=0)  # codes are read-only
        return np.zeros((corpus.n_tokens, 1))

    return with_dense(dense)


def never_the_same() -> TemplateFeaturizer:
    return with_dense(lambda corpus: np.random.default_rng().random((corpus.n_tokens, 1)))


def needs_known_words() -> TemplateFeaturizer:
    """Fails on words of other text than that of the first call."""
    known: set[str] = set()

    def dense(corpus: Corpus) -> np.ndarray:
        words = corpus.column("word").strings()
        known.update(words if not known else ())
        assert known.issuperset(words)
        return lengths(corpus)

    return with_dense(dense)
