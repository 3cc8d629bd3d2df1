"""Kernels of the ascent on the dual (`ascent`): the distribution of a block.

A block is some whole sentences.  Its dual variables are potentials theta of a distribution u over
labelings, with one transition matrix for all its positions, and scores of *live* transitions, which
have weights of their own by position.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.crf.first_order import scaled
from sslbench.engine.crf.simd import rows
from sslbench.engine.crf.simd.rows import ZERO
from sslbench.engine.types import F64, I32, I64


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

    @property
    def largest(self) -> int:
        """The number of tokens of the largest block."""
        return int(np.diff(self.offsets[self.sentence]).max())


class Block(NamedTuple):
    """Arrays of one visit to n tokens: scores, new theta, the same with -inf, new marginals and
    changes of those, by label float64[n, L] and by transition float64[L, L].
    """

    scores: F64
    node: F64
    limited: F64
    mu: F64
    change: F64
    edge: F64
    xi: F64
    xi_change: F64
    log_scale: F64


class LiveBlock(NamedTuple):
    """Arrays of one visit for I live transitions.

    Rows of first tokens are 0 except in `scores` and `change`.
    left, right: int32[I] labels; theta, xi: float64[n, I]; scores, change: float64[n, K], where the
    last K - I columns are transitions from START.
    """

    left: I32
    right: I32
    scores: F64
    theta: F64
    xi: F64
    change: F64


class Space(NamedTuple):
    """Arrays for the largest block, messages of its longest sentence, and outer: float64[L, P]."""

    block: Block
    messages: scaled.ChainScratch
    outer: F64

    @classmethod
    def of(cls, text: DualText, L: int) -> Space:
        P = -(-L // rows.WIDTH) * rows.WIDTH
        longest = int(np.diff(text.offsets).max())
        messages = scaled.ChainScratch(*(rows.aligned(longest, P) for _ in range(3)))
        scores, node, limited, mu, change = np.empty((5, text.largest, L))
        edge, xi, xi_change = np.empty((3, L, L))
        log_scale = np.empty(text.largest)
        block = Block(scores, node, limited, mu, change, edge, xi, xi_change, log_scale)
        return cls(block, messages, rows.aligned(L, P))


@kernel
def posterior(
    k: int, text: DualText, space: Space, block: Block, live: LiveBlock | None
) -> tuple[int, float]:
    """Marginals of the new theta of block k into mu and xi; a status and the entropy."""
    L, P = block.xi.shape[0], space.outer.shape[1]
    first, last = text.sentence[k], text.sentence[k + 1]
    start = text.offsets[first]
    node = block.node
    if text.limited:
        node = block.limited
        _limit(start, text.offsets[first : last + 1], text, block.node, node)
    edge = np.empty((1, L, L))
    for a in range(L):
        for b in range(L):
            edge[0, a, b] = block.edge[a, b] + text.forbidden[a, b]
        for b in range(P):
            space.outer[a, b] = 0.0
    transitions = scaled.shifted_transitions(edge)
    of_block = _live(live, transitions.E)
    entropy, x = 0.0, space.messages
    for i in range(first, last):
        lo, hi = text.offsets[i] - start, text.offsets[i + 1] - start
        T = hi - lo
        arrays = scaled.ChainScratch(x.x[:T], x.alpha[:T], x.beta[:T])
        mu, log_scale = block.mu[lo:hi], block.log_scale[lo:hi]
        own = scaled.part_of(of_block, lo, hi)
        status = scaled.shared_sentence(
            node[lo:hi], transitions, own, arrays, mu, log_scale, space.outer, None
        )
        if status != scaled.OK:
            return status, 0.0
        for t in range(T):
            entropy += log_scale[t]
    for a in range(L):
        for b in range(L):
            block.xi[a, b] = space.outer[a, b] * transitions.E[a, b]
    _sum_live(live, block.xi)
    n = text.offsets[last] - start
    entropy -= rows.inner(block.mu, ZERO, block.node, ZERO, n * L)
    entropy -= rows.inner(block.xi, ZERO, block.edge, ZERO, L * L)
    return scaled.OK, entropy - _live_energy(live)


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
def _live(live: LiveBlock | None, E: F64) -> scaled.Live | None:
    """Return the live transitions of the block; puts theta into xi, which this gives away."""
    if live is None:  # decided when this is compiled, as below
        return None
    n, width = live.xi.shape
    for t in range(n):
        for k in range(width):
            live.xi[t, k] = live.theta[t, k]
    return scaled.live_of(live.left, live.right, E, live.xi)


@kernel
def _sum_live(live: LiveBlock | None, xi: F64) -> None:
    """Their sums over the positions into xi float64[L, L]."""
    if live is not None:
        total = np.zeros(live.left.shape[0])
        for n in range(live.xi.shape[0]):
            for k in range(total.shape[0]):
                total[k] += live.xi[n, k]
        for k in range(total.shape[0]):
            xi[live.left[k], live.right[k]] = total[k]


@kernel
def _live_energy(live: LiveBlock | None) -> float:
    """Inner product of marginals and theta."""
    if live is None:
        return 0.0
    n, width = live.xi.shape
    return rows.inner(live.xi, ZERO, live.theta, ZERO, n * width)
