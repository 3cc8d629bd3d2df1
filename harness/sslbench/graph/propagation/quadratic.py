"""Label propagation of Subramanya et al. (2010): quadratic penalties on the simplex.

C(q) = sum_{labeled u} |r_u - q_u|^2 + c mu sum_{edges uv} w_uv |q_u - q_v|^2
     + nu sum_u |q_u - U|^2

with U = 1/K. An undirected edge is counted once (c = 1) or, as the paper's double sum reads
literally, twice. The paper's update lacks mu before the sum over neighbors; with it, rows keep
their sum and C never rises. q is float64[V, K], rows are distributions over K labels.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from sslbench.graph.propagation.kernels import jacobi_step, row_energy
from sslbench.graph.propagation.solver import (
    COUNTS,
    MAX_STEPS,
    TOLERANCE,
    EdgeCount,
    Edges,
    inverse_of,
    rows_of,
    solve,
)
from sslbench.types import F64, Bool

STEPS = 10


def propagate(
    W: csr_array,
    start: F64,
    r: F64,
    labeled: Bool,
    mu: float,
    nu: float,
    steps: int = STEPS,
    edge_count: EdgeCount = "once",
) -> F64:
    """`steps` Jacobi steps from `start`: float64[V, K].

    Few steps are part of the method: they smooth the start, which the optimum has forgotten. After
    m steps labels have come m edges far. A labeled vertex is pulled towards r and never reset to
    it. A vertex that nothing pulls at (nu = 0, no label, no edge) keeps its start.

    W: symmetric csr[V, V] with zero diagonal. r: float64[V, K], read where bool[V] `labeled`.
    """
    V = len(labeled)
    q, r = rows_of(start, V, "start"), rows_of(r, V, "r")
    if q.shape != r.shape:
        raise ValueError(f"start has {q.shape[1]} labels, r has {r.shape[1]}")
    edges, coupling = Edges.of(W, V), COUNTS[edge_count] * mu
    scale = inverse_of(labeled + nu + coupling * edges.degree)
    prior = nu / q.shape[1]
    q, other = q.copy(), np.empty_like(q)
    for _ in range(steps):
        jacobi_step(*edges.csr, q, r, labeled, coupling, prior, scale, other)
        q, other = other, q
    return q


def propagate_optimum(
    W: csr_array,
    r: F64,
    labeled: Bool,
    mu: float,
    nu: float,
    edge_count: EdgeCount = "once",
    *,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> F64:
    """The minimum of C: float64[V, K]. A component without labels is uniform, also for nu = 0.

    Solved for q - U, whose right-hand side is zero off the labeled vertices. ArithmeticError when
    conjugate gradients do not reach `tolerance` (relative residual) in `max_steps`.
    """
    V = len(labeled)
    r, edges, coupling = rows_of(r, V, "r"), Edges.of(W, V), COUNTS[edge_count] * mu
    uniform = 1.0 / r.shape[1]
    pull = np.where(labeled[:, None], r - uniform, 0.0)
    diagonal = labeled + nu + coupling * edges.degree
    q = solve(edges, coupling, diagonal, pull, tolerance=tolerance, max_steps=max_steps)
    q += uniform
    return q


def propagation_objective(
    W: csr_array,
    q: F64,
    r: F64,
    labeled: Bool,
    mu: float,
    nu: float,
    edge_count: EdgeCount = "once",
) -> float:
    """C(q)."""
    V = len(labeled)
    q, r, coupling = rows_of(q, V, "q"), rows_of(r, V, "r"), COUNTS[edge_count] * mu
    fit = np.square(q[labeled] - r[labeled]).sum()
    prior = np.square(q - 1.0 / q.shape[1]).sum()
    return float(fit + coupling * roughness(W, q) + nu * prior)


def roughness(W: csr_array, q: F64) -> float:
    """Sum over undirected edges of w_uv |q_u - q_v|^2 = trace(q' L q)."""
    V = len(q)
    energy = np.empty(V)
    row_energy(*Edges.of(W, V).csr, rows_of(q, V, "q"), energy)
    return 0.5 * float(energy.sum())
