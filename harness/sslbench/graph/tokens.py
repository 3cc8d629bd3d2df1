"""From tokens to vertices: mean rows and empirical label distributions of n-gram types."""

from __future__ import annotations

import numpy as np

from sslbench.graph.propagation.kernels import add_labels, add_rows
from sslbench.types import F32, F64, I32, I64, Bool


def type_means(vertex_of: I32, marginals: F64 | F32, vertices: int) -> tuple[F64, I64]:
    """Mean row of the tokens of each vertex: (q float64[V, K], n int64[V]).

    vertex_of int32[N], -1 = outside the graph; marginals float[N, K]. A vertex without tokens has
    n = 0 and a row of zeros. Sums are in token order.
    """
    q, n = np.zeros((vertices, marginals.shape[1])), np.zeros(vertices, dtype=np.int64)
    add_type_sums(vertex_of, marginals, q, n)
    q /= np.maximum(n, 1)[:, None]
    return q, n


def add_type_sums(vertex_of: I32, marginals: F64 | F32, sums: F64, counts: I64) -> None:
    """Add rows of more tokens to sums float64[V, K] and counts int64[V]: text in pieces.

    ValueError if the arrays do not fit each other or a vertex is out of range.
    """
    if marginals.shape != (len(vertex_of), sums.shape[1]) or len(counts) != len(sums):
        raise ValueError(
            f"{len(vertex_of)} tokens, rows {marginals.shape}, sums {sums.shape}: they do not fit"
        )
    _check_below(vertex_of, len(sums), "vertex")
    add_rows(vertex_of, marginals, sums, counts)


def empirical(vertex_of: I32, labels: I32, vertices: int, n_labels: int) -> tuple[F64, Bool]:
    """Label distribution of each vertex over its labeled tokens: (r float64[V, K], bool[V]).

    vertex_of, labels int32[N], -1 = outside the graph, not labeled. r is zero where the second is
    False: the vertex has no labeled token. ValueError if the arrays do not fit.
    """
    if len(labels) != len(vertex_of):
        raise ValueError(f"{len(vertex_of)} tokens, {len(labels)} labels")
    _check_below(vertex_of, vertices, "vertex")
    _check_below(labels, n_labels, "label")
    r, n = np.zeros((vertices, n_labels)), np.zeros(vertices, dtype=np.int64)
    add_labels(vertex_of, labels, r, n)
    r /= np.maximum(n, 1)[:, None]
    return r, n > 0


def _check_below(codes: I32, limit: int, what: str) -> None:
    if codes.size and not -1 <= codes.min() <= codes.max() < limit:
        raise ValueError(f"a {what} is outside -1 .. {limit - 1}")
