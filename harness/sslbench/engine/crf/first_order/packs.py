"""The recursions of `scaled` for eight sentences at a time, one in each lane of a register.

A recursion waits for its own results, and a row of a few labels fills one or two registers badly.
With a sentence in every lane, a step has as many sums as labels, none waits for another, and
nothing is added across lanes. A sentence gets the same bits whatever the others of its pack are.

Arrays of a pack are float64[T, 8 P], T tokens of its longest sentence, P labels with padding: item
8 b + s of a row is that of label b in lane s. A lane whose sentence is over holds zeros.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.crf.first_order.scaled import HUGE, OK, REDO, TINY, Transitions, is_safe
from sslbench.engine.crf.simd import lanes, rows
from sslbench.engine.crf.simd.exp import exp_lanes
from sslbench.engine.crf.simd.transpose import gather, scatter
from sslbench.engine.types import F64, I8, I64

WIDTH = lanes.WIDTH
#: labels that are summed at a time
LABELS = 4
#: in place of the largest potential of a token that has none
FLOOR = -1e300
#: the logarithm of a product of scales is taken when it is smaller, or larger: a scale is at most
#: the number of labels, so that the next product is finite
SMALL, LARGE = 1e-100, 1e300


class LaneTotals(NamedTuple):
    """float64[8], of the sentence in each lane.

    widest: largest range of the finite potentials of a token; zeros: 1 if some are -inf; tops: sum
    of the largest potentials; logs: of the logarithms of the scales; low, high: smallest positive
    and largest message.
    """

    widest: F64
    zeros: F64
    tops: F64
    logs: F64
    low: F64
    high: F64


class Pack(NamedTuple):
    """Eight sentences, and scratch arrays for them.

    start, length: int64[8] first token and number of tokens of each, 0 = no sentence; place:
    int64[8] as in `_places`; status: int8[8].
    x, alpha: float64[T, 8 P] as in `scaled`; beta, mu: float64[1, 8 P], of one token; scale:
    float64[T, 8] sums of alpha; ends: float64[T, 8] 1 / scale at the last token of a lane, else 0.
    pairs: float64[P, 8 P], sums of alpha_{t-1}(a) x_t(b) beta_t(b), still to be multiplied by E.
    """

    start: I64
    length: I64
    place: I64
    status: I8
    x: F64
    alpha: F64
    beta: F64
    mu: F64
    scale: F64
    ends: F64
    pairs: F64
    totals: LaneTotals


@kernel
def new_pack(T: int, P: int) -> Pack:
    """Return arrays for packs of up to T tokens."""
    W = WIDTH * P
    place, totals = np.empty((3, WIDTH), np.int64), np.empty((6, WIDTH))
    tokens, one, sums = rows.aligned(2 * T, W), rows.aligned(2, W), rows.aligned(2 * T, WIDTH)
    return Pack(
        place[0],
        place[1],
        place[2],
        np.empty(WIDTH, np.int8),
        tokens[:T],
        tokens[T:],
        one[:1],
        one[1:],
        sums[:T],
        sums[T:],
        rows.aligned(P, W),
        LaneTotals(totals[0], totals[1], totals[2], totals[3], totals[4], totals[5]),
    )


@kernel
def infer(
    pack: Pack, node: F64, transitions: Transitions, mu: F64, log_scale: F64, counted: bool
) -> None:
    """Inference on the sentences of a pack; sets their status.

    node float64[n, L]. Out: mu float64[n, L]; log_scale float64[n], 0 but at the last token of each
    sentence. counted: add to the pairs what sentences that are done add up.
    """
    start, length, place, _, x, alpha, _, _, scale, ends, pairs, totals = pack
    T, L = int(np.max(length)), node.shape[1]
    for t in range(T):
        _places(start, length, t, L, place)
        for k in range(0, L, WIDTH):
            gather(node, place, k, lanes.first(L - k), x, t * x.shape[1] + k * WIDTH)
    for s in range(WIDTH):
        totals.zeros[s] = transitions.zeros
    _exponentials(T, L, length, totals, x)
    _forward(T, transitions.E, totals, x, alpha, scale)
    for s in range(WIDTH):
        c = scale[length[s] - 1, s]
        if length[s] > 0 and c > 0.0:
            ends[length[s] - 1, s] = 1.0 / c
    _backward(T, pack, transitions.ET, mu)
    _finish(T, pack, transitions, log_scale)
    if counted:
        _add_pairs(T, L, alpha, x, pairs)


@kernel
def _finish(T: int, pack: Pack, transitions: Transitions, log_scale: F64) -> None:
    """log_scale and status of the sentences; one that is done again adds nothing to sums."""
    start, length, _, status, x, alpha, _, _, scale, ends, _, totals = pack
    for s in range(WIDTH):
        last = length[s] - 1
        if last >= 0:
            ends[last, s] = 0.0
            for t in range(last):
                log_scale[start[s] + t] = 0.0
            tops = totals.tops[s] + (last * transitions.top if last > 0 else 0.0)
            log_scale[start[s] + last] = totals.logs[s] + tops
            zeros = totals.zeros[s] > 0.0
            safe = is_safe(totals.widest[s] + transitions.span, zeros) and scale[last, s] > 0.0
            safe &= not zeros or (totals.low[s] >= TINY and totals.high[s] < HUGE)
            status[s] = OK if safe else REDO
            if not safe:
                _clear(T, s, x, alpha)


@kernel
def _places(start: I64, length: I64, t: int, L: int, place: I64) -> None:
    """Where the row of token t of each sentence begins; -1 after its last token."""
    for s in range(WIDTH):
        place[s] = (start[s] + t) * L if t < length[s] else -1


@kernel
def _clear(T: int, s: int, x: F64, alpha: F64) -> None:
    for t in range(T):
        for k in range(s, x.shape[1], WIDTH):
            x[t, k] = alpha[t, k] = 0.0


@kernel
def _lowest(x: F64, t: int, L: int, length: I64, zeros: F64, low: F64) -> None:
    """low = smallest finite potentials of token t, +inf where there is none; finds -inf."""
    for s in range(WIDTH):
        low[s] = np.inf
        for b in range(L):
            value = x[t, b * WIDTH + s]
            if value > -np.inf:
                low[s] = min(low[s], value)
            elif t < length[s]:
                zeros[s] = 1.0


@kernel
def _exponentials(T: int, L: int, length: I64, totals: LaneTotals, x: F64) -> None:
    """x = exp(x - max) at each token; widest, zeros and tops of `totals`."""
    widest = tops = lanes.splat(0.0)
    for t in range(T):
        begin = t * x.shape[1]
        top, low = lanes.splat(FLOOR), lanes.splat(np.inf)
        for i in range(begin, begin + L * WIDTH, WIDTH):
            value = lanes.load(x, i)
            top, low = lanes.maximum(top, value), lanes.minimum(low, value)
        if lanes.smallest(low) == -np.inf:
            _lowest(x, t, L, length, totals.zeros, totals.low)
            low = lanes.load(totals.low, 0)
        widest = lanes.maximum(widest, lanes.subtract(top, low))
        tops = lanes.add(tops, lanes.where_at_least(top, lanes.splat(0.5 * FLOOR), top))
        for i in range(begin, begin + L * WIDTH, WIDTH):
            lanes.store(x, i, exp_lanes(lanes.subtract(lanes.load(x, i), top)))
        for i in range(begin + L * WIDTH, begin + x.shape[1], WIDTH):
            lanes.store(x, i, lanes.splat(0.0))
    lanes.store(totals.widest, 0, widest)
    lanes.store(totals.tops, 0, tops)


@kernel
def _times(v: F64, i: int, M: F64, first: lanes.Vector, out: F64, j: int) -> None:
    """out[j:] = first + v[i:] M, lane by lane; M float64[L, P]."""
    L, P = M.shape
    for b in range(0, L, LABELS):
        s0 = s1 = s2 = s3 = first
        for a in range(L):
            f, k = lanes.load(v, i + a * WIDTH), a * P + b
            s0 = lanes.fma(f, lanes.spread(M, k), s0)
            s1 = lanes.fma(f, lanes.spread(M, k + 1), s1)
            s2 = lanes.fma(f, lanes.spread(M, k + 2), s2)
            s3 = lanes.fma(f, lanes.spread(M, k + 3), s3)
        k = j + b * WIDTH
        lanes.store(out, k, s0)
        lanes.store(out, k + 8, s1)
        lanes.store(out, k + 16, s2)
        lanes.store(out, k + 24, s3)


@kernel
def _forward(T: int, E: F64, totals: LaneTotals, x: F64, alpha: F64, scale: F64) -> None:
    """alpha, its sums, and their logarithms; x is divided by the sum of the token before."""
    L, W, one = E.shape[0], x.shape[1], lanes.splat(1.0)
    inverse = product = one
    logs, left = totals.logs, totals.low
    for s in range(WIDTH):
        logs[s] = 0.0
    for t in range(T):
        c = lanes.splat(0.0)
        if t > 0:
            _times(alpha, (t - 1) * W, E, c, alpha, t * W)
        for i in range(t * W, t * W + L * WIDTH, WIDTH):
            own = lanes.multiply(lanes.load(x, i), inverse)
            value = lanes.multiply(lanes.load(alpha, i), own) if t > 0 else own
            lanes.store(x, i, own)
            lanes.store(alpha, i, value)
            c = lanes.add(c, value)
        lanes.store(scale, t * WIDTH, c)
        c = lanes.where_positive(c, c, one)  # 0 where a sentence is over
        inverse, product = lanes.divide(one, c), lanes.multiply(product, c)
        rest = lanes.smallest(product) < SMALL or lanes.largest(product) > LARGE
        if rest or t == T - 1:
            lanes.store(left, 0, product)
            for s in range(WIDTH):
                if not SMALL <= left[s] <= LARGE or t == T - 1:
                    logs[s] += math.log(left[s])
                    left[s] = 1.0
            product = lanes.load(left, 0)


@kernel
def _backward(T: int, pack: Pack, ET: F64, mu: F64) -> None:
    """Marginals; x is multiplied by beta; low and high of the totals, if there are zeros."""
    start, length, place, _, x, alpha, beta, own, _, ends, _, totals = pack
    L, W, one = ET.shape[0], x.shape[1], lanes.splat(1.0)
    low, high, zeros = one, one, np.max(totals.zeros) > 0.0
    for i in range(0, L * WIDTH, WIDTH):
        lanes.store(beta, i, lanes.load(ends, (T - 1) * WIDTH))
    for t in range(T - 1, -1, -1):
        for i in range(0, L * WIDTH, WIDTH):
            a, b = lanes.load(alpha, t * W + i), lanes.load(beta, i)
            lanes.store(own, i, lanes.multiply(a, b))
            lanes.store(x, t * W + i, lanes.multiply(lanes.load(x, t * W + i), b))
            if zeros:
                low = lanes.minimum(low, lanes.where_positive(a, a, one))
                low = lanes.minimum(low, lanes.where_positive(b, b, one))
                high = lanes.maximum(lanes.maximum(a, b), high)
        _places(start, length, t, L, place)
        for k in range(0, L, WIDTH):
            scatter(own, k * WIDTH, mu, place, k, lanes.first(L - k))
        if t > 0:
            _times(x, t * W, ET, lanes.load(ends, (t - 1) * WIDTH), beta, 0)
    lanes.store(totals.low, 0, low)
    lanes.store(totals.high, 0, high)


@kernel
def _add_pairs(T: int, L: int, left: F64, right: F64, out: F64) -> None:
    """out[a, b] += sum over t of left[t - 1, a] right[t, b], lane by lane."""
    W = left.shape[1]
    for a in range(0, L, 2):
        for b in range(0, L, LABELS):
            i = a * W + b * WIDTH
            s0, s1 = lanes.load(out, i), lanes.load(out, i + 8)
            s2, s3 = lanes.load(out, i + 16), lanes.load(out, i + 24)
            i += W
            u0, u1 = lanes.load(out, i), lanes.load(out, i + 8)
            u2, u3 = lanes.load(out, i + 16), lanes.load(out, i + 24)
            for t in range(1, T):
                j, k = (t - 1) * W + a * WIDTH, t * W + b * WIDTH
                f, g = lanes.load(left, j), lanes.load(left, j + 8)
                r0, r1 = lanes.load(right, k), lanes.load(right, k + 8)
                r2, r3 = lanes.load(right, k + 16), lanes.load(right, k + 24)
                s0, s1 = lanes.fma(f, r0, s0), lanes.fma(f, r1, s1)
                s2, s3 = lanes.fma(f, r2, s2), lanes.fma(f, r3, s3)
                u0, u1 = lanes.fma(g, r0, u0), lanes.fma(g, r1, u1)
                u2, u3 = lanes.fma(g, r2, u2), lanes.fma(g, r3, u3)
            lanes.store(out, i, u0)
            lanes.store(out, i + 8, u1)
            lanes.store(out, i + 16, u2)
            lanes.store(out, i + 24, u3)
            i -= W
            lanes.store(out, i, s0)
            lanes.store(out, i + 8, s1)
            lanes.store(out, i + 16, s2)
            lanes.store(out, i + 24, s3)
