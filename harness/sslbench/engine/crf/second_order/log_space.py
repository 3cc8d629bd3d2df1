"""Second-order chains in log space: the reference (docs/specs/crf_engine.md, section 4).

First-order recursions on pairs of labels.  Everywhere: ``node`` float64[T, L] with the START
potentials and, of a single token, the stop score included; ``edge`` float64[1 or T, L, L] by
(b, c), one matrix for all positions or one each (slice 0 unused); ``begin``, ``inner`` and ``end``
of `LabelTriples`.  -inf forbids; 0 * -inf counts as 0.

    phi_1(b, c)     = node_1(c) + edge_1(b, c) + begin(b, c)
    phi_t(a, b, c)  = node_t(c) + edge_t(b, c) + inner(a, b, c)            t >= 2
    beta_{T-1}      = end,   beta_{t-1}(a, b) = log sum_c exp(phi_t(a, b, c) + beta_t(b, c)) - k_t
    q_t(c | a, b)   = exp(phi_t(a, b, c) + beta_t(b, c) - k_t - beta_{t-1}(a, b))
    xi_t(b, c)      = sum_a xi_{t-1}(a, b) q_t(c | a, b)

``k_t``, the largest message, keeps the messages of the size of the local potentials.  The pair at
position 0 is (anything, first label): its messages are row 0 of ``beta[0]``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import inline_kernel, kernel, parallel_kernel
from sslbench.engine.crf.data import LabelTriples, SentenceGroups
from sslbench.engine.crf.first_order.scaled import INFEASIBLE, OK
from sslbench.engine.crf.simd import rows
from sslbench.engine.types import F64, I8


class Chain(NamedTuple):
    """Potentials of one sentence, and its messages once `backward` has filled them in.

    beta: float64[T, L, L]; k: float64[T] centering constants.
    """

    node: F64
    edge: F64
    triples: LabelTriples
    beta: F64
    k: F64


class Marginals(NamedTuple):
    """Marginals (or slopes, derivatives of -H by the potentials) of one sentence, times its weight.

    node: float64[T, L] is set; the others are added to.  edge: float64[T, L, L] or, not wanted,
    float64[0, L, L]; triples: sums over positions.
    """

    node: F64
    edge: F64
    triples: LabelTriples


class BatchMarginals(NamedTuple):
    """Marginals or slopes of a batch: node float64[n, L]; edge float64[n or 0, L, L]; begin, end
    float64[G, L, L] and inner float64[G, L, L, L], sums over the sentences of each group.
    """

    node: F64
    edge: F64
    begin: F64
    inner: F64
    end: F64


@kernel
def chain(node: F64, edge: F64, triples: LabelTriples) -> Chain:
    """Return a chain with room for its messages."""
    T, L = node.shape
    return Chain(node, edge, triples, np.empty((T, L, L)), np.empty(T))


@kernel
def part(out: BatchMarginals, lo: int, hi: int, group: int) -> Marginals:
    """Return the part of the sentence with the tokens lo:hi."""
    sums = LabelTriples(out.begin[group], out.inner[group], out.end[group])
    return Marginals(out.node[lo:hi], out.edge[lo:hi], sums)


@kernel
def _rows(t: int, L: int) -> int:
    """How many labels the first of the pair (y_{t-1}, y_t) has: at position 0 there is none."""
    return 1 if t == 0 else L


@kernel
def _factor(node: F64, edge: F64, triples: LabelTriples, t: int, a: int, b: int, c: int) -> float:
    """phi_t(a, b, c) for t >= 1; a has no meaning at t = 1."""
    high = triples.begin[b, c] if t == 1 else triples.inner[a, b, c]
    return float(node[t, c] + edge[t if edge.shape[0] > 1 else 0, b, c] + high)


@kernel
def backward(x: Chain) -> float:
    """Fill in the messages; return log Z."""
    node, edge, triples, beta, k = x
    T, L = node.shape
    for b in range(L):
        for c in range(L):
            beta[T - 1, b, c] = triples.end[b, c] if T > 1 else 0.0
    for t in range(T - 1, 0, -1):
        top = -np.inf
        for a in range(_rows(t - 1, L)):
            for b in range(L):
                high = -np.inf
                for c in range(L):
                    value = _factor(node, edge, triples, t, a, b, c) + beta[t, b, c]
                    high = max(high, value)
                total = 0.0
                if high > -np.inf:
                    for c in range(L):
                        value = _factor(node, edge, triples, t, a, b, c) + beta[t, b, c]
                        total += math.exp(value - high)
                    high += math.log(total)
                beta[t - 1, a, b] = high
                top = max(top, high)
        k[t] = top
        if top == -np.inf:
            return -np.inf
        for a in range(_rows(t - 1, L)):
            for b in range(L):
                beta[t - 1, a, b] -= top
    high = -np.inf
    for b in range(L):
        high = max(high, node[0, b] + beta[0, 0, b])
    if high == -np.inf:
        return -np.inf
    total = 0.0
    for b in range(L):
        total += math.exp(node[0, b] + beta[0, 0, b] - high)
    k[0] = high + math.log(total)
    return _compensated_sum(k)


@kernel
def _compensated_sum(values: F64) -> float:
    """Neumaier's sum: thousands of centering constants without drift."""
    total, carry = 0.0, 0.0
    for value in values:
        new = total + value
        carry += (total - new) + value if abs(total) >= abs(value) else (value - new) + total
        total = new
    return total + carry


