"""Vertices of a similarity graph: the n-gram types of a text, and the type of each of its tokens.

The pads <s1> before the first token and </s1> after the last are not words, and every token of
every sentence is the center of exactly one n-gram (docs/specs/graph.md, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.graph.forms import form_of
from sslbench.engine.graph.words import CodedForms, ngrams
from sslbench.engine.types import I32, I64, Bool


@dataclass(frozen=True, eq=False)
class Vertices:
    """The n-gram types of a text that are vertices of a graph.

    vertex_of: int32[N], the vertex of each token of the text, -1 for a token without one.
    count: int64[V], tokens of each vertex.
    first: int64[V], the first of them.
    column, n, form: column, length and normal form of the n-grams, see `ngram_vertices`.
    """

    vertex_of: I32
    count: I64
    first: I64
    column: str = "word"
    n: int = 3
    form: str | None = None

    @classmethod
    def from_codes(
        cls, codes: I64, included: Bool, column: str, n: int, form: str | None
    ) -> Vertices:
        """Vertices for the distinct codes (int64[N]) of the included tokens, in sorted order."""
        tokens = np.flatnonzero(included)
        distinct, dense = np.unique(codes[tokens], return_inverse=True)
        vertex_of = np.full(len(codes), -1, np.int32)
        vertex_of[tokens] = dense
        first = np.empty(len(distinct), np.int64)
        first[dense[::-1]] = tokens[::-1]  # of equal indices, the last assignment counts
        count = np.bincount(dense, minlength=len(distinct)).astype(np.int64)
        return cls(vertex_of, count, first, column, n, form)

    def __len__(self) -> int:
        return len(self.count)


def ngram_vertices(
    text: Corpus,
    column: str = "word",
    n: int = 3,
    excluded: Bool | None = None,
    form: str | None = None,
) -> Vertices:
    """Return the n-gram types of a text.

    They are in the order of their words, which depends neither on the order of the sentences nor on
    the vocabulary.

    Parameters
    ----------
    text: all graph text, end to end.
    excluded: bool[N], tokens without a vertex (they are still in the n-grams of other tokens).
    form: name of a normal form of words (`forms.FORMS`); None = words as they are.

    Raises
    ------
    UserError: no such column or form, or n < 1. ValueError: `excluded` is no bool[N].
    """
    if n < 1:
        raise UserError(f"n-grams of n = {n} words", hint="use n = 3, or at least 1")
    words = CodedForms.from_column(text.column(column)).mapped(form_of(form))
    if excluded is not None:
        check_array(excluded, "excluded tokens", np.bool_, (text.n_tokens,))
    included = np.ones(text.n_tokens, np.bool_) if excluded is None else ~excluded
    return Vertices.from_codes(ngrams(words, text.offsets, n), included, column, n, form)
