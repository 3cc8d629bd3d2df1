"""Kernels of the ascent on the dual (`ascent`): one pass over the blocks of a text.

A visit computes the scores s of a block under the current weights, sets

    theta <- (1 - step) theta + step s,    u ~ exp(theta),

and adds the change of gold - E_u[f], times prior variance, to the weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.borrowed import borrowed
from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.crf.dual.posterior import Block, DualText, LiveBlock, Space, posterior
from sslbench.engine.crf.dual.weights import DualRows, DualTransitions, move, move_transitions, sums
from sslbench.engine.crf.first_order import scaled
from sslbench.engine.crf.simd import rows
from sslbench.engine.crf.simd.rows import ZERO
from sslbench.engine.types import F32, F64, I32, I64

#: the step of the next visit is at most so many times the last one, and at least so many times
LONGER, SHORTER = 3.0, 0.3
#: attempts of one visit; peaks of a first visit grow by MORE_PEAK
ATTEMPTS, MORE_PEAK = 12, 3.0
#: a change of the dual of this relative size is rounding
ROUNDING = 1e-9


class DualVariables(NamedTuple):
    """The dual variables of K blocks and N tokens: theta, the marginals of u, entropy, next step.

    node, mu: float32[N, L]; edge, xi: float64[K, L, L], xi summed over the positions of a block;
    entropy, step: float64[K].
    """

    node: F32
    mu: F32
    edge: F64
    xi: F64
    entropy: F64
    step: F64


class DualLive(NamedTuple):
    """Transitions with weights by position: I of them live, and those from START.

    own: the weights in K columns, the last K - I from START; left, right: int32[I] labels; start:
    int32[K - I] labels; theta, xi: float32[N, I], 0 at the first tokens of sentences.
    """

    own: DualRows
    left: I32
    right: I32
    start: I32
    theta: F32
    xi: F32

    def space(self, tokens: int) -> LiveBlock:
        """Return arrays for a block of so many tokens."""
        width, K = len(self.left), len(self.left) + len(self.start)
        scores, change = np.empty((2, tokens, K))
        theta, xi = np.empty((2, tokens, width))
        return LiveBlock(self.left, self.right, scores, theta, xi, change)


@kernel
def _scores(
    lo: int,
    borders: I64,
    states: DualRows,
    weights: DualTransitions,
    live: DualLive | None,
    block: Block,
    own: LiveBlock | None,
) -> None:
    """Scores of the block of tokens from lo on under the weights; borders int64[s + 1]."""
    n, L = block.scores.shape
    sums(lo, lo + n, states, L, block.scores.reshape(n * L))
    for i in range(borders.shape[0] - 1):
        for b in range(L):
            block.scores[borders[i] - lo, b] += weights.inner[L, b]
            block.scores[borders[i + 1] - lo - 1, b] += weights.stop[b]
    if live is not None and own is not None:  # decided when this is compiled, as below
        K, width = own.scores.shape[1], own.theta.shape[1]
        sums(lo, lo + n, live.own, K, own.scores.reshape(n * K))
        for i in range(borders.shape[0] - 1):
            t = borders[i] - lo
            for k in range(width):
                own.scores[t, k] = 0.0
            for k in range(width, K):
                block.scores[t, live.start[k - width]] += own.scores[t, k]


@kernel
def _blend(lo: int, old: F32, scores: F64, step: float, out: F64) -> None:
    """out = (1 - step) old[lo:] + step scores, rounded to single precision."""
    n, width = out.shape
    for t in range(n):
        for b in range(width):
            value = float(old[lo + t, b])
            out[t, b] = np.float32(value + step * (scores[t, b] - value))


@kernel
def _new_theta(
    k: int,
    lo: int,
    step: float,
    peak: float,
    gold: I32,
    w: F64,
    dual: DualVariables,
    live: DualLive | None,
    block: Block,
    own: LiveBlock | None,
) -> None:
    n, L = block.node.shape
    _blend(lo, dual.node, block.scores, step, block.node)
    if peak > 0.0:
        for t in range(n):
            block.node[t, gold[lo + t]] += peak
    for a in range(L):
        for b in range(L):
            block.edge[a, b] = dual.edge[k, a, b] + step * (w[a, b] - dual.edge[k, a, b])
    if live is not None and own is not None:
        _blend(lo, live.theta, own.scores, step, own.theta)


@kernel
def _difference(lo: int, old: F32, new: F64, change: F64) -> None:
    """Round the new marginals to single precision; change = old[lo:] - new."""
    n, width = new.shape
    for t in range(n):
        for b in range(width):
            new[t, b] = np.float32(new[t, b])
            change[t, b] = float(old[lo + t, b]) - new[t, b]


@kernel
def _changes(
    k: int,
    lo: int,
    borders: I64,
    w: F64,
    dual: DualVariables,
    live: DualLive | None,
    block: Block,
    own: LiveBlock | None,
) -> float:
    """Old marginals less new ones; return their inner product with the scores."""
    n, L = block.mu.shape
    _difference(lo, dual.mu, block.mu, block.change)
    for a in range(L):
        for b in range(L):
            block.xi_change[a, b] = dual.xi[k, a, b] - block.xi[a, b]
    total = rows.inner(block.change.reshape(n * L), ZERO, block.scores, ZERO, n * L)
    total += rows.inner(block.xi_change, ZERO, w, ZERO, L * L)
    if live is not None and own is not None:
        _difference(lo, live.xi, own.xi, own.change)
        K, width = own.change.shape[1], own.xi.shape[1]
        for t in range(n):
            total += rows.inner(own.change, t * K, own.scores, t * K, width)
            for j in range(width, K):
                own.change[t, j] = 0.0
        for i in range(borders.shape[0] - 1):
            t = borders[i] - lo
            for j in range(width, K):
                own.change[t, j] = block.change[t, live.start[j - width]]
    return total


@kernel
def _move(
    lo: int,
    borders: I64,
    states: DualRows,
    weights: DualTransitions,
    live: DualLive | None,
    block: Block,
    own: LiveBlock | None,
    sign: float,
) -> float:
    """Add sign times the changes to the weights; return the change of half their norm."""
    n, L = block.change.shape
    norm = move(lo, lo + n, states, L, block.change.reshape(n * L), sign)
    norm += move_transitions(borders, weights, block.change, block.xi_change, sign)
    if live is not None and own is not None:
        K = own.change.shape[1]
        norm += move(lo, lo + n, live.own, K, own.change.reshape(n * K), sign)
    return norm


@kernel
def _store(lo: int, values: F64, out: F32) -> None:
    """out[lo:] = values."""
    n, width = values.shape
    for t in range(n):
        for b in range(width):
            out[lo + t, b] = values[t, b]


@kernel
def _keep(
    k: int,
    lo: int,
    entropy: float,
    dual: DualVariables,
    live: DualLive | None,
    block: Block,
    own: LiveBlock | None,
) -> None:
    """The new distribution is the one of block k."""
    L = block.edge.shape[0]
    dual.entropy[k] = entropy
    _store(lo, block.node, dual.node)
    _store(lo, block.mu, dual.mu)
    for a in range(L):
        for b in range(L):
            dual.edge[k, a, b], dual.xi[k, a, b] = block.edge[a, b], block.xi[a, b]
    if live is not None and own is not None:
        _store(lo, own.theta, live.theta)
        _store(lo, own.xi, live.xi)


@kernel
def _first(n: int, space: Block) -> Block:
    """Return the arrays of n tokens."""
    return Block(
        space.scores[:n], space.node[:n], space.limited[:n], space.mu[:n], space.change[:n],
        space.edge, space.xi, space.xi_change, space.log_scale[:n],
    )  # fmt: skip


@kernel
def _first_live(n: int, space: LiveBlock | None) -> LiveBlock | None:
    if space is None:
        return None
    return LiveBlock(
        space.left, space.right, space.scores[:n], space.theta[:n], space.xi[:n], space.change[:n]
    )


@kernel
def ascend(
    order: I64,
    peak: float,
    text: DualText,
    states: DualRows,
    weights: DualTransitions,
    live: DualLive | None,
    dual: DualVariables,
    space: Space,
    live_space: LiveBlock | None,
    out: F64,
) -> int:
    """Visit the blocks in this order; a status, that of the first sentence that cannot be scaled.

    peak: of the first visits, 0 for later ones; space, live_space: for the largest block.
    out: float64[3], to which are added the rise of the dual, an estimate of what is missing to its
    maximum, and the attempts that did not raise it.
    """
    text, states, weights, live = borrowed((text, states, weights, live))
    dual, space, live_space = borrowed((dual, space, live_space))
    w = weights.inner[: weights.stop.shape[0]]
    for k in order:
        borders = text.offsets[text.sentence[k] : text.sentence[k + 1] + 1]
        lo, n, more = borders[0], borders[-1] - borders[0], peak
        block, own = _first(n, space.block), _first_live(n, live_space)
        _scores(lo, borders, states, weights, live, block, own)
        for _ in range(ATTEMPTS):
            step = dual.step[k] if peak == 0.0 else 1.0
            _new_theta(k, lo, step, more, text.labels, w, dual, live, block, own)
            status, entropy = posterior(k, text, space, block, own)
            if status != scaled.OK:
                return status
            rise = entropy - dual.entropy[k]
            linear = rise - _changes(k, lo, borders, w, dual, live, block, own)
            norm = _move(lo, borders, states, weights, live, block, own, 1.0)
            gain = rise - norm
            slope = linear / (2.0 * step - step * step)
            best = slope / (slope + max(linear - gain, 0.0) / step**2) if slope > 0.0 else 0.0
            if gain >= -ROUNDING * (abs(entropy) + abs(norm) + 1.0):
                _keep(k, lo, entropy, dual, live, block, own)
                if peak == 0.0:
                    dual.step[k] = min(max(best, SHORTER * step), LONGER * step, 1.0)
                out[0] += gain
                out[1] += slope
                break
            out[2] += 1.0
            _move(lo, borders, states, weights, live, block, own, -1.0)
            if peak > 0.0:
                more += MORE_PEAK
            else:
                dual.step[k] = min(0.5 * step, max(best, 0.1 * step))
    return scaled.OK
