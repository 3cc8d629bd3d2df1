"""From tokens to vertices: means and empirical label distributions of n-gram types."""

from __future__ import annotations

import numpy as np

from sslbench.engine.graph.propagation.kernels import add_labels, add_rows
from sslbench.engine.types import F32, F64, I32, I64, Bool


def type_means(vertex_of: I32, marginals: F64 | F32, vertices: int) -> tuple[F64, I64]:
    """Mean row and number of the tokens of each vertex: (q float64[V, K], n int64[V]).

    A vertex without tokens has n = 0 and a row of zeros. Sums are in token order.

    vertex_of: int32[N], -1 = no vertex. marginals: float[N, K]. vertices: V.

    Raises ValueError if the arrays do not match or a vertex is out of range.
    """
    q, n = np.zeros((vertices, marginals.shape[1])), np.zeros(vertices, dtype=np.int64)
    add_type_sums(vertex_of, marginals, q, n)
    q /= np.maximum(n, 1)[:, None]
    return q, n


def add_type_sums(vertex_of: I32, marginals: F64 | F32, sums: F64, counts: I64) -> None:
    """Add the rows of tokens to sums float64[V, K] and counts int64[V], for text in pieces.

    Other parameters and ValueError as of `type_means`.
    """
    if marginals.shape != (len(vertex_of), sums.shape[1]) or len(counts) != len(sums):
        raise ValueError(
            f"{len(vertex_of)} tokens, rows {marginals.shape}, sums {sums.shape} do not match"
        )
    check_below(vertex_of, len(sums), "vertex")
    add_rows(vertex_of, marginals, sums, counts)


def empirical(vertex_of: I32, labels: I32, vertices: int, n_labels: int) -> tuple[F64, Bool]:
    """Label distribution of the labeled tokens of each vertex: (r float64[V, K], labeled bool[V]).

    r is zero for a vertex without labeled tokens, where `labeled` is False.

    vertex_of, labels: int32[N], -1 = no vertex, no label. vertices: V. n_labels: K.

    Raises ValueError if the arrays do not match or a code is out of range.
    """
    if len(labels) != len(vertex_of):
        raise ValueError(f"{len(vertex_of)} tokens, {len(labels)} labels")
    check_below(vertex_of, vertices, "vertex")
    check_below(labels, n_labels, "label")
    r, n = np.zeros((vertices, n_labels)), np.zeros(vertices, dtype=np.int64)
    add_labels(vertex_of, labels, r, n)
    r /= np.maximum(n, 1)[:, None]
    return r, n > 0


def check_below(codes: I32, limit: int, what: str) -> None:
    """ValueError unless all codes are in -1 .. limit - 1; what: they number."""
    if codes.size and not -1 <= codes.min() <= codes.max() < limit:
        raise ValueError(f"a {what} is outside -1 .. {limit - 1}")
