"""Posteriors of all sentences of a batch under one transition matrix.

With few labels, eight sentences of similar length at a time (`packs`); with many, or where lengths
differ too much, one after the other (`scaled`). What cannot be scaled safely is done again in log
space. The way that is taken and the order of sums depend on the batch alone: the same bits for any
number of threads.
"""

from __future__ import annotations

import numpy as np

from sslbench.engine.compilation.compiled import kernel, parallel_kernel
from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.first_order import packs
from sslbench.engine.crf.first_order.scaled import (
    REDO,
    ChainScratch,
    Transitions,
    log_space_sentence,
    shared_sentence,
    shifted_transitions,
)
from sslbench.engine.crf.simd import lanes, rows
from sslbench.engine.types import F64, I8, I64

#: labels up to which packs are faster
FEW = 32
#: lanes of packs at most, for each token of the batch; and so many more, since it takes longer to
#: compile the other way
LANES, MORE_LANES = 3, 8192
#: packs that one thread does at a time
PACKS = 4


def shared(
    node: F64,
    edge: F64,
    batch: Batch,
    mu: F64,
    log_scale: F64,
    status: I8,
    *,
    counted: bool = True,
) -> F64:
    """All sentences of a batch; returns float64[1, L, L], edge marginals summed over all positions.

    Kernels in log space are compiled when the first sentence needs them.

    node float64[n, L]; edge float64[1, L, L]. Out: mu float64[n, L]; log_scale float64[n], sums to
    log Z over a sentence; status int8[s].
    counted: False leaves out the sums and returns float64[0, L, L].
    """
    L, order = node.shape[1], batch.longest_first
    packed = lanes.WIDTH * batch.longest_of_eight
    if L <= FEW and packed <= LANES * batch.n_tokens + MORE_LANES:
        groups = batch.groups(PACKS * lanes.WIDTH)
        work = _packs
    else:
        groups, order = batch.groups(), np.arange(len(order))
        work = _one_by_one
    sums = np.zeros((len(groups) - 1, L, L))
    transitions = shifted_transitions(edge)
    given = groups, order, batch.offsets, transitions, node, mu, log_scale
    work(*given, sums, counted, status)
    if status.any():
        _again(groups, order, batch.offsets, node, edge, mu, log_scale, sums, status)
    total: F64 = sums.sum(axis=0, keepdims=True) if counted else sums[:0]
    return total


@parallel_kernel(lambda groups, *_: len(groups) - 1)
def _packs(
    begin: int,
    end: int,
    groups: I64,
    order: I64,
    offsets: I64,
    transitions: Transitions,
    node: F64,
    mu: F64,
    log_scale: F64,
    sums: F64,
    counted: bool,
    status: I8,
) -> None:
    """Groups of packs; order int64[s]: the sentences, longest first."""
    L, P = transitions.E.shape
    W = P * lanes.WIDTH
    first = order[groups[begin]]
    scratch, totals = packs.new_scratch(offsets[first + 1] - offsets[first], P)
    start, length = np.empty(lanes.WIDTH, np.int64), np.empty(lanes.WIDTH, np.int64)
    own, pairs = np.empty(lanes.WIDTH, np.int8), rows.aligned(P, W)
    for g in range(begin, end):
        if counted:
            for a in range(P):
                for k in range(W):
                    pairs[a, k] = 0.0
        for low in range(groups[g], groups[g + 1], lanes.WIDTH):
            count = min(lanes.WIDTH, groups[g + 1] - low)
            for s in range(lanes.WIDTH):
                i = order[low + min(s, count - 1)]
                start[s], length[s] = offsets[i], offsets[i + 1] - offsets[i] if s < count else 0
            packs.pack(
                node,
                start,
                length,
                transitions,
                scratch,
                totals,
                mu,
                log_scale,
                pairs,
                counted,
                own,
            )
            for s in range(count):
                status[order[low + s]] = own[s]
        if counted:
            for a in range(L):
                for b in range(L):
                    total = lanes.total(lanes.load(pairs, a * W + b * lanes.WIDTH))
                    sums[g, a, b] = total * transitions.E[a, b]


@parallel_kernel(lambda groups, *_: len(groups) - 1)
def _one_by_one(
    begin: int,
    end: int,
    groups: I64,
    order: I64,
    offsets: I64,
    transitions: Transitions,
    node: F64,
    mu: F64,
    log_scale: F64,
    sums: F64,
    counted: bool,
    status: I8,
) -> None:
    """Groups of sentences, in their order; counted in any case."""
    for g in range(begin, end):
        own = order[groups[g] : groups[g + 1]]
        _group(node, offsets, own, transitions, mu, log_scale, sums[g], status)


@kernel
def _group(
    node: F64,
    offsets: I64,
    sentences: I64,
    transitions: Transitions,
    mu: F64,
    log_scale: F64,
    edge_sum: F64,
    status: I8,
) -> None:
    L, P = transitions.E.shape
    longest = 0
    for i in sentences:
        longest = max(longest, offsets[i + 1] - offsets[i])
    x, alpha = rows.aligned(longest, P), rows.aligned(longest, P)
    beta, own = rows.aligned(longest, P), rows.aligned(L, P)
    for i in sentences:
        lo, hi = offsets[i], offsets[i + 1]
        T = hi - lo
        scratch = ChainScratch(x[:T], alpha[:T], beta[:T])
        status[i] = shared_sentence(
            node[lo:hi], transitions, None, scratch, mu[lo:hi], log_scale[lo:hi], own
        )
    for a in range(L):
        for b in range(L):
            edge_sum[a, b] = own[a, b] * transitions.E[a, b]


@parallel_kernel(lambda groups, *_: len(groups) - 1)
def _again(
    begin: int,
    end: int,
    groups: I64,
    order: I64,
    offsets: I64,
    node: F64,
    edge: F64,
    mu: F64,
    log_scale: F64,
    sums: F64,
    status: I8,
) -> None:
    """Do the sentences of status REDO in log space."""
    for g in range(begin, end):
        for i in order[groups[g] : groups[g + 1]]:
            if status[i] == REDO:
                lo, hi = offsets[i], offsets[i + 1]
                xi = np.zeros(edge.shape)
                status[i] = log_space_sentence(node[lo:hi], edge, mu[lo:hi], log_scale[lo:hi], xi)
                sums[g] += xi[0]
