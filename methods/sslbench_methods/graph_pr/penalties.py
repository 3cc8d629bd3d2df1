"""Penalties on the label marginals of tokens, for posterior regularization.

A penalty h is a convex, differentiable function of rows, each an affine function of the marginals
of its tokens: means over a vertex of a graph, or sums over a sentence. All tokens of a row have the
same derivative, so the optimal posterior, proportional to p(y | x) exp(-lam dh/dm), differs from
the model by one number per row and label. Source: He et al. (2013), sections 3 and 4 of the paper
(equation 15 lacks 1 / n_a: docs/specs/graph_pr.md, erratum 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from sslbench.engine.checked import check_array
from sslbench.engine.graph.propagation.kernels import row_energy, system_product
from sslbench.engine.graph.propagation.solver import Edges, as_rows, width_on_lines
from sslbench.engine.graph.tokens import check_below, label_counts
from sslbench.engine.types import F64, I32, I64
from sslbench_methods.graph_pr.rows import scale_rows


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a penalty: fixed + scale * (sum of the marginals of the unlabeled tokens).

    row_of: int32[N], row of each unlabeled token, -1 = none. scale: float64[R].
    fixed: float64[R, K], the contribution of labeled tokens. width: columns P of the rows, 0 from K
    on, as the penalty reads them fastest; None = K. ValueError for other arrays, and if P < K.
    """

    row_of: I32
    scale: F64
    fixed: F64
    width: int | None = None

    def __post_init__(self) -> None:
        check_array(self.fixed, "fixed", np.float64, (None, None))
        check_array(self.scale, "scale", np.float64, (len(self.fixed),))
        if self.shape[1] < self.fixed.shape[1]:
            raise ValueError(f"width {self.width} is less than {self.fixed.shape[1]} labels")

    @property
    def shape(self) -> tuple[int, int]:
        """R, P."""
        rows, labels = self.fixed.shape
        return rows, self.width or labels

    def from_sums(self, sums: F64, out: F64 | None = None) -> F64:
        """Return rows float64[R, P] of sums of marginals float64[R, K]; out: space for them.

        ValueError for arrays of other shapes.
        """
        R, K = self.fixed.shape
        rows = np.empty(self.shape) if out is None else out
        check_array(rows, "out", np.float64, self.shape)
        scale_rows(as_rows(sums, R, "sums", [K]), self.scale, self.fixed, rows)
        return rows


class Regularizer(Protocol):
    """A penalty h of rows m, float64[R, K] or, as `Rows.from_sums` gives them, float64[R, P]."""

    @property
    def rows(self) -> Rows:
        """How the rows depend on the marginals."""
        ...

    def value_and_gradient(self, m: F64) -> tuple[float, F64]:
        """Return h(m), and its derivative by the marginals of one token of each row.

        The derivative is float64[R, K], the same for every unlabeled token of a row.
        """
        ...

    def divergence(self, new: F64, old: F64) -> float:
        """Return h(new) - h(old) - <h'(old), new - old> >= 0, the Bregman divergence of h."""
        ...


@dataclass(frozen=True, eq=False)
class GraphLaplacian:
    """Sum over undirected edges of w_ab |m_a - m_b|^2, m the mean marginals of vertices.

    Vertices are not weighted by their frequency.
    """

    edges: Edges
    rows: Rows

    @classmethod
    def build(
        cls, W: csr_array, gold: I32, labels: I32, free: I32, n_labels: int
    ) -> GraphLaplacian:
        """Build the penalty of a graph.

        Parameters
        ----------
        W: symmetric csr[V, V] with zero diagonal.
        gold, free: int32, vertices of the tokens with and without labels, -1 = no vertex.
        labels: int32, of the tokens in `gold`.
        n_labels: K.

        ValueError if the arrays do not match or a code is out of range.
        """
        V = W.shape[0]
        if len(gold) != len(labels):
            raise ValueError(f"{len(gold)} tokens, {len(labels)} labels")
        check_below(gold, V, "vertex")
        check_below(free, V, "vertex")
        check_below(labels, n_labels, "label")
        counts = label_counts(gold, labels, V, n_labels)
        n = counts.sum(axis=1) + np.bincount(free[free >= 0], minlength=V)
        scale = 1.0 / np.maximum(n, 1)
        fixed = counts * scale[:, None]
        rows = Rows(free, scale, fixed, width_on_lines(n_labels))
        return cls(Edges.from_matrix(W, V), rows)

    def value_and_gradient(self, m: F64) -> tuple[float, F64]:
        """Return the sum, and 2 / n_a times the Laplacian of m at each vertex a of n_a tokens.

        ValueError for rows of another shape.
        """
        m, gradient = self._checked(m), np.empty_like(self.rows.fixed)
        edges, twice, energy = self.edges, 2.0 * self.rows.scale, np.empty(gradient.shape[1])
        system_product(*edges.csr, 1.0, edges.degree, m, gradient, energy, scale=twice)
        return float(energy.sum()), gradient

    def divergence(self, new: F64, old: F64) -> float:
        """Return the penalty of new - old, as it is quadratic."""
        change = self._checked(new - old)
        energy = np.empty(len(change))
        row_energy(*self.edges.csr, change, energy)
        return 0.5 * float(energy.sum())

    def _checked(self, m: F64) -> F64:
        """Return rows that the kernels can read."""
        V, K = self.rows.fixed.shape
        return as_rows(m, V, "m", [K, self.rows.shape[1]])


@dataclass(frozen=True, eq=False)
class AtLeastOnce:
    """Sum over sentences of max(0, 1 - c)^2, c the expected number of tokens with one label.

    A penalty without a graph: for example, every sentence should have a verb.
    """

    label: int
    rows: Rows

    @classmethod
    def build(cls, label: int, lengths: I64, n_labels: int) -> AtLeastOnce:
        """label: code of the label. lengths: int64[S], tokens of each sentence. n_labels: K."""
        S = len(lengths)
        row_of = np.repeat(np.arange(S, dtype=np.int32), lengths)
        return cls(label, Rows(row_of, np.ones(S), np.zeros((S, n_labels))))

    def value_and_gradient(self, m: F64) -> tuple[float, F64]:
        """Return the sum, and -2 max(0, 1 - c) for the label in each sentence."""
        lack = self._lack(m)
        gradient = np.zeros_like(m)
        gradient[:, self.label] = -2.0 * lack
        return float(lack @ lack), gradient

    def divergence(self, new: F64, old: F64) -> float:
        """Return the Bregman divergence, which is not symmetric."""
        now, before = self._lack(new), self._lack(old)
        change = new[:, self.label] - old[:, self.label]
        return float((now * now - before * before + 2.0 * before * change).sum())

    def _lack(self, m: F64) -> F64:
        lack: F64 = np.maximum(0.0, 1.0 - m[:, self.label])
        return lack
