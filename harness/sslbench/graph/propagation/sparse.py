"""Other ways to spread labels: non-negative with a penalty on mass, and harmonic.

Zeng et al. (2013): q >= 0 without a sum constraint minimizes

G(q) = sum_{labeled u} |q_u - r_u|^2 + c mu sum_{edges uv} w_uv |q_u - q_v|^2
     + lam sum_u Omega(q_u)

with Omega = sum_y q(y)^2 ("l2sq", the formula as printed), (sum_y q(y))^2 ("l1sq", few labels per
vertex, as in Das & Smith 2012) or sum_y q(y) ("l1"). Mass shrinks with the distance from labeled
vertices and is exactly 0 where no way leads to one.

He et al. (2013), baseline GP: labeled vertices are fixed and every other one is the mean of its
neighbors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from sslbench.graph.propagation.kernels import sparse_sweep, system_product
from sslbench.graph.propagation.quadratic import roughness
from sslbench.graph.propagation.solver import (
    COUNTS,
    MAX_STEPS,
    TOLERANCE,
    EdgeCount,
    Edges,
    rows_of,
    solve,
)
from sslbench.types import F64, Bool

Penalty: TypeAlias = Literal["l2sq", "l1sq", "l1"]


def propagate_unnormalized(
    W: csr_array,
    r: F64,
    labeled: Bool,
    mu: float,
    lam: float,
    penalty: Penalty = "l2sq",
    edge_count: EdgeCount = "twice",
    *,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> F64:
    """The minimum of G for lam > 0: float64[V, K], entries >= 0.

    Under "l2sq" a linear system, else block descent with the closed form of one vertex. G is
    convex, so the start does not matter; it is 0.

    ValueError for lam <= 0; ArithmeticError if the gradient, relative to that at 0, is not below
    `tolerance` after `max_steps` steps or sweeps.
    """
    if lam <= 0:
        raise ValueError(f"lam must be positive, got {lam}")
    V = len(labeled)
    edges, coupling = Edges.of(W, V), COUNTS[edge_count] * mu
    pull = np.where(labeled[:, None], rows_of(r, V, "r"), 0.0)
    curvature = labeled + coupling * edges.degree
    if penalty == "l2sq":
        q = solve(edges, coupling, curvature + lam, pull, tolerance=tolerance, max_steps=max_steps)
        return np.maximum(q, 0.0)  # the inverse has no negative entry; rounding may
    return _block_descent(
        edges, pull, labeled, coupling, curvature, lam, penalty, tolerance, max_steps
    )


def _block_descent(
    edges: Edges,
    pull: F64,
    labeled: Bool,
    coupling: float,
    curvature: F64,
    lam: float,
    penalty: Penalty,
    tolerance: float,
    max_steps: int,
) -> F64:
    """Sweeps over the vertices, forth and back in turn, each vertex at its own minimum."""
    q = np.zeros_like(pull)
    order = np.arange(len(q))
    shared = {"l1sq": True, "l1": False}[penalty]
    goal = tolerance * 2.0 * pull.max(initial=0.0)
    for sweep in range(max_steps):
        worst = sparse_sweep(
            *edges.csr,
            pull,
            labeled,
            coupling,
            curvature,
            lam,
            shared,
            order[:: 1 - 2 * (sweep % 2)],
            q,
        )
        if worst <= goal:
            return q
    raise ArithmeticError(f"block descent: gradient {worst:g} > {goal:g} after {max_steps} sweeps")


def unnormalized_objective(
    W: csr_array,
    q: F64,
    r: F64,
    labeled: Bool,
    mu: float,
    lam: float,
    penalty: Penalty = "l2sq",
    edge_count: EdgeCount = "twice",
) -> float:
    """G(q)."""
    mass = q.sum(axis=1)
    size = {"l2sq": np.square(q).sum(), "l1sq": np.square(mass).sum(), "l1": mass.sum()}[penalty]
    fit = np.square(q[labeled] - r[labeled]).sum()
    return float(fit + COUNTS[edge_count] * mu * roughness(W, q) + lam * size)


def harmonic(
    W: csr_array,
    r: F64,
    labeled: Bool,
    *,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> F64:
    """r at labeled vertices, elsewhere the weighted mean of the neighbors: float64[V, K].

    Components without a labeled vertex are uniform. Solved for the difference to uniform, so that
    these are exactly so. ArithmeticError as in `propagate_optimum`.
    """
    V = len(labeled)
    r, edges = rows_of(r, V, "r"), Edges.of(W, V)
    uniform = 1.0 / r.shape[1]
    fixed, free = np.flatnonzero(labeled), np.flatnonzero(~labeled)
    offset = np.zeros_like(r)
    offset[fixed] = r[fixed] - uniform
    rows = W[free]
    pull = np.ascontiguousarray(rows[:, fixed] @ offset[fixed])
    inner = Edges.of(rows[:, free].tocsr(), len(free))
    offset[free] = solve(
        inner, 1.0, edges.degree[free], pull, tolerance=tolerance, max_steps=max_steps
    )
    offset += uniform
    return offset


def release_rate(step: int) -> float:
    """Length of step 0, 1, ... in the release of the paper."""
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
    """Towards `harmonic` by gradient steps from uniform, as the release of the paper does it.

    Rows are clipped at 0 and normalized after each step; the end is a relative change of
    trace(q' L q) below `tolerance`, or `max_steps`. A rate that does not fall must be below
    2 / (largest eigenvalue of L among the unlabeled vertices).
    """
    V = len(labeled)
    r, edges = rows_of(r, V, "r"), Edges.of(W, V)
    q: F64 = np.where(labeled[:, None], r, 1.0 / r.shape[1])
    free = ~labeled[:, None]
    gradient, rough, before = np.empty_like(q), np.empty(q.shape[1]), np.inf
    for step in range(max_steps):
        system_product(*edges.csr, 1.0, edges.degree, q, gradient, rough)
        now = float(rough.sum())
        if abs(before - now) < tolerance * before < np.inf:
            break
        before = now
        np.subtract(q, rate(step) * gradient, out=q, where=free)
        np.maximum(q, 0.0, out=q, where=free)
        np.divide(q, q.sum(axis=1, keepdims=True), out=q, where=free)
    return q
