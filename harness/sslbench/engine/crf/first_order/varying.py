"""Many chains at once in probability space, each position with a transition matrix of its own.

The recursions and their limits are those of `scaled`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.borrowed import borrowed
from sslbench.engine.compilation.compiled import kernel, parallel_kernel
from sslbench.engine.crf.first_order.scaled import (
    INFEASIBLE,
    OK,
    REDO,
    SAFE_RANGE,
    TINY,
    is_safe,
    log_space_sentence,
    smallest_positive,
)
from sslbench.engine.crf.simd import lanes, rows
from sslbench.engine.crf.simd.exp import exp_shifted
from sslbench.engine.types import F64, I8, I64


@kernel
def _normalize(row: F64, zeros: bool) -> tuple[float, float]:
    """Divide a row by its sum; return the sum and, with zeros, the smallest positive value."""
    total = rows.total(row)
    low = 1.0
    if total > 0.0:
        rows.scale(row, 1.0 / total)
        if zeros:
            low = smallest_positive(row)
    return total, low


@kernel
def add_to_each(M: F64, x: F64) -> tuple[float, float]:
    """Add x to every row of M; return the largest and the smallest value of the result."""
    n, L = M.shape
    high, low = lanes.splat(-np.inf), lanes.splat(np.inf)
    for k in range(0, L, lanes.WIDTH):
        tail = lanes.first(L - k)
        # lanes beyond the row must not count as largest or smallest
        up, down = lanes.load_first(x, k, tail, -np.inf), lanes.load_first(x, k, tail, np.inf)
        for a in range(n):
            i = a * L + k
            value = lanes.load_first(M, i, tail, 0.0)
            raised = lanes.add(value, up)
            lanes.store_first(M, i, tail, raised)
            high = lanes.maximum(high, raised)
            low = lanes.minimum(low, lanes.add(value, down))
    return lanes.largest(high), lanes.smallest(low)


@kernel
def exp_product(M: F64, shift: float, v: F64, out: F64) -> None:
    """M = exp(M - shift) in place, then out = v M: float64[n, L], float64[n], float64[L].

    The exponentials take most of the time. All of M is one row for them, so that no lane is idle.
    """
    n, L = M.shape
    exp_shifted(M.reshape(n * L), shift)
    k = 0
    while k < L:
        tail, rest = lanes.first(L - k), lanes.first(L - k - lanes.WIDTH)
        s0 = s1 = lanes.splat(0.0)
        for a in range(n):
            f, i = lanes.spread(v, a), a * L + k
            s0 = lanes.fma(f, lanes.load_first(M, i, tail, 0.0), s0)
            s1 = lanes.fma(f, lanes.load_first(M, i + lanes.WIDTH, rest, 0.0), s1)
        lanes.store_first(out, k, tail, s0)
        lanes.store_first(out, k + lanes.WIDTH, rest, s1)
        k += 2 * lanes.WIDTH


@kernel
def edge_marginals(M: F64, alpha: F64, g: F64, beta: F64) -> None:
    """M[a, b] *= alpha[a] g[b]; beta[a] = sum over b of the former M[a, b] g[b]."""
    n, L = M.shape
    for a in range(n):
        f, s = lanes.splat(alpha[a]), lanes.splat(0.0)
        for k in range(0, L, lanes.WIDTH):
            tail = lanes.first(L - k)
            m = lanes.multiply(
                lanes.load_first(M, a * L + k, tail, 0.0), lanes.load_first(g, k, tail, 0.0)
            )
            s = lanes.add(s, m)
            lanes.store_first(M, a * L + k, tail, lanes.multiply(m, f))
        beta[a] = lanes.total(s)


@kernel
def prepare_varying(node: F64, edge: F64, tops: F64) -> tuple[bool, bool]:
    """Add node potentials to edge (t >= 1); tops[t] = the maximum of each position.

    Returns whether scaling is safe and whether there are -inf.
    """
    T, L = node.shape
    top, low, zeros = rows.bounds(node[0])
    tops[0] = top
    safe = top == -np.inf or top - low <= SAFE_RANGE
    widest = top - low if top > -np.inf else 0.0
    for t in range(1, T):
        top, low = add_to_each(edge[t], node[t])
        if low == -np.inf:
            zeros = True
            top, low, _ = rows.bounds(edge[t].reshape(L * L))
        tops[t] = top
        if top > -np.inf:
            widest = max(widest, top - low)
    return safe and is_safe(widest, zeros), zeros


@kernel
def _varying_sentence(
    node: F64, edge: F64, zeros: bool, mu: F64, log_scale: F64, scale: F64
) -> int:
    """One sentence with edge float64[T, L, L] as prepared, which becomes xi (slice 0 left alone).

    log_scale comes in as the maxima of the positions; scale float64[T] is scratch.  Returns the
    status.
    """
    T, L = node.shape
    smallest = 1.0
    for t in range(T):
        top, alpha = log_scale[t], mu[t]
        if top == -np.inf:
            return INFEASIBLE
        if t == 0:
            for b in range(L):
                alpha[b] = node[0, b]
            exp_shifted(alpha, top)
        else:
            exp_product(edge[t], top, mu[t - 1], alpha)
        scale[t], low = _normalize(alpha, zeros)
        if scale[t] == 0.0:
            return REDO  # impossible or underflow: log space decides
        smallest = min(smallest, low)
        log_scale[t] = top + math.log(scale[t])
    beta, g = np.ones(L), np.empty(L)
    for t in range(T - 1, 0, -1):
        rows.multiply(mu[t], beta)
        for b in range(L):  # a slice assignment takes long to compile
            g[b] = beta[b]
        rows.scale(g, 1.0 / scale[t])
        edge_marginals(edge[t], mu[t - 1], g, beta)
        if zeros:
            smallest = min(smallest, smallest_positive(beta))
    rows.multiply(mu[0], beta)
    return REDO if zeros and smallest < TINY else OK


class _Work(NamedTuple):
    """The arguments of `varying`."""

    groups: I64
    offsets: I64
    node: F64
    edge: F64
    mu: F64
    log_scale: F64
    status: I8


def varying(
    node: F64, edge: F64, offsets: I64, groups: I64, mu: F64, log_scale: F64, status: I8
) -> None:
    """All sentences of a batch with one transition matrix per position.

    As `shared.shared`, but edge is float64[n, L, L] and is replaced by the edge marginals xi (zero
    at the first token of each sentence).
    """
    work = _Work(groups, offsets, node, edge, mu, log_scale, status)
    _in_probability_space(work)
    if status.any():
        _again(work)


@parallel_kernel(lambda work: len(work.groups) - 1)
def _in_probability_space(begin: int, end: int, work: _Work) -> None:
    """`varying`, but edge of a sentence of status REDO has the potentials of both kinds."""
    groups, offsets, node, edge, mu, log_scale, status = borrowed(work)
    L = node.shape[1]
    for i in range(groups[begin], groups[end]):
        lo, hi = offsets[i], offsets[i + 1]
        own, tops = edge[lo:hi], log_scale[lo:hi]
        safe, zeros = prepare_varying(node[lo:hi], own, tops)
        if not safe:
            status[i] = REDO
            continue
        saved = own.copy() if zeros else own
        status[i] = _varying_sentence(node[lo:hi], own, zeros, mu[lo:hi], tops, np.empty(hi - lo))
        if status[i] == REDO:
            _copy(saved, own)
        else:
            for a in range(L):
                for b in range(L):
                    own[0, a, b] = 0.0


@kernel
def _copy(source: F64, out: F64) -> None:
    """float64[T, L, L].  A slice assignment takes longer to compile."""
    T, L = source.shape[:2]
    for t in range(T):
        for a in range(L):
            for b in range(L):
                out[t, a, b] = source[t, a, b]


@parallel_kernel(lambda work: len(work.groups) - 1)
def _again(begin: int, end: int, work: _Work) -> None:
    """Do the sentences of status REDO in log space."""
    groups, offsets, node, edge, mu, log_scale, status = work
    for i in range(groups[begin], groups[end]):
        if status[i] == REDO:
            lo, hi = offsets[i], offsets[i + 1]
            first = np.zeros((hi - lo, node.shape[1]))  # `edge` has those of other positions
            first[0] = node[lo]
            own, prepared = edge[lo:hi], edge[lo:hi].copy()
            status[i] = log_space_sentence(first, prepared, mu[lo:hi], log_scale[lo:hi], own)
            own[0] = 0.0
