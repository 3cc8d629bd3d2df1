"""Many second-order chains at once in probability space: the fast path.

Potentials as in `log_space`, with transitions that are the same at every position and included in
``begin`` and ``inner``.  With M3 = exp(inner - max), x_t = exp(node_t - max), all scaled by the
sums c_t:

    alpha_1(b, c) = x_0(b) M2(b, c) x_1(c) / c_0
    alpha_t(b, c) = x_t(c) / c_{t-1} sum_a alpha_{t-1}(a, b) M3(a, b, c)
    g_t(b, c)     = x_t(c) / c_{t-1} beta_t(b, c),  beta_{t-1}(a, b) = sum_c M3(a, b, c) g_t(b, c)
    xi_t = alpha_t beta_t,   triples(a, b, c) = M3(a, b, c) sum_t alpha_{t-1}(a, b) g_t(b, c)

M2 and M4 are the exponentials of begin and end.  Each of the three sums takes L^3 multiply-adds per
token.  A table M3 of 26 labels has 173 kB, more than the first-level cache holds.  So four
sentences of about the same length are done side by side, and every part of M3 that is read serves
four tokens.  For a fixed b the sums are products of a vector with a matrix.  ``alpha`` is stored as
rows (b, c) of c and ``g`` as rows (c, b) of b: either is read item by item where it is the vector,
and the triples are products of whole rows.

Safe without -inf while the range R of the potentials of a position is at most 220: the label before
the last keeps a share e^-R of the mass, a pair e^-2R, so that beta is below e^2R and g below e^3R.
With -inf: 150, and all messages between 1e-200 and 1e200.  Any other sentence is done in log space.
Sums run in an order fixed by the sentences: the same bits for any number of threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import kernel, parallel_kernel
from sslbench.engine.crf.data import LabelTriples, SentenceGroups
from sslbench.engine.crf.first_order.scaled import INFEASIBLE, OK, REDO, TINY, smallest_positive
from sslbench.engine.crf.second_order import log_space, tiles
from sslbench.engine.crf.second_order.log_space import BatchMarginals
from sslbench.engine.crf.second_order.tiles import QUAD, TripleTables, padded
from sslbench.engine.crf.simd import lanes, rows
from sslbench.engine.types import F64, I8, I64

SAFE_RANGE, SAFE_RANGE_WITH_ZEROS = 220.0, 150.0
WIDTH = lanes.WIDTH


class _Quad(NamedTuple):
    """Up to four sentences, the longest first, and scratch arrays for them.

    sentence, lengths: int64[4], length 0 = none; weights: float64[4]; smallest: float64[4] smallest
    message, 0 = to be done in log space.
    x: float64[longest, 4, P]; alpha, g: float64[longest * 4, R, P]; log_scale: float64[longest, 4];
    mu: float64[longest, 4, L]; sums: float64[R, R, P] of alpha_{t-1}(a, b) g_t(b, c), as (a, c, b).
    """

    sentence: I64
    lengths: I64
    weights: F64
    smallest: F64
    x: F64
    alpha: F64
    g: F64
    log_scale: F64
    mu: F64
    sums: F64


@kernel
def _quad(longest: int, L: int) -> _Quad:
    P, R = padded(L, WIDTH), padded(L, QUAD)
    return _Quad(
        np.empty(QUAD, np.int64),
        np.zeros(QUAD, np.int64),
        np.zeros(QUAD),
        np.ones(QUAD),
        rows.aligned(longest * QUAD, P).reshape(longest, QUAD, P),
        rows.aligned(longest * QUAD * R, P).reshape(longest * QUAD, R, P),
        rows.aligned(longest * QUAD * R, P).reshape(longest * QUAD, R, P),
        np.zeros((longest, QUAD)),
        np.zeros((longest, QUAD, L)),
        rows.aligned(R * R, P).reshape(R, R, P),
    )


@kernel
def _forward(quad: _Quad, tables: TripleTables, zeros: bool) -> None:
    """Fill in alpha; scale x in place; log_scale gets log c_t and the maxima of the transitions."""
    x, alpha, T = quad.x, quad.alpha, quad.lengths
    log_scale, smallest, M2, M3 = quad.log_scale, quad.smallest, tables.begin, tables.forward
    first, inner = tables.tops[0], tables.tops[1]
    P, R = x.shape[2], alpha.shape[1]
    L, inverse = M2.shape[0], np.zeros(QUAD)
    for s in range(QUAD):
        if T[s] == 0:
            alpha[QUAD + s] = 0.0
            continue
        c = rows.total(x[0, s])
        log_scale[0, s] += math.log(c)
        rows.scale(x[1, s], 1.0 / c)
        c = tiles.start_pairs(x[0, s], x[1, s], M2, alpha[QUAD + s])
        inverse[s] = _note_scale(c, 1, s, T[s], first, log_scale, smallest)
    for t in range(2, T[0]):
        o, before = t * QUAD * R * P, (t - 1) * QUAD * R * P
        for b in range(L):
            tiles.products(alpha, before + b, R * P, L, M3, b * L * P, alpha, o + b * P)
        for s in range(QUAD):
            if t >= T[s]:
                alpha[t * QUAD + s] = 0.0
                continue
            rows.scale(x[t, s], inverse[s])
            c = tiles.scale_pairs(alpha, o + s * R * P, L, x, (t * QUAD + s) * P, P)
            inverse[s] = _note_scale(c, t, s, T[s], inner, log_scale, smallest)
            if zeros:
                for b in range(L):
                    smallest[s] = min(smallest[s], smallest_positive(alpha[t * QUAD + s, b]))


@kernel
def _note_scale(
    c: float, t: int, s: int, T: int, top: float, log_scale: F64, smallest: F64
) -> float:
    """Put the scale c of position t into log_scale; return its inverse, 0 if nothing is left.

    At the last position z takes the place of c (`stop_pairs`).
    """
    log_scale[t, s] += top
    if not c > 0.0:
        smallest[s] = 0.0
        return 0.0
    if t < T - 1:
        log_scale[t, s] += math.log(c)
    return 1.0 / c


@kernel
def _backward(quad: _Quad, tables: TripleTables, zeros: bool) -> None:
    """Fill in g and mu for t >= 1."""
    x, alpha, g, mu, T = quad.x, quad.alpha, quad.g, quad.mu, quad.lengths
    weights, log_scale, smallest = quad.weights, quad.log_scale, quad.smallest
    M3, M4, last = tables.backward, tables.end, tables.tops[2]
    P, R, L = x.shape[2], alpha.shape[1], M4.shape[0]
    for t in range(T[0] - 1, 0, -1):
        o, after = t * QUAD * R * P, (t + 1) * QUAD * R * P
        if t + 1 < T[0]:
            for b in range(L):
                tiles.products(g, after + b, R * P, L, M3, b * L * P, g, o + b * P)
        for s in range(QUAD):
            r = t * QUAD + s
            if t >= T[s]:
                g[r] = 0.0
                continue
            if t == T[s] - 1:
                z = tiles.stop_pairs(alpha[r], M4, weights[s], g[r])
                if z > 0.0:
                    log_scale[t, s] += math.log(z) + last
                else:
                    smallest[s], g[r] = 0.0, 0.0
            low = tiles.finish_pairs(alpha[r], x[t, s], g[r], mu[t, s], zeros)
            smallest[s] = min(smallest[s], low)


@kernel
def _infer(quad: _Quad, tables: TripleTables, zeros: bool, begin: F64, end: F64) -> I8:
    """Inference on sentences that are safe; marginals of first and last pairs are added.

    Returns int8[4]: OK, or REDO, and nothing of the sentence is in any sum.
    """
    alpha, g, T = quad.alpha, quad.g, quad.lengths
    status = np.zeros(QUAD, np.int8)
    quad.smallest[:] = 1.0
    _forward(quad, tables, zeros)
    _backward(quad, tables, zeros)
    for s in range(QUAD):
        if T[s] > 0 and quad.smallest[s] < TINY:  # impossible or underflow: log space decides
            status[s] = REDO
            for t in range(1, T[s]):
                alpha[t * QUAD + s], g[t * QUAD + s] = 0.0, 0.0
        elif T[s] > 0:
            tiles.add_first(quad.x[0, s], tables.begin, g[QUAD + s], quad.mu[0, s], begin)
            tiles.add_last(alpha[(T[s] - 1) * QUAD + s], tables.end, quad.weights[s], end)
    tiles.add_products(alpha, g, 2 * QUAD, T[0] * QUAD, quad.sums)
    return status


@kernel
def _fill(quad: _Quad, s: int, node: F64, tables: TripleTables) -> tuple[int, bool]:
    """Put a sentence into place s, if it is safe; its status, and whether it has -inf."""
    x, log_scale = quad.x, quad.log_scale
    widest, zeros = 0.0, False
    x[:, s], log_scale[:, s] = 0.0, 0.0
    for t in range(node.shape[0]):
        top, low, own_zeros = rows.bounds(node[t])
        if top == -np.inf:
            return INFEASIBLE, zeros
        widest, zeros = max(widest, top - low), zeros or own_zeros
        log_scale[t, s] = top
        rows.exp_padded(node[t], top, x[t, s])
    limit = SAFE_RANGE_WITH_ZEROS if tables.zeros or zeros else SAFE_RANGE
    return (OK if widest + tables.span <= limit else REDO), zeros


@kernel
def _single(node: F64, weight: float, mu: F64, log_scale: F64) -> int:
    """Do a sentence of one token: mu float64[1, L], log_scale float64[1]; return its status."""
    top = rows.bounds(node[0])[0]
    if top == -np.inf:
        return INFEASIBLE
    total = 0.0
    for b in range(node.shape[1]):
        mu[0, b] = math.exp(node[0, b] - top)
        total += mu[0, b]
    rows.scale(mu[0], weight / total)
    log_scale[0] = top + math.log(total)
    return OK


@kernel
def _take_out(quad: _Quad, s: int, mu: F64, log_scale: F64) -> None:
    """Results of the sentence in place s: mu float64[T, L], log_scale float64[T]."""
    all_mu, all_scales = quad.mu, quad.log_scale
    for t in range(mu.shape[0]):
        log_scale[t] = all_scales[t, s]
        for b in range(mu.shape[1]):
            mu[t, b] = all_mu[t, s, b]


@kernel
def _add_inner(sums: F64, forward: F64, inner: F64) -> None:
    """inner[a, b, c] += sums[a, c, b] M3(a, b, c)."""
    L = inner.shape[0]
    for a in range(L):
        for b in range(L):
            for c in range(L):
                inner[a, b, c] += sums[a, c, b] * forward[b, a, c]


@kernel
def _clear(array: F64) -> None:
    flat = array.reshape(array.size)
    for i in range(flat.shape[0]):
        flat[i] = 0.0


class _Work(NamedTuple):
    """The arguments of `shared`, and their tables."""

    sentences: SentenceGroups
    order: I64
    node: F64
    triples: LabelTriples
    tables: TripleTables
    log_scale: F64
    out: BatchMarginals
    status: I8


@kernel
def _next_quad(quad: _Quad, work: _Work, at: int, end: int) -> tuple[int, int, bool]:
    """Fill the places with sentences order[at:end]; do those that need no inference.

    Returns the position in `order` after them, how many places are filled, and whether there are
    -inf.
    """
    (offsets, _, weights), order, node, _, tables, log_scale, out, status = work
    mu, count, zeros = out.node, 0, tables.zeros
    quad.lengths[:] = 0
    while count < QUAD and at < end:
        i = order[at]
        at += 1
        lo, hi = offsets[i], offsets[i + 1]
        if weights[i] == 0.0:
            status[i] = OK
            _clear(mu[lo:hi])
            _clear(log_scale[lo:hi])
        elif hi - lo == 1:
            status[i] = _single(node[lo:hi], weights[i], mu[lo:hi], log_scale[lo:hi])
        else:
            status[i], own_zeros = _fill(quad, count, node[lo:hi], tables)
            if status[i] == OK:
                quad.sentence[count], quad.lengths[count] = i, hi - lo
                quad.weights[count] = weights[i]
                zeros = zeros or own_zeros
                count += 1
    return at, count, zeros


def shared(
    node: F64,
    triples: LabelTriples,
    sentences: SentenceGroups,
    order: I64,
    log_scale: F64,
    out: BatchMarginals,
    status: I8,
) -> None:
    """All sentences of a batch, with the same transitions at every position.

    node float64[n, L]; triples: log-potentials, those of transitions included; order int64[s]
    sentences, those of a group in descending order of their lengths.
    log_scale float64[n] and out.node are set (log_scale sums to log Z over a sentence), the other
    arrays of `out` added to; out.edge is not wanted (float64[0, L, L]); status int8[s].
    """
    _groups(_Work(sentences, order, node, triples, tiles.tables(triples), log_scale, out, status))


@parallel_kernel(lambda work: len(work.sentences.groups) - 1)
def _groups(begin: int, end: int, work: _Work) -> None:
    """Groups of sentences, four at a time."""
    (offsets, groups, weights), order, node, triples, tables, log_scale, out, status = work
    L = node.shape[1]
    for g in range(begin, end):
        at, last = groups[g], groups[g + 1]
        quad = _quad(offsets[order[at] + 1] - offsets[order[at]], L)
        while at < last:
            at, count, zeros = _next_quad(quad, work, at, last)
            if count > 0:
                own = _infer(quad, tables, zeros, out.begin[g], out.end[g])
                for s in range(count):
                    i = quad.sentence[s]
                    status[i] = own[s]
                    lo, hi = offsets[i], offsets[i + 1]
                    _take_out(quad, s, out.node[lo:hi], log_scale[lo:hi])
        for i in order[groups[g] : last]:
            if status[i] == REDO:
                lo, hi = offsets[i], offsets[i + 1]
                part, none = log_space.part(out, lo, hi, g), np.zeros((1, L, L))
                scale = log_scale[lo:hi]
                status[i] = log_space.sentence(node[lo:hi], none, triples, weights[i], scale, part)
        _add_inner(quad.sums, tables.forward, out.inner[g])
