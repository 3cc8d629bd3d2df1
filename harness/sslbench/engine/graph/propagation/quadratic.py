"""The optimum of the objective of Subramanya et al. (2010), equation 2.

    C(q) = sum_{labeled u} |r_u - q_u|^2 + c mu sum_{edges uv} w_uv |q_u - q_v|^2
         + nu sum_u |q_u - U|^2

with U = 1/K; q is float64[V, K], rows are distributions over K labels. An undirected edge is
counted once (c = 1) or, as the paper's double sum reads literally, twice (docs/specs/graph.md,
section 7.1).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from sslbench.engine.graph.propagation.kernels import row_energy
from sslbench.engine.graph.propagation.solver import (
    COUNTS,
    MAX_STEPS,
    TOLERANCE,
    EdgeCount,
    Edges,
    as_rows,
    solve,
)
from sslbench.engine.types import F64, Bool


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

    The system is solved for q - U, whose right-hand side is zero at unlabeled vertices.

    Parameters
    ----------
    W: symmetric csr[V, V] with zero diagonal.
    r: float64[V, K], read where bool[V] `labeled`.
    edge_count: c, "once" or "twice".

    Raises
    ------
    ValueError: shapes that do not match. ArithmeticError as of `solver.solve`, which also says
        what tolerance and max_steps are.
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
