"""Breadth-first search from many vertices at once."""

from __future__ import annotations

import numpy as np
from numba import njit

from ...types import I32, Bool


@njit(cache=True, nogil=True, error_model="numpy")
def hops(indptr: I32, indices: I32, sources: Bool) -> I32:
    """int32[V]: edges on the shortest way to the nearest source, -1 where there is none."""
    V = sources.shape[0]
    far = np.full(V, -1, dtype=np.int32)
    queue = np.empty(V, dtype=np.int64)
    end = 0
    for u in range(V):
        if sources[u]:
            far[u] = 0
            queue[end] = u
            end += 1
    head = 0
    while head < end:
        u = queue[head]
        head += 1
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            if far[v] < 0:
                far[v] = far[u] + 1
                queue[end] = v
                end += 1
    return far
