"""Potentials and indicators of the factors along given label sequences."""

from __future__ import annotations

from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.types import F64, I32, I64


@kernel
def path_scores(node: F64, edge: F64, offsets: I64, labels: I32, out: F64) -> None:
    """out[n] = phi_t(y_{t-1}, y_t) along the labels of each sentence.

    node float64[n, L]; edge float64[1 or n, L, L]; offsets int64[s + 1]; labels int32[n].
    """
    for i in range(offsets.shape[0] - 1):
        for n in range(offsets[i], offsets[i + 1]):
            y = labels[n]
            out[n] = node[n, y]
            if n > offsets[i]:
                out[n] += edge[n if edge.shape[0] > 1 else 0, labels[n - 1], y]


@kernel
def add_path(offsets: I64, labels: I32, weights: F64, node: F64, edge: F64) -> None:
    """Add the indicators of the factors along the labels, times the weights float64[s] of the
    sentences: node[n, y] and edge[., y', y] += weight.  Arrays as in `path_scores`.
    """
    for i in range(offsets.shape[0] - 1):
        for n in range(offsets[i], offsets[i + 1]):
            y = labels[n]
            node[n, y] += weights[i]
            if n > offsets[i]:
                edge[n if edge.shape[0] > 1 else 0, labels[n - 1], y] += weights[i]
