"""The regularised objective: a sum of terms over corpora, as one function of the flat weights.

    F(lambda) = sum_terms sum_i value_i(lambda) - |lambda|^2 / (2 sigma^2)   [- c1 |lambda|_1]

Sums, not means; the optimiser sees -F / N, N = tokens that carry a target, so that its tolerances
do not depend on the size of the corpus (specification section 9).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from ..types import F64, I32, I64, Bool
from .collapse import Collapse
from .data import Attributes, Block, blocks, slot_groups
from .kernels import scores
from .kernels.vectors import combine, subtract_prior
from .lattice import BlockPotentials
from .layout import Layout, Tables
from .terms import CliqueWeights, Term

#: most tokens per block when all positions share one transition matrix, and when each has its own
SHARED_BLOCK, VARYING_BLOCK = 4096, 1024
#: a block with its own transition matrices stays below this many of their cells (4 MB): 1,024
#: tokens of 22 labels, 258 of 45
VARYING_CELLS = 1 << 19


class CliqueFeatures(Protocol):
    """Dense clique features: real values h_k on every clique, one weight each (section 5.3).

    Bound to one corpus.  JESS-CM's embedded models are such features.
    """

    @property
    def n_weights(self) -> int: ...
    @property
    def on_edges(self) -> bool: ...  # do any live on arcs?
    def add_scores(self, weights: F64, block: Block, node: F64, edge: F64) -> None:
        """node += sum_k weights[k] h_k, likewise edge (edge float64[n, L, L] if on_edges)."""

    def expectation(self, block: Block, node: F64, edge: F64) -> F64:
        """sum over cliques of omega h_k: float64[n_weights]."""
        ...


@dataclass(frozen=True)
class EncodedCorpus:
    """Attributes of a corpus with their engine codes and blocks; clique features if any."""

    attributes: Attributes
    node: I32  # engine codes int32[S, N]
    n_labels: int
    clique: CliqueFeatures | None = None

    @classmethod
    def build(
        cls, layout: Layout, attributes: Attributes, clique: CliqueFeatures | None = None
    ) -> EncodedCorpus:
        return cls(attributes, layout.engine_codes(attributes.node), layout.n_labels, clique)

    def collapsed(self, collapse: Collapse) -> EncodedCorpus:
        """The same corpus for the reduced layout."""
        return replace(self, node=collapse.codes(self.attributes.node))

    @property
    def edge(self) -> I32:
        return self.attributes.edge

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
        return on_edges or bool((self.edge >= 0).any())

    @cached_property
    def blocks(self) -> list[Block]:
        if not self.varying:
            return list(blocks(self.offsets, SHARED_BLOCK))
        cells = VARYING_CELLS // self.n_labels**2
        return list(blocks(self.offsets, max(1, min(VARYING_BLOCK, cells))))

    @cached_property
    def node_groups(self) -> tuple[I32, I64]:
        return slot_groups(self.node)

    @cached_property
    def edge_groups(self) -> tuple[I32, I64]:
        return slot_groups(self.edge)

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
    codes = np.ascontiguousarray(data.node[:, block.tokens])
    scores.node_scores(codes, tables.table, layout.list_start, layout.list_label,
                       tables.list_weight, node)  # fmt: skip
    if data.dense is not None:
        scores.column_scores(data.dense[block.tokens], tables.columns, node)
    w = tables.w if mask is None else np.where(mask, tables.w, -np.inf)
    node[block.offsets[:-1]] += w[L]
    node[block.offsets[1:] - 1] += tables.e
    edge = np.ascontiguousarray(w[None, :L])
    if data.varying:
        edge = np.empty((block.n_tokens, L, L))
        scores.edge_scores(
            np.ascontiguousarray(data.edge[:, block.tokens]), block.first, w[:L],
            layout.arc_start, layout.split, layout.arc_code, tables.arc, node, edge,
        )  # fmt: skip
    if data.clique is not None:
        data.clique.add_scores(tables.clique, block, node, edge)
    return BlockPotentials(block, node, edge)


def add_gradient(gradient: Tables, data: EncodedCorpus, block: Block, omega: CliqueWeights) -> None:
    """Accumulate clique weights into the gradient: sum_c omega_c f(c)."""
    layout, L = gradient.layout, gradient.layout.n_labels
    codes = np.ascontiguousarray(data.node[:, block.tokens])
    scores.node_gradient(codes, *data.node_groups, omega.node, layout.list_start,
                         layout.list_label, gradient.table, gradient.list_weight)  # fmt: skip
    if data.dense is not None:
        scores.column_gradient(data.dense[block.tokens], omega.node, gradient.columns)
    gradient.w[:L] += omega.edge.sum(axis=0)
    gradient.w[L] += omega.node[block.offsets[:-1]].sum(axis=0)
    gradient.e[:] += omega.node[block.offsets[1:] - 1].sum(axis=0)
    if data.varying and layout.n_edge:
        scores.edge_gradient(
            np.ascontiguousarray(data.edge[:, block.tokens]), *data.edge_groups, block.first,
            layout.arc_start, layout.split, layout.arc_code, omega.node, omega.edge, gradient.arc,
        )  # fmt: skip
    if data.clique is not None:
        gradient.clique[:] += data.clique.expectation(block, omega.node, omega.edge)


@dataclass
class Objective:
    """Sum of (corpus, term) parts minus the Gaussian prior.

    sigma2: prior variance of attribute, transition and stop weights; sigma2_clique: of clique
    features (None = sigma2).  mask: bool[L+1, L] legal arcs.  copies: float64 per state weight, how
    many identical attributes it stands for (`collapse`); None = one.
    """

    layout: Layout
    parts: list[tuple[EncodedCorpus, Term]]
    sigma2: float
    sigma2_clique: float | None = None
    mask: Bool | None = None
    copies: F64 | None = None
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
        return math.fsum(np.concatenate(values)) - prior

    @cached_property
    def precision(self) -> F64:
        """Inverse prior variance of every weight, float64[n]."""
        cut = self.layout.bounds
        precision = np.full(self.layout.size, 1.0 / self.sigma2)
        precision[cut[5] :] = 1.0 / (self.sigma2_clique or self.sigma2)
        if self.copies is not None:
            precision[: cut[1]] /= self.copies
        return precision

    def scaled_loss(self, weights: F64, gradient: F64) -> float:
        """-F / n_tokens and its gradient: what the optimiser minimises."""
        value = self.value_and_gradient(weights, gradient)
        combine(-1.0 / self.n_tokens, gradient, 0.0, gradient, gradient)
        return -value / self.n_tokens
