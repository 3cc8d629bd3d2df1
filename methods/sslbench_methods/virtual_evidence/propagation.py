"""Unnormalized label propagation of Zeng et al. (2013), equation 4.

q >= 0 without a sum constraint minimizes

    G(q) = sum_{labeled u} |q_u - r_u|^2 + c mu sum_{edges uv} w_uv |q_u - q_v|^2
         + lam sum_u Omega(q_u)

with Omega = sum_y q(y)^2 ("l2sq", the formula as printed), (sum_y q(y))^2 ("l1sq", few labels per
vertex, as in Das & Smith 2012) or sum_y q(y) ("l1"). An undirected edge is counted c times. The
mass of q_u decreases with the distance from labeled vertices and is exactly 0 without a path to one
(docs/specs/graph.md, section 7.3).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from sslbench.engine.graph.propagation.solver import (
    COUNTS,
    MAX_STEPS,
    TOLERANCE,
    EdgeCount,
    Edges,
    as_rows,
    solve,
)
from sslbench.engine.types import F64, I32, Bool
from sslbench_methods.virtual_evidence.kernels import sparse_sweep

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
    """Return the minimum of G for lam > 0: float64[V, K], entries >= 0.

    A linear system for "l2sq", else block descent with the closed-form minimum of each vertex, from
    0; G is convex.

    Parameters
    ----------
    W: symmetric csr[V, V] with zero diagonal. r: float64[V, K], read where bool[V] `labeled`.
    edge_count: c, "once" or "twice".
    tolerance: of the residual ("l2sq", see `solver.solve`) or of the gradient, relative to its
        value at 0.
    max_steps: of conjugate gradients, or sweeps over the vertices.

    Raises
    ------
    ValueError: lam <= 0, or shapes that do not match. ArithmeticError: `max_steps` exceeded.
    """
    if lam <= 0:
        raise ValueError(f"lam must be positive, got {lam}")
    V = len(labeled)
    edges, coupling = Edges.from_matrix(W, V), COUNTS[edge_count] * mu
    pull = np.where(labeled[:, None], as_rows(r, V, "r"), 0.0)
    curvature = labeled + coupling * edges.degree
    if penalty == "l2sq":
        q = solve(edges, coupling, curvature + lam, pull, tolerance=tolerance, max_steps=max_steps)
        return np.maximum(q, 0.0)  # the solution is >= 0 up to rounding
    return _block_descent(
        edges, pull, labeled, coupling, curvature, lam, penalty, tolerance, max_steps
    )


def normalized(q: F64) -> F64:
    """Scale rows to sum to 1; rows of zeros stay: float64[V, L]."""
    total = q.sum(axis=1, keepdims=True)
    rows: F64 = np.divide(q, total, out=np.zeros_like(q), where=total > 0)
    return rows


def above_base_rates(q: F64, vertex_of: I32) -> F64:
    """Subtract from each row as much of the mean row as has the same sum: float64[V, L].

    q: float64[V, L] >= 0.  vertex_of: int32[N], of the tokens that the mean is over; -1 = none.
    """
    total = np.bincount(vertex_of[vertex_of >= 0], minlength=len(q)) @ q
    rates = total / max(total.sum(), np.finfo(float).tiny)
    excess: F64 = q - q.sum(axis=1, keepdims=True) * rates
    return excess


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
    """Sweep over the vertices in alternating direction; each moves to its minimum."""
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
