"""Chains in probability space, the fast path (docs/specs/crf_engine.md, section 7.2).

Potentials of a batch of sentences: ``node`` float64[n, L] over its tokens, ``edge``
float64[1, L, L] (shared by all positions) or float64[n, L, L] (one matrix per position).  Scaled
recursions on shifted potentials M_t = exp(phi_t - max phi_t):

    alpha_t = alpha_{t-1} M_t / c_t          with c_t such that alpha_t sums to one
    beta_{t-1} = M_t beta_t / c_t
    mu_t = alpha_t beta_t,   xi_t(a,b) = alpha_{t-1}(a) M_t(a,b) beta_t(b) / c_t
    log Z = sum_t log_scale_t,   log_scale_t = log c_t + max phi_t

A scaled pass can be silently wrong when a message underflows.  It is used only where that cannot
happen: without -inf when max phi_t - min phi_t <= 300 everywhere (then every alpha_t(b) is at
least e^-300/L and every c_t at least e^-300, and no product of the two and their inverses leaves
the range of a float); with -inf when the finite range is at most 200 and all messages stay between
1e-200 and 1e200.
Any other sentence is done again in log space.  Sums run in an order fixed by the sentences: the
same bits for any number of threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.borrowed import borrowed
from sslbench.engine.compilation.compiled import kernel, parallel_kernel
from sslbench.engine.crf.first_order import log_space
from sslbench.engine.crf.simd import rows
from sslbench.engine.crf.simd.exp import exp_shifted
from sslbench.engine.types import F64, I8, I32, I64

SAFE_RANGE = 300.0
SAFE_RANGE_WITH_ZEROS = 200.0
TINY, HUGE = 1e-200, 1e200
#: status of a sentence: done, to be done in log space, no label sequence is possible
OK, REDO, INFEASIBLE = 0, 1, 2


class Transitions(NamedTuple):
    """One transition matrix for all positions, shifted by its maximum.

    E = exp(w - top) and its transpose float64[L, P], padded; span: largest less smallest finite
    w; zeros: some w are -inf.
    """

    E: F64
    ET: F64
    top: float
    span: float
    zeros: bool


class Live(NamedTuple):
    """The I transitions with a score by position, of one sentence.

    left, right: int32[I] labels; cell, turned: int32[I] their places in E and ET, counted flat;
    base: float64[I] their E; by_position: float64[T, K] the scores, which become edge marginals
    (row 0 left alone, columns from I on are undefined then).
    """

    left: I32
    right: I32
    cell: I32
    turned: I32
    base: F64
    by_position: F64


class ChainScratch(NamedTuple):
    """Padded arrays float64[T, P] of one sentence."""

    x: F64
    alpha: F64
    beta: F64


@kernel
def live_of(left: I32, right: I32, E: F64, by_position: F64) -> Live:
    """Return live transitions under E float64[L, P]."""
    P, cell, turned = E.shape[1], np.empty_like(left), np.empty_like(left)
    base = np.empty(left.shape[0])
    for k in range(left.shape[0]):
        cell[k], turned[k] = left[k] * P + right[k], right[k] * P + left[k]
        base[k] = E[left[k], right[k]]
    return Live(left, right, cell, turned, base, by_position)


@kernel
def with_scores(live: Live, by_position: F64) -> Live:
    """Return the same transitions with other scores."""
    left, right, cell, turned, base, _ = live
    return Live(left, right, cell, turned, base, by_position)


@kernel
def part_of(live: Live | None, lo: int, hi: int) -> Live | None:
    """Return the same transitions, with the scores of the positions lo to hi."""
    if live is None:  # decided when this is compiled, as below
        return None
    return with_scores(live, live.by_position[lo:hi])


@kernel
def smallest_positive(row: F64) -> float:
    """Smallest positive value, at most 1; 0 if a value is above HUGE.

    Backward messages grow without bound at labels that cannot be reached.
    """
    low = 1.0
    for b in range(row.shape[0]):
        if not row[b] < HUGE:
            return 0.0
        if row[b] > 0.0:
            low = min(low, row[b])
    return low


@kernel
def is_safe(span: float, zeros: bool) -> bool:
    """Return whether potentials of this range may be scaled; zeros: some are -inf."""
    return span <= (SAFE_RANGE_WITH_ZEROS if zeros else SAFE_RANGE)


@kernel
def shared_sentence(
    node: F64,
    transitions: Transitions,
    live: Live | None,
    scratch: ChainScratch,
    mu: F64,
    log_scale: F64,
    edge_sum: F64,
    weight: float | None,
) -> int:
    """One sentence under one transition matrix, except for live transitions; its status.

    node float64[T, L]; out: mu float64[T, L] and log_scale float64[T]; to edge_sum float64[L, P] is
    added the sum over positions of alpha_{t-1}(a) x_t(b) beta_t(b), still to be multiplied by E,
    unless the status is REDO.  It means nothing where a transition is live; E and ET of these are
    overwritten.  Scores by position are as they were if the status is REDO.
    weight: factor of all marginals; None: 1.
    The scale is applied one step late: alpha_t stays as the product leaves it and c_{t-1} divides
    x_t, so that nothing waits for a division; beta carries 1 / c_t, so that alpha_t beta_t are the
    marginals.
    """
    (x, alpha, beta), mu = borrowed(scratch), borrowed(mu)
    span, T = transitions.span + _range_by_position(live), x.shape[0]
    status, zeros = _exponentials(node, span, transitions.zeros, x, log_scale)
    if status != OK:
        return status
    saved = _exponentials_by_position(live, zeros)
    inverse = _forward(transitions, live, scratch, zeros, log_scale)
    if inverse == 0.0 or not _backward(transitions.ET, live, scratch, zeros, inverse):
        _put_back(live, saved)
        return REDO  # impossible or underflow: log space decides
    if weight is not None and weight != 1.0:
        for t in range(T):
            rows.scale(alpha[t], weight)
    rows.add_outer(alpha[: T - 1], x[1:], edge_sum)
    _live_marginals(live, alpha, x)
    for t in range(T):
        rows.product(alpha[t], beta[t], mu[t])
    return OK


@kernel
def _forward(
    transitions: Transitions, live: Live | None, scratch: ChainScratch, zeros: bool, log_scale: F64
) -> float:
    """Fill in alpha, scale x, add to log_scale; return the last 1 / c, 0 if it is not safe."""
    E, top = borrowed(transitions.E), transitions.top
    x, alpha, _ = borrowed(scratch)
    if live is not None:
        cell, base, by_position = live.cell, live.base, borrowed(live.by_position)
    smallest, inverse = 1.0, 1.0
    for t in range(x.shape[0]):
        if t == 0:
            rows.copy(x[0], alpha[0])
            c = rows.total(alpha[0])
        else:
            if live is not None:
                for k in range(base.shape[0]):
                    by_position[t, k] *= base[k]
                _put(by_position[t], cell, E)
            rows.vector_matrix(alpha[t - 1], E, alpha[t])
            c = rows.multiply_both(alpha[t], x[t], inverse)
        if c == 0.0:
            return 0.0
        if zeros:
            smallest = min(smallest, smallest_positive(alpha[t]))
        inverse = 1.0 / c
        log_scale[t] += math.log(c) + (top if t > 0 else 0.0)
    return 0.0 if zeros and smallest < TINY else inverse


@kernel
def _backward(
    ET: F64, live: Live | None, scratch: ChainScratch, zeros: bool, inverse: float
) -> bool:
    """Fill in beta; x becomes the right factor of xi.  Return whether that is safe."""
    (x, _, beta), ET = borrowed(scratch), borrowed(ET)
    T, P = x.shape
    if live is not None:
        turned, by_position = live.turned, borrowed(live.by_position)
    smallest = 1.0
    for b in range(P):
        beta[T - 1, b] = inverse
    for t in range(T - 1, 0, -1):
        rows.multiply(x[t], beta[t])
        if live is not None:
            _put(by_position[t], turned, ET)
        rows.vector_matrix(x[t], ET, beta[t - 1])
        if zeros:
            smallest = min(smallest, smallest_positive(beta[t - 1]))
    return not zeros or smallest >= TINY


@kernel
def _range_by_position(live: Live | None) -> float:
    """Return the range of the scores by position, 0 included."""
    if live is None:
        return 0.0
    T, width = live.by_position.shape
    top, low, _ = rows.bounds(live.by_position[1:].reshape((T - 1) * width))
    return max(top, 0.0) - min(low, 0.0)


@kernel
def _exponentials_by_position(live: Live | None, saved: bool) -> F64 | None:
    """Scores by position to factors of E; a copy of the scores, empty unless it is wanted."""
    if live is None:
        return None
    scores = live.by_position
    T, width = scores.shape
    before = scores[: T if saved else 0].copy()
    exp_shifted(scores[1:].reshape((T - 1) * width), 0.0)
    return before


@kernel
def _put_back(live: Live | None, saved: F64 | None) -> None:
    if live is not None and saved is not None:
        for t in range(saved.shape[0]):
            for k in range(saved.shape[1]):
                live.by_position[t, k] = saved[t, k]


@kernel
def _put(values: F64, cell: I32, E: F64) -> None:
    """Put a value into each cell of a matrix, counted flat."""
    flat = E.reshape(E.shape[0] * E.shape[1])
    for k in range(cell.shape[0]):
        flat[np.uint64(cell[k])] = values[k]


@kernel
def _live_marginals(live: Live | None, alpha: F64, right_factor: F64) -> None:
    if live is not None:
        left, right, values = live.left, live.right, live.by_position
        for t in range(1, values.shape[0]):
            for k in range(left.shape[0]):
                a, b = np.uint64(left[k]), np.uint64(right[k])
                values[t, k] *= alpha[t - 1, a] * right_factor[t, b]


@kernel
def _exponentials(node: F64, span: float, zeros: bool, x: F64, log_scale: F64) -> tuple[int, bool]:
    """x[t] = exp(node[t] - max), log_scale[t] = max; status, and whether there are -inf.

    span: range of the finite transition scores; zeros: are others -inf?
    """
    node, x = borrowed(node), borrowed(x)
    for t in range(node.shape[0]):
        top, low, own_zeros = rows.bounds(node[t])
        if top == -np.inf:
            return INFEASIBLE, zeros
        zeros = zeros or own_zeros
        if not is_safe(top - low + (span if t > 0 else 0.0), zeros):
            return REDO, zeros
        log_scale[t] = top
        rows.exp_padded(node[t], top, x[t])
    return OK, zeros


@kernel
def log_space_sentence(node: F64, edge: F64, mu: F64, log_scale: F64, xi: F64) -> int:
    """Run the reference recursions for the outputs of the fast path; return a status."""
    T, L = node.shape
    beta = np.empty((T, L))
    z = np.empty((T, L))
    log_z = log_space.backward(node, edge, beta, z)
    for t in range(T):
        log_scale[t] = 0.0
    log_scale[0] = log_z
    if log_z == -np.inf:
        return INFEASIBLE
    log_space.marginals(node, edge, beta, z, mu, xi)
    return OK


@kernel
def shifted_transitions(edge: F64) -> Transitions:
    """Return the shifted transitions of edge float64[1, L, L]."""
    L = edge.shape[1]
    P = (L + rows.WIDTH - 1) // rows.WIDTH * rows.WIDTH
    w = edge[0].copy()
    top, low, zeros = rows.bounds(w.reshape(L * L))
    exp_shifted(w.reshape(L * L), top)
    E, ET = rows.aligned(L, P), rows.aligned(L, P)
    for a in range(L):
        for b in range(L):
            E[a, b], ET[b, a] = w[a, b], w[a, b]
    return Transitions(E, ET, top, top - low, zeros)


@parallel_kernel(lambda node, edge, offsets, *_: len(offsets) - 1)
def viterbi(
    begin: int, end: int, node: F64, edge: F64, offsets: I64, path: I32, status: I8
) -> None:
    """Best labels of every sentence; path int32[n]."""
    for i in range(begin, end):
        lo, hi = offsets[i], offsets[i + 1]
        e = edge if edge.shape[0] == 1 else edge[lo:hi]
        score = log_space.viterbi(node[lo:hi], e, path[lo:hi])
        status[i] = INFEASIBLE if score == -np.inf else OK