@inline_kernel
def log_conditional(x: Chain, t: int, a: int, b: int, c: int) -> float:
    """log q_t(c | a, b), t >= 1; -inf where (a, b) has no continuation."""
    if x.beta[t - 1, a, b] == -np.inf:
        return -np.inf
    value = _factor(x.node, x.edge, x.triples, t, a, b, c) + x.beta[t, b, c]
    return float(value - x.k[t] - x.beta[t - 1, a, b])


@kernel
def marginals(x: Chain, weight: float, out: Marginals) -> None:
    """Marginals times a weight."""
    T, L = x.node.shape
    inner = out.triples.inner
    xi, new = np.zeros((L, L)), np.empty((L, L))
    for b in range(L):
        xi[0, b] = math.exp(x.node[0, b] + x.beta[0, 0, b] - x.k[0])
        out.node[0, b] = weight * xi[0, b]
    for t in range(1, T):
        new[:] = 0.0
        for a in range(_rows(t - 1, L)):
            for b in range(L):
                if xi[a, b] == 0.0:
                    continue
                for c in range(L):
                    p = xi[a, b] * math.exp(log_conditional(x, t, a, b, c))
                    new[b, c] += p
                    if t > 1:
                        inner[a, b, c] += weight * p
        rows.copy(new, xi)
        _add_pairs(xi, weight, t, out)


@kernel
def _add_pairs(xi: F64, weight: float, t: int, out: Marginals) -> None:
    """Put the pairs of position t >= 1 into all outputs but those of three labels in a row."""
    out.node[t] = 0.0
    rows.add_columns(xi, weight, out.node[t])
    if out.edge.shape[0] > 0:
        rows.add_scaled(xi, weight, out.edge[t])
    if t == 1:
        rows.add_scaled(xi, weight, out.triples.begin)
    if t == out.node.shape[0] - 1:
        rows.add_scaled(xi, weight, out.triples.end)


@kernel
def _entropy(x: Chain, weight: float, out: Marginals, counts: F64) -> float:
    """Entropy H of the chain; the slopes, times the weight, go to `out`.

    With r = log q, every slope is Cov(1_factor, sum of r) (docs/specs/crf_engine.md, section 7.4).
    counts float64[L] += the expected number of tokens of each label.
    """
    T, L = x.node.shape
    G, inner = _rest(x), out.triples.inner
    xi, F = np.zeros((L, L)), np.zeros((L, L))
    mean = 0.0
    for b in range(L):
        r = x.node[0, b] + x.beta[0, 0, b] - x.k[0]
        if r > -np.inf:
            xi[0, b], F[0, b] = math.exp(r), r
            mean += xi[0, b] * (r + G[0, 0, b])
    for b in range(L):
        out.node[0, b] = weight * xi[0, b] * (F[0, b] + G[0, 0, b] - mean)
        counts[b] += xi[0, b]
    new, moment, cov = np.empty((L, L)), np.empty((L, L)), np.empty((L, L))
    for t in range(1, T):
        new[:], moment[:], cov[:] = 0.0, 0.0, 0.0
        for a in range(_rows(t - 1, L)):
            for b in range(L):
                if xi[a, b] == 0.0:
                    continue
                for c in range(L):
                    r = log_conditional(x, t, a, b, c)
                    if r == -np.inf:
                        continue
                    p, so_far = xi[a, b] * math.exp(r), F[a, b] + r
                    here = weight * p * (so_far + G[t, b, c] - mean)
                    new[b, c] += p
                    moment[b, c] += p * so_far
                    cov[b, c] += here
                    if t > 1:
                        inner[a, b, c] += here
        for b in range(L):
            for c in range(L):
                xi[b, c] = new[b, c]
                F[b, c] = moment[b, c] / new[b, c] if new[b, c] > 0.0 else 0.0
        _add_pairs(cov, 1.0, t, out)
        rows.add_columns(xi, 1.0, counts)
    return -mean


