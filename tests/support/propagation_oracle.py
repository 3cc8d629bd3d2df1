"""Graphs to test with, and dense or plain counterparts of what `sslbench.engine.graph` computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from sslbench.engine.graph.propagation.solver import EdgeCount
from sslbench.engine.types import F64, Bool
from sslbench_methods.virtual_evidence.propagation import Penalty

EDGES = [(0, 1, 0.9), (1, 2, 0.5), (2, 3, 0.8), (4, 5, 0.7)]
COUNTS: dict[EdgeCount, float] = {"once": 1.0, "twice": 2.0}
LABELED = np.array([True, False, False, True, False, False])


def graph(vertices: int, edges: Sequence[tuple[int, int, float]]) -> csr_array:
    """The symmetric matrix of these undirected edges."""
    W = np.zeros((vertices, vertices))
    for u, v, w in edges:
        W[u, v] = W[v, u] = w
    return csr_array(W)


def six() -> csr_array:
    """The graph of docs/specs/graph.md, oracles G6 to G13: a path of four with labeled
    ends, and a pair apart.
    """
    return graph(6, EDGES)


def rows_at(rows: dict[int, Sequence[float]], vertices: int = 6) -> F64:
    """float64[V, K] with these rows, zeros elsewhere."""
    r = np.zeros((vertices, len(next(iter(rows.values())))))
    for u, row in rows.items():
        r[u] = row
    return r


def random_graph(seed: int, vertices: int, density: float = 0.3) -> csr_array:
    rng = np.random.default_rng(seed)
    joined = np.triu(rng.random((vertices, vertices)) < density, 1)
    W = np.where(joined, rng.uniform(0.05, 1, (vertices, vertices)), 0.0)
    return csr_array(W + W.T)


def distributions(seed: int, vertices: int, labels: int) -> F64:
    rows = np.random.default_rng(seed).gamma(0.5, size=(vertices, labels)) + 1e-9
    return rows / rows.sum(axis=1, keepdims=True)


def laplacian(W: csr_array) -> F64:
    dense = W.toarray()
    return np.diag(dense.sum(axis=1)) - dense


def quadratic_optimum(W: csr_array, r: F64, labeled: Bool, pull: F64, c: float, nu: float) -> F64:
    """(S + c L + nu I) q = S r + nu pull, dense."""
    S = np.diag(labeled.astype(float))
    return np.linalg.solve(S + c * laplacian(W) + nu * np.eye(len(r)), S @ r + nu * pull)


def propagation_objective(
    W: csr_array,
    q: F64,
    r: F64,
    labeled: Bool,
    mu: float,
    nu: float,
    edge_count: EdgeCount = "once",
) -> float:
    """C(q) of docs/specs/graph.md, section 7.1."""
    fit = np.square(q[labeled] - r[labeled]).sum()
    prior = np.square(q - 1.0 / q.shape[1]).sum()
    edges = COUNTS[edge_count] * mu * np.trace(q.T @ laplacian(W) @ q)
    return float(fit + edges + nu * prior)


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
    """G(q) of docs/specs/graph.md, section 7.3."""
    mass = q.sum(axis=1)
    omega = {"l2sq": np.square(q).sum(), "l1sq": np.square(mass).sum(), "l1": mass.sum()}[penalty]
    fit = np.square(q[labeled] - r[labeled]).sum()
    edges = COUNTS[edge_count] * mu * np.trace(q.T @ laplacian(W) @ q)
    return float(fit + edges + lam * omega)


def harmonic_optimum(W: csr_array, r: F64, labeled: Bool) -> F64:
    """L_uu q_u = W_ul r_l on the vertices with a path to a labeled one; uniform elsewhere."""
    V = len(r)
    walks = np.linalg.matrix_power(np.eye(V) + (W.toarray() > 0), V)
    u = np.flatnonzero(~labeled & (walks @ labeled > 0))
    q = np.where(labeled[:, None], r, 1 / r.shape[1])
    L = laplacian(W)
    q[u] = np.linalg.solve(L[np.ix_(u, u)], -L[np.ix_(u, labeled)] @ r[labeled])
    return q


def penalized(
    W: csr_array, r: F64, labeled: Bool, c: float, lam: float, penalty: str, start: F64
) -> tuple[F64, float]:
    """Minimum of the unnormalized objective by L-BFGS-B: (q, value)."""
    L, S = laplacian(W), labeled[:, None].astype(float)

    def value(flat: F64) -> tuple[float, F64]:
        q = flat.reshape(r.shape)
        mass = q.sum(axis=1, keepdims=True)
        omega, slope = {
            "l2sq": ((q**2).sum(), 2 * q),
            "l1sq": ((mass**2).sum(), 2 * mass + 0 * q),
            "l1": (mass.sum(), np.ones_like(q)),
        }[penalty]
        total = (S * (q - r) ** 2).sum() + c * np.trace(q.T @ L @ q) + lam * omega
        return total, (2 * S * (q - r) + 2 * c * L @ q + lam * slope).ravel()

    options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 10_000, "maxfun": 100_000, "maxcor": 30}
    result = minimize(
        value,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * r.size,
        options=options,
    )
    return result.x.reshape(r.shape), float(result.fun)
