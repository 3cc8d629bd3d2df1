"""Tokens that are dicts of features, as users of CRFsuite make them, read as columns.

Each key becomes a column with one template. A value is a text, a truth value or a number, or a dict
or list of these, whose parts have keys of their own: ``key:part``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sslbench.engine.corpus import Corpus, Vocabulary
from sslbench.engine.corpus.tokens import corpus_of
from sslbench.engine.errors import UserError
from sslbench.engine.features.index import TemplateFeaturizer
from sslbench.engine.features.templates import Atom, Template
from sslbench.engine.types import F64

MAX_KEYS = 5_000  # each is a template, which is looked up at every token
Features = Mapping[str, Any]
Value = str | float


@dataclass(frozen=True)
class DictFeatures:
    """The features of a training text. Others are ignored in later text.

    texts: keys whose values, texts or truth values, are looked up; a missing one is an empty text.
    numbers: keys with other numbers, which become dense columns; a missing one is 0.
    """

    texts: tuple[str, ...]
    numbers: tuple[str, ...]

    @classmethod
    def fit(cls, sentences: Sequence[Sequence[Features]]) -> DictFeatures:
        """Return the keys of a text.

        UserError, with the numbers of sentence and token from 1, for a value of another type, and
        for more than 5,000 keys.
        """
        has_text: dict[str, bool] = {}
        numeric: dict[str, bool] = {}
        for number, sentence in enumerate(sentences, 1):
            for place, token in enumerate(sentence, 1):
                try:
                    for key, value in _flat(token):
                        has_text[key] = has_text.get(key, False) or isinstance(value, str)
                        numeric[key] = numeric.get(key, False) or value not in (0.0, 1.0)
                except TypeError as error:
                    raise UserError(f"sentence {number}, token {place}: {error}") from None
        if len(has_text) > MAX_KEYS:
            hint = "give values as texts, {'word': 'house'}, not as keys, {'word=house': 1}"
            raise UserError(f"{len(has_text):,} features, at most {MAX_KEYS:,}", hint=hint)
        numbers = tuple(key for key in has_text if numeric[key] and not has_text[key])
        return cls(tuple(key for key in has_text if key not in numbers), numbers)

    @property
    def featurizer(self) -> TemplateFeaturizer:
        """One template per text; dense columns for the numbers."""
        templates = [Template((Atom(f"f{i}", 0),)) for i in range(len(self.texts))]
        return TemplateFeaturizer(templates, self.dense if self.numbers else None)

    def columns(self, sentences: Sequence[Sequence[Features]]) -> dict[str, list[list[str]]]:
        """Texts by the name of a column, one per token."""
        keys = [*self.texts, *self.numbers]
        names = [f"f{i}" for i in range(len(self.texts))] + [
            f"n{i}" for i in range(len(self.numbers))
        ]
        flat = [[dict(_flat(token)) for token in sentence] for sentence in sentences]
        return {
            name: [[_text(token.get(key, "")) for token in sentence] for sentence in flat]
            for name, key in zip(names, keys, strict=True)
        }

    def dense(self, corpus: Corpus) -> F64:
        """Return float64[N, D]: the numbers of a corpus that `columns` made."""
        values = np.empty((corpus.n_tokens, len(self.numbers)))
        for i in range(len(self.numbers)):
            column = corpus.column(f"n{i}")
            values[:, i] = _values(column.vocabulary)[column.codes]
        return values


def read_sentences(
    sentences: Sequence[Sequence[Any]],
    columns: Sequence[str],
    features: DictFeatures | None = None,
    vocabularies: dict[str, Vocabulary] | None = None,
) -> Corpus:
    """Return a corpus of tokens that are texts or, with `features`, dicts.

    columns, vocabularies: as of `corpus_of`. UserError as there.
    """
    if features is None:
        return corpus_of(sentences, columns, vocabularies)
    if not all(len(sentence) for sentence in sentences):
        raise UserError("a sentence has no token")
    return Corpus.from_sentences(features.columns(sentences), vocabularies)


def _flat(token: Features) -> Iterator[tuple[str, Value]]:
    """Features of one level; a truth value is 0 or 1. TypeError for a value of another type."""
    if not isinstance(token, Mapping):
        raise TypeError(f"{token!r} is no dict of features, as other tokens are")
    for key, value in token.items():
        if isinstance(value, str):
            yield str(key), value
        elif isinstance(value, bool | int | float | np.number | np.bool_):
            yield str(key), float(value)
        elif isinstance(value, Mapping):
            yield from ((f"{key}:{part}", inner) for part, inner in _flat(value))
        elif isinstance(value, list | tuple | set | frozenset):
            yield from ((f"{key}:{part}", 1.0) for part in sorted(map(str, value)))
        else:
            raise TypeError(f"feature {key!r} is a {type(value).__name__}")


def _text(value: Value) -> str:
    """Return the text of a value; a truth value that does not hold is like a missing feature."""
    if isinstance(value, str):
        return value
    return repr(value) if value else ""


def _values(vocabulary: Vocabulary) -> F64:
    return np.array([float(text or 0.0) for text in vocabulary.strings])
