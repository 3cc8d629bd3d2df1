"""Vertices of new text: which of a graph's n-grams each of its tokens is the center of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sslbench.checked import vector
from sslbench.corpus import Corpus, Vocabulary
from sslbench.graph.forms import form_of
from sslbench.graph.vertices import Vertices
from sslbench.graph.words import Windows, Words, ngram_offsets, packed
from sslbench.types import I32


@dataclass(frozen=True, eq=False)
class NgramLookup:
    """The n-grams that the vertices of a graph stand for, without the text they came from.

    forms: normal forms of the words of the graph text.
    grams: int32[V, n], the n-gram of each vertex in codes of `Windows` over these forms.
    column, derive: see `ngram_vertices`.
    """

    forms: Vocabulary
    grams: I32
    column: str = "word"
    derive: str | None = None

    @classmethod
    def of(cls, text: Corpus, vertices: Vertices) -> NgramLookup:
        """The n-grams of the vertices; `text` is what they were made of."""
        words = Words.of(text.column(vertices.column)).mapped(form_of(vertices.derive))
        windows = Windows.lay(words.codes, text.offsets, vertices.n // 2)
        grams = [windows.at(offset)[vertices.first] for offset in ngram_offsets(vertices.n)]
        forms = Vocabulary(words.strings)
        return cls(forms, np.stack(grams, axis=1), vertices.column, vertices.derive)

    def __len__(self) -> int:
        return len(self.grams)

    def vertices(self, text: Corpus) -> I32:
        """int32[N]: the vertex of every token, -1 for an n-gram that the graph does not have.

        The text may have a vocabulary of its own. UserError if it lacks the column.
        """
        V, n = self.grams.shape
        words = Words.of(text.column(self.column)).mapped(form_of(self.derive))
        code = np.array([self.forms.lookup(form) for form in words.strings], dtype=np.int32)
        code[code < 0] = len(self.forms)  # in no gram, so that no gram with it is found
        windows = Windows.lay(code[words.codes], text.offsets, n // 2)
        size = 2 * windows.reach + len(self.forms) + 1
        codes, distinct = packed(
            [
                (np.concatenate([self.grams[:, place], windows.at(offset)]), size)
                for place, offset in enumerate(ngram_offsets(n))
            ]
        )
        vertex = np.full(distinct, -1, np.int32)
        vertex[codes[:V]] = np.arange(V, dtype=np.int32)
        return vertex[codes[V:]]

    def arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON-able facts that `from_arrays` restores the lookup from."""
        facts = {
            "forms": self.forms.strings,
            "n": self.grams.shape[1],
            "column": self.column,
            "derive": self.derive,
        }
        return {"grams": self.grams.ravel()}, facts

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]
    ) -> NgramLookup:
        """Restore; ValueError when arrays and facts do not fit together."""
        forms, n = Vocabulary(map(str, facts["forms"])), int(facts["n"])
        if n < 1:
            raise ValueError(f"n-grams of {n} words")
        grams = vector(arrays, "grams", np.int32, bounds=(0, 2 * (n // 2) + len(forms)))
        if len(grams) % n:
            raise ValueError(f"{len(grams)} codes are no {n}-grams")
        derive = facts["derive"]
        form_of(derive)
        return cls(forms, grams.reshape(-1, n), str(facts["column"]), derive)
