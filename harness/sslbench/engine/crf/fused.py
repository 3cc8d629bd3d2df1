"""Labeled text with transitions by position: value and gradient, a few sentences at a time.

A token has hundreds of scores of transitions. Summed up, turned into marginals and added to the
gradient for a group of sentences at a time, they stay in the cache; as arrays of a batch they would
go through memory three times. With several threads, some infer groups of batches to come while one
adds to the gradient: the same sums in the same order.

What is computed is that of `HardLabels` or `LogPartition` on `LivePotentials`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.compilation.threads import in_order, number_of_threads
from sslbench.engine.crf.bundle_sums import BundleSums
from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.first_order.batch import InfeasibleSentenceError
from sslbench.engine.crf.first_order.live import (
    EdgeSums,
    LiveTransitions,
    add_scores,
    add_up,
    edge_sums,
    infer_sentence,
    own_copies,
    scratch_for,
    subtract_path,
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
from sslbench.engine.crf.weights import scores
from sslbench.engine.crf.weights.bundles import TokenSums
from sslbench.engine.crf.weights.scores import EDGE_CHUNK, EdgeTokens, EdgeWeights
from sslbench.engine.crf.weights.tables import WeightTables
from sslbench.engine.types import F64, I8, I32, I64, Bool


class Text(NamedTuple):
    """N tokens in S sentences.

    nodes, edges: what tokens add up; first: bool[N]; offsets: int64[S + 1]; labels: int32[N], or
    empty; factors: float64[S] of log p(labels), or of -log Z if there are no labels.
    """

    nodes: TokenSums
    edges: TokenSums
    first: Bool
    offsets: I64
    labels: I32
    factors: F64


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


class Slopes(NamedTuple):
    """Derivatives of consecutive sentences, the first of which begins at token `begin`.

    node: float64[n, L]; live: float64[n, K]; pairs: float64[G, L, L], sums of groups, the first of
    which is `group`. values: float64[S] and status: int8[S] of all sentences of the text.
    """

    begin: int
    group: int
    node: F64
    live: F64
    pairs: F64
    values: F64
    status: I8


class Thread(NamedTuple):
    """Arrays that only one thread uses; node: float64[n, L] of a group; log_p: float64[2, n]."""

    transitions: Transitions
    cells: Live
    space: ChainScratch
    sums: EdgeSums
    node: F64
    log_p: F64


def log_likelihood(
    data: EncodedCorpus,
    labeled: tuple[I32, F64],
    tables: WeightTables,
    sums: BundleSums,
    transition_mask: Bool | None,
    gradient: WeightTables,
    slopes: BundleSums,
) -> F64:
    """Return float64[S]: factors times log p(labels | x) of the sentences.

    data: with live transitions, without dense columns, factor features and forced labels.
    labeled: labels and factors as in `Text`. Adds the derivatives to gradient and slopes.
    Raises InfeasibleSentenceError for a sentence without a possible labeling, or with one that is
    impossible.
    """
    L, n = tables.layout.n_labels, len(data.offsets) - 1
    assert data.live is not None
    data.check_layout(tables.layout)
    labels, factors = labeled
    check_array(labels, "labels", np.int32, (data.n_tokens if len(labels) else 0,), (0, L))
    check_array(factors, "factors of sentences", np.float64, (n,))
    text = Text(data.states.tokens, data.edges.tokens, data.first, data.offsets, labels, factors)
    w = tables.transitions
    if transition_mask is not None:
        w = np.where(transition_mask, w, -np.inf)
    edge = np.ascontiguousarray(w[None, :L])
    potentials = Potentials(edge, shifted_transitions(edge), data.live)
    weights = Weights.of(tables, sums, w)
    out = Weights.of(gradient, slopes, gradient.transitions)
    values, status = np.empty(n), np.empty(n, np.int8)
    groups, K = data.live_groups, len(tables.edges.transitions)
    if number_of_threads() == 1:
        longest = int(np.diff(data.offsets[groups]).max(initial=0))
        shape = np.empty((longest, L)), np.empty((longest, K)), np.empty((1, L, L))
        own = Slopes(-1, -1, *shape, values, status)
        _one_by_one(text, weights, potentials, groups, own, out)
    else:
        infer = partial(_infer_batch, text, weights, potentials, groups, values, status)
        for own in in_order(infer, data.group_batches):
            _spread(text, groups, own, out)
    _check(status, values)
    return values


def _infer_batch(
    text: Text,
    weights: Weights,
    potentials: Potentials,
    groups: I64,
    values: F64,
    status: I8,
    batch: Batch,
) -> Slopes:
    """batch: of groups."""
    L, K, n = weights.table.shape[1], len(weights.edges.transitions), batch.n_tokens
    pairs = np.empty((batch.sentence_hi - batch.sentence_lo, L, L))
    arrays = np.empty((n, L)), np.empty((n, K)), pairs
    own = Slopes(batch.lo, batch.sentence_lo, *arrays, values, status)
    _infer(text, weights, potentials, groups, own)
    return own


def _check(status: I8, values: F64) -> None:
    if (status == INFEASIBLE).any():
        i = int(np.argmax(status == INFEASIBLE))
        raise InfeasibleSentenceError(f"sentence {i}: no label sequence is possible")
    if np.isneginf(values).any():
        i = int(np.argmin(values))
        raise InfeasibleSentenceError(f"sentence {i}: its labels break the constraints")


@kernel
def _one_by_one(
    text: Text, weights: Weights, potentials: Potentials, groups: I64, own: Slopes, out: Weights
) -> None:
    """Infer each group and add its slopes to the gradient; own: space for one group."""
    thread = _thread(potentials, own.node.shape[0])
    for g in range(groups.shape[0] - 1):
        first, last = groups[g], groups[g + 1]
        _infer_group(first, last, text, weights, potentials, thread, own, 0, own.pairs[0])
        _spread_group(first, last, text, own, 0, own.pairs[0], out)


@kernel
def _infer(text: Text, weights: Weights, potentials: Potentials, groups: I64, own: Slopes) -> None:
    """Fill in the slopes of consecutive groups."""
    begin, end, offsets, longest = own.group, own.group + own.pairs.shape[0], text.offsets, 0
    for g in range(begin, end):
        longest = max(longest, offsets[groups[g + 1]] - offsets[groups[g]])
    thread = _thread(potentials, longest)
    for g in range(begin, end):
        first, last, pairs = groups[g], groups[g + 1], own.pairs[g - begin]
        at = offsets[first] - own.begin
        _infer_group(first, last, text, weights, potentials, thread, own, at, pairs)


@kernel
def _spread(text: Text, groups: I64, own: Slopes, out: Weights) -> None:
    """Add slopes of consecutive groups to the gradient."""
    for g in range(own.group, own.group + own.pairs.shape[0]):
        first, last, pairs = groups[g], groups[g + 1], own.pairs[g - own.group]
        _spread_group(first, last, text, own, text.offsets[first] - own.begin, pairs, out)


@kernel
def _thread(potentials: Potentials, longest: int) -> Thread:
    """longest: tokens of a group."""
    L, P = potentials.transitions.E.shape
    transitions = own_copies(potentials.transitions)
    cells = live_of(potentials.live.left, potentials.live.right, transitions.E, np.empty((0, 0)))
    sums = edge_sums(transitions.E, cells)
    node, log_p = np.empty((longest, L)), np.empty((2, longest))
    return Thread(transitions, cells, scratch_for(longest, P), sums, node, log_p)


@kernel
def _infer_group(
    first: int,
    last: int,
    text: Text,
    weights: Weights,
    potentials: Potentials,
    thread: Thread,
    own: Slopes,
    at: int,
    pairs: F64,
) -> None:
    """Values and slopes of the sentences first to last, from row `at` on; and their pairs."""
    begin, end = text.offsets[first], text.offsets[last]
    node, live = thread.node[: end - begin], own.live[at : at + end - begin]
    scores.sum_nodes(text.nodes, begin, weights.table, weights.lists, weights.sums, node)
    tokens = EdgeTokens(text.edges, 0, text.first, weights.edges, weights.edge_sums)
    for n in range(begin, end, EDGE_CHUNK):
        stop = min(end, n + EDGE_CHUNK)
        scores.sum_edges(tokens, n, stop, live[n - begin : stop - begin])
    transitions, inner, L = weights.edges.transitions, weights.edges.inner, node.shape[1]
    for i in range(first, last):
        lo, hi = text.offsets[i] - begin, text.offsets[i + 1] - begin
        for b in range(L):
            node[lo, b] += weights.transitions[L, b]
            node[hi - 1, b] += weights.stop[b]
        for k in range(inner, live.shape[1]):
            node[lo, transitions[k] - L * L] += live[lo, k]
        for t in range(lo, hi):
            for k in range(0 if t == lo else inner, live.shape[1]):
                live[t, k] = 0.0
        mu = own.node[at + lo : at + hi]
        _infer_sentence(i, text, potentials, thread, node[lo:hi], live[lo:hi], mu, own)
        for k in range(inner, live.shape[1]):  # slopes of the transitions from START
            live[lo, k] = mu[0, transitions[k] - L * L]
    add_up(thread.sums, potentials.transitions.E, potentials.live, pairs)


@kernel
def _infer_sentence(
    i: int,
    text: Text,
    potentials: Potentials,
    thread: Thread,
    node: F64,
    by_position: F64,
    mu: F64,
    own: Slopes,
) -> None:
    """Value and slopes of sentence i: of scores by position in their place, of nodes into mu."""
    labels, factor = text.labels[text.offsets[i] : text.offsets[i + 1]], text.factors[i]
    T, column, edge = node.shape[0], potentials.live.column, potentials.edge
    log_p, log_scale = thread.log_p[0, :T], thread.log_p[1, :T]
    for t in range(labels.shape[0]):
        log_p[t] = node[t, labels[t]]
        if t > 0:
            log_p[t] += edge[0, labels[t - 1], labels[t]]
    add_scores(labels, column, by_position, log_p)
    own.status[i] = infer_sentence(
        node,
        edge,
        thread.transitions,
        with_scores(thread.cells, by_position),
        column,
        thread.space,
        -factor,
        mu,
        log_scale,
        thread.sums,
    )
    subtract_path(labels, column, -factor, mu, by_position, thread.sums.out)
    value = 0.0
    for t in range(T):
        value += (log_p[t] if labels.shape[0] > 0 else 0.0) - log_scale[t]
    own.values[i] = factor * value if factor != 0.0 else 0.0


@kernel
def _spread_group(
    first: int, last: int, text: Text, own: Slopes, at: int, pairs: F64, out: Weights
) -> None:
    """Add the slopes of the sentences first to last, from row `at` on, to the gradient."""
    begin, end, L = text.offsets[first], text.offsets[last], own.node.shape[1]
    node, live = own.node[at : at + end - begin], own.live[at : at + end - begin]
    tokens = EdgeTokens(text.edges, 0, text.first, out.edges, out.edge_sums)
    for share in range(text.nodes.shares):
        scores.add_nodes(text.nodes, share, begin, node, out.table, out.lists, out.sums)
    for share in range(text.edges.shares):
        for n in range(begin, end, EDGE_CHUNK):
            stop = min(end, n + EDGE_CHUNK)
            scores.add_edges(tokens, n, stop, share, live[n - begin : stop - begin])
    for a in range(L):
        for b in range(L):
            out.transitions[a, b] += pairs[a, b]
    for i in range(first, last):
        lo, hi = text.offsets[i] - begin, text.offsets[i + 1] - begin
        for b in range(L):
            out.transitions[L, b] += node[lo, b]
            out.stop[b] += node[hi - 1, b]
