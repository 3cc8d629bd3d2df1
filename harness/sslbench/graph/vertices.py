"""Vertices of a similarity graph: the n-gram types of a text, and the type of each of its tokens.

SUBRAMANYA2010, HE2013 and ZENG2013 take trigrams around the token. Pads are no words: <s1>
stands before the
first token, </s1> after the last, so that every token of every sentence is the center of exactly
one n-gram.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sslbench.corpus import Corpus
from sslbench.errors import UserError
from sslbench.graph.forms import form_of
from sslbench.graph.words import Words, ngram_offsets, ngrams
from sslbench.types import I32, I64, Bool


@dataclass(frozen=True, eq=False)
class Vertices:
    """The vertex of each token, and what can be said of each vertex.

    of: int32[N], the vertex of each token of the graph text, -1 for a token outside the graph.
    count: int64[V], tokens of each vertex.
    first: int64[V], the first of them.
    column, n, derive: what the vertices are types of, see `ngram_vertices`.
    """

    of: I32
    count: I64
    first: I64
    column: str = "word"
    n: int = 3
    derive: str | None = None

    @classmethod
    def from_codes(
        cls, codes: I64, included: Bool, column: str, n: int, derive: str | None
    ) -> Vertices:
        """Vertices for the distinct codes (int64[N]) of the included tokens, in sorted order."""
        tokens = np.flatnonzero(included)
        distinct, dense = np.unique(codes[tokens], return_inverse=True)
        of = np.full(len(codes), -1, np.int32)
        of[tokens] = dense
        first = np.empty(len(distinct), np.int64)
        first[dense[::-1]] = tokens[::-1]  # the last of equal indices stays
        count = np.bincount(dense, minlength=len(distinct)).astype(np.int64)
        return cls(of, count, first, column, n, derive)

    def __len__(self) -> int:
        return len(self.count)


def ngram_vertices(
    text: Corpus,
    column: str = "word",
    n: int = 3,
    excluded: Bool | None = None,
    derive: str | None = None,
) -> Vertices:
    """The n-gram types of a text.

    Their order is that of their words: it depends neither on the order of the sentences nor on the
    vocabulary.

    Parameters
    ----------
    text: all graph text end to end.
    excluded: bool[N], tokens that are no vertices (they are still neighbors of others).
    derive: normal form of the words, see `forms.FORMS`.

    Raises
    ------
    UserError: no such column or form, or n < 1.
    """
    if n < 1:
        raise UserError(f"n-grams of n = {n} words", hint="use n = 3, or at least 1")
    words = Words.of(text.column(column)).mapped(form_of(derive))
    if excluded is not None and excluded.shape != (text.n_tokens,):
        raise ValueError(f"excluded must be bool[{text.n_tokens}], got {excluded.shape}")
    included = np.ones(text.n_tokens, np.bool_) if excluded is None else ~excluded
    return Vertices.from_codes(ngrams(words, text.offsets, n), included, column, n, derive)


def vertex_text(text: Corpus, vertices: Vertices, v: int) -> tuple[str, ...]:
    """The forms of vertex v: ``("<s1>", "the", "cat")``."""
    token = int(vertices.first[v])
    sentence = int(np.searchsorted(text.offsets, token, "right")) - 1
    begin, end = text.offsets[sentence], text.offsets[sentence + 1]
    column, form = text.column(vertices.column), form_of(vertices.derive)

    def at(place: int) -> str:
        if place < begin:
            return f"<s{begin - place}>"
        if place >= end:
            return f"</s{place - end + 1}>"
        return form(column.vocabulary.strings[column.codes[place]])

    return tuple(at(token + offset) for offset in ngram_offsets(vertices.n))
