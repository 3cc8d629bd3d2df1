"""From tokens to vertices: means and empirical label distributions of n-gram types."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sslbench.engine.types import F32, F64, I32, I64, Bool


def type_means(vertex_of: I32, marginals: F64 | F32, vertices: int) -> tuple[F64, I64]:
    """Mean row and number of the tokens of each vertex: (q float64[V, K], n int64[V]).

    A vertex without tokens has n = 0 and a row of zeros. Sums are in token order.

    vertex_of: int32[N], -1 = no vertex. marginals: float[N, K]. vertices: V.

    Raises ValueError if the arrays do not match or a vertex is out of range.
    """
    N = len(vertex_of)
    if marginals.ndim != 2 or len(marginals) != N:
        raise ValueError(f"{N} tokens, rows {marginals.shape} do not match")
    check_below(vertex_of, vertices, "vertex")
    inside = vertex_of >= 0
    of, borders = vertex_of[inside], np.append(0, np.cumsum(inside))
    # a column for each token: scipy adds the rows of tokens one after the other
    members = sparse.csc_array((np.ones(len(of)), of, borders), shape=(vertices, N))
    n = np.bincount(of, minlength=vertices)
    q: F64 = np.asarray(members @ marginals)
    return q / np.maximum(n, 1)[:, None], n


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
    counts = label_counts(vertex_of, labels, vertices, n_labels)
    n = counts.sum(axis=1, keepdims=True)
    return counts / np.maximum(n, 1), n[:, 0] > 0


def label_counts(vertex_of: I32, labels: I32, vertices: int, n_labels: int) -> I64:
    """Return int64[V, K]: the labeled tokens of each vertex, by label; arrays of `empirical`."""
    known = (vertex_of >= 0) & (labels >= 0)
    cells = vertex_of[known].astype(np.int64) * n_labels + labels[known]
    return np.bincount(cells, minlength=vertices * n_labels).reshape(vertices, n_labels)


def check_below(codes: I32, limit: int, what: str) -> None:
    """ValueError unless all codes are in -1 .. limit - 1; what: they number."""
    if codes.size and not -1 <= codes.min() <= codes.max() < limit:
        raise ValueError(f"a {what} is outside -1 .. {limit - 1}")
