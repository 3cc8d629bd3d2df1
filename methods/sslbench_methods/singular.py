"""Truncated singular value decompositions of sparse matrices, with seeded random numbers."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sslbench.engine.types import F64

_ROUNDS = 8  # of subspace iteration
_SPARE = 10  # dimensions that are iterated besides those that are returned


def singular_rows(matrix: sparse.csr_array, dimensions: int, rng: np.random.Generator) -> F64:
    """Return rows of U sqrt(S) of the largest singular values: float64[n, at most `dimensions`].

    Subspace iteration from a random start (N. Halko et al., SIAM Review 2011, algorithm 4.4):
    scipy's svds restarts from the operating system's random numbers when the rank is small, with
    and without a start vector.  The sign of each column makes its largest number positive.
    """
    width = min(dimensions + _SPARE, *matrix.shape)
    basis = rng.standard_normal((matrix.shape[1], width))
    for _ in range(_ROUNDS):
        basis = matrix.T @ np.linalg.qr(matrix @ basis)[0]
        basis = np.linalg.qr(basis)[0]
    U, S, _ = np.linalg.svd(matrix @ basis, full_matrices=False)
    columns = (U * np.sqrt(S))[:, :dimensions]
    largest = np.abs(columns).argmax(axis=0) if len(columns) else np.empty(0, np.int64)
    signs = np.sign(columns[largest, np.arange(columns.shape[1])])
    rows: F64 = columns * np.where(signs == 0, 1.0, signs)
    return rows
