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
    sentence_weights,
)
from sslbench.engine.crf.first_order.scaled import (
    REDO,
    ChainScratch,
    Transitions,
    live_of,
    log_space_sentence,
    part_of,
    shared_sentence,
    shifted_transitions,
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
        add_path(self.batch.offsets, labels, self.live.column, None, self.scores, out)
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
        batch, (n, L) = self.batch, self.node.shape
        weights = sentence_weights(weights, batch)
        log_scale, mu = np.empty(n), np.empty((n, L))
        status, groups = np.empty(len(weights), np.int8), batch.groups()
        sums = np.zeros((len(groups) - 1, L, L))
        transitions = shifted_transitions(self.edge)
        inputs = groups, batch.offsets, transitions, self.live, self.node, self.edge, weights
        work = _Work(*inputs, self.scores, mu, log_scale, status, sums)
        _in_probability_space(work)
        if status.any():
            _again(work)
        check_feasible(batch, status)
        edge = sums.sum(axis=0, keepdims=True)
        edge[0, self.live.left, self.live.right] = self.scores.sum(axis=0)[: len(self.live.left)]
        return BatchPosterior(batch, log_scale, mu, edge, live=self.scores)

    def log_likelihood(self, labels: I32, weights: F64 | None = None) -> tuple[F64, BatchPosterior]:
        """Return log p of the labels and its derivatives, as `BatchPotentials`."""
        value, slopes = super().log_likelihood(labels, weights)
        own = sentence_weights(weights, self.batch)
        add_path(self.batch.offsets, labels, self.live.column, own, self.scores, None)
        return value, slopes


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


@kernel
def own_copy(transitions: Transitions) -> Transitions:
    """Return transitions whose matrices a thread may write to."""
    L, P = transitions.E.shape
    E, ET = rows.aligned(L, P), rows.aligned(L, P)
    for a in range(L):
        for b in range(P):
            E[a, b], ET[a, b] = transitions.E[a, b], transitions.ET[a, b]
    return Transitions(E, ET, transitions.top, transitions.span, transitions.zeros)


@parallel_kernel(lambda work: len(work.groups) - 1)
def _in_probability_space(begin: int, end: int, work: _Work) -> None:
    """Marginals of live transitions into scores, sums of all others into sums; status."""
    groups, offsets, shared, live, node, _, weights, scores, mu, log_scale, status, sums = work
    transitions = own_copy(shared)
    L, P = shared.E.shape
    cells, width = live_of(live.left, live.right, shared.E, scores), live.left.shape[0]
    longest = 0
    for i in range(groups[begin], groups[end]):
        longest = max(longest, offsets[i + 1] - offsets[i])
    x, alpha = rows.aligned(longest, P), rows.aligned(longest, P)
    beta, own = rows.aligned(longest, P), rows.aligned(L, P)
    for g in range(begin, end):
        for a in range(L):
            for b in range(P):
                own[a, b] = 0.0
        for i in range(groups[g], groups[g + 1]):
            lo, hi = offsets[i], offsets[i + 1]
            scratch = ChainScratch(x[: hi - lo], alpha[: hi - lo], beta[: hi - lo])
            by_position = part_of(cells, lo, hi)
            status[i] = shared_sentence(
                node[lo:hi],
                transitions,
                by_position,
                scratch,
                mu[lo:hi],
                log_scale[lo:hi],
                own,
                weights[i],
            )
            if status[i] != REDO:
                for t in range(lo, hi):
                    for k in range(0 if t == lo else width, scores.shape[1]):
                        scores[t, k] = 0.0
        for a in range(L):
            for b in range(L):
                sums[g, a, b] = own[a, b] * shared.E[a, b]


@parallel_kernel(lambda work: len(work.groups) - 1)
def _again(begin: int, end: int, work: _Work) -> None:
    """Do the sentences of status REDO in log space."""
    groups, offsets, _, live, node, edge, weights, scores, mu, log_scale, status, sums = work
    L = node.shape[1]
    for g in range(begin, end):
        for i in range(groups[g], groups[g + 1]):
            if status[i] == REDO:
                lo, hi = offsets[i], offsets[i + 1]
                full, xi = np.empty((hi - lo, L, L)), np.zeros((hi - lo, L, L))
                for t in range(hi - lo):
                    for a in range(L):
                        for b in range(L):
                            k = live.column[a, b]
                            own = scores[lo + t, k] if k >= 0 and t > 0 else 0.0
                            full[t, a, b] = edge[0, a, b] + own
                status[i] = log_space_sentence(node[lo:hi], full, mu[lo:hi], log_scale[lo:hi], xi)
                for t in range(hi - lo):
                    rows.scale(mu[lo + t], weights[i])
                    for k in range(scores.shape[1]):
                        scores[lo + t, k] = 0.0
                    if t > 0:
                        for a in range(L):
                            for b in range(L):
                                value, k = weights[i] * xi[t, a, b], live.column[a, b]
                                sums[g, a, b] += value
                                if k >= 0:
                                    scores[lo + t, k] = value


@kernel
def add_path(
    offsets: I64, labels: I32, column: I32, weights: F64 | None, scores: F64, out: F64 | None
) -> None:
    """Scores along the labels into out float64[n]; or the weights of the sentences into scores."""
    for i in range(offsets.shape[0] - 1):
        for n in range(offsets[i] + 1, offsets[i + 1]):
            k = column[labels[n - 1], labels[n]]
            if k >= 0:
                if out is not None:  # decided when this is compiled
                    out[n] += scores[n, k]
                if weights is not None:
                    scores[n, k] += weights[i]
