"""The vertices of new text: which n-gram of a graph each token is the center of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sslbench.engine.checked import Saved, vector
from sslbench.engine.corpus import Corpus, Vocabulary
from sslbench.engine.graph.forms import form_of
from sslbench.engine.graph.vertices import Vertices
from sslbench.engine.graph.words import CodedForms, Windows, ngram_offsets, packed
from sslbench.engine.types import F64, I32, AnyArray, Arrays


@dataclass(frozen=True, eq=False)
class NgramLookup:
    """The n-grams of the vertices of a graph, without the text that they came from.

    forms: normal forms of the words of the graph text.
    grams: int32[V, n], the n-gram of each vertex in codes of `Windows` over these forms.
    column, form: of the n-grams, see `ngram_vertices`.
    """

    forms: Vocabulary
    grams: I32
    column: str = "word"
    form: str | None = None

    @classmethod
    def from_text(cls, text: Corpus, vertices: Vertices) -> NgramLookup:
        """Return the n-grams of vertices that were made from `text`."""
        words = CodedForms.from_column(text.column(vertices.column)).mapped(form_of(vertices.form))
        windows = Windows.from_sentences(words.codes, text.offsets, vertices.n // 2)
        grams = [windows.at(offset)[vertices.first] for offset in ngram_offsets(vertices.n)]
        forms = Vocabulary(words.strings)
        return cls(forms, np.stack(grams, axis=1), vertices.column, vertices.form)

    def __len__(self) -> int:
        return len(self.grams)

    def vertices(self, text: Corpus) -> I32:
        """Return int32[N]: the vertex of every token, -1 for an n-gram that is not in the graph.

        The text may have a vocabulary of its own. UserError if it lacks the column.
        """
        V, n = self.grams.shape
        words = CodedForms.from_column(text.column(self.column)).mapped(form_of(self.form))
        code = np.array([self.forms.lookup(form) for form in words.strings], dtype=np.int32)
        code[code < 0] = len(self.forms)  # no n-gram of the graph has this code
        windows = Windows.from_sentences(code[words.codes], text.offsets, n // 2)
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

    def arrays(self) -> Saved:
        """Return arrays and JSON-able metadata from which `from_arrays` restores the lookup."""
        metadata = {
            "forms": self.forms.strings,
            "n": self.grams.shape[1],
            "column": self.column,
            "form": self.form,
        }
        return {"grams": self.grams.ravel()}, metadata

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any]
    ) -> NgramLookup:
        """Restore a lookup.

        Raises ValueError if arrays and metadata do not match, UserError for an unknown normal form.
        """
        forms, n = Vocabulary(map(str, metadata["forms"])), int(metadata["n"])
        if n < 1:
            raise ValueError(f"n-grams of {n} words")
        grams = vector(arrays, "grams", np.int32, bounds=(0, 2 * (n // 2) + len(forms)))
        if len(grams) % n:
            raise ValueError(f"{len(grams)} codes are no {n}-grams")
        form = metadata["form"]
        form_of(form)
        return cls(forms, grams.reshape(-1, n), str(metadata["column"]), form)


@dataclass(frozen=True, eq=False)
class NgramScores:
    """Scores of labels by the vertex that the n-gram of a token is.

    scores: float64[V + 1, L], the last row, of n-grams that are no vertices, zero.
    """

    lookup: NgramLookup
    scores: F64

    def of(self, text: Corpus) -> F64:
        """Return float64[N, L]."""
        return self.scores[self.lookup.vertices(text)]

    def arrays(self) -> Saved:
        """Return arrays and JSON-able metadata from which `from_arrays` restores the scores."""
        arrays, metadata = self.lookup.arrays()
        return {**arrays, "offset": self.scores}, {"lookup": metadata}

    @classmethod
    def from_arrays(cls, arrays: Arrays, metadata: dict[str, Any], n_labels: int) -> NgramScores:
        """Restore; ValueError when arrays and metadata do not fit together."""
        lookup, scores = NgramLookup.from_arrays(arrays, metadata["lookup"]), arrays["offset"]
        shape = len(lookup) + 1, n_labels
        if scores.dtype != np.float64 or scores.shape != shape or not np.isfinite(scores).all():
            raise ValueError(f"the scores are {scores.dtype} {scores.shape}, or not finite")
        return cls(lookup, scores)
