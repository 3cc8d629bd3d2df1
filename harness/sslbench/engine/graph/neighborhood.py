"""The neighbors of one vertex of a graph, with their words, weights and labels, to be read.

Labels are those of labeled sentences: what a method can know of a vertex.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.engine.errors import UserError
from sslbench.engine.graph.build import Graph
from sslbench.engine.graph.forms import form_of
from sslbench.engine.types import I32

BEGIN, END = "<s>", "</s>"
"""How the ends of a sentence are written in an n-gram."""

_NEAR = 3  # n-grams in the hint of an error


@dataclass(frozen=True)
class Neighbor:
    """A vertex beside another one.

    words: of its n-gram, `BEGIN` and `END` for the ends of the sentence.
    weight: of the edge; 1 for the vertex itself.
    tokens: how often it occurs in all text.
    labels: how often the labeled sentences have it with which label, the commonest first.
    """

    words: tuple[str, ...]
    weight: float
    tokens: int
    labels: dict[str, int]


def neighborhood(
    graph: Graph, words: Sequence[str], label_codes: I32, labels: Sequence[str]
) -> list[Neighbor]:
    """Return the vertex of an n-gram, then its neighbors, the nearest first.

    words: of the n-gram, as in the text.
    label_codes: int32[N_l], of the labeled tokens, with which the text begins; into `labels`.
    Raises UserError for an n-gram that is no vertex; the hint names similar ones.
    """
    vertex = find(graph, words)
    indptr, W = graph.W.indptr, graph.W
    near, weights = W.indices[indptr[vertex] :][: np.diff(indptr)[vertex]], W.data[indptr[vertex] :]
    order = np.argsort(-weights[: len(near)], kind="stable")
    chosen = [(vertex, 1.0), *((int(near[i]), float(weights[i])) for i in order)]
    of_labeled = graph.vertices.vertex_of[: len(label_codes)]
    return [
        Neighbor(
            ngram(graph, v),
            weight,
            int(graph.vertices.count[v]),
            _counts(label_codes[of_labeled == v], labels),
        )
        for v, weight in chosen
    ]


def find(graph: Graph, words: Sequence[str]) -> int:
    """Return the vertex of an n-gram; UserError as `neighborhood`."""
    lookup = graph.lookup
    n = lookup.grams.shape[1]
    given = " ".join(words)
    if len(words) != n:
        raise UserError(f"{given!r} has {len(words)} words", hint=f"vertices have {n} words")
    form, pads = form_of(lookup.form), _pads(n)
    wanted = [pads.index(w) if w in pads else _code(graph, form(w)) for w in words]
    rows = np.flatnonzero((lookup.grams == np.array(wanted)).all(axis=1))
    if len(rows):
        return int(rows[0])
    raise UserError(f"{given!r} is no vertex of the graph", hint=_hint(graph, wanted, given))


def ngram(graph: Graph, vertex: int) -> tuple[str, ...]:
    """Return the words of a vertex, in their normal form."""
    lookup = graph.lookup
    pads = _pads(lookup.grams.shape[1])
    forms = lookup.forms.strings
    return tuple(
        pads[code] if code < len(pads) else forms[code - len(pads)]
        for code in lookup.grams[vertex].tolist()
    )


def _pads(n: int) -> list[str]:
    """What the codes of pads mean (see `words.Windows`)."""
    return [BEGIN] * (n // 2) + [END] * (n // 2)


def _code(graph: Graph, form: str) -> int:
    """Return the code of a form in n-grams, -1 for one that the text lacks."""
    code = graph.lookup.forms.lookup(form)
    return code if code < 0 else code + 2 * (graph.lookup.grams.shape[1] // 2)


def _hint(graph: Graph, wanted: Sequence[int], given: str) -> str:
    """Similar n-grams: of those with the most words in common, the most alike."""
    common = (graph.lookup.grams == np.array(wanted)).sum(axis=1)
    if not common.max(initial=0):
        return "none of its words occurs in this position"
    best = np.flatnonzero(common == common.max())
    frequent = best[np.argsort(-graph.vertices.count[best], kind="stable")][:1000]
    names = [" ".join(ngram(graph, v)) for v in frequent.tolist()]
    near = difflib.get_close_matches(given, names, n=_NEAR, cutoff=0) if len(names) > 1 else names
    return "did you mean " + " or ".join(map(repr, near)) + "?"


def _counts(codes: I32, labels: Sequence[str]) -> dict[str, int]:
    count = np.bincount(codes, minlength=len(labels))
    order = np.argsort(-count, kind="stable")
    return {labels[code]: int(count[code]) for code in order.tolist() if count[code]}
