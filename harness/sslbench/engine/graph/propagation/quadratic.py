"""Label propagation of Subramanya et al. (2010), equation 2.

    C(q) = sum_{labeled u} |r_u - q_u|^2 + c mu sum_{edges uv} w_uv |q_u - q_v|^2
         + nu sum_u |q_u - U|^2

with U = 1/K; q is float64[V, K], rows are distributions over K labels. An undirected edge is
counted once (c = 1) or, as the paper's double sum reads literally, twice. The paper's update lacks
mu before the sum over neighbors; with it, rows keep their sum and C never increases
(docs/specs/graph.md, section 7.1).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from sslbench.engine.graph.propagation.kernels import jacobi_step, row_energy
from sslbench.engine.graph.propagation.solver import (
    COUNTS,
    MAX_STEPS,
    TOLERANCE,
    EdgeCount,
    Edges,
    as_rows,
    inverse,
    on_lines,
    solve,
)
from sslbench.engine.types import F64, Bool

STEPS = 10
"""Number of steps in the paper."""


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

    A small number of steps is part of the method: the optimum does not depend on the start. m steps
    carry labels over m edges. Labeled vertices are not reset to r. A vertex without label, edge and
    prior (nu = 0) keeps its start.

    Parameters
    ----------
    W: symmetric csr[V, V] with zero diagonal. start: float64[V, K].
    r: float64[V, K], read where bool[V] `labeled`.
    edge_count: c, "once" or "twice".

    Raises
    ------
    ValueError: shapes that do not match.
    """
    V = len(labeled)
    q, r = as_rows(start, V, "start"), as_rows(r, V, "r")
    if q.shape != r.shape:
        raise ValueError(f"start has {q.shape[1]} labels, r has {r.shape[1]}")
    edges, coupling = Edges.from_matrix(W, V), COUNTS[edge_count] * mu
    scale = inverse(labeled + nu + coupling * edges.degree)
    prior = nu / q.shape[1]
    K, (q, other, r) = q.shape[1], map(on_lines, (q, q, r))
    for _ in range(steps):
        jacobi_step(*edges.csr, q, r, labeled, coupling, prior, scale, other)
        q, other = other, q
    return np.ascontiguousarray(q[:, :K])


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

    The system is solved for q - U, whose right-hand side is zero at unlabeled vertices. Parameters
    and ValueError as of `propagate`; tolerance, max_steps and ArithmeticError as of `solver.solve`.
    """
    V = len(labeled)
    r, edges, coupling = as_rows(r, V, "r"), Edges.from_matrix(W, V), COUNTS[edge_count] * mu
    uniform = 1.0 / r.shape[1]
    pull = np.where(labeled[:, None], r - uniform, 0.0)
    diagonal = labeled + nu + coupling * edges.degree
    q = solve(edges, coupling, diagonal, pull, tolerance=tolerance, max_steps=max_steps)
    q += uniform
    return q


def roughness(W: csr_array, q: F64) -> float:
    """trace(q' L q), the sum over undirected edges of w_uv |q_u - q_v|^2; q float64[V, K]."""
    V = len(q)
    energy = np.empty(V)
    row_energy(*Edges.from_matrix(W, V).csr, as_rows(q, V, "q"), energy)
    return 0.5 * float(energy.sum())
