"""From neighbor lists to the undirected graph."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import sparse

from sslbench.engine.errors import UserError
from sslbench.engine.graph.neighbors import NeighborLists


def symmetrize(
    neighbors: NeighborLists, k: int, how: Literal["union", "mutual"]
) -> sparse.csr_matrix[Any]:
    """Edges between a vertex and its first k neighbors: float64 CSR [V, V], int32 indices.

    "union" joins u and v if either has the other among its first k, "mutual" if both have. The
    matrix equals its transpose bit for bit, has no diagonal, and all its entries are above 0.

    Raises
    ------
    UserError: the lists are shorter than k, or `how` is neither of the two.
    """
    stored = neighbors.index.shape[1]
    if not 1 <= k <= stored:
        raise UserError(f"{k} neighbors of lists of {stored}", hint=f"take 1 to {stored}")
    if how not in ("union", "mutual"):
        raise UserError(f"no graph of kind {how!r}", hint='"union" or "mutual"')
    W = _directed(neighbors, k)
    # The similarities of the two directions may differ by rounding.
    W = W.maximum(W.T) if how == "union" else W.minimum(W.T)
    W = sparse.csr_matrix(W)
    W.eliminate_zeros()
    W.sort_indices()
    return W


def _directed(neighbors: NeighborLists, k: int) -> sparse.csr_matrix[Any]:
    """Similarities above 0 of each row's first k neighbors, in the order of the indices."""
    n = len(neighbors.index)
    index, similarity = neighbors.index[:, :k], neighbors.similarity[:, :k]
    valid = (index >= 0) & (similarity > 0) & (index != np.arange(n)[:, None])
    ptr = np.concatenate(([0], np.cumsum(valid.sum(axis=1))))
    W = sparse.csr_matrix((similarity[valid], index[valid], ptr), shape=(n, n))
    W.sort_indices()
    return W
