"""Where every weight lives: the flat parameter vector and the tables that the kernels read.

Flat layout (part of the file format):
``[state | dense columns | w (L+1) x L, last row START | stop e | second order | arc weights |
factor features]``.  State weights in attribute order, then label order; arc weights in attribute
order, then by code a*L+b (a = L is START); switched-off parts have length 0.  Second order: w2 of
three labels in a row (L+1) x (L+1) x L, its back-off s of the first and the third (L+1) x L, stop
e2 of the last two (L+1) x L, in all of which row L is START.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sslbench.checked import borders, vector
from sslbench.crf.data import Attributes
from sslbench.crf.first_order.batch import LabelTriples
from sslbench.crf.weights import scores
from sslbench.crf.weights.rowtable import RowTable
from sslbench.errors import UserError
from sslbench.types import F64, I32, I64

Support = Literal["all", "observed"]
#: attributes with at least this many supported labels get a dense row, the others a list
DENSE_FROM = 3
#: edge attributes get one with at least this share of the arcs in use (a row costs as much as a
#: list of about that length)
ARCS_PER_ROW = 6
#: more arc weights than this are refused ("all" support on many edge attributes)
MAX_ARC_WEIGHTS = 50_000_000


@dataclass(frozen=True)
class Layout:
    """Sizes and supports.

    state_start int64[A+1], state_label int32[n]: supported labels per attribute; None = all.
    arc_start int64[B+1], arc_code int32[n]: supported arcs per edge attribute, ascending.
    """

    n_labels: int
    n_node: int
    n_columns: int
    n_edge: int
    state_start: I64 | None
    state_label: I32 | None
    arc_start: I64
    arc_code: I32
    n_factors: int = 0
    use_start: bool = True
    use_stop: bool = True
    order: int = 1

    @cached_property
    def bounds(self) -> I64:
        """Borders of the seven parts in the flat vector, int64[8]."""
        L = self.n_labels
        state = self.n_node * L if self.state_start is None else int(self.state_start[-1])
        transitions = (L + 1) * L if self.use_start else L * L
        second = (L + 1) * (L + 3) * L if self.order == 2 else 0
        sizes = [
            state,
            self.n_columns * L,
            transitions,
            L if self.use_stop else 0,
            second,
            len(self.arc_code),
            self.n_factors,
        ]
        return np.cumsum([0, *sizes]).astype(np.int64)

    @property
    def size(self) -> int:
        return int(self.bounds[-1])

    def part(self, weights: F64, index: int) -> F64:
        """View of part 0 state, 1 columns, 2 w, 3 e, 4 second order, 5 arcs, 6 factor features."""
        return weights[self.bounds[index] : self.bounds[index + 1]]

    def transitions_only(self, weights: F64, centered: bool) -> F64:
        """Flat weights with those of attributes set to zero; see `ChainCRF.transitions_only`."""
        kept = weights.copy()
        kept[: self.bounds[2]] = 0.0
        if centered:
            L = self.n_labels
            inner = self.part(kept, 2)[: L * L].reshape(L, L)
            center = inner - inner.mean(axis=1, keepdims=True) - inner.mean(axis=0) + inner.mean()
            kept[self.bounds[2] : self.bounds[4]] = 0.0
            inner[:] = center
        return kept

    @cached_property
    def states(self) -> RowTable | None:
        """Rows and lists of the state weights; None = a row of all labels for each attribute."""
        if self.state_start is None or self.state_label is None:
            return None
        return RowTable(self.state_start, self.state_label, self.n_labels, DENSE_FROM)

    @cached_property
    def arcs(self) -> I32:
        """Arcs that any edge attribute has a weight for, int32[K] ascending (START last)."""
        return np.unique(self.arc_code).astype(np.int32)

    @cached_property
    def inner_arcs(self) -> int:
        """How many of them do not leave START."""
        return int(np.searchsorted(self.arcs, self.n_labels**2))

    @cached_property
    def arc_rows(self) -> RowTable:
        """Rows and lists of the arc weights; columns are numbers into `arcs`."""
        column = np.searchsorted(self.arcs, self.arc_code).astype(np.int32)
        dense_from = max(DENSE_FROM, len(self.arcs) // ARCS_PER_ROW)
        return RowTable(self.arc_start, column, len(self.arcs), dense_from)


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
        cut = np.cumsum([(L + 1) * (L + 1) * L, (L + 1) * L])
        w2, skip, e2 = np.split(flat, cut)
        return cls(w2.reshape(L + 1, L + 1, L), skip.reshape(L + 1, L), e2.reshape(L + 1, L))

    def potentials(self) -> LabelTriples:
        """Log-potentials of the first two labels, three in a row and the last two."""
        L = self.w2.shape[2]
        begin = self.w2[L, :L] + self.skip[L]
        return LabelTriples(begin, self.w2[:L, :L] + self.skip[:L, None], self.e2[:L].copy())

    def first(self) -> F64:
        """float64[L]: what START START gives to the first label."""
        L = self.w2.shape[2]
        return self.w2[L, L] + self.skip[L]

    def add(self, sums: LabelTriples, first: F64, single: F64) -> None:
        """The gradient: potential gradients float64[L] of first tokens, of sentences of one
        token.
        """
        L = self.w2.shape[2]
        self.w2[L, L] += first
        self.w2[L, :L] += sums.begin
        self.w2[:L, :L] += sums.inner
        self.skip[L] += first + sums.begin.sum(axis=0)
        self.skip[:L] += sums.inner.sum(axis=1)
        self.e2[:L] += sums.end
        self.e2[L] += single

    def switch_off(self, start: bool, stop: bool) -> None:
        """Zero for START or stop weights that the model has not."""
        L = self.w2.shape[2]
        if not start:
            self.w2[L], self.skip[L], self.e2[L] = 0.0, 0.0, 0.0
        if not stop:
            self.e2[:] = 0.0


@dataclass(frozen=True)
class Tables:
    """Weights (or a gradient) unpacked for the kernels; in the all-labels layout they are views."""

    layout: Layout
    table: F64  # float64[D, L] dense rows
    lists: F64
    columns: F64  # float64[n_columns, L]
    w: F64  # float64[L+1, L], row L START
    e: F64  # float64[L]
    second: SecondOrder | None
    arc_table: F64  # float64[Da, K] dense rows
    arc_lists: F64
    factors: F64

    @classmethod
    def unpack(cls, layout: Layout, flat: F64) -> Tables:
        tables = cls._build(layout, flat, RowTable.unpack)
        if tables.second is None or (layout.use_start and layout.use_stop):
            return tables
        own = SecondOrder(*(part.copy() for part in tables.second))
        own.switch_off(layout.use_start, layout.use_stop)
        return replace(tables, second=own)

    @classmethod
    def gradient(cls, layout: Layout, flat: F64) -> Tables:
        """Zeroed accumulators; call `pack` when done (a no-op for parts that are views)."""
        flat[:] = 0.0
        return cls._build(layout, flat, lambda rows, _: rows.zeros())

    @classmethod
    def _build(
        cls, layout: Layout, flat: F64, split: Callable[[RowTable, F64], tuple[F64, F64]]
    ) -> Tables:
        L = layout.n_labels
        state = layout.part(flat, 0)
        if layout.states is None:
            table, lists = state.reshape(-1, L), np.zeros(0)
        else:
            table, lists = split(layout.states, state)
        w = layout.part(flat, 2).reshape(-1, L)
        if not layout.use_start:
            w = np.vstack([w, np.zeros((1, L))])
        e = layout.part(flat, 3) if layout.use_stop else np.zeros(L)
        columns = layout.part(flat, 1).reshape(-1, L)
        second = SecondOrder.view(layout.part(flat, 4), L) if layout.order == 2 else None
        arcs = split(layout.arc_rows, layout.part(flat, 5))
        return cls(layout, table, lists, columns, w, e, second, *arcs, layout.part(flat, 6))

    def pack(self, flat: F64) -> None:
        """Write the parts that are copies back into the flat vector."""
        layout = self.layout
        if layout.states is not None:
            layout.states.pack(self.table, self.lists, layout.part(flat, 0))
        layout.arc_rows.pack(self.arc_table, self.arc_lists, layout.part(flat, 5))
        if self.second is not None:
            self.second.switch_off(layout.use_start, layout.use_stop)
        if not layout.use_start:
            layout.part(flat, 2)[:] = self.w[:-1].reshape(-1)


def observed_labels(node: I32, labels: I32, n_attributes: int, n_labels: int) -> tuple[I64, I32]:
    """(start, label) of the (attribute, label) pairs that occur; labels int32[N]."""
    seen = scores.supported_pairs(node, labels, n_attributes, n_labels)
    start = np.concatenate([[0], np.cumsum(seen.sum(axis=1))]).astype(np.int64)
    return start, np.nonzero(seen)[1].astype(np.int32)


def observed_arcs(
    edge: I32, offsets: I64, labels: I32, n_attributes: int, n_labels: int
) -> tuple[I64, I32]:
    """(start, code) of the (edge attribute, previous label or START, label) triples that occur."""
    previous = np.empty_like(labels)
    previous[1:] = labels[:-1]
    previous[offsets[:-1]] = n_labels
    code = previous.astype(np.int64) * n_labels + labels
    n_codes = (n_labels + 1) * n_labels
    known = (labels >= 0) & (previous >= 0)
    keys = [
        np.unique(row[m].astype(np.int64) * n_codes + code[m])
        for row in edge
        for m in [(row >= 0) & known]
    ]
    key = np.unique(np.concatenate(keys)) if keys else np.zeros(0, np.int64)
    start = np.searchsorted(key, np.arange(n_attributes + 1) * n_codes)
    return start.astype(np.int64), (key % n_codes).astype(np.int32)


def build_layout(
    attributes: Attributes,
    labels: I32,
    n_labels: int,
    *,
    n_node: int,
    n_edge: int,
    state_support: Support = "all",
    arc_support: Support = "observed",
    n_factors: int = 0,
    use_start: bool = True,
    use_stop: bool = True,
    order: int = 1,
) -> Layout:
    """Layout for a labeled corpus.

    labels: int32[N] gold labels (-1 = none).  "observed" keeps the (attribute, label) pairs, or
    (edge attribute, arc) triples, that occur in the gold labeling; "all" keeps every one.
    """
    L, N = n_labels, attributes.node.shape[1]
    state: tuple[I64 | None, I32 | None] = (None, None)
    if state_support == "observed":
        state = observed_labels(attributes.node, labels, n_node, L)
    if arc_support == "observed":
        arcs = observed_arcs(attributes.edge, attributes.offsets, labels, n_edge, L)
    else:
        if n_edge * (L + 1) * L > MAX_ARC_WEIGHTS:
            raise UserError(
                f"arc_support=all needs {n_edge * (L + 1) * L:,} weights",
                hint=f"use arc_support=observed (the limit is {MAX_ARC_WEIGHTS:,})",
            )
        codes = np.arange((L + 1) * L, dtype=np.int32)
        arcs = (np.arange(n_edge + 1, dtype=np.int64) * len(codes), np.tile(codes, n_edge))
    columns = 0 if attributes.dense is None else attributes.dense.shape[1]
    assert len(labels) == N
    return Layout(L, n_node, columns, n_edge, *state, *arcs, n_factors, use_start, use_stop, order)


def saved_layout(
    arrays: dict[str, NDArray[Any]], facts: dict[str, Any], n_labels: int, n_node: int, n_edge: int
) -> Layout:
    """Layout of a saved model; ValueError when its arrays and facts cannot describe one."""
    sizes = [int(facts[name]) for name in ("n_columns", "n_clique")]
    if n_labels < 1 or min(sizes) < 0:
        raise ValueError(f"{n_labels} labels, {sizes[0]} columns, {sizes[1]} factor features")
    order = int(facts.get("order", 1))  # files from before the second order do not say
    if order not in (1, 2):
        raise ValueError(f"a chain of order {order}")
    state_start, state_label = None, None
    if "state_start" in arrays:
        state_label = vector(arrays, "state_label", np.int32, None, (0, n_labels))
        state_start = borders(arrays, "state_start", n_node, len(state_label))
    arc_code = vector(arrays, "arc_code", np.int32, None, (0, (n_labels + 1) * n_labels))
    arc_start = borders(arrays, "arc_start", n_edge, len(arc_code))
    return Layout(
        n_labels,
        n_node,
        sizes[0],
        n_edge,
        state_start,
        state_label,
        arc_start,
        arc_code,
        sizes[1],
        bool(facts["use_start"]),
        bool(facts["use_stop"]),
        order,
    )
