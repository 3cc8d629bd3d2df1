"""The embedded models on one corpus as factor features of a CRF.

Model j adds lambda_{I+j} log p_j(x_j, y) to the score of a label sequence (Suzuki & Isozaki 2008,
equation 2; docs/specs/jess_cm.md, section 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.compilation.threads import number_of_threads
from sslbench.engine.crf import Batch
from sslbench.engine.types import F64, I32, AnyArray, Bool
from sslbench_methods.jess_cm import kernels
from sslbench_methods.jess_cm.counts import SymbolCounts
from sslbench_methods.jess_cm.tables import ModelTables


@dataclass(frozen=True)
class BoundModels:
    """Models on one corpus: `sslbench.engine.crf.FactorFeatures` with one weight per model.

    state, arc: int32[N, G], the row of every slot at every token, -1 = none.
    state_table, arc_table: what they are rows of: those of the models, or copies (`in_order`).
    """

    models: ModelTables
    state: I32
    arc: I32
    state_table: AnyArray
    arc_table: AnyArray

    def __post_init__(self) -> None:
        t, L = self.models, self.models.n_labels
        rows = (
            ("state", self.state, self.state_table, t.state_rows, L),
            ("arc", self.arc, self.arc_table, t.arc_rows, (L + 1) * L),
        )
        for name, row_of, values, slots, width in rows:
            shape = len(self.state), len(slots.owner)
            check_array(row_of, f"{name} rows", np.int32, shape, (-1, len(values)))
            check_array(values, f"{name} table", t.dtype, (len(values), width))

    def in_order(self) -> BoundModels:
        """Return these models with copies of the rows that the text reads, in the order of reading.

        For a text that is read many times: memory is faster in order.
        """
        state, state_table = _in_order(self.state, self.state_table)
        arc, arc_table = _in_order(self.arc, self.arc_table)
        return BoundModels(self.models, state, arc, state_table, arc_table)

    def _check(self, batch: Batch, node: F64) -> None:
        """Raise ValueError for a batch of another corpus or other labels; kernels do not check."""
        if batch.hi > len(self.state) or node.shape != (batch.n_tokens, self.models.n_labels):
            raise ValueError(f"tables of {len(self.state)} tokens, of another corpus or model")

    @property
    def n_weights(self) -> int:
        return self.models.n_models

    @property
    def on_edges(self) -> bool:
        return True

    @property
    def preconditioner(self) -> float:
        """Logarithms of probabilities differ by several nats between labels: 10^2 was the best of
        1, 10, ..., 10^5 in steps until convergence, with 100, 500 and 2,000 labeled sentences."""
        return 0.01

    def add_scores(self, weights: F64, batch: Batch, node: F64, edge: F64) -> None:
        """Add sum_j weight_j (log a_j + log b_j) to the log-potentials."""
        self._check(batch, node)
        t, lo = self.models, batch.lo
        chain, owner = weights @ t.chain, t.arc_rows.owner
        every, zeros, nothing = _without_transitions(node)
        states = self.state, t.state_rows.owner, weights, self.state_table, lo
        kernels.add_scores(*states, every, zeros, node, nothing)
        arcs = self.arc, owner, weights, self.arc_table, lo
        kernels.add_scores(*arcs, batch.first, chain, node, edge)

    def expectation(self, batch: Batch, node: F64, edge: F64) -> F64:
        """Return sum of omega * (log a_j + log b_j) per model: the derivative by its weight."""
        self._check(batch, node)
        t, lo = self.models, batch.lo
        flow = np.concatenate([edge.sum(axis=0).reshape(-1), node[batch.offsets[:-1]].sum(axis=0)])
        out: F64 = t.chain @ flow
        chunks = (batch.n_tokens + kernels.CHUNK - 1) // kernels.CHUNK
        partial = np.empty((chunks, self.state.shape[1]))
        every, _, nothing = _without_transitions(node)
        kernels.expectation(self.state, self.state_table, lo, every, node, nothing, partial)
        np.add.at(out, t.state_rows.owner, partial.sum(axis=0))
        partial = np.empty((chunks, self.arc.shape[1]))
        kernels.expectation(self.arc, self.arc_table, lo, batch.first, node, edge, partial)
        np.add.at(out, t.arc_rows.owner, partial.sum(axis=0))
        return out

    def count(self, batch: Batch, node: F64, edge: F64, counts: SymbolCounts) -> None:
        """Add the expected counts of a batch, given mu float64[n, L] and xi float64[n, L, L].

        ValueError for copied rows: counts have the rows of the models.
        """
        self._check(batch, node)
        if self.state_table is not self.models.state or self.arc_table is not self.models.arc:
            raise ValueError("rows of copies, which have no counts")
        t, lo, threads = self.models, batch.lo, number_of_threads()
        K = t.n_labels**2
        counts.chain[:K] += edge.sum(axis=0).reshape(-1)
        counts.chain[K:] += node[batch.offsets[:-1]].sum(axis=0)
        states, arcs = t.state_rows.shares(threads), t.arc_rows.shares(threads)
        kernels.count_states(self.state, states, lo, node, counts.state)
        kernels.count_arcs(self.arc, arcs, lo, batch.first, node, edge, counts.arc)


def _in_order(row_of: I32, table: AnyArray) -> tuple[I32, AnyArray]:
    """Number the rows that are read by their first use, and copy them."""
    used, first, place = np.unique(row_of, return_index=True, return_inverse=True)
    order = np.argsort(first)
    order = order[used[order] >= 0]
    renumbered = np.full(len(used), -1, np.int32)
    renumbered[order] = np.arange(len(order))
    return renumbered[place].reshape(row_of.shape), table[used[order]]


def _without_transitions(node: F64) -> tuple[Bool, F64, F64]:
    """Return what kernels read of states: all tokens first, an empty chain, empty edges."""
    n, L = node.shape
    return np.ones(n, bool), np.zeros(L), np.empty((n, 0, 0))
