"""Context vectors of vertices: pointwise mutual information with the features of their tokens.

    pmi(t, f) = ln(N c_tf / (n_t c_f))

over the tokens of the counted text that are not excluded: N of them, n_t of type t, c_f firings of
feature f (a value of one template), c_tf at tokens of t. The factor N is not in the printed formula
of HE2013; without it all weights are negative and the cosines are others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sslbench.corpus import Corpus
from sslbench.graph.forms import character_class, form_of, learned_suffixes, longest_suffix
from sslbench.graph.templates import GraphTemplate, GraphTemplates, Kind
from sslbench.graph.vertices import Vertices
from sslbench.graph.words import Windows, Words, ngrams, numbered, one_column, packed
from sslbench.types import F64, I32, I64, Bool

_PAD = "pad"
"""What a pad has for a class: no other class is called so."""


@dataclass(frozen=True, eq=False)
class Contexts:
    """Weights before they are normalized.

    pmi: csr float64[V, F]; only features that occur with two vertices or more, as others match
        nothing. Columns are in the order of templates, then of the features' words.
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
class Counted:
    """Counted tokens: all of the text that are not excluded.

    vertex: int32[M], -1 for n-grams that are no vertices. totals: int64[V], n_t.
    words: features' forms. windows: with M positions.
    """

    vertex: I32
    totals: I64
    words: Words
    windows: Windows


def context_vectors(
    text: Corpus,
    vertices: Vertices,
    templates: GraphTemplates,
    *,
    counting_text: Corpus | None = None,
    suffixes: Iterable[str] | None = None,
    clip_negative: bool = False,
) -> sparse.csr_array:
    """Normalized context vectors of the vertices, csr float32[V, F], see `Contexts`.

    Parameters
    ----------
    text: what the vertices were made of.
    counting_text: more text that is counted and gives no vertices; shares the vocabulary.
    suffixes: the list for "suffix" atoms; None learns it from the words of all counted text.
    clip_negative: leave out weights below 0.
    """
    counted = count_tokens(text, vertices, templates, counting_text)
    return weigh(counted, templates.templates, suffixes, clip_negative).unit()


def weigh(
    counted: Counted,
    templates: Sequence[GraphTemplate],
    suffixes: Iterable[str] | None = None,
    clip_negative: bool = False,
) -> Contexts:
    """Weights of all features, template by template; parameters as of `context_vectors`."""
    n_vertices, width = len(counted.totals), 0
    squares = np.zeros(n_vertices)
    kept: list[tuple[I64, I64, F64]] = []
    for feature, n_features, vertex in _fired(templates, counted, _Values(counted, suffixes)):
        row, column, joint = _pairs(vertex, feature, n_features)
        marginal = np.bincount(feature, minlength=n_features)
        weight = pmi(joint, counted.totals[row], marginal[column], len(counted.vertex))
        if clip_negative:
            positive = weight > 0
            row, column, weight = row[positive], column[positive], weight[positive]
        squares += np.bincount(row, weights=weight * weight, minlength=n_vertices)
        shared = np.bincount(column, minlength=n_features) > 1
        place, here = np.cumsum(shared) - 1 + width, shared[column]
        kept.append((row[here], place[column[here]], weight[here]))
        width += int(shared.sum())
    return Contexts(_matrix(kept, (n_vertices, width)), np.sqrt(squares))


def pmi(joint: I64, of_type: I64, of_feature: I64, total: int) -> F64:
    """ln(N c_tf / (n_t c_f)), elementwise for counts > 0."""
    # products of counts are exact below 2**53: no information is ln 1, exactly 0
    observed = joint.astype(np.float64) * total
    return np.log(observed / (of_type.astype(np.float64) * of_feature))


def excluded_tokens(text: Corpus, column: str, templates: GraphTemplates) -> Bool:
    """bool[N]: the tokens that the template set leaves out of the graph."""
    if templates.excludes is None:
        return np.zeros(text.n_tokens, np.bool_)
    words = Words.of(text.column(column))
    table = np.fromiter(map(templates.excludes, words.strings), np.bool_, len(words.strings))
    return table[words.codes]


