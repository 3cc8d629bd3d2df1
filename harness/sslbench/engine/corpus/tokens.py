"""Sentences as lists of tokens, as Python programs give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sslbench.engine.corpus.columns import Corpus, Vocabulary
from sslbench.engine.errors import UserError

Token = str | Sequence[str]
"""One text, or one text per column."""


def sentence_lists(sentences: Iterable[Iterable[Any]]) -> list[list[Any]]:
    """Return sentences as lists; the iterables are read once.

    UserError, with the number of the sentence from 1, for what is no list of lists; see `listed`.
    """
    rows = listed(sentences, "X")
    return [listed(sentence, f"sentence {n}") for n, sentence in enumerate(rows, 1)]


def listed(values: Iterable[Any], what: str) -> list[Any]:
    """Return an iterable, which is read once, as a list.

    UserError, naming `what`, for a text, a table, a dict, a set (whose order says nothing), and
    what cannot be iterated.
    """
    if type(values) is list:
        return values
    if not isinstance(values, str | bytes | Mapping | set | frozenset):
        with suppress(TypeError):
            if not hasattr(values, "columns"):
                return list(values)
    kind = "one text" if isinstance(values, str) else f"a {type(values).__name__}"
    table = "; of a table, give a column" if hasattr(values, "columns") else ""
    raise UserError(f"{what} is {kind}", hint=f"give a list of sentences, each a list{table}")


def token_texts(sentences: Sequence[Sequence[Any]], columns: Sequence[str]) -> list[list[Any]]:
    """Return the texts of tokens: a text for one column, a tuple of texts for several.

    UserError, with the numbers of sentence and token from 1, for a token that has not one text per
    column.
    """
    if len(columns) == 1 and all(type(token) is str for row in sentences for token in row):
        return list(map(list, sentences))
    return [
        [_texts(token, columns, number, place) for place, token in enumerate(sentence, 1)]
        for number, sentence in enumerate(sentences, 1)
    ]


def _texts(token: Any, columns: Sequence[str], number: int, place: int) -> Any:
    if type(token) is tuple and tuple(map(type, token)) == (str,) * len(columns):
        return token if len(columns) > 1 else token[0]
    texts: tuple[Any, ...] = (token,)
    if not isinstance(token, str | bytes | Mapping | set | frozenset):
        with suppress(TypeError):
            texts = tuple(token)
    if len(texts) != len(columns) or not all(isinstance(text, str) for text in texts):
        wanted = "a text" if len(columns) == 1 else f"one text for each of {', '.join(columns)}"
        raise UserError(f"sentence {number}, token {place}: {token!r} is not {wanted}")
    # subclasses of str, such as numpy's, become str
    plain = tuple(map(str.__str__, texts))
    return plain[0] if len(columns) == 1 else plain


def corpus_of_texts(
    texts: Sequence[Sequence[Any]],
    columns: Sequence[str],
    vocabularies: dict[str, Vocabulary] | None = None,
) -> Corpus:
    """Return a corpus of the result of `token_texts`; arguments as of `corpus_of`."""
    if len(columns) == 1:
        return Corpus.from_sentences({columns[0]: texts}, vocabularies)
    coded = {
        name: [[token[i] for token in sentence] for sentence in texts]
        for i, name in enumerate(columns)
    }
    return Corpus.from_sentences(coded, vocabularies)


def check_tokens(sentences: Iterable[Sequence[Any]]) -> None:
    """UserError, with its number from 1, for a sentence without tokens."""
    for number, sentence in enumerate(sentences, 1):
        if not len(sentence):
            raise UserError(f"sentence {number} has no token", hint="leave it out")


def corpus_of(
    sentences: Iterable[Iterable[Token]],
    columns: Sequence[str],
    vocabularies: dict[str, Vocabulary] | None = None,
) -> Corpus:
    """Return a corpus of tokens.

    columns: what the texts of a token are, e.g. ("word", "pos").
    vocabularies: as in `Corpus.from_sentences`.
    UserError as of `sentence_lists`, `check_tokens` and `token_texts`.
    """
    rows = sentence_lists(sentences)
    check_tokens(rows)
    return corpus_of_texts(token_texts(rows, columns), columns, vocabularies)
