"""From weights to potentials and from clique weights back to gradients.

Attributes come slot-major (one slot per template): within a block of tokens the kernels run slot by
slot, so that each slot touches only its own template's weights while the block's scores stay
in cache.  Gradients are parallel over groups of slots that share no attribute: each weight is
written by one thread, its occurrences in token order.  No atomics, no copies per thread, and the
same bits for any number of threads.

State weights live in two places (`layout`): rows of a dense table (attribute codes >= 0) and, for
attributes with few supported labels, lists of (label, weight) (codes <= -2); -1 is no attribute.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from ...types import F64, I32, I64, AnyArray, Bool

CHUNK = 256  # tokens per parallel task in `node_scores`


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def node_scores(
    codes: I32, table: F64, list_start: I64, list_label: I32, list_weight: F64, out: F64
) -> None:
    """out[n, :] = sum of the weight rows of token n's attributes.

    codes int32[S, n]; table float64[D, L]; list_start int64[R+1]; out float64[n, L].
    """
    S, N = codes.shape
    L = out.shape[1]
    for c in prange((N + CHUNK - 1) // CHUNK):
        lo, hi = c * CHUNK, min(N, (c + 1) * CHUNK)
        for n in range(lo, hi):
            for b in range(L):
                out[n, b] = 0.0
        for s in range(S):
            slot = codes[s]
            for n in range(lo, hi):
                i = slot[n]
                if i >= 0:
                    for b in range(L):
                        out[n, b] += table[i, b]
                elif i < -1:
                    j = -2 - i
                    for k in range(list_start[j], list_start[j + 1]):
                        out[n, list_label[k]] += list_weight[k]


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def node_gradient(
    codes: I32, slots: I32, groups: I64, omega: F64, list_start: I64, list_label: I32,
    table: F64, list_weight: F64,
) -> None:  # fmt: skip
    """Transpose of `node_scores`: add omega float64[n, L] to the rows of each token's attributes.

    slots int32[S] ordered so that group g owns slots[groups[g]:groups[g+1]].
    """
    N = codes.shape[1]
    L = omega.shape[1]
    for g in prange(groups.shape[0] - 1):
        for s in range(groups[g], groups[g + 1]):
            slot = codes[slots[s]]
            for n in range(N):
                i = slot[n]
                if i >= 0:
                    for b in range(L):
                        table[i, b] += omega[n, b]
                elif i < -1:
                    j = -2 - i
                    for k in range(list_start[j], list_start[j + 1]):
                        list_weight[k] += omega[n, list_label[k]]


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def edge_scores(
    codes: I32, first: Bool, w: F64, start: I64, split: I64, arc: I32, weight: F64,
    node: F64, edge: F64,
) -> None:  # fmt: skip
    """edge[n] = w + arc weights of token n's edge attributes; START arcs go to node[n].

    codes int32[Se, n]; first bool[n] marks sentence starts; w float64[L, L];
    start int64[B+1], split int64[B], arc int32[K], weight float64[K]: attribute i owns arcs
    start[i]:start[i+1] with codes a*L+b ascending; from split[i] on they leave START (a = L).
    node float64[n, L] (added to), edge float64[n, L, L] (overwritten).
    """
    S, N = codes.shape
    L = w.shape[0]
    for n in prange(N):
        row = edge[n].reshape(L * L)
        for a in range(L):
            for b in range(L):
                edge[n, a, b] = w[a, b]
        for s in range(S):
            i = codes[s, n]
            if i >= 0:
                if first[n]:
                    for k in range(split[i], start[i + 1]):
                        node[n, arc[k] - L * L] += weight[k]
                else:
                    for k in range(start[i], split[i]):
                        row[arc[k]] += weight[k]


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def edge_gradient(
    codes: I32, slots: I32, groups: I64, first: Bool, start: I64, split: I64, arc: I32,
    node: F64, edge: F64, weight: F64,
) -> None:  # fmt: skip
    """Transpose of `edge_scores` for the arc weights: weight float64[K] is added to."""
    N = codes.shape[1]
    L = node.shape[1]
    for g in prange(groups.shape[0] - 1):
        for s in range(groups[g], groups[g + 1]):
            slot = codes[slots[s]]
            for n in range(N):
                i = slot[n]
                if i >= 0:
                    if first[n]:
                        for k in range(split[i], start[i + 1]):
                            weight[k] += node[n, arc[k] - L * L]
                    else:
                        row = edge[n].reshape(L * L)
                        for k in range(start[i], split[i]):
                            weight[k] += row[arc[k]]


@njit(cache=True, nogil=True, error_model="numpy")
def column_scores(values: F64, weight: F64, out: F64) -> None:
    """Dense columns: out float64[n, L] += values float64[n, D] @ weight float64[D, L]."""
    N, D = values.shape
    for n in range(N):
        for d in range(D):
            v = values[n, d]
            if v != 0.0:
                for b in range(weight.shape[1]):
                    out[n, b] += v * weight[d, b]


@njit(cache=True, nogil=True, error_model="numpy")
def column_gradient(values: F64, omega: F64, weight: F64) -> None:
    """Transpose of `column_scores`: weight float64[D, L] += values^T omega."""
    N, D = values.shape
    for n in range(N):
        for d in range(D):
            v = values[n, d]
            if v != 0.0:
                for b in range(weight.shape[1]):
                    weight[d, b] += v * omega[n, b]


@njit(cache=True, nogil=True, error_model="numpy")
def path_scores(node: F64, edge: F64, offsets: I64, labels: I32, out: F64) -> None:
    """out[n] = phi_t(y_{t-1}, y_t) along the labels int32[n] of each sentence."""
    for i in range(offsets.shape[0] - 1):
        for n in range(offsets[i], offsets[i + 1]):
            y = labels[n]
            out[n] = node[n, y]
            if n > offsets[i]:
                out[n] += edge[n if edge.shape[0] > 1 else 0, labels[n - 1], y]


@njit(cache=True, nogil=True, error_model="numpy")
def add_path(offsets: I64, labels: I32, scale: F64, node: F64, edge: F64) -> None:
    """Clique indicators of a labelling: node[n, y] and edge[., y', y] += scale[sentence]."""
    for i in range(offsets.shape[0] - 1):
        for n in range(offsets[i], offsets[i + 1]):
            y = labels[n]
            node[n, y] += scale[i]
            if n > offsets[i]:
                edge[n if edge.shape[0] > 1 else 0, labels[n - 1], y] += scale[i]


@njit(cache=True, nogil=True, error_model="numpy")
def supported_pairs(codes: I32, labels: I32, n_attributes: int, n_labels: int) -> Bool:
    """bool[A, L]: does the attribute occur with the label?  codes int32[S, n], labels int32[n]."""
    seen = np.zeros((n_attributes, n_labels), np.bool_)
    for s in range(codes.shape[0]):
        for n in range(codes.shape[1]):
            i = codes[s, n]
            if i >= 0 and labels[n] >= 0:
                seen[i, labels[n]] = True
    return seen


@njit(cache=True, nogil=True, error_model="numpy")
def occurrence_hash(codes: I32, tokens: AnyArray, keys: AnyArray, counts: I64) -> None:
    """keys[attribute] += key of each token where it occurs (uint64, wrapping); counts likewise."""
    for s in range(codes.shape[0]):
        for n in range(codes.shape[1]):
            i = codes[s, n]
            if i >= 0:
                keys[i] += tokens[n]
                counts[i] += 1
