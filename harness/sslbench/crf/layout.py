"""Where every weight lives: the flat parameter vector and the tables that the kernels read.

Flat layout (part of the file format):
``[state | dense columns | w (L+1) x L, last row START | stop e | arc weights | clique features]``.
State weights in attribute order, then label order; arc weights in attribute order, then by code
a*L+b (a = L is START); switched-off parts have length 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ..errors import UserError
from ..types import F64, I32, I64, Bool
from .data import Attributes
from .kernels import scores

Support = Literal["all", "observed"]
#: attributes with at least this many supported labels get a dense row, the others a list
DENSE_FROM = 3
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
    n_clique: int = 0
    use_start: bool = True
    use_stop: bool = True

    @cached_property
    def bounds(self) -> I64:
        """Borders of the six parts in the flat vector, int64[7]."""
        L = self.n_labels
        state = self.n_node * L if self.state_start is None else int(self.state_start[-1])
        transitions = (L + 1) * L if self.use_start else L * L
        sizes = [state, self.n_columns * L, transitions, L if self.use_stop else 0,
                 len(self.arc_code), self.n_clique]  # fmt: skip
        return np.cumsum([0, *sizes]).astype(np.int64)

    @property
    def size(self) -> int:
        return int(self.bounds[-1])

    def part(self, weights: F64, index: int) -> F64:
        """View of part 0 state, 1 columns, 2 w, 3 e, 4 arcs, 5 clique features."""
        return weights[self.bounds[index] : self.bounds[index + 1]]

    @cached_property
    def split(self) -> I64:
        """int64[B]: where the START arcs of each edge attribute begin."""
        owner_sum = np.concatenate([[0], np.cumsum(self.arc_code < self.n_labels**2)])
        inner = owner_sum[self.arc_start[1:]] - owner_sum[self.arc_start[:-1]]
        split: I64 = (self.arc_start[:-1] + inner).astype(np.int64)
        return split

    # -- state weights: dense rows and lists ------------------------------------------------
    @cached_property
    def _counts(self) -> I64:
        assert self.state_start is not None
        return np.diff(self.state_start)

    @cached_property
    def code_of(self) -> I32 | None:
        """int32[A + 1] engine code per attribute (row, or -2 - list); entry A serves id -1."""
        if self.state_start is None:
            return None
        dense = self._counts >= DENSE_FROM
        code = np.where(dense, np.cumsum(dense) - 1, -1 - np.cumsum(~dense))
        return np.append(code, -1).astype(np.int32)

    def engine_codes(self, node: I32) -> I32:
        """Attribute ids int32[S, N] -> codes of the kernels."""
        return node if self.code_of is None else self.code_of[node]

    @cached_property
    def _pairs(self) -> tuple[Bool, I64]:
        """For each supported pair: does it lie in a dense row, and in which cell?"""
        assert self.state_start is not None
        assert self.state_label is not None
        assert self.code_of is not None
        code = np.repeat(self.code_of[:-1], self._counts)
        dense = code >= 0
        return dense, code[dense].astype(np.int64) * self.n_labels + self.state_label[dense]

    @cached_property
    def list_start(self) -> I64:
        """int64[R+1] borders of the lists."""
        if self.state_start is None:
            return np.zeros(1, np.int64)
        return np.concatenate([[0], np.cumsum(self._counts[self._counts < DENSE_FROM])])

    @cached_property
    def list_label(self) -> I32:
        if self.state_label is None:
            return np.zeros(0, np.int32)
        return self.state_label[~self._pairs[0]]


@dataclass(frozen=True)
class Tables:
    """Weights (or a gradient) unpacked for the kernels; in the all-labels layout they are views."""

    layout: Layout
    table: F64  # float64[D, L] dense rows
    list_weight: F64
    columns: F64  # float64[n_columns, L]
    w: F64  # float64[L+1, L], row L START
    e: F64  # float64[L]
    arc: F64
    clique: F64

    @classmethod
    def unpack(cls, layout: Layout, flat: F64) -> Tables:
        L = layout.n_labels
        state = layout.part(flat, 0)
        if layout.state_start is None:
            table, lists = state.reshape(-1, L), np.zeros(0)
        else:
            dense, cell = layout._pairs
            table = np.zeros((int((layout._counts >= DENSE_FROM).sum()), L))
            table.reshape(-1)[cell] = state[dense]
            lists = state[~dense]
        w = layout.part(flat, 2).reshape(-1, L)
        if not layout.use_start:
            w = np.vstack([w, np.zeros((1, L))])
        e = layout.part(flat, 3) if layout.use_stop else np.zeros(L)
        columns = layout.part(flat, 1).reshape(-1, L)
        return cls(layout, table, lists, columns, w, e, layout.part(flat, 4), layout.part(flat, 5))

    @classmethod
    def gradient(cls, layout: Layout, flat: F64) -> Tables:
        """Zeroed accumulators; call `pack` when done (a no-op for parts that are views)."""
        flat[:] = 0.0
        return cls.unpack(layout, flat)

    def pack(self, flat: F64) -> None:
        """Write the parts that are copies back into the flat vector."""
        layout = self.layout
        if layout.state_start is not None:
            dense, cell = layout._pairs
            state = layout.part(flat, 0)
            state[dense] = self.table.reshape(-1)[cell]
            state[~dense] = self.list_weight
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
    keys = [np.unique(row[m].astype(np.int64) * n_codes + code[m])
            for row in edge for m in [(row >= 0) & known]]  # fmt: skip
    key = np.unique(np.concatenate(keys)) if keys else np.zeros(0, np.int64)
    start = np.searchsorted(key, np.arange(n_attributes + 1) * n_codes)
    return start.astype(np.int64), (key % n_codes).astype(np.int32)


def build_layout(
    attributes: Attributes, labels: I32, n_labels: int, *, n_node: int, n_edge: int,
    state_support: Support = "all", arc_support: Support = "observed", n_clique: int = 0,
    use_start: bool = True, use_stop: bool = True,
) -> Layout:  # fmt: skip
    """Layout for a labelled corpus.

    labels: int32[N] gold labels (-1 = none).  "observed" keeps the (attribute, label) pairs, or
    (edge attribute, arc) triples, that occur in the gold labelling; "all" keeps every one.
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
    return Layout(L, n_node, columns, n_edge, *state, *arcs, n_clique, use_start, use_stop)
