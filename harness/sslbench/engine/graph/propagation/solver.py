"""The arrays of a symmetric graph, and linear systems (diag - coupling W) x = b over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from sslbench.engine.graph.propagation.kernels import advance, system_product, turn
from sslbench.engine.types import F64, I32

EdgeCount: TypeAlias = Literal["once", "twice"]

#: how often an objective counts an undirected edge: the factor c of mu
COUNTS: dict[str, float] = {"once": 1.0, "twice": 2.0}

TOLERANCE = 1e-10
MAX_STEPS = 10_000
#: float64 in a line of the cache
LINE = 8


@dataclass(frozen=True, eq=False)
class Edges:
    """CSR arrays of a symmetric graph of V vertices; both directions of every edge, E in all.

    indptr: int[V + 1]. indices: int[E]. weights: float64[E]. degree: float64[V], sums of weights.
    """

    indptr: I32
    indices: I32
    weights: F64
    degree: F64

    @classmethod
    def from_matrix(cls, W: csr_array, vertices: int) -> Edges:
        """Return the arrays of W; ValueError unless it is a valid csr[vertices, vertices]."""
        if W.format != "csr" or W.shape != (vertices, vertices):
            raise ValueError(f"W must be csr[{vertices}, {vertices}], got {W.format}{W.shape}")
        W.check_format(full_check=True)
        weights = np.ascontiguousarray(W.data, dtype=np.float64)
        indptr, indices = np.asarray(W.indptr), np.asarray(W.indices)  # may be memory maps
        owner = np.repeat(np.arange(vertices), np.diff(indptr))
        degree = np.bincount(owner, weights=weights, minlength=vertices)
        return cls(indptr, indices, np.asarray(weights), degree.astype(np.float64))

    @property
    def csr(self) -> tuple[I32, I32, F64]:
        """The first arguments of the kernels: indptr, indices, weights."""
        return self.indptr, self.indices, self.weights


def as_rows(array: F64, vertices: int, name: str, columns: Sequence[int] = ()) -> F64:
    """`array` as contiguous float64[V, K]; ValueError if it has another shape.

    columns: the values that K may have; none = any.
    """
    rows = np.ascontiguousarray(array, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != vertices or (columns and rows.shape[1] not in columns):
        wanted = " or ".join(map(str, dict.fromkeys(columns))) or "K"
        raise ValueError(f"{name} must be float64[{vertices}, {wanted}], got {rows.shape}")
    return rows


def on_lines(array: F64) -> F64:
    """Return a copy of float64[V, K] as float64[V, P], 0 in the columns from K on.

    The first row starts on a line of the cache. Rows of 9 to 16 columns are padded to two lines, so
    that no register is in two of them: a neighbor's row, anywhere in memory, then takes half the
    time. Other rows gain less than padding costs, and have none.
    """
    (V, K), P = array.shape, width_on_lines(array.shape[1])
    rows = from_line(np.zeros(V * P + LINE))[: V * P].reshape(V, P)
    rows[:, :K] = array
    return rows


def width_on_lines(columns: int) -> int:
    """Return the columns of rows of `on_lines`."""
    return 2 * LINE if LINE < columns <= 2 * LINE else columns


def from_line(space: F64) -> F64:
    """Return a float64 array from the first line of the cache that begins in it."""
    return space[-(space.ctypes.data // space.itemsize) % LINE :]


def inverse(diagonal: F64) -> F64:
    """1 / diagonal, and 0 where that is 0: such a vertex has no equation."""
    return np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)


def solve(
    edges: Edges,
    coupling: float,
    diagonal: F64,
    b: F64,
    *,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> F64:
    """x with (diag(diagonal) - coupling W) x = b, float64[V, K], by conjugate gradients from 0.

    The columns are separate systems that share the passes over the edges; a column is done when its
    residual is below `tolerance` times its right-hand side (Euclidean norms). The preconditioner is
    the diagonal.

    Parameters
    ----------
    diagonal: float64[V]; the matrix must be positive semi-definite.
    b: float64[V, K], zero on components where the matrix is singular; x is zero there.

    Raises
    ------
    ArithmeticError: a column is not done after `max_steps` steps.
    """
    columns, residual = b.shape[1], on_lines(b)
    K = residual.shape[1]
    precondition = inverse(diagonal)
    x, product = np.zeros_like(residual), np.empty_like(residual)
    p = on_lines(precondition[:, None] * residual)
    rho = np.einsum("uk,uk->k", residual, p)
    squares = np.einsum("uk,uk->k", residual, residual)
    goal = tolerance**2 * squares
    curvature, rho_new = np.empty(K), np.empty(K)
    for _ in range(max_steps):
        active = squares > goal
        if not active.any():
            break
        system_product(*edges.csr, coupling, diagonal, p, product, curvature)
        active &= curvature > 0
        step = np.divide(rho, curvature, out=np.zeros(K), where=active)
        advance(step, p, product, precondition, x, residual, rho_new, squares)
        keep = np.divide(rho_new, rho, out=np.zeros(K), where=active)
        turn(precondition, residual, keep, p)
        rho = rho_new.copy()
    if (squares > goal).any():
        raise ArithmeticError(
            f"conjugate gradients: {np.count_nonzero(squares > goal)} of {columns} labels did not"
            f" reach a relative residual of {tolerance:g} in {max_steps} steps"
        )
    return np.ascontiguousarray(x[:, :columns])
