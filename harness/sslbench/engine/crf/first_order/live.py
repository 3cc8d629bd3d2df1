"""Potentials of which a part of the transitions depends on the position, and their posterior.

Edge attributes have weights for the transitions that were seen with them, of 19 labels for 128 of
361. The recursions are those of `scaled` under one matrix E, in which the cells of these live
transitions are replaced at each position: a position costs their exponentials, not those of all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.compilation.compiled import kernel, parallel_kernel
from sslbench.engine.crf.first_order.batch import (
    BatchPosterior,
    BatchPotentials,
    check_feasible,
    check_weights,
)
from sslbench.engine.crf.first_order.scaled import (
    REDO,
    ChainScratch,
    Live,
    Transitions,
    live_of,
    log_space_sentence,
    shared_sentence,
    shifted_transitions,
    with_scores,
)
from sslbench.engine.crf.simd import rows
from sslbench.engine.types import F64, I8, I32, I64


class LiveTransitions(NamedTuple):
    """The I transitions that depend on the position, of K columns.

    left, right: int32[I] labels; column: int32[L, L], the column of each, -1 of all others.
    """

    left: I32
    right: I32
    column: I32

    @classmethod
    def of(cls, codes: I32, n_labels: int) -> LiveTransitions:
        """Return those of the codes left * L + right, int32[I]."""
        column = np.full(n_labels**2, -1, np.int32)
        column[codes] = np.arange(len(codes), dtype=np.int32)
        left, right = (x.astype(np.int32) for x in np.divmod(codes, n_labels))
        return cls(left, right, column.reshape(n_labels, n_labels))


@dataclass(frozen=True)
class LivePotentials(BatchPotentials):
    """Log-potentials of the sentences of a batch; -inf = impossible.

    node: as in `BatchPotentials`. edge: float64[1, L, L], the same at every position.
    live: the transitions with scores of their own.
    scores: float64[n, K], these are added to edge from the second token of a sentence on; 0 at the
    first, and in the columns beyond those of `live`.
    """

    live: LiveTransitions
    scores: F64

    def __post_init__(self) -> None:
        super().__post_init__()
        L = self.node.shape[1]
        check_array(self.edge, "edge potentials", np.float64, (1, L, L))
        check_array(self.scores, "scores by position", np.float64, (len(self.node), None))
        check_array(self.live.column, "columns", np.int32, (L, L), (-1, self.scores.shape[1]))
        for labels in (self.live.left, self.live.right):
            check_array(labels, "labels", np.int32, (None,), (0, L))
        if not len(self.live.left) == len(self.live.right) <= self.scores.shape[1]:
            raise ValueError("live transitions and their scores do not fit")

    def path_scores(self, labels: I32) -> F64:
        """Return float64[n]: the potential of each factor along the labels int32[n]."""
        out = super().path_scores(labels)
        _add_scores(self.batch.offsets, labels, self.live.column, self.scores, out)
        return out

    def with_node(self, node: F64) -> LivePotentials:
        """Return potentials with other node potentials; inference overwrites no shared array."""
        return replace(self, node=node, scores=self.scores.copy())

    def per_position(self) -> BatchPotentials:
        """Return the same potentials with a transition matrix for every position."""
        n, L = self.node.shape
        edge = np.broadcast_to(self.edge, (n, L, L)).copy()
        edge[:, self.live.left, self.live.right] += self.scores[:, : len(self.live.left)]
        return BatchPotentials(self.batch, self.node, edge)

    def viterbi(self) -> I32:
        """Return int32[n]: the best labels of every sentence, as `BatchPotentials.viterbi`."""
        return self.per_position().viterbi()

    def posterior(self, weights: F64 | None = None, *, counted: bool = True) -> BatchPosterior:
        """Return log-partitions, and marginals times the weights float64[s] of the sentences.

        weights: None: ones. counted: sums of edge marginals are computed in any case.
        The scores by position are overwritten with the marginals of their transitions.
        Raises InfeasibleSentenceError for a sentence without a possible labeling.
        """
        if weights is None:
            weights = np.ones(len(self.batch.offsets) - 1)
        check_weights(weights, self.batch)
        batch, (n, L) = self.batch, self.node.shape
        log_scale, mu = np.empty(n), np.empty((n, L))
        status, groups = np.empty(len(weights), np.int8), batch.groups()
        sums = np.empty((len(groups) - 1, L, L))
        transitions = shifted_transitions(self.edge)
        inputs = groups, batch.offsets, transitions, self.live, self.node, self.edge
        _infer(_Work(*inputs, weights, self.scores, mu, log_scale, status, sums))
        check_feasible(batch, status)
        edge = sums.sum(axis=0, keepdims=True)
        edge[0, self.live.left, self.live.right] = self.scores.sum(axis=0)[: len(self.live.left)]
        return BatchPosterior(batch, log_scale, mu, edge, live=self.scores)

    def log_likelihood(self, labels: I32, weights: F64 | None = None) -> tuple[F64, BatchPosterior]:
        """Return log p of the labels and its derivatives, as `BatchPotentials`."""
        value, slopes = super().log_likelihood(labels, weights)
        own = np.ones(len(self.batch.offsets) - 1) if weights is None else weights
        _add_path(self.batch.offsets, labels, own, self.live.column, self.scores)
        return value, slopes


class EdgeSums(NamedTuple):
    """Sums of edge marginals over some sentences; where a transition is live, they mean nothing.

    shared: float64[L, P], still to be multiplied by E; redone: float64[L, L], of sentences done in
    log space.
    """

    shared: F64
    redone: F64


class _Work(NamedTuple):
    """Arrays as in `LivePotentials` and `shared._Work`; weights: float64[s]."""

    groups: I64
    offsets: I64
    transitions: Transitions
    live: LiveTransitions
    node: F64
    edge: F64
    weights: F64
    scores: F64
    mu: F64
    log_scale: F64
    status: I8
    sums: F64


@parallel_kernel(lambda work: len(work.groups) - 1)
def _infer(begin: int, end: int, work: _Work) -> None:
    """Marginals of live transitions into scores, sums of all others into sums; status."""
    groups, offsets, live, scores = work.groups, work.offsets, work.live, work.scores
    transitions = own_copies(work.transitions)
    cells = live_of(live.left, live.right, transitions.E, scores)
    longest = 0
    for i in range(groups[begin], groups[end]):
        longest = max(longest, offsets[i + 1] - offsets[i])
    space = scratch_for(longest, transitions.E.shape[1])
    sums = edge_sums(transitions.E)
    for g in range(begin, end):
        for i in range(groups[g], groups[g + 1]):
            lo, hi = offsets[i], offsets[i + 1]
            work.status[i] = infer_sentence(
                work.node[lo:hi],
                work.edge,
                transitions,
                with_scores(cells, scores[lo:hi]),
                live.column,
                space,
                work.weights[i],
                work.mu[lo:hi],
                work.log_scale[lo:hi],
                sums,
            )
        for a in range(work.sums.shape[1]):
            for b in range(work.sums.shape[1]):
                work.sums[g, a, b] = 0.0
        add_up(sums, work.transitions.E, work.sums[g])


@kernel
def own_copies(transitions: Transitions) -> Transitions:
    """Return transitions whose matrices a thread may write to."""
    L, P = transitions.E.shape
    E, ET = rows.aligned(L, P), rows.aligned(L, P)
    for a in range(L):
        for b in range(P):
            E[a, b], ET[a, b] = transitions.E[a, b], transitions.ET[a, b]
    return Transitions(E, ET, transitions.top, transitions.span, transitions.zeros)


@kernel
def scratch_for(longest: int, P: int) -> ChainScratch:
    """Return arrays for a sentence of up to so many tokens."""
    return ChainScratch(
        rows.aligned(longest, P), rows.aligned(longest, P), rows.aligned(longest, P)
    )


@kernel
def edge_sums(E: F64) -> EdgeSums:
    """Return sums over no sentence. E: float64[L, P]."""
    L, P = E.shape
    return EdgeSums(rows.aligned(L, P), np.zeros((L, L)))


@kernel
def infer_sentence(
    node: F64,
    edge: F64,
    transitions: Transitions,
    cells: Live,
    column: I32,
    space: ChainScratch,
    weight: float,
    mu: F64,
    log_scale: F64,
    sums: EdgeSums,
) -> int:
    """Marginals times weight into mu float64[T, L], the scores by position and sums; the status.

    space: of T tokens or more; transitions: a copy for this thread; other arrays as in
    `shared_sentence`. Scores of first tokens and beyond the live transitions become 0.
    """
    T, width, scores = node.shape[0], cells.base.shape[0], cells.by_position
    own = ChainScratch(space.x[:T], space.alpha[:T], space.beta[:T])
    status = shared_sentence(node, transitions, cells, own, mu, log_scale, sums.shared, weight)
    if status == REDO:
        return _in_log_space(node, edge, scores, column, weight, mu, log_scale, sums.redone)
    for t in range(T):
        for k in range(0 if t == 0 else width, scores.shape[1]):
            scores[t, k] = 0.0
    return status


@kernel
def _in_log_space(
    node: F64,
    edge: F64,
    scores: F64,
    column: I32,
    weight: float,
    mu: F64,
    log_scale: F64,
    out: F64,
) -> int:
    """`infer_sentence` in log space; out float64[L, L] += the edge marginals times weight."""
    T, L = node.shape
    full, xi = np.empty((T, L, L)), np.zeros((T, L, L))
    for t in range(T):
        for a in range(L):
            for b in range(L):
                k = column[a, b]
                full[t, a, b] = edge[0, a, b] + (scores[t, k] if k >= 0 and t > 0 else 0.0)
    status = log_space_sentence(node, full, mu, log_scale, xi)
    for t in range(T):
        rows.scale(mu[t], weight)
        for k in range(scores.shape[1]):
            scores[t, k] = 0.0
        if t > 0:
            for a in range(L):
                for b in range(L):
                    value, k = weight * xi[t, a, b], column[a, b]
                    out[a, b] += value
                    if k >= 0:
                        scores[t, k] = value
    return status


@kernel
def add_up(sums: EdgeSums, E: F64, out: F64) -> None:
    """out float64[L, L] += the sums, which become those of no sentence. E: as it is shared."""
    L, P = sums.shared.shape
    for a in range(L):
        for b in range(L):
            out[a, b] += sums.shared[a, b] * E[a, b] + sums.redone[a, b]
            sums.redone[a, b] = 0.0
        for b in range(P):
            sums.shared[a, b] = 0.0


@kernel
def add_scores(labels: I32, column: I32, scores: F64, out: F64) -> None:
    """Add the scores by position along the labels of a sentence, int32[T], to out float64[T]."""
    for t in range(1, labels.shape[0]):
        k = column[labels[t - 1], labels[t]]
        if k >= 0:
            out[t] += scores[t, k]


@kernel
def add_weight(labels: I32, weight: float, column: I32, scores: F64) -> None:
    """Add a weight to the scores by position along the labels of a sentence, int32[T]."""
    for t in range(1, labels.shape[0]):
        k = column[labels[t - 1], labels[t]]
        if k >= 0:
            scores[t, k] += weight


@kernel
def _add_scores(offsets: I64, labels: I32, column: I32, scores: F64, out: F64) -> None:
    for i in range(offsets.shape[0] - 1):
        lo, hi = offsets[i], offsets[i + 1]
        add_scores(labels[lo:hi], column, scores[lo:hi], out[lo:hi])


@kernel
def _add_path(offsets: I64, labels: I32, weights: F64, column: I32, scores: F64) -> None:
    for i in range(offsets.shape[0] - 1):
        lo, hi = offsets[i], offsets[i + 1]
        add_weight(labels[lo:hi], weights[i], column, scores[lo:hi])
