"""Scores and gradients of a CRF, one weight at a time, from where the layout says that it sits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.engine.crf.terms import PotentialGradient
from sslbench.engine.crf.weights.layout import Layout
from sslbench.engine.features import Attributes
from sslbench.engine.types import F64, I32, Bool
from support.crf_oracle import INF
from support.log_space_chain import Potentials


@dataclass(frozen=True)
class Places:
    """Where each weight sits in the flat vector, as the layout documents it."""

    state: dict[tuple[int, int], int] = field(default_factory=dict)  # attribute, label
    column: dict[tuple[int, int], int] = field(default_factory=dict)  # column, label
    #: previous label or START, label
    transition: dict[tuple[int, int], int] = field(default_factory=dict)
    stop: dict[int, int] = field(default_factory=dict)
    #: attribute, previous label or START, label
    edge: dict[tuple[int, int, int], int] = field(default_factory=dict)
    factors: dict[int, int] = field(default_factory=dict)


def places(layout: Layout) -> Places:
    """[state | columns | transitions, last row START | stop | edges | factors]."""
    L, at = layout.n_labels, Places()
    if layout.state_start is None:
        pairs = list(product(range(layout.n_node), range(L)))
    else:
        starts = layout.state_start
        pairs = [
            (a, int(layout.state_label[k]))
            for a in range(layout.n_node)
            for k in range(starts[a], starts[a + 1])
        ]
    edges = [
        (a, int(layout.transition_code[k]))
        for a in range(layout.n_edge)
        for k in range(layout.transition_start[a], layout.transition_start[a + 1])
    ]
    groups = (
        (at.state, pairs),
        (at.column, product(range(layout.n_columns), range(L))),
        (at.transition, product(range(L + 1 if layout.use_start else L), range(L))),
        (at.stop, range(L) if layout.use_stop else ()),
        (at.edge, [(a, code // L, code % L) for a, code in edges]),
        (at.factors, range(layout.n_factors)),
    )
    total = 0
    for table, keys in groups:
        for key in keys:
            table[key] = total
            total += 1
    return at


@dataclass(frozen=True)
class RandomFactors:
    """Factor features with random values on nodes and edges."""

    h_node: F64  # float64[N, L, K]
    h_edge: F64  # float64[N, L, L, K]
    on_edges: bool = True
    preconditioner: float = 0.5

    @property
    def n_weights(self) -> int:
        return self.h_node.shape[-1]

    def add_scores(self, weights: F64, batch: Batch, node: F64, edge: F64) -> None:
        node += self.h_node[batch.tokens] @ weights
        if self.on_edges:
            edge += self.h_edge[batch.tokens] @ weights

    def expectation(self, batch: Batch, node: F64, edge: F64) -> F64:
        total = np.einsum("nl,nlk->k", node, self.h_node[batch.tokens])
        if self.on_edges:
            inner = ~batch.first
            total += np.einsum("nab,nabk->k", edge[inner], self.h_edge[batch.tokens][inner])
        return total


def dense_potentials(
    layout: Layout,
    weights: F64,
    attributes: Attributes,
    transition_mask: Bool | None = None,
    factors: RandomFactors | None = None,
) -> list[Potentials]:
    """Potentials of every sentence, added up weight by weight."""
    L, at, START = layout.n_labels, places(layout), layout.n_labels
    chains = []
    for lo, hi in zip(attributes.offsets[:-1], attributes.offsets[1:], strict=True):
        node, edge = np.zeros((hi - lo, L)), np.zeros((hi - lo, L, L))
        for t, n in enumerate(range(lo, hi)):
            for b in range(L):
                for a in attributes.node[:, n].tolist():
                    if (a, b) in at.state:
                        node[t, b] += weights[at.state[a, b]]
                for d in range(layout.n_columns):
                    node[t, b] += attributes.dense[n, d] * weights[at.column[d, b]]
                for previous in [START] if t == 0 else range(L):
                    place = at.transition.get((previous, b))
                    score = 0.0 if place is None else weights[place]
                    for a in attributes.edge[:, n].tolist():
                        if (a, previous, b) in at.edge:
                            score += weights[at.edge[a, previous, b]]
                    if factors is not None and factors.on_edges and t > 0:
                        score += factors.h_edge[n, previous, b] @ weights[list(at.factors.values())]
                    if transition_mask is not None and not transition_mask[previous, b]:
                        score = -INF
                    if t == 0:
                        node[t, b] += score
                    else:
                        edge[t, previous, b] = score
                if factors is not None:
                    node[t, b] += factors.h_node[n, b] @ weights[list(at.factors.values())]
                if t == hi - lo - 1 and layout.use_stop:
                    node[t, b] += weights[at.stop[b]]
        chains.append(Potentials(node, edge))
    return chains


@dataclass
class Probe:
    """A term that stores the potentials it gets and returns fixed potential gradients.

    node_slope float64[N, L], edge_slope float64[N, L, L] (zero at first tokens).
    """

    node_slope: F64
    edge_slope: F64
    seen: list[BatchPotentials] = field(default_factory=list)

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        batch = potentials.batch
        self.seen.append(BatchPotentials(batch, potentials.node.copy(), potentials.edge.copy()))
        edge = self.edge_slope[batch.tokens].copy()
        if potentials.edge.shape[0] != batch.n_tokens:
            edge = edge.sum(axis=0, keepdims=True)
        value = np.zeros(batch.sentence_hi - batch.sentence_lo)
        return PotentialGradient(value, self.node_slope[batch.tokens].copy(), edge)

    def n_tokens(self, lengths: F64) -> float:
        return float(lengths.sum())


def random_attributes(
    rng: np.random.Generator,
    lengths: Sequence[int],
    *,
    n_node: int = 6,
    n_edge: int = 0,
    columns: int = 0,
) -> Attributes:
    """Two slots with attributes of their own and two that share theirs (a bag); a third of the
    entries is absent.  Edge attributes: one slot of its own, two that share.
    """
    N = int(sum(lengths))

    def slots(n: int, shares: list[tuple[float, float]]) -> I32:
        borders = [(int(n * lo), int(n * hi)) for lo, hi in shares]
        rows = [rng.integers(lo, max(hi, lo + 1), N) for lo, hi in borders]
        table = np.array(rows, np.int32).reshape(len(shares), N)
        table[-1][table[-2] == table[-1]] = -1  # a bag holds an attribute once
        table[rng.random(table.shape) < 0.33] = -1
        return table

    node = slots(n_node, [(0, 0.25), (0.25, 0.5), (0.5, 1), (0.5, 1)])
    edge = np.empty((0, N), np.int32)
    if n_edge:
        edge = slots(n_edge, [(0, 0.5), (0.5, 1), (0.5, 1)])
    dense = rng.normal(size=(N, columns)) if columns else None
    offsets = np.cumsum([0, *lengths]).astype(np.int64)
    return Attributes(node, edge, dense, offsets)
