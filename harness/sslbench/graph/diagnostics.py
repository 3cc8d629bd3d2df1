"""What a graph looks like: reach of the labeled vertices, degrees, components, hubs.

The first part is table 3 of Subramanya et al. (2010), which does not say what the length of a path
is: hops, the sum of 1/w and the sum of 1 - w are all given. `purity` needs gold labels of unlabeled
text and is for whoever scores, never for a method.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from sslbench.graph.propagation.kernels import hops
from sslbench.graph.propagation.quadratic import roughness
from sslbench.graph.propagation.solver import Edges
from sslbench.types import F64, I32, Bool

#: a figure that has no value, e.g. a mean over no vertex, is None
Figures: TypeAlias = dict[str, float | int | None]

HUB_SHARE = 0.001  # the vertices of largest degree, one in a thousand, at least one


def diagnostics(W: csr_array, labeled: Bool) -> Figures:
    """Figures of a symmetric graph csr[V, V] and its labeled vertices bool[V].

    Counts are of undirected edges; degree is the number of edges of a vertex. Shares are in [0, 1].
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
    """How far unlabeled vertices are from the nearest labeled one.

    frac_unreachable: of the unlabeled ones, without a path. mean_hops, max_hops,
    mean_inverse_weight (sum of 1/w) and mean_complement (sum of 1 - w): of the shortest path in
    each length, over those with one.
    """
    edges = Edges.of(W, len(labeled))
    far = hops(edges.indptr, edges.indices, labeled)
    unlabeled = ~labeled
    reached = unlabeled & (far > 0)
    inverse = _lengths(W, 1.0 / edges.weights, labeled)
    complement = _lengths(W, np.maximum(1.0 - edges.weights, 0.0), labeled)
    return {
        "frac_unreachable": _mean(far[unlabeled] < 0),
        "mean_hops": _mean(far[reached]),
        "max_hops": int(far[reached].max()) if reached.any() else None,
        "mean_inverse_weight": _mean(inverse[reached]),
        "mean_complement": _mean(complement[reached]),
    }


def components(W: csr_array) -> Figures:
    """components: connected parts, isolated vertices among them; largest: share of vertices."""
    count, part = connected_components(W, directed=False)
    largest = np.bincount(part).max(initial=0)
    return {"components": int(count), "largest_component": _share(largest, len(part))}


def degrees(W: csr_array) -> Figures:
    """degree_mean, degree_median, degree_max; isolated: share without edge; hub_edges: share of
    edges with an end at one of the `HUB_SHARE` vertices of largest degree (by number on ties).
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
    """How far neighbors agree in gold labels, over edges between vertices with `known` gold.

    gold float64[V, K]: label distribution of each vertex (`empirical`). edge_purity: share of edges
    whose ends have the same most frequent label; weighted_purity: the same by weight; agreement:
    mean over edges of the probability that a token of each end have the same label; roughness:
    trace(gold' L gold) over these edges.
    """
    inner = W[known][:, known].tocsr()
    rows = gold[known]
    owner = np.repeat(np.arange(len(rows)), np.diff(inner.indptr))
    top = rows.argmax(axis=1) if len(rows) else np.empty(0, dtype=np.int64)
    same = top[owner] == top[inner.indices]
    both = np.zeros(len(owner))
    for column in rows.T:  # one label at a time: no row of K per edge
        both += column[owner] * column[inner.indices]
    return {
        "gold_edges": inner.nnz // 2,
        "edge_purity": _mean(same),
        "weighted_purity": _share(inner.data[same].sum(), inner.data.sum()),
        "agreement": _mean(both),
        "roughness": roughness(inner, rows),
    }


def _weights(W: csr_array, labeled: Bool) -> Figures:
    """mean_weight of an edge; labeled_edges: share of edges that join two labeled vertices."""
    between = labeled[W.indices] & np.repeat(labeled, np.diff(W.indptr))
    return {"mean_weight": _mean(W.data), "labeled_edges": _mean(between)}


def _lengths(W: csr_array, lengths: F64, sources: Bool) -> F64:
    """float64[V]: shortest path to the nearest source under these lengths of the entries of W."""
    if not sources.any():
        return np.full(len(sources), np.inf)
    graph = csr_array((lengths, W.indices, W.indptr), shape=W.shape)
    start = np.flatnonzero(sources)
    found: F64 = dijkstra(graph, directed=True, indices=start, min_only=True)
    return found


def _mean(values: F64 | I32 | Bool) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None
