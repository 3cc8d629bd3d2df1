"""Sentences as lists of tokens, as Python programs hold them."""

from __future__ import annotations

from collections.abc import Sequence

from sslbench.engine.corpus.columns import Corpus, Vocabulary
from sslbench.engine.errors import UserError

Token = str | Sequence[str]
"""One text, or one text per column."""


def corpus_of(
    sentences: Sequence[Sequence[Token]],
    columns: Sequence[str],
    vocabularies: dict[str, Vocabulary] | None = None,
) -> Corpus:
    """Return a corpus of tokens.

    columns: what the texts of a token are, e.g. ("word", "pos").
    vocabularies: as in `Corpus.from_sentences`.
    UserError, with the numbers of sentence and token from 1, for a sentence without tokens and for
    a token that has not one text per column.
    """
    for number, sentence in enumerate(sentences, 1):
        if isinstance(sentence, str) or not len(sentence):
            problem = "is one text" if sentence else "has no token"
            raise UserError(f"sentence {number} {problem}", hint="give each as a list of tokens")
        for place, token in enumerate(sentence, 1):
            texts = _texts(token)
            if len(texts) != len(columns) or not all(isinstance(text, str) for text in texts):
                raise UserError(
                    f"sentence {number}, token {place}: {token!r} is not one text for each of"
                    f" {', '.join(columns)}"
                )
    coded = {
        name: [[_texts(token)[i] for token in sentence] for sentence in sentences]
        for i, name in enumerate(columns)
    }
    return Corpus.from_sentences(coded, vocabularies)


def _texts(token: Token) -> Sequence[str]:
    return (token,) if isinstance(token, str) else tuple(token)
