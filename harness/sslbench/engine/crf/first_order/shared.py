"""Posteriors of all sentences of a batch under one transition matrix.

With few labels, eight sentences of similar length at a time (`packs`); with many, or where lengths
differ too much, one after the other (`scaled`). What cannot be scaled safely is done again in log
space. The way that is taken and the order of sums depend on the batch alone: the same bits for any
number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import parallel_kernel
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


class _Work(NamedTuple):
    """A batch in groups of sentences: what the kernels read and fill in.

    groups: int64[G + 1] borders in `order`, int64[s] sentences; offsets: int64[s + 1] of these.
    edge, node: as of `shared`. Out: mu, log_scale and status of `shared`; sums: float64[G, L, L] of
    edge marginals.
    """

    groups: I64
    order: I64
    offsets: I64
    transitions: Transitions
    node: F64
    edge: F64
    mu: F64
    log_scale: F64
    status: I8
    sums: F64


def shared(
    node: F64, edge: F64, batch: Batch, mu: F64, log_scale: F64, status: I8, *, counted: bool = True
) -> F64:
    """All sentences of a batch; returns float64[1, L, L], edge marginals summed over all positions.

    Kernels in log space are compiled when the first sentence needs them.

    node float64[n, L]; edge float64[1, L, L]. Out: mu float64[n, L]; log_scale float64[n], sums to
    log Z over a sentence; status int8[s].
    counted: False leaves out the sums and returns float64[0, L, L].
    """
    L, order = node.shape[1], batch.longest_first
    packed = lanes.WIDTH * batch.longest_of_eight
    in_packs = L <= FEW and packed <= LANES * batch.n_tokens + MORE_LANES
    groups = batch.groups(PACKS * lanes.WIDTH) if in_packs else batch.groups()
    order = order if in_packs else np.arange(len(order))
    sums, transitions = np.zeros((len(groups) - 1, L, L)), shifted_transitions(edge)
    out = mu, log_scale, status, sums
    work = _Work(groups, order, batch.offsets, transitions, node, edge, *out)
    if in_packs:
        _packs(work, counted)
    else:
        _one_by_one(work)
    if status.any():
        _again(work)
    total: F64 = sums.sum(axis=0, keepdims=True) if counted else sums[:0]
    return total


@parallel_kernel(lambda work, _: len(work.groups) - 1)
def _packs(begin: int, end: int, work: _Work, counted: bool) -> None:
    """Groups of packs; the order is that of the lengths, longest first."""
    groups, order, offsets, transitions, node, _, mu, log_scale, status, sums = work
    L, P = transitions.E.shape
    first = order[groups[begin]]
    pack = packs.new_pack(offsets[first + 1] - offsets[first], P)
    start, length, own, pairs = pack.start, pack.length, pack.status, pack.pairs
    for g in range(begin, end):
        if counted:
            for a in range(P):
                for k in range(pairs.shape[1]):
                    pairs[a, k] = 0.0
        for low in range(groups[g], groups[g + 1], lanes.WIDTH):
            count = min(lanes.WIDTH, groups[g + 1] - low)
            for s in range(lanes.WIDTH):
                i = order[low + min(s, count - 1)]
                start[s], length[s] = offsets[i], offsets[i + 1] - offsets[i] if s < count else 0
            packs.infer(pack, node, transitions, mu, log_scale, counted)
            for s in range(count):
                status[order[low + s]] = own[s]
        if counted:
            for a in range(L):
                for b in range(L):
                    k = (a * P + b) * lanes.WIDTH
                    sums[g, a, b] = lanes.total(lanes.load(pairs, k)) * transitions.E[a, b]


@parallel_kernel(lambda work: len(work.groups) - 1)
def _one_by_one(begin: int, end: int, work: _Work) -> None:
    """Groups of sentences, in their order; counted in any case."""
    groups, order, offsets, transitions, node, _, mu, log_scale, status, sums = work
    L, P = transitions.E.shape
    for g in range(begin, end):
        longest = 0
        for i in order[groups[g] : groups[g + 1]]:
            longest = max(longest, offsets[i + 1] - offsets[i])
        x, alpha = rows.aligned(longest, P), rows.aligned(longest, P)
        beta, own = rows.aligned(longest, P), rows.aligned(L, P)
        for i in order[groups[g] : groups[g + 1]]:
            lo, hi = offsets[i], offsets[i + 1]
            scratch = ChainScratch(x[: hi - lo], alpha[: hi - lo], beta[: hi - lo])
            status[i] = shared_sentence(
                node[lo:hi], transitions, None, scratch, mu[lo:hi], log_scale[lo:hi], own, None
            )
        for a in range(L):
            for b in range(L):
                sums[g, a, b] = own[a, b] * transitions.E[a, b]


@parallel_kernel(lambda work: len(work.groups) - 1)
def _again(begin: int, end: int, work: _Work) -> None:
    """Do the sentences of status REDO in log space."""
    groups, order, offsets, _, node, edge, mu, log_scale, status, sums = work
    for g in range(begin, end):
        for i in order[groups[g] : groups[g + 1]]:
            if status[i] == REDO:
                lo, hi = offsets[i], offsets[i + 1]
                xi = np.zeros(edge.shape)
                status[i] = log_space_sentence(node[lo:hi], edge, mu[lo:hi], log_scale[lo:hi], xi)
                sums[g] += xi[0]