@kernel
def _rest(x: Chain) -> F64:
    """Return float64[T, L, L]: expected sum of log q after each position, by the pair there."""
    T, L = x.node.shape
    G = np.zeros((T, L, L))
    for t in range(T - 1, 0, -1):
        for a in range(_rows(t - 1, L)):
            for b in range(L):
                for c in range(L):
                    r = log_conditional(x, t, a, b, c)
                    if r > -np.inf:
                        G[t - 1, a, b] += math.exp(r) * (r + G[t, b, c])
    return G


# -- batches of sentences --------------------------------------------------------------------------
@kernel
def sentence(
    node: F64, edge: F64, triples: LabelTriples, weight: float, log_scale: F64, out: Marginals
) -> int:
    """Status of a sentence, by the reference recursions; log_scale float64[T] is set."""
    x = chain(node, edge, triples)
    log_scale[:] = 0.0
    log_scale[0] = backward(x)
    if log_scale[0] == -np.inf:
        return INFEASIBLE
    marginals(x, weight, out)
    return OK


@parallel_kernel(lambda node, edge, triples, sentences, *_: len(sentences.groups) - 1)
def varying(
    begin: int,
    end: int,
    node: F64,
    edge: F64,
    triples: LabelTriples,
    sentences: SentenceGroups,
    log_scale: F64,
    out: BatchMarginals,
    status: I8,
) -> None:
    """Do what `scaled.shared` does in log space, with edge float64[n, L, L] of every position.

    out.edge float64[n, L, L]: marginals of the pairs, zero at first tokens.
    """
    offsets, groups, weights = sentences
    mu, xi = out.node, out.edge
    for k in range(begin, end):
        out.begin[k], out.inner[k], out.end[k] = 0.0, 0.0, 0.0
        for i in range(groups[k], groups[k + 1]):
            lo, hi = offsets[i], offsets[i + 1]
            xi[lo:hi] = 0.0
            if weights[i] == 0.0:
                status[i], mu[lo:hi], log_scale[lo:hi] = OK, 0.0, 0.0
                continue
            own = part(out, lo, hi, k)
            status[i] = sentence(
                node[lo:hi], edge[lo:hi], triples, weights[i], log_scale[lo:hi], own
            )


@parallel_kernel(lambda node, edge, triples, sentences, *_: len(sentences.groups) - 1)
def entropy(
    begin: int,
    end: int,
    node: F64,
    edge: F64,
    triples: LabelTriples,
    sentences: SentenceGroups,
    entropies: F64,
    counts: F64,
    out: BatchMarginals,
    status: I8,
) -> None:
    """Entropies float64[s] of the sentences, and the slopes, times the weights, in `out`.

    counts float64[G, L]: expected number of tokens of each label; out.edge float64[n, L, L] or
    float64[0, L, L].
    """
    offsets, groups, weights = sentences
    slope, slopes = out.node, out.edge
    for k in range(begin, end):
        out.begin[k], out.inner[k], out.end[k], counts[k] = 0.0, 0.0, 0.0, 0.0
        for i in range(groups[k], groups[k + 1]):
            lo, hi = offsets[i], offsets[i + 1]
            own = edge if edge.shape[0] == 1 else edge[lo:hi]
            slopes[lo:hi] = 0.0
            status[i], entropies[i], slope[lo:hi] = OK, 0.0, 0.0
            if weights[i] == 0.0:
                continue
            x = chain(node[lo:hi], own, triples)
            if backward(x) == -np.inf:
                status[i] = INFEASIBLE
                continue
            entropies[i] = _entropy(x, weights[i], part(out, lo, hi, k), counts[k])
