"""Figures of a graph: reach of the labeled vertices, degrees, components, hubs.

`reach` is table 3 of Subramanya et al. (2010), which does not define the length of a
path: hops, the sum of 1/w and the sum of 1 - w are all reported (docs/specs/graph.md, section 8.1).
`purity` and `label_accuracy` need gold labels of unlabeled text: for evaluation, not for methods.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from sslbench.engine.graph.propagation.quadratic import roughness
from sslbench.engine.graph.propagation.solver import Edges
from sslbench.engine.types import F64, I32, Bool

#: figures by name; one without a value, such as a mean over no vertex, is None
Figures: TypeAlias = dict[str, float | int | None]

HUB_SHARE = 0.001
"""Share of the vertices that count as hubs: those of largest degree, at least one."""


def diagnostics(W: csr_array, labeled: Bool) -> Figures:
    """Return all figures that need no gold labels of unlabeled text.

    W: symmetric csr[V, V]. labeled: bool[V]. Edges are undirected, the degree of a vertex is its
    number of edges, shares are in [0, 1].
    """
    return {
        "vertices": len(labeled),
        "edges": W.nnz // 2,
        "labeled": int(labeled.sum()),
        **reach(W, labeled),
        **components(W),
        **degrees(W),
        **_weights(W, labeled),
    }


def reach(W: csr_array, labeled: Bool) -> Figures:
    """Distances of unlabeled vertices from the nearest labeled one.

    frac_unreachable: share of unlabeled vertices without a path. mean_hops, max_hops,
    mean_inverse_weight (sum of 1/w), mean_complement (sum of 1 - w): length of the shortest path by
    each measure, over the vertices with a path.
    """
    weights = Edges.from_matrix(W, len(labeled)).weights
    hops = _lengths(W, np.ones(len(weights)), labeled)
    reached = ~labeled & np.isfinite(hops)
    inverse = _lengths(W, 1.0 / weights, labeled)
    complement = _lengths(W, np.maximum(1.0 - weights, 0.0), labeled)
    return {
        "frac_unreachable": _mean(np.isinf(hops[~labeled])),
        "mean_hops": _mean(hops[reached]),
        "max_hops": int(hops[reached].max()) if reached.any() else None,
        "mean_inverse_weight": _mean(inverse[reached]),
        "mean_complement": _mean(complement[reached]),
    }


def components(W: csr_array) -> Figures:
    """components: their number, isolated vertices included; largest_component: its share of V."""
    from scipy.sparse.csgraph import connected_components  # slow to import

    count, part = connected_components(W, directed=False)
    largest = np.bincount(part).max(initial=0)
    return {"components": int(count), "largest_component": _share(largest, len(part))}


def degrees(W: csr_array) -> Figures:
    """Degrees and hubs.

    degree_mean, degree_median, degree_max. isolated: share of vertices without an edge. hub_edges:
    share of edges with an end at a hub (of equal degrees, the smaller vertex is the hub).
    """
    degree = np.diff(W.indptr)
    hub = np.zeros(len(degree), dtype=np.bool_)
    hub[np.argsort(-degree, kind="stable")[: int(np.ceil(HUB_SHARE * len(degree)))]] = True
    at_hub = hub[W.indices] | np.repeat(hub, degree)
    return {
        "degree_mean": _mean(degree),
        "degree_median": float(np.median(degree)) if len(degree) else None,
        "degree_max": int(degree.max(initial=0)),
        "isolated": _mean(degree == 0),
        "hub_edges": _mean(at_hub),
    }


def purity(W: csr_array, gold: F64, known: Bool) -> Figures:
    """Agreement of neighbors in gold labels, over edges between vertices with `known` bool[V] gold.

    gold: float64[V, K], label distribution of each vertex (`tokens.empirical`).

    gold_edges: number of these edges. edge_purity: share of them whose ends have the same most
    frequent label; weighted_purity: share by weight. agreement: mean probability that two tokens
    drawn from the two ends have the same label. roughness: trace(gold' L gold) over these edges.
    """
    inner = W[known][:, known].tocsr()
    rows = gold[known]
    owner = np.repeat(np.arange(len(rows)), np.diff(inner.indptr))
    top = rows.argmax(axis=1) if len(rows) else np.empty(0, dtype=np.int64)
    same = top[owner] == top[inner.indices]
    both = np.zeros(len(owner))
    for column in rows.T:  # one label at a time, to need no E x K array
        both += column[owner] * column[inner.indices]
    return {
        "gold_edges": inner.nnz // 2,
        "edge_purity": _mean(same),
        "weighted_purity": _share(inner.data[same].sum(), inner.data.sum()),
        "agreement": _mean(both),
        "roughness": roughness(inner, rows),
    }


def label_accuracy(q: F64, labeled: Bool, vertex_of: I32, gold: I32) -> Figures:
    """Return the accuracy of propagated labels, over tokens with a vertex and a known gold label.

    q: float64[V, K], label distributions. labeled: bool[V]. vertex_of, gold: int32[N] of unlabeled
    text, -1 = no vertex, unknown.

    propagated_accuracy: share of tokens whose vertex has the gold label as its likeliest;
    propagated_accuracy_new: the same among tokens whose vertex has no labeled token.
    """
    known = (vertex_of >= 0) & (gold >= 0)
    correct = q.argmax(axis=1)[vertex_of[known]] == gold[known]
    return {
        "propagated_accuracy": _mean(correct),
        "propagated_accuracy_new": _mean(correct[~labeled[vertex_of[known]]]),
    }


def _weights(W: csr_array, labeled: Bool) -> Figures:
    """mean_weight of the edges; labeled_edges: share of edges between two labeled vertices."""
    between = labeled[W.indices] & np.repeat(labeled, np.diff(W.indptr))
    return {"mean_weight": _mean(W.data), "labeled_edges": _mean(between)}


def _lengths(W: csr_array, lengths: F64, sources: Bool) -> F64:
    """Return float64[V]: length of the shortest path to the nearest of `sources` bool[V].

    lengths: float64[E], of the entries of W.
    """
    from scipy.sparse.csgraph import dijkstra  # slow to import

    if not sources.any():
        return np.full(len(sources), np.inf)
    graph = csr_array((lengths, W.indices, W.indptr), shape=W.shape)
    start = np.flatnonzero(sources)
    distances: F64 = dijkstra(graph, directed=True, indices=start, min_only=True)
    return distances


def _mean(values: F64 | I32 | Bool) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None
