"""Tokens that are dicts of features, as users of CRFsuite make them, read as columns.

A token is a set of attributes with a number each, named as python-crfsuite names them: the feature
``{"word": "house"}`` is the attribute ``word:house`` with the number 1, ``{"length": 3}`` is
``length`` with the number 3, and dicts and lists inside have attributes such as ``outer:inner``. A
token may also be a list of attributes. An attribute with the number 0 is not there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

import numpy as np

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.corpus.tokens import corpus_of_texts, token_texts
from sslbench.engine.errors import UserError
from sslbench.engine.features.bags import Bag, BagFeaturizer, number_column
from sslbench.engine.lazy import lazy
from sslbench.engine.types import I32

MAX_BAGS = 100  # each has at least one column, which is looked up at every token
MAX_NUMBERS = 5_000  # each is a dense column
Attributes = dict[str, float]
#: stands for no attribute in the columns of a bag; an attribute cannot be this text
_NONE = "\0"


class TokenReader(Protocol):
    """Makes a corpus of tokens as a Python program gives them."""

    def read(self, sentences: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Check tokens and bring them into one form; UserError with sentence and token from 1."""

    def corpus(
        self, read: Sequence[Sequence[Any]], vocabularies: dict[str, Vocabulary] | None = None
    ) -> Corpus:
        """Return a corpus of the result of `read`; vocabularies: of `Corpus.from_sentences`."""


