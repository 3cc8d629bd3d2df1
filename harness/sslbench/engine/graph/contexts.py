"""Context vectors of vertices: pointwise mutual information with the features of their tokens.

    pmi(t, f) = ln(N c_tf / (n_t c_f))

over the tokens of the counted text that are not excluded: N of them, n_t of type t, c_f with
feature f (a value of one template), c_tf of type t with feature f. He et al. (2013) print the
formula without N; then all weights are negative and the cosines differ (docs/specs/graph.md,
section 4.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sslbench.engine.corpus import Corpus, made_of
from sslbench.engine.graph.forms import character_type, form_of, learned_suffixes, longest_suffix
from sslbench.engine.graph.templates import AtomKind, ContextTemplate, TemplateSet
from sslbench.engine.graph.vertices import Vertices
from sslbench.engine.graph.words import CodedForms, Windows, ngrams, numbered, one_column, packed
from sslbench.engine.types import F64, I32, I64, Bool

_PAD = "pad"
"""The character type of pads, which no word has."""


@dataclass(frozen=True, eq=False)
class Contexts:
    """Context vectors before normalization.

    pmi: csr float64[V, F]; only features of two vertices or more, since others match nothing.
        Columns are in the order of templates, then of the words of the features.
    norm: float64[V], Euclidean norm over *all* features of a vertex, also those without a column.
    """

    pmi: sparse.csr_array
    norm: F64

    def unit(self) -> sparse.csr_array:
        """Rows divided by their norms, csr float32[V, F]; a row of norm 0 stays 0."""
        scale = np.divide(1.0, self.norm, out=np.zeros_like(self.norm), where=self.norm > 0)
        data = self.pmi.data * np.repeat(scale, np.diff(self.pmi.indptr))
        return sparse.csr_array(
            (data.astype(np.float32), self.pmi.indices, self.pmi.indptr), shape=self.pmi.shape
        )


@dataclass(frozen=True)
class CountedTokens:
    """The M tokens of the counted text that are not excluded.

    vertex: int32[M], -1 for n-grams without a vertex. totals: int64[V], n_t.
    words: in the feature form. windows: with M positions.
    """

    vertex: I32
    totals: I64
    words: CodedForms
    windows: Windows


def context_vectors(
    text: Corpus,
    vertices: Vertices,
    templates: TemplateSet,
    *,
    counting_text: Corpus | None = None,
    suffixes: Iterable[str] | None = None,
) -> sparse.csr_array:
    """Normalized context vectors of the vertices, csr float32[V, F], see `Contexts`.

    Parameters
    ----------
    text: what the vertices were made from.
    counting_text: more text that is counted without adding vertices; shares the vocabulary.
    suffixes: the list for "suffix" atoms; None = learned from the words of all counted text.
    """
    counted = count_tokens(text, vertices, templates, counting_text)
    return weigh(counted, templates.templates, suffixes).unit()


def weigh(
    counted: CountedTokens,
    templates: Sequence[ContextTemplate],
    suffixes: Iterable[str] | None = None,
) -> Contexts:
    """Weights of all features, template by template; parameters as of `context_vectors`."""
    n_vertices, width = len(counted.totals), 0
    squares = np.zeros(n_vertices)
    entries: list[tuple[I64, I64, F64]] = []
    for feature, n_features, vertex in _features(templates, counted, suffixes):
        row, column, joint = _pairs(vertex, feature, n_features)
        marginal = np.bincount(feature, minlength=n_features)
        weight = pmi(joint, counted.totals[row], marginal[column], len(counted.vertex))
        squares += np.bincount(row, weights=weight * weight, minlength=n_vertices)
        shared = np.bincount(column, minlength=n_features) > 1
        number, here = np.cumsum(shared) - 1 + width, shared[column]
        entries.append((row[here], number[column[here]], weight[here]))
        width += int(shared.sum())
    return Contexts(_matrix(entries, (n_vertices, width)), np.sqrt(squares))


def pmi(joint: I64, of_type: I64, of_feature: I64, total: int) -> F64:
    """ln(N c_tf / (n_t c_f)), elementwise for counts > 0."""
    # Products of counts are exact below 2**53, so the weight of independent events is exactly 0.
    observed = joint.astype(np.float64) * total
    return np.log(observed / (of_type.astype(np.float64) * of_feature))


def excluded_tokens(text: Corpus, column: str, templates: TemplateSet) -> Bool:
    """Return bool[N]: the tokens that the template set leaves out of the graph.

    Raises UserError if the text lacks the column.
    """
    values, characters = text.column(column), frozenset(templates.excluded_characters)
    if not characters:
        return np.zeros(text.n_tokens, np.bool_)
    words = CodedForms.from_column(values)
    table = np.array([made_of(word, characters) for word in words.strings], np.bool_)
    return table[words.codes]


def count_tokens(
    text: Corpus, vertices: Vertices, templates: TemplateSet, more: Corpus | None = None
) -> CountedTokens:
    """Return the tokens of the text, and of `more` text, that are not excluded."""
    column = vertices.column
    whole, vertex = one_column(text, column), vertices.vertex_of
    included = vertex >= 0
    if more is not None:
        more = one_column(more, column)
        whole = Corpus.concatenate([whole, more])
        included = np.concatenate([included, ~excluded_tokens(more, column, templates)])
        vertex = _vertices_of_all(whole, vertices)
    words = CodedForms.from_column(whole.column(column)).mapped(form_of(templates.feature_form))
    windows = Windows.from_sentences(words.codes, whole.offsets, templates.reach)
    windows = Windows(windows.codes, windows.position[included], windows.reach)
    vertex = vertex[included]
    totals = np.bincount(vertex[vertex >= 0], minlength=len(vertices)).astype(np.int64)
    return CountedTokens(vertex, totals, words, windows)


def _vertices_of_all(whole: Corpus, vertices: Vertices) -> I32:
    """int32[N + M]: the vertex of every token of a text that begins with that of the vertices."""
    words = CodedForms.from_column(whole.column(vertices.column)).mapped(form_of(vertices.form))
    codes = ngrams(words, whole.offsets, vertices.n)
    table = np.full(int(codes.max(initial=-1)) + 1, -1, np.int32)
    # An excluded token may have the type of one that is not, whose entry it must not overwrite.
    own, included = codes[: len(vertices.vertex_of)], vertices.vertex_of >= 0
    table[own[included]] = vertices.vertex_of[included]
    return table[codes]


class _AtomValues:
    """Values of atoms by the codes of windows (pads first, then words).

    A table is int32[pads + words], -1 where the atom is absent, with the number of its values.
    """

    def __init__(self, counted: CountedTokens, suffixes: Iterable[str] | None) -> None:
        self._words, self._pads = counted.words.strings, 2 * counted.windows.reach
        self._suffixes = None if suffixes is None else frozenset(suffixes)
        self._tables: dict[AtomKind, tuple[I32, int]] = {}

    def table(self, kind: AtomKind) -> tuple[I32, int]:
        if kind not in self._tables:
            self._tables[kind] = self._make(kind)
        return self._tables[kind]

    def _make(self, kind: AtomKind) -> tuple[I32, int]:
        size = self._pads + len(self._words)
        if kind == "form":
            return np.arange(size, dtype=np.int32), size
        if kind == "type":
            return self._coded([_PAD] * self._pads + list(map(character_type, self._words)))
        if kind == "suffix":
            if self._suffixes is None:
                self._suffixes = learned_suffixes(self._words)
            known = self._suffixes
            # a pad has no suffix
            return self._coded([""] * self._pads + [longest_suffix(w, known) for w in self._words])
        length = int(kind.removeprefix("ending"))
        endings = [word[-length:] if len(word) > length else "" for word in self._words]
        table, n = self._coded([""] * self._pads + endings)
        absent = np.array([True] * self._pads + [ending == "" for ending in endings])
        return np.where(absent, np.int32(-1), table), n

    def _coded(self, values: Sequence[str]) -> tuple[I32, int]:
        strings, table = numbered(values)
        return table, len(strings)


def _features(
    templates: Sequence[ContextTemplate], counted: CountedTokens, suffixes: Iterable[str] | None
) -> Iterator[tuple[I64, int, I32]]:
    """For each template: the features int64[m] of m tokens, their number, the tokens' vertices."""
    values = _AtomValues(counted, suffixes)
    for template in templates:
        parts: list[tuple[I32 | I64, int]] = []
        present = np.ones(len(counted.vertex), np.bool_)
        for atom in template.atoms:
            table, n = values.table(atom.kind)
            value = table[counted.windows.at(atom.offset)]
            present &= value >= 0
            parts.append((value, n))
        if not present.all():
            parts = [(value[present], n) for value, n in parts]
        feature, n_features = packed(parts)
        yield feature, n_features, counted.vertex[present]


def _pairs(vertex: I32, feature: I64, n_features: int) -> tuple[I64, I64, I64]:
    """Distinct pairs (vertex, feature), sorted, with their counts; only tokens with a vertex."""
    here = vertex >= 0
    codes = vertex[here].astype(np.int64) * n_features + feature[here]
    pairs, joint = np.unique(codes, return_counts=True)
    row, column = np.divmod(pairs, max(n_features, 1))
    return row, column, joint


def _matrix(entries: list[tuple[I64, I64, F64]], shape: tuple[int, int]) -> sparse.csr_array:
    """csr with sorted rows, from entries whose columns ascend from template to template."""
    row, column, weight = (np.concatenate(part) for part in zip(*entries, strict=True))
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=shape[0]))])
    order = np.argsort(row, kind="stable")
    wide = len(row) > np.iinfo(np.int32).max
    index = np.int64 if wide else np.int32
    return sparse.csr_array(
        (weight[order], column[order].astype(index), start.astype(index)), shape=shape
    )