def count_tokens(
    text: Corpus, vertices: Vertices, templates: GraphTemplates, more: Corpus | None = None
) -> Counted:
    """The tokens of the text, and of more text, that the set does not exclude."""
    column = vertices.column
    whole, vertex, included = one_column(text, column), vertices.of, vertices.of >= 0
    if more is not None:
        more = one_column(more, column)
        whole = Corpus.concatenate([whole, more])
        included = np.concatenate([included, ~excluded_tokens(more, column, templates)])
        vertex = _vertices_of_all(whole, vertices)
    raw = Words.of(whole.column(column))
    words = raw.mapped(form_of(templates.feature_form))
    windows = Windows.lay(words.codes, whole.offsets, templates.reach)
    windows = Windows(windows.codes, windows.position[included], windows.reach)
    vertex = vertex[included]
    totals = np.bincount(vertex[vertex >= 0], minlength=len(vertices)).astype(np.int64)
    return Counted(vertex, totals, words, windows)


def _vertices_of_all(whole: Corpus, vertices: Vertices) -> I32:
    """int32[N + M]: the vertex of every token of a text that begins with the vertices' own."""
    words = Words.of(whole.column(vertices.column)).mapped(form_of(vertices.derive))
    codes = ngrams(words, whole.offsets, vertices.n)
    table = np.full(int(codes.max(initial=-1)) + 1, -1, np.int32)
    # an excluded token may be of the type of one that is not: it must not wipe that out
    own, included = codes[: len(vertices.of)], vertices.of >= 0
    table[own[included]] = vertices.of[included]
    return table[codes]


class _Values:
    """What atoms see: tables from the codes of windows (pads first, then words) to values.

    A table is int32[pads + words], -1 where the atom is absent, with the number of its values.
    """

    def __init__(self, counted: Counted, suffixes: Iterable[str] | None) -> None:
        self._words, self._pads = counted.words.strings, 2 * counted.windows.reach
        self._suffixes = None if suffixes is None else frozenset(suffixes)
        self._tables: dict[Kind, tuple[I32, int]] = {}

    def table(self, kind: Kind) -> tuple[I32, int]:
        if kind not in self._tables:
            self._tables[kind] = self._make(kind)
        return self._tables[kind]

    def _make(self, kind: Kind) -> tuple[I32, int]:
        size = self._pads + len(self._words)
        if kind == "form":
            return np.arange(size, dtype=np.int32), size
        if kind == "class":
            return self._coded([_PAD] * self._pads + list(map(character_class, self._words)))
        if kind == "suffix":
            if self._suffixes is None:
                self._suffixes = learned_suffixes(self._words)
            known = self._suffixes
            # a pad ends in nothing
            return self._coded([""] * self._pads + [longest_suffix(w, known) for w in self._words])
        length = int(kind.removeprefix("tail"))
        tails = [word[-length:] if len(word) > length else "" for word in self._words]
        table, n = self._coded([""] * self._pads + tails)
        absent = np.array([True] * self._pads + [tail == "" for tail in tails])
        return np.where(absent, np.int32(-1), table), n

    def _coded(self, values: Sequence[str]) -> tuple[I32, int]:
        strings, table = numbered(values)
        return table, len(strings)


def _fired(
    templates: Sequence[GraphTemplate], counted: Counted, values: _Values
) -> Iterator[tuple[I64, int, I32]]:
    """Of each template the features int64[m] that fired, how many there are, and the vertices."""
    for template in templates:
        parts: list[tuple[I32 | I64, int]] = []
        there = np.ones(len(counted.vertex), np.bool_)
        for atom in template.atoms:
            table, n = values.table(atom.kind)
            value = table[counted.windows.at(atom.offset)]
            there &= value >= 0
            parts.append((value, n))
        if not there.all():
            parts = [(value[there], n) for value, n in parts]
        feature, n_features = packed(parts)
        yield feature, n_features, counted.vertex[there]


def _pairs(vertex: I32, feature: I64, n_features: int) -> tuple[I64, I64, I64]:
    """Distinct (vertex, feature) with their counts, sorted; n-grams without a vertex left out."""
    here = vertex >= 0
    codes = vertex[here].astype(np.int64) * n_features + feature[here]
    pairs, joint = np.unique(codes, return_counts=True)
    row, column = np.divmod(pairs, max(n_features, 1))
    return row, column, joint


def _matrix(entries: list[tuple[I64, I64, F64]], shape: tuple[int, int]) -> sparse.csr_array:
    """Rows sorted by column: entries come template by template, their columns rise."""
    row, column, weight = (np.concatenate(part) for part in zip(*entries, strict=True))
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=shape[0]))])
    order = np.argsort(row, kind="stable")
    wide = len(row) > np.iinfo(np.int32).max
    index = np.int64 if wide else np.int32
    return sparse.csr_array(
        (weight[order], column[order].astype(index), start.astype(index)), shape=shape
    )