@dataclass(frozen=True)
class TextReader:
    """Reads tokens that are texts, or a text for each column."""

    columns: tuple[str, ...]

    def read(self, sentences: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """See `TokenReader`."""
        return token_texts(sentences, self.columns)

    def corpus(
        self, read: Sequence[Sequence[Any]], vocabularies: dict[str, Vocabulary] | None = None
    ) -> Corpus:
        """See `TokenReader`."""
        return corpus_of_texts(read, self.columns, vocabularies)


@dataclass(frozen=True)
class DictFeatures:
    """The attributes of a training text. Others are ignored in later text, as by CRFsuite.

    bags: the attributes that are there or not. Those of one key are in one bag, since most tokens
        have one of them; its width is the most of them at a token.
    numbers: attributes with other numbers, which become dense columns.
    """

    bags: tuple[Bag, ...]
    numbers: tuple[str, ...]
    _vocabularies: tuple[Vocabulary, ...] = field(repr=False)

    @classmethod
    def fit(cls, read: Iterable[Sequence[Attributes]], keys: Mapping[str, str]) -> DictFeatures:
        """Return the attributes of a text; arguments: from `read_attributes`.

        UserError for more than 5,000 `numbers`.
        """
        tokens = list(chain.from_iterable(read))
        times = Counter(chain.from_iterable(tokens))
        numbers = dict.fromkeys(
            name for token in tokens for name, value in token.items() if value != 1.0
        )
        if len(numbers) > MAX_NUMBERS:
            message = f"{len(numbers):,} features with numbers other than 0 and 1"
            raise UserError(message, hint=f"at most {MAX_NUMBERS:,}: give the others as texts")
        attributes = _bags((name for name in times if name not in numbers), keys, times)
        bag_of = {name: bag for bag, names in enumerate(attributes) for name in names}
        width = [1] * len(attributes)
        for token in tokens:
            for bag, n in Counter(bag_of[name] for name in token if name in bag_of).items():
                width[bag] = max(width[bag], n)
        bags = tuple(Bag(f"f{i}", n) for i, n in enumerate(width))
        return cls(bags, tuple(numbers), tuple(Vocabulary([_NONE, *own]) for own in attributes))

    @property
    def featurizer(self) -> BagFeaturizer:
        """One template per bag; dense columns for the numbers."""
        return BagFeaturizer(self.bags, self.numbers)

    @lazy
    def _places(self) -> dict[str, tuple[int, int]]:
        """Bag and code of each attribute."""
        return {
            name: (bag, code)
            for bag, vocabulary in enumerate(self._vocabularies)
            for code, name in enumerate(vocabulary.strings)
            if code
        }

    def read(self, sentences: Sequence[Sequence[Any]]) -> list[list[Attributes]]:
        """See `TokenReader`."""
        return read_attributes(sentences)

    def corpus(
        self,
        read: Sequence[Sequence[Attributes]],
        vocabularies: dict[str, Vocabulary] | None = None,
    ) -> Corpus:
        """See `TokenReader`; the vocabularies are those of the training."""
        tokens = list(chain.from_iterable(read))
        columns = {name: Column(own, codes) for name, own, codes in self._columns(tokens)}
        shared = {} if vocabularies is None else vocabularies
        for i, name in enumerate(self.numbers):
            vocabulary = shared.setdefault(number_column(i), Vocabulary())
            codes = vocabulary.encode(repr(token.get(name, 0.0)) for token in tokens)
            columns[number_column(i)] = Column(vocabulary, codes)
        return Corpus(columns, np.cumsum([0, *map(len, read)], dtype=np.int64))

    def _columns(self, tokens: Sequence[Attributes]) -> Iterator[tuple[str, Vocabulary, I32]]:
        """Yield the columns of the bags: name, vocabulary, codes int32[N]."""
        codes = [[np.zeros(len(tokens), np.int32) for _ in bag.columns] for bag in self.bags]
        places = self._places
        for n, token in enumerate(tokens):
            used: dict[int, int] = {}
            for name in token:
                if name not in places:
                    continue
                bag, code = places[name]
                place = used[bag] = used.get(bag, -1) + 1
                if place == len(codes[bag]):  # more at a token than in the training text
                    codes[bag].append(np.zeros(len(tokens), np.int32))
                codes[bag][place][n] = code
        for own, vocabulary, rows in zip(self.bags, self._vocabularies, codes, strict=True):
            for place, row in enumerate(rows):
                yield own.column(place), vocabulary, row


def read_attributes(
    sentences: Sequence[Sequence[Any]], keys: dict[str, str] | None = None
) -> list[list[Attributes]]:
    """Return the attributes of tokens, without those whose number is 0.

    keys: receives the key of each attribute that is a text or a part of a dict or list.

    UserError, with the numbers of sentence and token from 1, for a value of another type, and for a
    number that is not finite.
    """
    keys = {} if keys is None else keys
    read = []
    for number, sentence in enumerate(sentences, 1):
        tokens = []
        for place, token in enumerate(sentence, 1):
            try:
                tokens.append(_attributes(token, keys))
            except TypeError as error:
                hint = (
                    "features are texts, finite numbers, truth values, and dicts or lists of them"
                )
                message = f"sentence {number}, token {place}: {error}"
                raise UserError(message, hint=hint) from None
        read.append(tokens)
    return read


def _attributes(token: Any, keys: dict[str, str]) -> Attributes:
    """Return the attributes of a token; TypeError for a value of another type."""
    found: Attributes = {}
    if not isinstance(token, Mapping):
        for name in _listed(token, "the token"):
            found[name] = found.get(name, 0.0) + 1.0
        return found
    for key, value in token.items():
        if type(key) is not str:
            _check_text(key, "the name of a feature")
        if isinstance(value, str):
            name, number = f"{key}:{value}", 1.0
            keys[name] = key
        elif isinstance(value, bool | int | float | np.number | np.bool_):
            name, number = key, float(value)
            if not math.isfinite(number):
                raise TypeError(f"feature {key!r} is {number}")
        elif isinstance(value, Mapping):
            inner = _attributes(value, {})
            names = {f"{key}:{part}": number for part, number in inner.items()}
            for name in names:
                keys[name] = key
            found |= names
            continue
        else:
            for part in _listed(value, f"feature {key!r}"):
                name = f"{key}:{part}"
                keys[name], found[name] = key, found.get(name, 0.0) + 1.0
            continue
        if number:
            found[name] = found.get(name, 0.0) + number
    return found


def _listed(value: object, what: str) -> Iterable[str]:
    """Return a list of texts; TypeError, naming `what`, for anything else."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise TypeError(f"{what} is {'None' if value is None else f'a {type(value).__name__}'}")
    for part in value:
        _check_text(part, f"a part of {what}")
    return value


def _check_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r}, not a text")


def _bags(names: Iterable[str], keys: Mapping[str, str], times: Counter[str]) -> list[list[str]]:
    """Return the attributes of each bag: those of a key; those of rare keys are in one.

    keys: of attributes; that of ``word=house`` is ``word``, that of others the attribute itself.
    times: how often each attribute occurs.
    """
    by_key: dict[str, list[str]] = {}
    for name in names:
        by_key.setdefault(keys.get(name) or name.partition("=")[0], []).append(name)
    count = Counter({key: sum(times[name] for name in part) for key, part in by_key.items()})
    largest = dict(count.most_common(MAX_BAGS))
    rest = [name for key, part in by_key.items() if key not in largest for name in part]
    bags = [part for key, part in by_key.items() if key in largest]
    return [*bags, rest] if rest or not bags else bags
