"""Harmonic label propagation: labeled vertices are fixed, others are the mean of their neighbors.

Source: the baseline GP of He et al. (2013), equation 22 (docs/specs/graph.md, section 7.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from sslbench.engine.graph.propagation.kernels import system_product
from sslbench.engine.graph.propagation.solver import MAX_STEPS, TOLERANCE, Edges, as_rows, solve
from sslbench.engine.types import F64, Bool


def harmonic(
    W: csr_array, r: F64, labeled: Bool, *, tolerance: float = TOLERANCE, max_steps: int = MAX_STEPS
) -> F64:
    """r at labeled vertices, elsewhere the weighted mean of the neighbors: float64[V, K].

    Vertices without a path to a labeled one are exactly uniform, because the system is solved for
    the difference from uniform.

    Parameters
    ----------
    W: symmetric csr[V, V] with zero diagonal. r: float64[V, K], read where bool[V] `labeled`.
    tolerance, max_steps: of conjugate gradients, see `solver.solve`.

    Raises
    ------
    ValueError: shapes that do not match. ArithmeticError: `max_steps` exceeded.
    """
    V = len(labeled)
    r, edges = as_rows(r, V, "r"), Edges.from_matrix(W, V)
    uniform = 1.0 / r.shape[1]
    fixed, free = np.flatnonzero(labeled), np.flatnonzero(~labeled)
    offset = np.zeros_like(r)
    offset[fixed] = r[fixed] - uniform
    rows = W[free]
    pull = np.ascontiguousarray(rows[:, fixed] @ offset[fixed])
    inner = Edges.from_matrix(rows[:, free].tocsr(), len(free))
    offset[free] = solve(
        inner, 1.0, edges.degree[free], pull, tolerance=tolerance, max_steps=max_steps
    )
    offset += uniform
    return offset


def release_rate(step: int) -> float:
    """Length of step 0, 1, ... in the authors' program."""
    return 0.05 / (1.0 + math.sqrt(step))


def harmonic_descent(
    W: csr_array,
    r: F64,
    labeled: Bool,
    *,
    rate: Callable[[int], float] = release_rate,
    max_steps: int = 3000,
    tolerance: float = 1e-4,
) -> F64:
    """Approximate `harmonic` by gradient steps from uniform, as the authors' program does.

    Rows are clipped at 0 and normalized after each step. Descent stops at a relative change of
    trace(q' L q) below `tolerance`, or after `max_steps`. A constant `rate` converges if below
    2 / (largest eigenvalue of L among the unlabeled vertices).

    Parameters and ValueError as of `harmonic`.
    """
    V = len(labeled)
    r, edges = as_rows(r, V, "r"), Edges.from_matrix(W, V)
    q: F64 = np.where(labeled[:, None], r, 1.0 / r.shape[1])
    free = ~labeled[:, None]
    gradient, energy, before = np.empty_like(q), np.empty(q.shape[1]), np.inf
    for step in range(max_steps):
        system_product(*edges.csr, 1.0, edges.degree, q, gradient, energy)
        now = float(energy.sum())
        if abs(before - now) < tolerance * before < np.inf:
            break
        before = now
        np.subtract(q, rate(step) * gradient, out=q, where=free)
        np.maximum(q, 0.0, out=q, where=free)
        np.divide(q, q.sum(axis=1, keepdims=True), out=q, where=free)
    return q
