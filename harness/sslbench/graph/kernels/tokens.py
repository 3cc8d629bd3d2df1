"""Sums of token rows by vertex, in token order."""

from __future__ import annotations

from numba import njit

from ...types import F32, F64, I32, I64


@njit(cache=True, nogil=True, error_model="numpy")
def add_rows(vertex_of: I32, rows: F64 | F32, sums: F64, counts: I64) -> None:
    """sums[vertex_of[t]] += rows[t] and counts[...] += 1; tokens at vertex -1 are passed over.

    vertex_of int32[N]; rows float[N, K]; sums float64[V, K]; counts int64[V].
    """
    for t in range(vertex_of.shape[0]):
        u = vertex_of[t]
        if u >= 0:
            counts[u] += 1
            for k in range(rows.shape[1]):
                sums[u, k] += rows[t, k]


@njit(cache=True, nogil=True, error_model="numpy")
def add_labels(vertex_of: I32, labels: I32, sums: F64, counts: I64) -> None:
    """The same with one-hot rows: labels int32[N], -1 = a token without a known label."""
    for t in range(vertex_of.shape[0]):
        u = vertex_of[t]
        if u >= 0 and labels[t] >= 0:
            counts[u] += 1
            sums[u, labels[t]] += 1.0
