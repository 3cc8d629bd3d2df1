"""The regularised objective: a sum of terms over corpora, as one function of the flat weights.

    F(lambda) = sum_terms sum_i value_i(lambda) - |lambda|^2 / (2 sigma^2)   [- c1 |lambda|_1]

Sums, not means; the optimiser sees -F / N, N = tokens that carry a target, so that its tolerances
do not depend on the size of the corpus (specification section 9).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Protocol

import numpy as np

from ..types import F64, I32, I64, Bool
from .collapse import Collapse
from .data import Attributes, Block, blocks
from .kernels import scores
from .kernels.vectors import combine, dot, subtract_prior
from .lattice import BlockPotentials
from .layout import Layout, Tables
from .occurrences import Occurrences
from .terms import CliqueWeights, Term
from .trigrams import TriplePotentials

#: most tokens per block when all positions share one transition matrix, and when each has its own
SHARED_BLOCK, VARYING_BLOCK = 4096, 256
#: a block with its own transition matrices stays below this many of their cells (1 MB, so that they
#: stay in the second-level cache): 256 tokens of 22 labels, 64 of 45
VARYING_CELLS = 1 << 17


class CliqueFeatures(Protocol):
    """Dense clique features: real values h_k on every clique, one weight each (section 5.3).

    Bound to one corpus.  JESS-CM's embedded models are such features.
    """

    @property
    def n_weights(self) -> int: ...
    @property
    def on_edges(self) -> bool: ...  # do any live on arcs?
    @property
    def metric(self) -> float:
        """One over the squared spread of the values (an attribute's is about 1): the unit of a
        weight for the optimiser, which affects its speed alone."""
        ...

    def add_scores(self, weights: F64, block: Block, node: F64, edge: F64) -> None:
        """node += sum_k weights[k] h_k, likewise edge (edge float64[n, L, L] if on_edges)."""

    def expectation(self, block: Block, node: F64, edge: F64) -> F64:
        """sum over cliques of omega h_k: float64[n_weights]."""
        ...


@dataclass(frozen=True)
class EncodedCorpus:
    """Attributes of a corpus as a layout's weights see them; clique features if any.

    number: int32[A + 1] engine code of every attribute id, -1 for id -1; None = the id itself.
    only: int32[N] the one label that a token may have, -1 = any; None = any for all.
    """

    layout: Layout
    attributes: Attributes
    number: I32 | None
    clique: CliqueFeatures | None = None
    only: I32 | None = None

    @classmethod
    def build(
        cls, layout: Layout, attributes: Attributes, clique: CliqueFeatures | None = None,
        only: I32 | None = None,
    ) -> EncodedCorpus:  # fmt: skip
        number = None if layout.states is None else layout.states.code
        return cls(layout, attributes, number, clique, only)

    def collapsed(self, collapse: Collapse) -> EncodedCorpus:
        """The same corpus for the reduced layout."""
        return replace(self, layout=collapse.reduced, number=collapse.codes)

    @cached_property
    def states(self) -> Occurrences:
        return Occurrences.build(self.attributes.node, self.number, self.layout.states, spelt=True)

    @cached_property
    def arcs(self) -> Occurrences:
        rows = self.layout.arc_rows
        return Occurrences.build(self.attributes.edge, rows.code, rows, spelt=False)

    @property
    def dense(self) -> F64 | None:
        return self.attributes.dense

    @property
    def offsets(self) -> I64:
        return self.attributes.offsets

    @cached_property
    def varying(self) -> bool:
        """Do transition scores depend on the position?"""
        on_edges = self.clique is not None and self.clique.on_edges
        return on_edges or bool((self.attributes.edge >= 0).any())

    @cached_property
    def blocks(self) -> list[Block]:
        if not self.varying:
            return list(blocks(self.offsets, SHARED_BLOCK))
        cells = VARYING_CELLS // self.layout.n_labels**2
        return list(blocks(self.offsets, max(1, min(VARYING_BLOCK, cells))))

    @cached_property
    def lengths(self) -> F64:
        """Tokens of each sentence, float64[S]."""
        return np.diff(self.offsets).astype(np.float64)


def block_potentials(
    tables: Tables, data: EncodedCorpus, block: Block, mask: Bool | None = None
) -> BlockPotentials:
    """Log-potentials of a block under the given weights; mask bool[L+1, L]: legal arcs."""
    layout, L = tables.layout, tables.layout.n_labels
    node = np.empty((block.n_tokens, L))
    scores.node_scores(*data.states, block.lo, tables.table, tables.lists, node)
    if data.dense is not None:
        scores.column_scores(data.dense[block.tokens], tables.columns, node)
    w = tables.w if mask is None else np.where(mask, tables.w, -np.inf)
    node[block.offsets[:-1]] += w[L]
    node[block.offsets[1:] - 1] += tables.e
    edge = np.ascontiguousarray(w[None, :L])
    if data.varying:
        edge = np.empty((block.n_tokens, L, L))
        scores.edge_scores(
            *data.arcs, block.lo, block.first, w[:L], layout.arcs, layout.inner_arcs,
            tables.arc_table, layout.arc_rows.list_column, tables.arc_lists, node, edge,
        )  # fmt: skip
    if data.clique is not None:
        data.clique.add_scores(tables.clique, block, node, edge)
    if tables.second is not None:
        node[block.offsets[:-1]] += tables.second.first()
        node[block.single] += tables.second.e2[L]
    if data.only is not None:
        leave_only(data.only[block.tokens], node)
    if tables.second is None:
        return BlockPotentials(block, node, edge)
    return TriplePotentials(block, node, edge, tables.second.potentials())


def leave_only(labels: I32, node: F64) -> None:
    """Make all other labels of a token impossible: labels int32[n], -1 = none of them."""
    at = np.flatnonzero(labels >= 0)
    kept = node[at, labels[at]]
    node[at] = -np.inf
    node[at, labels[at]] = kept


def add_gradient(gradient: Tables, data: EncodedCorpus, block: Block, omega: CliqueWeights) -> None:
    """Accumulate clique weights into the gradient: sum_c omega_c f(c)."""
    layout, L = gradient.layout, gradient.layout.n_labels
    scores.node_gradient(*data.states, block.lo, omega.node, gradient.table, gradient.lists)
    if data.dense is not None:
        scores.column_gradient(data.dense[block.tokens], omega.node, gradient.columns)
    gradient.w[:L] += omega.edge.sum(axis=0)
    gradient.w[L] += omega.node[block.offsets[:-1]].sum(axis=0)
    gradient.e[:] += omega.node[block.offsets[1:] - 1].sum(axis=0)
    if gradient.second is not None and omega.triples is not None:
        first = omega.node[block.offsets[:-1]].sum(axis=0)
        gradient.second.add(omega.triples, first, omega.node[block.single].sum(axis=0))
    if data.varying and layout.n_edge:
        scores.edge_gradient(
            *data.arcs, block.lo, block.first, layout.arcs, layout.inner_arcs, omega.node,
            omega.edge, gradient.arc_table, layout.arc_rows.list_column, gradient.arc_lists,
        )  # fmt: skip
    if data.clique is not None:
        gradient.clique[:] += data.clique.expectation(block, omega.node, omega.edge)


@dataclass
class Objective:
    """Sum of (corpus, term) parts minus the Gaussian prior.

    sigma2: prior variance of attribute, transition and stop weights; sigma2_clique: of clique
    features (None = sigma2).  mask: bool[L+1, L] legal arcs.  copies: float64 per state weight, how
    many identical attributes it stands for (`collapse`); None = one.
    linear: float64 per weight, adds linear . weights to F (expected counts of an E-step).
    """

    layout: Layout
    parts: list[tuple[EncodedCorpus, Term]]
    sigma2: float
    sigma2_clique: float | None = None
    mask: Bool | None = None
    copies: F64 | None = None
    linear: F64 | None = None
    evaluations: int = field(default=0, init=False)

    @cached_property
    def n_tokens(self) -> float:
        return max(1.0, sum(term.n_tokens(data.lengths) for data, term in self.parts))

    def value_and_gradient(self, weights: F64, gradient: F64) -> float:
        """F(weights); gradient float64[n] is overwritten with dF."""
        self.evaluations += 1
        tables = Tables.unpack(self.layout, weights)
        accumulator = Tables.gradient(self.layout, gradient)
        values: list[F64] = []
        for data, term in self.parts:
            for block in data.blocks:
                omega = term.evaluate(block_potentials(tables, data, block, self.mask))
                add_gradient(accumulator, data, block, omega)
                values.append(omega.value)
        accumulator.pack(gradient)
        prior = subtract_prior(self.precision, weights, gradient)
        value = math.fsum(chain.from_iterable(values)) - prior
        if self.linear is not None:
            combine(1.0, gradient, 1.0, self.linear, gradient)
            value += dot(self.linear, weights)
        return value

    @cached_property
    def precision(self) -> F64:
        """Inverse prior variance of every weight, float64[n]."""
        cut = self.layout.bounds
        precision = np.full(self.layout.size, 1.0 / self.sigma2)
        precision[cut[6] :] = 1.0 / (self.sigma2_clique or self.sigma2)
        if self.copies is not None:
            precision[: cut[1]] /= self.copies
        return precision

    def scaled_loss(self, weights: F64, gradient: F64) -> float:
        """-F / n_tokens and its gradient: what the optimiser minimises."""
        value = self.value_and_gradient(weights, gradient)
        combine(-1.0 / self.n_tokens, gradient, 0.0, gradient, gradient)
        return -value / self.n_tokens
