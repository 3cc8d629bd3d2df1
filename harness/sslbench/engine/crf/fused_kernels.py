"""Kernels of `fused`, for a batch of labeled text with transitions by position.

A *step* is a few consecutive sentences of a batch, so that their numbers fit into the cache. All
functions but `visit_batch` are copied into it: compiled one by one they take longer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.borrowed import borrowed
from sslbench.engine.compilation.compiled import inline_kernel, kernel
from sslbench.engine.crf.data import GROUP_SENTENCES
from sslbench.engine.crf.first_order.live import LiveTransitions, own_copy
from sslbench.engine.crf.first_order.scaled import (
    OK,
    ChainScratch,
    Live,
    Transitions,
    live_of,
    shared_sentence,
    with_scores,
)
from sslbench.engine.crf.simd import rows
from sslbench.engine.crf.weights import scores
from sslbench.engine.crf.weights.bundles import TokenSums
from sslbench.engine.crf.weights.scores import EDGE_CHUNK, EdgeTokens, EdgeWeights
from sslbench.engine.types import F64, I8, I32, I64, Bool


class Text(NamedTuple):
    """N tokens in S sentences.

    nodes, edges: what tokens add up; first: bool[N]; offsets: int64[S + 1]; labels: int32[N];
    weights: float64[S] of log p(labels).
    """

    nodes: TokenSums
    edges: TokenSums
    first: Bool
    offsets: I64
    labels: I32
    weights: F64


class Weights(NamedTuple):
    """The arrays of `WeightTables` and `BundleSums`, or their gradient.

    transitions: float64[L + 1, L], those that are not allowed -inf.
    """

    table: F64
    lists: F64
    sums: F64
    edges: EdgeWeights
    edge_sums: F64
    transitions: F64
    stop: F64


class Potentials(NamedTuple):
    """What all positions share: the log-potentials float64[1, L, L] as they are and shifted; and
    which of them do not.
    """

    edge: F64
    transitions: Transitions
    live: LiveTransitions


class Values(NamedTuple):
    """log_p: float64[N], sums to log p(labels) of each sentence; status: int8[S] as in `scaled`."""

    log_p: F64
    status: I8


class Slopes(NamedTuple):
    """Derivatives of consecutive sentences: of a batch, or of the step of a batch.

    node: float64[n, L]; live: float64[n, stride(K)]. Of the batch: pairs float64[L, L], and ends
    float64[2, L] by the labels of first tokens and of last ones.
    """

    node: F64
    live: F64
    pairs: F64
    ends: F64


class Thread(NamedTuple):
    """Arrays that only one thread uses.

    node: float64[n, L] scores of a step; log_scale: float64[n]. Sums: shared float64[L, P] as in
    `shared_sentence`, live float64[I] of live transitions.
    """

    transitions: Transitions
    cells: Live
    space: ChainScratch
    node: F64
    log_scale: F64
    shared: F64
    live: F64


@kernel
def visit_batch(
    step: int,
    text: Text,
    weights: Weights,
    potentials: Potentials,
    values: Values,
    out: Weights,
    first: int,
    last: int,
    infer: bool,
    spread: bool,
    own: Slopes,
) -> None:
    """Infer a batch, the sentences first to last - 1, or add its slopes to the gradient; or both.

    own: of the batch; if both, of its longest step. A single kernel for all three: its code need
    not be made again for another number of threads.
    """
    text, weights, potentials, values, out = borrowed((text, weights, potentials, values, out))
    own, longest = borrowed(own), 0
    for i in range(first, last):
        longest = max(longest, text.offsets[i + 1] - text.offsets[i])
    thread = _thread(potentials, step + longest if infer else 0)
    i = first
    while i < last:
        j = _end_of_step(i, last, step, text.offsets)
        at = 0 if infer and spread else text.offsets[i] - text.offsets[first]
        if infer:
            _infer_step(i, j, first, last, text, weights, potentials, thread, values, own, at)
        if spread:
            _spread(i, j, at, text, own, out)
        i = j
    if infer:
        _close(first, last, text, potentials, thread, values, own)
    if spread:
        _spread_sums(own, out)


@inline_kernel
def _end_of_step(i: int, last: int, step: int, offsets: I64) -> int:
    j = i + 1
    while j < last and offsets[j] - offsets[i] < step:
        j += 1
    return j


@inline_kernel
def _thread(potentials: Potentials, longest: int) -> Thread:
    """longest: tokens of a step."""
    transitions, live = own_copy(potentials.transitions), potentials.live
    L, P = transitions.E.shape
    cells = live_of(live.left, live.right, transitions.E, np.empty((0, 0)))
    x, alpha, beta = rows.aligned(longest, P), rows.aligned(longest, P), rows.aligned(longest, P)
    space, node = ChainScratch(x, alpha, beta), np.empty((longest, L))
    shared, sums = rows.aligned(L, P), np.zeros(live.left.shape[0])
    return Thread(transitions, cells, space, node, np.empty(longest), shared, sums)


@inline_kernel
def _infer_step(
    i: int,
    j: int,
    first: int,
    last: int,
    text: Text,
    weights: Weights,
    potentials: Potentials,
    thread: Thread,
    values: Values,
    own: Slopes,
    at: int,
) -> None:
    """Compute a step, sentences i to j - 1 of a batch; its slopes begin at row `at` of `own`."""
    begin, end = text.offsets[i], text.offsets[j]
    node, live = thread.node[: end - begin], own.live[at : at + end - begin]
    scores.sum_nodes(text.nodes, begin, weights.table, weights.lists, weights.sums, node)
    tokens = EdgeTokens(text.edges, 0, text.first, weights.edges, weights.edge_sums)
    for n in range(begin, end, EDGE_CHUNK):
        stop = min(end, n + EDGE_CHUNK)
        scores.sum_edges(tokens, n, stop, live[n - begin : stop - begin])
    transitions, inner, L = weights.edges.transitions, weights.edges.inner, node.shape[1]
    for s in range(i, j):
        lo, hi = text.offsets[s] - begin, text.offsets[s + 1] - begin
        for b in range(L):
            node[lo, b] += weights.transitions[L, b]
            node[hi - 1, b] += weights.stop[b]
        for k in range(inner, transitions.shape[0]):
            node[lo, transitions[k] - L * L] += live[lo, k]
        for t in range(lo, hi):
            for k in range(0 if t == lo else inner, live.shape[1]):
                live[t, k] = 0.0
        mu = own.node[at + lo : at + hi]
        _infer_sentence(s, text, potentials, thread, node[lo:hi], live[lo:hi], mu, values)
        for b in range(L):
            own.ends[0, b] += mu[0, b]
            own.ends[1, b] += mu[hi - lo - 1, b]
        for k in range(inner, transitions.shape[0]):  # slopes of the transitions from START
            live[lo, k] = mu[0, transitions[k] - L * L]
        if (s + 1 - first) % GROUP_SENTENCES == 0 or s + 1 == last:
            _add_up(thread.shared, potentials.transitions.E, own.pairs)


@inline_kernel
def _add_up(shared: F64, E: F64, pairs: F64) -> None:
    """pairs float64[L, L] += sums of a group of sentences, which become 0."""
    L, P = shared.shape
    for a in range(L):
        for b in range(L):
            pairs[a, b] += shared[a, b] * E[a, b]
        for b in range(P):
            shared[a, b] = 0.0


@inline_kernel
def _infer_sentence(
    s: int,
    text: Text,
    potentials: Potentials,
    thread: Thread,
    node: F64,
    by_position: F64,
    mu: F64,
    values: Values,
) -> None:
    """Value and slopes of a sentence: of scores by position in their place, of nodes into mu."""
    lo, hi, weight = text.offsets[s], text.offsets[s + 1], text.weights[s]
    labels, log_p, x, T = text.labels[lo:hi], values.log_p[lo:hi], thread.space, hi - lo
    column, edge, log_scale = potentials.live.column, potentials.edge, thread.log_scale[:T]
    for t in range(T):
        log_p[t] = node[t, labels[t]]
        if t > 0:
            a, b = labels[t - 1], labels[t]
            log_p[t] += edge[0, a, b]
            if column[a, b] >= 0:
                log_p[t] += by_position[t, column[a, b]]
    own, cells = ChainScratch(x.x[:T], x.alpha[:T], x.beta[:T]), thread.cells
    cells, matrices = with_scores(cells, by_position), thread.transitions
    status = shared_sentence(node, matrices, cells, own, mu, log_scale, thread.shared, -weight)
    values.status[s] = status
    width = thread.live.shape[0] if status == OK else 0
    for t in range(T):
        for k in range(0 if t == 0 else width, by_position.shape[1]):
            by_position[t, k] = 0.0
        for k in range(width):
            thread.live[k] += by_position[t, k]
        if status == OK:
            log_p[t] -= log_scale[t]
            mu[t, labels[t]] += weight
            if t > 0 and column[labels[t - 1], labels[t]] >= 0:
                by_position[t, column[labels[t - 1], labels[t]]] += weight
        else:
            log_p[t] = 0.0
            for b in range(mu.shape[1]):
                mu[t, b] = 0.0


@inline_kernel
def _close(
    first: int,
    last: int,
    text: Text,
    potentials: Potentials,
    thread: Thread,
    values: Values,
    own: Slopes,
) -> None:
    """Complete the sums over all pairs of adjacent labels of a batch."""
    live = potentials.live
    for k in range(thread.live.shape[0]):
        own.pairs[live.left[k], live.right[k]] = thread.live[k]
    for s in range(first, last):
        if values.status[s] == OK:
            for n in range(text.offsets[s] + 1, text.offsets[s + 1]):
                own.pairs[text.labels[n - 1], text.labels[n]] += text.weights[s]


@inline_kernel
def _spread(i: int, j: int, at: int, text: Text, own: Slopes, out: Weights) -> None:
    """Add a step to the gradient: sentences i to j - 1, whose slopes begin at row `at` of `own`."""
    begin, end = text.offsets[i], text.offsets[j]
    node, live = own.node[at : at + end - begin], own.live[at : at + end - begin]
    tokens = EdgeTokens(text.edges, 0, text.first, out.edges, out.edge_sums)
    for share in range(text.nodes.shares):
        scores.add_nodes(text.nodes, share, begin, node, out.table, out.lists, out.sums)
    for share in range(text.edges.shares):
        for n in range(begin, end, EDGE_CHUNK):
            stop = min(end, n + EDGE_CHUNK)
            scores.add_edges(tokens, n, stop, share, live[n - begin : stop - begin])


@inline_kernel
def _spread_sums(own: Slopes, out: Weights) -> None:
    """Add the sums over a batch to the gradient."""
    L = own.pairs.shape[0]
    for b in range(L):
        for a in range(L):
            out.transitions[a, b] += own.pairs[a, b]
        out.transitions[L, b] += own.ends[0, b]
        out.stop[b] += own.ends[1, b]
