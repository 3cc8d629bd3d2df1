"""How right labels are that were spread over a graph: for whoever scores, never for a method."""

from __future__ import annotations

from sslbench.graph.diagnostics import Figures
from sslbench.types import F64, I32, Bool


def label_accuracy(q: F64, labeled: Bool, vertex_of: I32, gold: I32) -> Figures:
    """How right propagated labels are, over tokens inside the graph whose gold label is known.

    q float64[V, K] label distributions; labeled bool[V]; vertex_of, gold int32[N] of unlabeled
    text, -1 = outside, unknown. propagated_accuracy: share of tokens whose vertex has the gold
    label as its likeliest; propagated_accuracy_new: of those whose vertex has no labeled token.
    """
    known = (vertex_of >= 0) & (gold >= 0)
    right = q.argmax(axis=1)[vertex_of[known]] == gold[known]
    return {
        "propagated_accuracy": _share(right),
        "propagated_accuracy_new": _share(right[~labeled[vertex_of[known]]]),
    }


def _share(right: Bool) -> float | None:
    return float(right.mean()) if len(right) else None
