"""Kernels of the ascent on the dual (`sslbench.crf.dual`): one pass over the blocks of a text.

A block is some whole sentences.  Its dual variables are potentials theta of a distribution u over
labelings, with one transition matrix for all its positions.  A visit computes the scores s of the
block under the current weights, sets

    theta <- (1 - step) theta + step s,    u ~ exp(theta),

and adds the change of gold - E_u[f], times prior variance, to the weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.compiled import kernel
from sslbench.crf.first_order import scaled
from sslbench.crf.simd import lanes, rows
from sslbench.crf.simd.rows import ZERO
from sslbench.crf.weights.occurrences import BLOCK, Occurrences
from sslbench.crf.weights.scores import prefetch_list, prefetch_rows
from sslbench.types import F32, F64, I32, I64, U8

#: how many tokens and weights ahead these are fetched into the cache
AHEAD, ITEMS_AHEAD = 8, 24
#: the step of the next visit is at most so many times the last one, and at least so many times
LONGER, SHORTER = 3.0, 0.3
#: attempts of one visit; peaks of a first visit grow by MORE_PEAK
ATTEMPTS, MORE_PEAK = 12, 3.0
#: a change of the dual of this relative size is rounding
ROUNDING = 1e-9


class DualText(NamedTuple):
    """A text in blocks.

    sentence: int64[K + 1] first sentence of each block; offsets: int64[S + 1] of the sentences;
    labels: int32[N]; forced: int32[N] the one possible label of a token, -1 = any, or empty;
    forbidden: float64[L + 1, L] 0 or -inf by transition, row L = START; limited: is any label or
    transition impossible?
    """

    sentence: I64
    offsets: I64
    labels: I32
    forced: I32
    forbidden: F64
    limited: bool


class DualWeights(NamedTuple):
    """Weights and what a unit of the gradient adds to them.

    table float64[D, P], lists float64[K]: state weights as in `RowTable`, rows may be padded.
    row_scale float64[D], list_scale float64[K]: prior variances; scale: of the other weights.
    kept: uint8[D, ceil(L / 8)] bit b % 8 of byte b // 8: does the row have a weight of label b?
    transitions float64[L + 1, L], row L = START; stop float64[L]; use_start, use_stop: are there
    such weights?
    """

    table: F64
    lists: F64
    row_scale: F64
    list_scale: F64
    kept: U8
    transitions: F64
    stop: F64
    scale: float
    use_start: bool
    use_stop: bool


class DualVariables(NamedTuple):
    """Of K blocks and N tokens: theta and marginals of u, its entropy, and the next step.

    node, mu: float32[N, L]; edge, xi: float64[K, L, L], xi summed over the positions of a block;
    entropy, step: float64[K].
    """

    node: F32
    mu: F32
    edge: F64
    xi: F64
    entropy: F64
    step: F64


class _Block(NamedTuple):
    """Arrays of one visit: scores, new theta, the same with -inf, new marginals and changes."""

    scores: F64
    node: F64
    limited: F64
    mu: F64
    change: F64
    edge: F64
    xi: F64
    log_scale: F64


@kernel
def _scores(lo: int, hi: int, entries: Occurrences, weights: DualWeights, out: F64) -> None:
    """out float64[n * L]: sums of the state weights of tokens lo to hi."""
    row_border, row, list_border, item, cell, _ = entries
    table, lists, L = weights.table, weights.lists, weights.stop.shape[0]
    N = row_border.shape[0] - 1
    for n in range(lo, hi):
        ahead = min(n + AHEAD, N - 1)
        prefetch_rows(row, row_border[ahead] + ZERO, row_border[ahead + 1] + ZERO, table)
        b, e = row_border[n] + ZERO, row_border[n + 1] + ZERO
        rows.sum_rows(row, ZERO, ZERO, table, row, b, e, table, ZERO, L, out, (n - lo) * L)
    for c in range(lo // BLOCK, (hi - 1) // BLOCK + 1):
        first, last = max(lo, c * BLOCK), min(hi, (c + 1) * BLOCK)
        for i in range(list_border[first], list_border[last]):
            prefetch_list(item, i + ITEMS_AHEAD, lists)
            out[(c * BLOCK - lo) * L + cell[i]] += lists[item[i]]


@kernel
def _add_scaled(
    row: I32,
    begin: int,
    end: int,
    source: F64,
    i: int,
    sign: float,
    table: F64,
    scale: F64,
    kept: U8,
) -> float:
    """table[r] += scale[r] sign source[i:] for the rows r = row[e], begin <= e < end, where the
    bits kept uint8[R, ceil(width / 8)] of the row are set.

    Return the sum over these cells of sign source (old + new).
    """
    K, M = table.shape[1], kept.shape[1]
    s, total = lanes.splat(sign), lanes.splat(0.0)
    for e in range(begin, end):
        r = row[e] + ZERO
        factor = lanes.splat(scale[r])
        for k in range(M):
            mask, at = lanes.bits(kept, r * M + k), r * K + rows.WIDTH * k
            own = lanes.multiply(s, lanes.load_first(source, i + rows.WIDTH * k, mask, 0.0))
            old = lanes.load_first(table, at, mask, 0.0)
            new = lanes.fma(factor, own, old)
            lanes.store_first(table, at, mask, new)
            total = lanes.fma(own, lanes.add(old, new), total)
    return lanes.total(total)


@kernel
def _move(
    lo: int, hi: int, entries: Occurrences, weights: DualWeights, change: F64, sign: float
) -> float:
    """Add sign times the change float64[n * L] of the gradient of the scores to the state weights,
    times their prior variances; return the change of half their norm, |w|^2 / (2 variance).
    """
    row_border, row, list_border, item, cell, _ = entries
    table, lists, L = weights.table, weights.lists, weights.stop.shape[0]
    scale, kept, total = weights.row_scale, weights.kept, 0.0
    for n in range(lo, hi):
        b, e = row_border[n] + ZERO, row_border[n + 1] + ZERO
        at = (n - lo) * L
        total += _add_scaled(row, b, e, change, at, sign, table, scale, kept)
    for c in range(lo // BLOCK, (hi - 1) // BLOCK + 1):
        first, last = max(lo, c * BLOCK), min(hi, (c + 1) * BLOCK)
        for i in range(list_border[first], list_border[last]):
            k = item[i]
            slope, old = sign * change[(c * BLOCK - lo) * L + cell[i]], lists[k]
            lists[k] = old + weights.list_scale[k] * slope
            total += slope * (old + lists[k])
    return 0.5 * total


@kernel
def _move_row(weights: F64, change: F64, factor: float) -> float:
    """weights += factor change; return the sum of change (old + new)."""
    total = 0.0
    for b in range(weights.shape[0]):
        old = weights[b]
        weights[b] = old + factor * change[b]
        total += change[b] * (old + weights[b])
    return total


@kernel
def _move_others(borders: I64, weights: DualWeights, change: F64, xi: F64, sign: float) -> float:
    """As `_move` for transitions, START and stop: borders int64[s + 1] of sentences, change
    float64[n, L] by node and xi float64[L, L] by transition.
    """
    transitions, L, factor = weights.transitions, weights.stop.shape[0], sign * weights.scale
    total = 0.0
    for a in range(L):
        total += _move_row(transitions[a], xi[a], factor)
    for i in range(borders.shape[0] - 1):
        if weights.use_start:
            total += _move_row(transitions[L], change[borders[i] - borders[0]], factor)
        if weights.use_stop:
            total += _move_row(weights.stop, change[borders[i + 1] - borders[0] - 1], factor)
    return 0.5 * sign * total


@kernel
def _posterior(
    k: int, text: DualText, scratch: scaled.Scratch, own: F64, block: _Block
) -> tuple[int, float]:
    """Marginals of the new theta of a block into mu and xi; a status and the entropy."""
    L, P = block.xi.shape[0], own.shape[1]
    first, last = text.sentence[k], text.sentence[k + 1]
    start = text.offsets[first]
    edge = np.empty((1, L, L))
    for a in range(L):
        for b in range(L):
            edge[0, a, b] = block.edge[a, b] + text.forbidden[a, b]
    transitions = scaled.shifted_transitions(edge)
    node = block.node
    if text.limited:
        node = block.limited
        _limit(start, text.offsets[first : last + 1], text, block.node, node)
    for a in range(L):
        for b in range(P):
            own[a, b] = 0.0
    entropy = 0.0
    for i in range(first, last):
        lo, hi = text.offsets[i] - start, text.offsets[i + 1] - start
        T = hi - lo
        arrays = scaled.Scratch(scratch.x[:T], scratch.alpha[:T], scratch.beta[:T])
        mu, log_scale = block.mu[lo:hi], block.log_scale[lo:hi]
        status = scaled.shared_sentence(node[lo:hi], transitions, arrays, mu, log_scale, own)
        if status != scaled.OK:
            return status, 0.0
        for t in range(T):
            entropy += log_scale[t]
    for a in range(L):
        for b in range(L):
            block.xi[a, b] = own[a, b] * transitions.E[a, b]
    n = text.offsets[last] - start
    entropy -= rows.inner(block.mu, ZERO, block.node, ZERO, n * L)
    return scaled.OK, entropy - rows.inner(block.xi, ZERO, block.edge, ZERO, L * L)


@kernel
def _limit(start: int, borders: I64, text: DualText, node: F64, out: F64) -> None:
    """out = node, -inf where a label is impossible."""
    L = node.shape[1]
    for n in range(borders[-1] - start):
        only = text.forced[start + n] if text.forced.shape[0] > 0 else -1
        for b in range(L):
            out[n, b] = node[n, b] if only < 0 or only == b else -np.inf
    for i in range(borders.shape[0] - 1):
        for b in range(L):
            out[borders[i] - start, b] += text.forbidden[L, b]


@kernel
def _visit(
    k: int,
    peak: float,
    text: DualText,
    entries: Occurrences,
    weights: DualWeights,
    dual: DualVariables,
    scratch: scaled.Scratch,
    own: F64,
    space: _Block,
    out: F64,
) -> int:
    """One visit of block k; a status. out: gain of the dual, estimated gap, attempts too many."""
    L = weights.stop.shape[0]
    first, last = text.sentence[k], text.sentence[k + 1]
    lo, hi = text.offsets[first], text.offsets[last]
    n, borders = hi - lo, text.offsets[first : last + 1]
    block = _Block(
        space.scores[:n], space.node[:n], space.limited[:n], space.mu[:n], space.change[:n],
        space.edge, space.xi, space.log_scale[:n],
    )  # fmt: skip
    scores, change, mu = block.scores, block.change, block.mu
    flat = change.reshape(n * L)
    _scores(lo, hi, entries, weights, scores.reshape(n * L))
    for i in range(first, last):
        for b in range(L):
            scores[text.offsets[i] - lo, b] += weights.transitions[L, b]
            scores[text.offsets[i + 1] - lo - 1, b] += weights.stop[b]
    w = weights.transitions[:L]
    xi_change = np.empty((L, L))
    for _ in range(ATTEMPTS):
        step = dual.step[k] if peak == 0.0 else 1.0
        for t in range(n):
            for b in range(L):
                old = float(dual.node[lo + t, b])
                block.node[t, b] = np.float32(old + step * (scores[t, b] - old))
            if peak > 0.0:
                block.node[t, text.labels[lo + t]] += peak
        for a in range(L):
            for b in range(L):
                block.edge[a, b] = dual.edge[k, a, b] + step * (w[a, b] - dual.edge[k, a, b])
        status, entropy = _posterior(k, text, scratch, own, block)
        if status != scaled.OK:
            return status
        for t in range(n):
            for b in range(L):
                mu[t, b] = np.float32(mu[t, b])
                change[t, b] = float(dual.mu[lo + t, b]) - mu[t, b]
        for a in range(L):
            for b in range(L):
                xi_change[a, b] = dual.xi[k, a, b] - block.xi[a, b]
        rise = entropy - dual.entropy[k]
        linear = rise - rows.inner(flat, ZERO, scores, ZERO, n * L)
        linear -= rows.inner(xi_change, ZERO, w, ZERO, L * L)
        norm = _move(lo, hi, entries, weights, flat, 1.0)
        norm += _move_others(borders, weights, change, xi_change, 1.0)
        gain = rise - norm
        slope = linear / (2.0 * step - step * step)
        best = slope / (slope + max(linear - gain, 0.0) / step**2) if slope > 0.0 else 0.0
        if gain >= -ROUNDING * (abs(entropy) + abs(norm) + 1.0):
            for t in range(n):
                for b in range(L):
                    dual.node[lo + t, b] = block.node[t, b]
                    dual.mu[lo + t, b] = mu[t, b]
            for a in range(L):
                for b in range(L):
                    dual.edge[k, a, b], dual.xi[k, a, b] = block.edge[a, b], block.xi[a, b]
            dual.entropy[k] = entropy
            if peak == 0.0:
                dual.step[k] = min(max(best, SHORTER * step), LONGER * step, 1.0)
            out[0] += gain
            out[1] += slope
            return scaled.OK
        out[2] += 1.0
        _move(lo, hi, entries, weights, flat, -1.0)
        _move_others(borders, weights, change, xi_change, -1.0)
        if peak > 0.0:
            peak += MORE_PEAK
        else:
            dual.step[k] = min(0.5 * step, max(best, 0.1 * step))
    return scaled.OK


@kernel
def ascend(
    order: I64,
    peak: float,
    text: DualText,
    entries: Occurrences,
    weights: DualWeights,
    dual: DualVariables,
    out: F64,
) -> int:
    """Visit the blocks in this order; a status, that of the first sentence that cannot be scaled.

    peak: of the first visits, 0 for later ones; entries: with lists spelled out, in one share.
    out: float64[3], to which are added the rise of the dual, an estimate of what is missing to its
    maximum, and the attempts that did not raise it.
    """
    L = weights.stop.shape[0]
    P = (L + rows.WIDTH - 1) // rows.WIDTH * rows.WIDTH
    most = longest = 0
    for k in range(len(order)):
        most = max(most, text.offsets[text.sentence[k + 1]] - text.offsets[text.sentence[k]])
    for i in range(len(text.offsets) - 1):
        longest = max(longest, text.offsets[i + 1] - text.offsets[i])
    scratch = scaled.Scratch(
        rows.aligned(longest, P), rows.aligned(longest, P), rows.aligned(longest, P)
    )
    own = rows.aligned(L, P)
    space = _Block(
        np.empty((most, L)), np.empty((most, L)), np.empty((most, L)), np.empty((most, L)),
        np.empty((most, L)), np.empty((L, L)), np.empty((L, L)), np.empty(most),
    )  # fmt: skip
    for k in order:
        status = _visit(k, peak, text, entries, weights, dual, scratch, own, space, out)
        if status != scaled.OK:
            return status
    return scaled.OK
