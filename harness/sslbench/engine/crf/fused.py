"""Labeled text with transitions by position: value and gradient, a few sentences at a time.

A token has hundreds of scores of transitions. Summed up, turned into marginals and added to the
gradient for a few sentences at a time, they stay in the cache; as arrays of a batch they would go
through memory three times. With several threads, some infer batches to come while one adds to the
gradient: the same sums in the same order.

What is computed is that of `HardLabels` on `LivePotentials`, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.compilation.threads import in_order, number_of_threads
from sslbench.engine.crf.bundle_sums import BundleSums
from sslbench.engine.crf.data import GROUP_SENTENCES, Batch
from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.first_order.batch import InfeasibleSentenceError
from sslbench.engine.crf.first_order.live import (
    EdgeSums,
    LiveTransitions,
    add_scores,
    add_up,
    add_weight,
    edge_sums,
    infer_sentence,
    own_copies,
    scratch_for,
)
from sslbench.engine.crf.first_order.scaled import (
    INFEASIBLE,
    ChainScratch,
    Live,
    Transitions,
    live_of,
    shifted_transitions,
    with_scores,
)
from sslbench.engine.crf.simd import rows
from sslbench.engine.crf.weights import scores
from sslbench.engine.crf.weights.bundles import TokenSums
from sslbench.engine.crf.weights.rowtable import stride
from sslbench.engine.crf.weights.scores import EDGE_CHUNK, EdgeTokens, EdgeWeights
from sslbench.engine.crf.weights.tables import WeightTables
from sslbench.engine.types import F64, I8, I32, I64, Bool

#: tokens of a step and their scores by position (256 KB): no fewer, unless the batch ends
STEP_TOKENS, STEP_CELLS = 256, 1 << 15


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

    @classmethod
    def of(cls, tables: WeightTables, sums: BundleSums, transitions: F64) -> Weights:
        nodes = tables.table, tables.lists, sums.node
        return cls(*nodes, tables.edges, sums.edge, transitions, tables.stop)


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
    """Arrays that only one thread uses; node: float64[n, L] scores of a step; log_scale:
    float64[n]; total: float64[I], sums of live transitions.
    """

    transitions: Transitions
    cells: Live
    space: ChainScratch
    sums: EdgeSums
    node: F64
    log_scale: F64
    total: F64


def log_likelihood(
    data: EncodedCorpus,
    labeled: tuple[I32, F64],
    tables: WeightTables,
    sums: BundleSums,
    transition_mask: Bool | None,
    gradient: WeightTables,
    slopes: BundleSums,
) -> F64:
    """Return float64[S]: weights times log p(labels | x) of the sentences.

    data: with live transitions, without dense columns, factor features and forced labels.
    labeled: int32[N] and float64[S]. Adds the derivatives to gradient and slopes.
    Raises InfeasibleSentenceError for a sentence without a possible labeling, or whose labels are
    impossible.
    """
    L, S = tables.layout.n_labels, len(data.offsets) - 1
    assert data.live is not None
    data.check_layout(tables.layout)
    labels, factors = labeled
    check_array(labels, "labels", np.int32, (data.n_tokens,), (0, L))
    text = Text(data.states.tokens, data.edges.tokens, data.first, data.offsets, labels, factors)
    w = tables.transitions
    if transition_mask is not None:
        w = np.where(transition_mask, w, -np.inf)
    edge = np.ascontiguousarray(w[None, :L])
    potentials = Potentials(edge, shifted_transitions(edge), data.live)
    given = text, Weights.of(tables, sums, w), potentials
    out = Weights.of(gradient, slopes, gradient.transitions)
    values = Values(np.empty(data.n_tokens), np.empty(S, np.int8))
    K = len(tables.edges.transitions)
    step = max(1, min(STEP_TOKENS, STEP_CELLS // max(1, K)))
    visit = partial(_visit, step, *given, values, out)
    if number_of_threads() == 1:
        space = step + int(data.lengths.max(initial=0))
        for batch in data.live_batches:
            visit(batch.sentence_lo, batch.sentence_hi, True, True, _slopes(space, L, K))
    else:
        infer = partial(_infer, visit, L, K)
        for batch, own in zip(data.live_batches, in_order(infer, data.live_batches), strict=True):
            visit(batch.sentence_lo, batch.sentence_hi, False, True, own)
    return _checked(values, data.offsets, factors)


def _slopes(tokens: int, n_labels: int, columns: int) -> Slopes:
    live = rows.aligned(tokens, stride(columns))
    return Slopes(
        np.empty((tokens, n_labels)), live, np.zeros((n_labels, n_labels)), np.zeros((2, n_labels))
    )


def _infer(visit: Callable[..., None], n_labels: int, columns: int, batch: Batch) -> Slopes:
    own = _slopes(batch.n_tokens, n_labels, columns)
    visit(batch.sentence_lo, batch.sentence_hi, True, False, own)
    return own


def _checked(values: Values, offsets: I64, weights: F64) -> F64:
    status = values.status
    if (status == INFEASIBLE).any():
        i = int(np.argmax(status == INFEASIBLE))
        raise InfeasibleSentenceError(f"sentence {i}: no label sequence is possible")
    log_p: F64 = np.add.reduceat(values.log_p, offsets[:-1])
    found = np.multiply(weights, log_p, out=np.zeros_like(log_p), where=weights != 0)
    if np.isneginf(found).any():
        i = int(np.argmin(found))
        raise InfeasibleSentenceError(f"sentence {i}: its labels break the constraints")
    return found


@kernel
def _visit(
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
    """Infer a batch, the sentences first to last, or add its slopes to the gradient; or both.

    own: of the batch; if both, of its longest step. A single kernel for all three: its code need
    not be made again for another number of threads.
    """
    longest = 0
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
        _close(first, last, text, potentials, thread, own)
    if spread:
        _spread_sums(own, out)


@kernel
def _end_of_step(i: int, last: int, step: int, offsets: I64) -> int:
    j = i + 1
    while j < last and offsets[j] - offsets[i] < step:
        j += 1
    return j


@kernel
def _thread(potentials: Potentials, longest: int) -> Thread:
    """longest: tokens of a step."""
    L, P = potentials.transitions.E.shape
    live, transitions = potentials.live, own_copies(potentials.transitions)
    cells = live_of(live.left, live.right, transitions.E, np.empty((0, 0)))
    space, sums = scratch_for(longest, P), edge_sums(transitions.E)
    node, log_scale = np.empty((longest, L)), np.empty(longest)
    return Thread(transitions, cells, space, sums, node, log_scale, np.zeros(cells.base.shape[0]))


@kernel
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
    """Values and slopes of the sentences i to j of a batch, from row `at` on."""
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
            add_up(thread.sums, potentials.transitions.E, own.pairs)


@kernel
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
    labels, log_p = text.labels[lo:hi], values.log_p[lo:hi]
    T, column, edge = node.shape[0], potentials.live.column, potentials.edge
    log_scale = thread.log_scale[:T]
    for t in range(T):
        log_p[t] = node[t, labels[t]]
        if t > 0:
            log_p[t] += edge[0, labels[t - 1], labels[t]]
    add_scores(labels, column, by_position, log_p)
    cells = with_scores(thread.cells, by_position)
    own = thread.transitions, cells, column, thread.space, -weight, mu, log_scale, thread.sums
    values.status[s] = infer_sentence(node, edge, *own)
    for t in range(T):
        log_p[t] -= log_scale[t]
        mu[t, labels[t]] += weight
        for k in range(thread.total.shape[0]):
            thread.total[k] += by_position[t, k]
    add_weight(labels, weight, column, by_position)


@kernel
def _close(
    first: int, last: int, text: Text, potentials: Potentials, thread: Thread, own: Slopes
) -> None:
    """Complete the sums over all pairs of adjacent labels of a batch."""
    live = potentials.live
    for k in range(thread.total.shape[0]):
        own.pairs[live.left[k], live.right[k]] = thread.total[k]
    for s in range(first, last):
        for n in range(text.offsets[s] + 1, text.offsets[s + 1]):
            own.pairs[text.labels[n - 1], text.labels[n]] += text.weights[s]


@kernel
def _spread(i: int, j: int, at: int, text: Text, own: Slopes, out: Weights) -> None:
    """Add the slopes of the sentences i to j, from row `at` on, to the gradient."""
    begin, end = text.offsets[i], text.offsets[j]
    node, live = own.node[at : at + end - begin], own.live[at : at + end - begin]
    tokens = EdgeTokens(text.edges, 0, text.first, out.edges, out.edge_sums)
    for share in range(text.nodes.shares):
        scores.add_nodes(text.nodes, share, begin, node, out.table, out.lists, out.sums)
    for share in range(text.edges.shares):
        for n in range(begin, end, EDGE_CHUNK):
            stop = min(end, n + EDGE_CHUNK)
            scores.add_edges(tokens, n, stop, share, live[n - begin : stop - begin])


@kernel
def _spread_sums(own: Slopes, out: Weights) -> None:
    """Add the sums over a batch to the gradient."""
    L = own.pairs.shape[0]
    for b in range(L):
        for a in range(L):
            out.transitions[a, b] += own.pairs[a, b]
        out.transitions[L, b] += own.ends[0, b]
        out.stop[b] += own.ends[1, b]
