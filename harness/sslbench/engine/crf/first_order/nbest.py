"""The K best label sequences of a first-order chain: Viterbi with K paths per label.

Source: F. K. Soong, E.-F. Huang: A tree-trellis based fast search for finding the N best sentence
hypotheses, ICASSP 1991, section 2 (the list Viterbi algorithm).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.engine.types import F64, I32, I64


class NBest(NamedTuple):
    """labels: int32[k, T], best first.  log_probability: float64[k], of the whole sequence."""

    labels: I32
    log_probability: F64


def n_best(potentials: BatchPotentials, number: int) -> list[NBest]:
    """The best sequences of each sentence: `number`, or all possible ones if there are fewer.

    Of equal sequences, the first is the one with the smaller labels, read from the end.
    Raises InfeasibleSentenceError for a sentence without a possible labeling.
    """
    log_z = potentials.with_node(potentials.node.copy()).posterior().log_z()
    sequences = []
    offsets = potentials.batch.offsets
    for i in range(len(offsets) - 1):
        first, last = int(offsets[i]), int(offsets[i + 1])
        edge = potentials.edge if len(potentials.edge) == 1 else potentials.edge[first:last]
        T, L = last - first, potentials.node.shape[1]
        labels, scores = np.empty((number, T), np.int32), np.empty(number)
        back = np.empty((T, L, number), np.int32)
        n = _paths(potentials.node[first:last], edge, back, labels, scores)
        sequences.append(NBest(labels[:n], scores[:n] - log_z[i]))
    return sequences


@kernel
def _paths(node: F64, edge: F64, back: I32, labels: I32, scores: F64) -> int:
    """Fill labels int32[K, T] and scores float64[K]; return how many sequences are possible.

    node: float64[T, L]; edge: float64[1 or T, L, L]; back: int32[T, L, K] scratch, the path that a
    path continues, as previous label * K + its rank.
    """
    T, L = node.shape
    K = scores.shape[0]
    best = np.full((L, K), -np.inf)
    for b in range(L):
        best[b, 0] = node[0, b]
    rank = np.zeros(L, np.int64)
    for t in range(1, T):
        step = edge[t if edge.shape[0] > 1 else 0]
        new = np.full((L, K), -np.inf)
        for b in range(L):
            _merge(best, step[:, b], rank, new[b], back[t, b])
            for k in range(K):
                new[b, k] += node[t, b]
        best = new
    ends = np.empty(K, np.int32)
    _merge(best, np.zeros(L), rank, scores, ends)
    n = 0
    while n < K and scores[n] > -np.inf:
        at = ends[n]
        for t in range(T - 1, -1, -1):
            labels[n, t] = at // K
            at = back[t, at // K, at % K]
        n += 1
    return n


@kernel
def _merge(best: F64, added: F64, rank: I64, out: F64, origin: I32) -> None:
    """The K largest of best[a, k] + added[a], descending; rows of best descend.

    best: float64[L, K]; added: float64[L]; rank: int64[L] scratch; out: float64[K];
    origin: int32[K], a * K + k.
    """
    L, K = best.shape
    for a in range(L):
        rank[a] = 0
    for k in range(K):
        out[k], origin[k] = -np.inf, 0
        chosen = -1
        for a in range(L):
            if rank[a] < K and best[a, rank[a]] + added[a] > out[k]:
                out[k], chosen = best[a, rank[a]] + added[a], a
        if chosen < 0:
            continue
        origin[k] = chosen * K + rank[chosen]
        rank[chosen] += 1
