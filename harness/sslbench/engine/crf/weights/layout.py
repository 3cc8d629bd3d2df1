"""Where every weight is in the flat parameter vector.

Flat layout, part of the file format (docs/specs/crf_engine.md, section 5.4):
``[state | columns | transitions (L+1) x L, last row START | stop (L) | second order | edges |
factors]``.
State weights are in the order of the attributes, then of the labels; edge weights in the order of
the edge attributes, then by code a*L + b of a transition (a = L is START); parts that are switched
off have length 0.
The second order holds w2 of three labels in a row, (L+1) x (L+1) x L, the skip pair of the first
and the third, (L+1) x L, and the stop weights e2 of the last two, (L+1) x L; row L is START.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sslbench.engine.checked import borders, check_array, check_borders, vector
from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.crf.data import Attributes
from sslbench.engine.crf.weights.rowtable import RowTable
from sslbench.engine.errors import UserError
from sslbench.engine.lazy import lazy
from sslbench.engine.types import F64, I32, I64, Bool

Support = Literal["all", "observed"]
Part = Literal["state", "columns", "transitions", "stop", "second_order", "edges", "factors"]
PARTS: tuple[Part, ...] = get_args(Part)
#: attributes with at least this many supported labels have a dense row, the others a list
DENSE_FROM = 3
#: edge attributes have one with at least this share of the transitions in use (a row costs as much
#: as a list of about that length)
TRANSITIONS_PER_ROW = 6
#: more edge weights than this are refused ("all" support on many edge attributes)
MAX_EDGE_WEIGHTS = 50_000_000


@dataclass(frozen=True)
class Layout:
    """Numbers of weights, and which (attribute, label) pairs have one.

    n_node, n_edge: attributes of labels and of transitions; n_columns: dense columns; n_factors:
    factor features.
    state_start: int64[A+1], state_label: int32[n] supported labels of each attribute; None = all.
    transition_start: int64[B+1], transition_code: int32[n] supported transitions of each edge
    attribute, ascending codes a*L + b.
    use_start, use_stop: are there weights of START transitions and of the last label?
    """

    n_labels: int
    n_node: int
    n_columns: int
    n_edge: int
    state_start: I64 | None
    state_label: I32 | None
    transition_start: I64
    transition_code: I32
    n_factors: int = 0
    use_start: bool = True
    use_stop: bool = True
    order: int = 1

    @lazy
    def bounds(self) -> I64:
        """int64[8]: borders of the parts in the flat vector."""
        L = self.n_labels
        sizes: dict[Part, int] = {
            "state": self.n_node * L if self.state_start is None else int(self.state_start[-1]),
            "columns": self.n_columns * L,
            "transitions": (L + 1) * L if self.use_start else L * L,
            "stop": L if self.use_stop else 0,
            "second_order": (L + 1) * (L + 3) * L if self.order == 2 else 0,
            "edges": len(self.transition_code),
            "factors": self.n_factors,
        }
        return np.cumsum([0, *(sizes[part] for part in PARTS)]).astype(np.int64)

    @property
    def size(self) -> int:
        """Number of weights."""
        return int(self.bounds[-1])

    @lazy
    def _spans(self) -> dict[Part, slice]:
        ends = pairwise(self.bounds.tolist())
        return {part: slice(*own) for part, own in zip(PARTS, ends, strict=True)}

    def span(self, part: Part) -> slice:
        """Return where a part is in the flat vector."""
        return self._spans[part]

    def part(self, weights: F64, part: Part) -> F64:
        """View of a part of flat weights."""
        return weights[self.span(part)]

    def of_weights(self, values: F64) -> F64:
        """Return the value of the node attribute of every state weight; values: float64[n_node]."""
        if self.state_start is None:
            return np.repeat(values, self.n_labels)
        return np.repeat(values, np.diff(self.state_start))

    def state_weights(self, weights: F64) -> tuple[I32, I32, F64]:
        """Attribute int32[n], label int32[n] and value of each state weight, in their order."""
        values = self.part(weights, "state")
        if self.state_start is None or self.state_label is None:
            attribute, label = np.divmod(np.arange(len(values), dtype=np.int32), self.n_labels)
            return attribute, label, values
        attributes = np.arange(self.n_node, dtype=np.int32)
        return np.repeat(attributes, np.diff(self.state_start)), self.state_label, values

    def same_as(self, other: Layout) -> bool:
        """Return whether all weights are at the same places."""
        if self is other:
            return True
        arrays = ("state_start", "state_label", "transition_start", "transition_code")
        own, others = vars(self), vars(other)
        sizes = {field.name for field in fields(self)} - {*arrays}
        return all(own[name] == others[name] for name in sizes) and all(
            np.array_equal(own[name], others[name]) for name in arrays
        )

    def transitions_only(self, weights: F64, centered: bool) -> F64:
        """Flat weights with those of attributes set to zero; see `ChainCRF.transitions_only`."""
        out = weights.copy()
        transitions, stop = self.span("transitions"), self.span("stop")
        out[: transitions.start] = 0.0
        if centered:
            L = self.n_labels
            inner = out[transitions][: L * L].reshape(L, L)
            center = inner - inner.mean(axis=1, keepdims=True) - inner.mean(axis=0) + inner.mean()
            out[transitions.start : stop.stop] = 0.0
            inner[:] = center
        return out

    @lazy
    def states(self) -> RowTable | None:
        """Rows and lists of the state weights; None = every attribute has a row."""
        if self.state_start is None or self.state_label is None:
            return None
        return RowTable(self.state_start, self.state_label, self.n_labels, DENSE_FROM)

    @lazy
    def transitions(self) -> I32:
        """int32[K]: codes that any edge attribute has a weight for, ascending (START last)."""
        return np.unique(self.transition_code).astype(np.int32)

    @lazy
    def inner_transitions(self) -> int:
        """How many of them do not leave START."""
        return int(np.searchsorted(self.transitions, self.n_labels**2))

    @lazy
    def edges(self) -> RowTable:
        """Rows and lists of the edge weights; columns are indices into `transitions`."""
        column = np.searchsorted(self.transitions, self.transition_code).astype(np.int32)
        dense_from = max(DENSE_FROM, len(self.transitions) // TRANSITIONS_PER_ROW)
        return RowTable(self.transition_start, column, len(self.transitions), dense_from)


@kernel
def supported_pairs(codes: I32, labels: I32, n_attributes: int, n_labels: int) -> Bool:
    """Return bool[A, L]: whether the attribute occurs with the label.

    codes: int32[S, N] attributes; labels: int32[N], -1 = none.
    """
    seen = np.zeros((n_attributes, n_labels), np.bool_)
    for s in range(codes.shape[0]):
        for n in range(codes.shape[1]):
            i = codes[s, n]
            if i >= 0 and labels[n] >= 0:
                seen[i, labels[n]] = True
    return seen


def _observed_labels(node: I32, labels: I32, n_attributes: int, n_labels: int) -> tuple[I64, I32]:
    """state_start and state_label of the (attribute, label) pairs that occur."""
    seen = supported_pairs(node, labels, n_attributes, n_labels)
    start = np.concatenate([[0], np.cumsum(seen.sum(axis=1))]).astype(np.int64)
    return start, np.nonzero(seen)[1].astype(np.int32)


def _observed_transitions(
    edge: I32, offsets: I64, labels: I32, n_attributes: int, n_labels: int
) -> tuple[I64, I32]:
    """transition_start and transition_code of the (edge attribute, previous label or START, label)
    triples that occur.
    """
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
    transition_support: Support = "observed",
    n_factors: int = 0,
    use_start: bool = True,
    use_stop: bool = True,
    order: int = 1,
) -> Layout:
    """Layout for a labeled corpus.

    labels: int32[N] gold labels, -1 = none.  "observed" keeps the (attribute, label) pairs, or
    (edge attribute, transition) pairs, that occur in the gold labeling; "all" keeps every one.
    Raises UserError if that takes too many edge weights, ValueError if arrays do not fit together.
    """
    L, N = n_labels, attributes.node.shape[1]
    check_array(labels, "labels", np.int32, (N,), (-1, L))
    check_array(attributes.node, "node attributes", np.int32, (None, N), (-1, n_node))
    check_array(attributes.edge, "edge attributes", np.int32, (None, N), (-1, n_edge))
    check_borders(attributes.offsets, "sentence offsets", N)
    state: tuple[I64 | None, I32 | None] = (None, None)
    if state_support == "observed":
        state = _observed_labels(attributes.node, labels, n_node, L)
    if transition_support == "observed":
        edges = _observed_transitions(attributes.edge, attributes.offsets, labels, n_edge, L)
    else:
        if n_edge * (L + 1) * L > MAX_EDGE_WEIGHTS:
            raise UserError(
                f"transition_support=all needs {n_edge * (L + 1) * L:,} weights",
                hint=f"use transition_support=observed (the limit is {MAX_EDGE_WEIGHTS:,})",
            )
        codes = np.arange((L + 1) * L, dtype=np.int32)
        edges = (np.arange(n_edge + 1, dtype=np.int64) * len(codes), np.tile(codes, n_edge))
    columns = 0 if attributes.dense is None else attributes.dense.shape[1]
    return Layout(L, n_node, columns, n_edge, *state, *edges, n_factors, use_start, use_stop, order)


def saved_layout(
    arrays: dict[str, NDArray[Any]],
    metadata: dict[str, Any],
    n_labels: int,
    n_node: int,
    n_edge: int,
) -> Layout:
    """Layout of a saved model; ValueError when its arrays and metadata cannot describe one."""
    sizes = [int(metadata[name]) for name in ("n_columns", "n_clique")]
    if n_labels < 1 or min(sizes) < 0:
        raise ValueError(f"{n_labels} labels, {sizes[0]} columns, {sizes[1]} factor features")
    order = int(metadata.get("order", 1))  # files from before there was a second order lack it
    if order not in (1, 2):
        raise ValueError(f"a chain of order {order}")
    state_start, state_label = None, None
    if "state_start" in arrays:
        state_label = vector(arrays, "state_label", np.int32, None, (0, n_labels))
        state_start = borders(arrays, "state_start", n_node, len(state_label))
    code = vector(arrays, "arc_code", np.int32, None, (0, (n_labels + 1) * n_labels))
    start = borders(arrays, "arc_start", n_edge, len(code))
    states, edges = (state_start, state_label), (start, code)
    ends = bool(metadata["use_start"]), bool(metadata["use_stop"])
    return Layout(n_labels, n_node, sizes[0], n_edge, *states, *edges, sizes[1], *ends, order)
