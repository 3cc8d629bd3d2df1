"""Penalties of the label marginals of tokens, for posterior regularization.

A penalty h is convex and differentiable and sees the marginals through rows, each an affine
function of those of its tokens: means by vertex of a graph, or sums by sentence. All tokens of a
row then have the same derivative, so that the optimal posterior, p(y | x) exp(-lam dh/dm), differs
from the model by one number per row and label.
Source: He et al. (2013), sections 3 and 4 (equation 15 lacks 1 / n_a:
docs/specs/graph_pr.md, erratum 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from sslbench.graph.propagation.kernels import add_labels, row_energy, system_product
from sslbench.graph.propagation.solver import Edges
from sslbench.types import F64, I32, I64


@dataclass(frozen=True, eq=False)
class Rows:
    """What a penalty sees: fixed + scale * (sum of the marginals of a row's free tokens).

    row_of: int32[N] row of each free token, -1 = the penalty does not see it; scale: float64[R];
    fixed: float64[R, K], the part of tokens whose labels are known.
    """

    row_of: I32
    scale: F64
    fixed: F64

    def of(self, sums: F64) -> F64:
        """float64[R, K] from sums of marginals, float64[R, K]."""
        rows = self.scale[:, None] * sums
        rows += self.fixed
        return rows


class Regularizer(Protocol):
    """A penalty h of rows."""

    @property
    def rows(self) -> Rows: ...

    def value_and_gradient(self, m: F64) -> tuple[float, F64]:
        """h(m), and its derivative by the marginal of any one token of each row: float64[R, K]."""
        ...

    def divergence(self, new: F64, old: F64) -> float:
        """h(new) - h(old) - <h'(old), new - old>, >= 0: how far h is above its tangent."""
        ...


@dataclass(frozen=True, eq=False)
class GraphLaplacian:
    """sum over undirected edges of w_ab |m_a - m_b|^2, with m the mean marginals of vertices.

    A vertex counts once, however frequent it is.
    """

    edges: Edges
    rows: Rows

    @classmethod
    def build(
        cls, W: csr_array, known: I32, labels: I32, free: I32, n_labels: int
    ) -> GraphLaplacian:
        """W: symmetric csr[V, V] with zero diagonal; known, free: int32 vertices of tokens with
        and without labels, -1 = outside the graph; labels: int32 of the known ones.
        """
        V = W.shape[0]
        fixed, n = np.zeros((V, n_labels)), np.zeros(V, np.int64)
        add_labels(known, labels, fixed, n)
        n += np.bincount(free[free >= 0], minlength=V)
        scale = 1.0 / np.maximum(n, 1)
        fixed *= scale[:, None]
        return cls(Edges.of(W, V), Rows(free, scale, fixed))

    def value_and_gradient(self, m: F64) -> tuple[float, F64]:
        gradient, energy = np.empty_like(m), np.empty(m.shape[1])
        system_product(*self.edges.csr, 1.0, self.edges.degree, m, gradient, energy)
        gradient *= 2.0 * self.rows.scale[:, None]
        return float(energy.sum()), gradient

    def divergence(self, new: F64, old: F64) -> float:
        energy = np.empty(len(new))
        row_energy(*self.edges.csr, new - old, energy)
        return 0.5 * float(energy.sum())


@dataclass(frozen=True, eq=False)
class AtLeastOnce:
    """sum over sentences of max(0, 1 - c)^2, c the expected number of tokens of one label.

    "Every sentence has a verb": sslbench's own example of a penalty without a graph.
    """

    label: int
    rows: Rows

    @classmethod
    def build(cls, label: int, lengths: I64, n_labels: int) -> AtLeastOnce:
        """label: its code; lengths: int64[S] tokens of the sentences."""
        S = len(lengths)
        row_of = np.repeat(np.arange(S, dtype=np.int32), lengths)
        return cls(label, Rows(row_of, np.ones(S), np.zeros((S, n_labels))))

    def value_and_gradient(self, m: F64) -> tuple[float, F64]:
        lack = self._lack(m)
        gradient = np.zeros_like(m)
        gradient[:, self.label] = -2.0 * lack
        return float(lack @ lack), gradient

    def divergence(self, new: F64, old: F64) -> float:
        now, before = self._lack(new), self._lack(old)
        change = new[:, self.label] - old[:, self.label]
        return float((now * now - before * before + 2.0 * before * change).sum())

    def _lack(self, m: F64) -> F64:
        lack: F64 = np.maximum(0.0, 1.0 - m[:, self.label])
        return lack
