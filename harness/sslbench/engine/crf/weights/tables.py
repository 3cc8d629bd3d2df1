"""Weights, or a gradient, as the kernels read them: views and tables of the flat vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.crf.data import LabelTriples
from sslbench.engine.crf.weights.layout import Layout
from sslbench.engine.crf.weights.rowtable import RowTable
from sslbench.engine.crf.weights.scores import EdgeWeights
from sslbench.engine.types import F64, Bool


class SecondOrder(NamedTuple):
    """Views of the second-order weights, or of their gradient; row L is START.

    w2: float64[L+1, L+1, L] of y_{t-2}, y_{t-1}, y_t; skip: float64[L+1, L] of y_{t-2}, y_t;
    e2: float64[L+1, L] of the last two labels.
    """

    w2: F64
    skip: F64
    e2: F64

    @classmethod
    def view(cls, flat: F64, L: int) -> SecondOrder:
        """View the part "second_order" of a flat vector for L labels."""
        cut = np.cumsum([(L + 1) * (L + 1) * L, (L + 1) * L])
        w2, skip, e2 = np.split(flat, cut)
        return cls(w2.reshape(L + 1, L + 1, L), skip.reshape(L + 1, L), e2.reshape(L + 1, L))

    def potentials(self) -> LabelTriples:
        """Return the log-potentials of the first two labels, three in a row and the last two."""
        L = self.w2.shape[2]
        begin = self.w2[L, :L] + self.skip[L]
        return LabelTriples(begin, self.w2[:L, :L] + self.skip[:L, None], self.e2[:L].copy())

    def first(self) -> F64:
        """Return float64[L]: the scores of the first label after START START."""
        L = self.w2.shape[2]
        return self.w2[L, L] + self.skip[L]

    def add(self, slopes: LabelTriples, first: F64, single: F64) -> None:
        """Add derivatives by the potentials to the gradient.

        first: float64[L] sums over first tokens; single: over sentences of one token.
        """
        L = self.w2.shape[2]
        self.w2[L, L] += first
        self.w2[L, :L] += slopes.begin
        self.w2[:L, :L] += slopes.inner
        self.skip[L] += first + slopes.begin.sum(axis=0)
        self.skip[:L] += slopes.inner.sum(axis=1)
        self.e2[:L] += slopes.end
        self.e2[L] += single

    def switch_off(self, start: bool, stop: bool) -> None:
        """Set the weights of START or stop to 0 where the model has none."""
        L = self.w2.shape[2]
        if not start:
            self.w2[L], self.skip[L], self.e2[L] = 0.0, 0.0, 0.0
        if not stop:
            self.e2[:] = 0.0


@dataclass(frozen=True)
class WeightTables:
    """Weights, or a gradient, unpacked for the kernels; views of the flat vector where possible.

    table: float64[D, L], dense rows, and lists: float64[K], of the state weights (`RowTable`).
    columns: float64[n_columns, L]; transitions: float64[L+1, L], row L START; stop: float64[L];
    second: of second-order models; edges: of edge attributes; factors: float64[n_factors].
    """

    layout: Layout
    table: F64
    lists: F64
    columns: F64
    transitions: F64
    stop: F64
    second: SecondOrder | None
    edges: EdgeWeights
    factors: F64

    @classmethod
    def unpack(cls, layout: Layout, flat: F64) -> WeightTables:
        """Unpack flat weights."""
        tables = cls._build(layout, flat, RowTable.unpack)
        if tables.second is None or (layout.use_start and layout.use_stop):
            return tables
        second = SecondOrder(*(part.copy() for part in tables.second))
        second.switch_off(layout.use_start, layout.use_stop)
        return replace(tables, second=second)

    @classmethod
    def gradient(cls, layout: Layout, flat: F64) -> WeightTables:
        """Set a flat gradient to zero and unpack it, to be added to; call `pack` when done."""
        check_array(flat, "the gradient", np.float64, (layout.size,))
        flat[:] = 0.0
        return cls._build(layout, flat, lambda rows, _: rows.zeros())

    @classmethod
    def _build(
        cls, layout: Layout, flat: F64, split: Callable[[RowTable, F64], tuple[F64, F64]]
    ) -> WeightTables:
        L = layout.n_labels
        check_array(flat, "weights", np.float64, (layout.size,))
        state = layout.part(flat, "state")
        if layout.states is None:
            table, lists = state.reshape(-1, L), np.zeros(0)
        else:
            table, lists = split(layout.states, state)
        transitions = layout.part(flat, "transitions").reshape(-1, L)
        if not layout.use_start:
            transitions = np.vstack([transitions, np.zeros((1, L))])
        rows, edge_lists = split(layout.edges, layout.part(flat, "edges"))
        codes, columns = layout.transitions, layout.edges.list_column
        second = layout.part(flat, "second_order")
        return cls(
            layout,
            table,
            lists,
            layout.part(flat, "columns").reshape(-1, L),
            transitions,
            layout.part(flat, "stop") if layout.use_stop else np.zeros(L),
            SecondOrder.view(second, L) if layout.order == 2 else None,
            EdgeWeights(codes, layout.inner_transitions, rows, columns, edge_lists),
            layout.part(flat, "factors"),
        )

    def allowed_transitions(self, mask: Bool | None) -> F64:
        """Return float64[L+1, L]: `transitions`, -inf where the mask bool[L+1, L] is False."""
        return self.transitions if mask is None else np.where(mask, self.transitions, -np.inf)

    def pack(self, flat: F64) -> None:
        """Write the parts that are copies back into the flat vector."""
        layout = self.layout
        if layout.states is not None:
            layout.states.pack(self.table, self.lists, layout.part(flat, "state"))
        layout.edges.pack(self.edges.table, self.edges.lists, layout.part(flat, "edges"))
        if self.second is not None:
            self.second.switch_off(layout.use_start, layout.use_stop)
        if not layout.use_start:
            layout.part(flat, "transitions")[:] = self.transitions[:-1].reshape(-1)
