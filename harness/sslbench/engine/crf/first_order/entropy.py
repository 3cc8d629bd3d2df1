"""Entropy of many chains and its derivative, in shifted probability space.

Forward-backward on dual numbers: all log-potentials are multiplied by 1 + eps, and every message
comes with its derivative at eps = 0 (`d` in front of its name).  With S the score of a label
sequence,

    d log Z = E[S],                H = log Z - d log Z,
    d xi_c  = Cov(1_c, S)          = the derivative of -H by the log-potential of factor c

(docs/specs/entropy_regularization.md, section 4; docs/specs/virtual_evidence.md, section 8).
Messages and guards are those of `scaled`: c_t scales position t.  kappa_t = dc_t / c_t centers the
derivatives, so that they stay of the size of one position's potentials, however long the sentence:

    H = sum_t (log c_t - kappa_t)

where the shifts max phi_t have canceled.  The derivatives of a position's marginals sum to 0; the
rounding error of that sum is taken out of the backward messages at every step.

Slopes are the derivatives of -H by the log-potentials, times the weight of the sentence; counts are
expected numbers of tokens of each label.
A sentence that `scaled` would do in log space is done by `log_space.additive_covariance` here.  All
outputs are sums in an order fixed by the sentences: the same bits for any number of threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import kernel, parallel_kernel
from sslbench.engine.crf.data import SentenceGroups
from sslbench.engine.crf.first_order import log_space
from sslbench.engine.crf.first_order.log_space import AdditiveScore
from sslbench.engine.crf.first_order.scaled import (
    INFEASIBLE,
    OK,
    REDO,
    TINY,
    is_safe,
    smallest_positive,
)
from sslbench.engine.crf.first_order.varying import prepare_varying
from sslbench.engine.crf.simd import dual_numbers as dual
from sslbench.engine.crf.simd import rows
from sslbench.engine.types import F64, I8


@kernel
def _log_space_sentence(
    node: F64, edge: F64, weight: float, node_slope: F64, edge_slope: F64, counts: F64
) -> tuple[int, float]:
    """Status and entropy by the reference recursions.

    edge_slope float64[1 or T, L, L] comes in as zeros; counts float64[L] is added to.
    """
    T, L = node.shape
    beta, z, mu = np.empty((T, L)), np.empty((T, L)), np.empty((T, L))
    if log_space.backward(node, edge, beta, z) == -np.inf:
        return INFEASIBLE, 0.0
    log_space.marginals(node, edge, beta, z, mu, np.empty((0, L, L)))
    node_slope[:] = 0.0
    score = AdditiveScore(np.empty((0, L)), np.empty((0, L, L)), True)
    mean = log_space.additive_covariance(node, edge, beta, z, score, node_slope, edge_slope)
    node_slope *= weight
    edge_slope *= weight
    rows.add_columns(mu, 1.0, counts)
    return OK, -mean


# -- one transition matrix for all positions -------------------------------------------------------
class _Transitions(NamedTuple):
    """One transition matrix w, shifted by its maximum.

    M: float64[4, L, P], padded: E = exp(w - max), dE = (w - max) E, and their transposes; span:
    largest less smallest finite w; zeros: some w are -inf.
    """

    M: F64
    span: float
    zeros: bool


@kernel
def _transitions(w: F64) -> _Transitions:
    """Return the shifted transitions of w float64[L, L]."""
    L = w.shape[0]
    P = (L + rows.WIDTH - 1) // rows.WIDTH * rows.WIDTH
    top, low, zeros = rows.bounds(w.copy().reshape(L * L))
    M = rows.aligned(4 * L, P).reshape(4, L, P)
    x, u = np.empty(P), np.empty(P)
    for a in range(L):
        dual.exp_row(w[a], top, x, u)
        for b in range(L):
            M[0, a, b] = M[2, b, a] = x[b]
            M[1, a, b] = M[3, b, a] = x[b] * u[b]
    return _Transitions(M, top - low, zeros)


@kernel
def _prepare_shared(node: F64, transitions: _Transitions, x: F64, u: F64) -> tuple[int, bool]:
    """u = node - max, x = exp(u) of every position; status, and whether there are -inf."""
    zeros = transitions.zeros
    for t in range(node.shape[0]):
        top, low, own_zeros = rows.bounds(node[t])
        if top == -np.inf:
            return INFEASIBLE, zeros
        zeros = zeros or own_zeros
        if not is_safe(top - low + (transitions.span if t > 0 else 0.0), zeros):
            return REDO, zeros
        dual.exp_row(node[t], top, x[t], u[t])
    return OK, zeros


@kernel
def _shared_forward(T: int, M: F64, zeros: bool, work: F64, kappa: F64) -> tuple[int, float, float]:
    """Fill in alpha, dalpha and kappa; status, entropy and the last 1 / c."""
    x, u, alpha, dalpha = work[0], work[1], work[2], work[3]
    entropy, inverse, shift, smallest = 0.0, 1.0, 0.0, 1.0
    alpha[0, :] = 1.0
    dalpha[0, :] = 0.0
    for t in range(T):
        if t > 0:
            dual.vector_matrix(alpha[t - 1], dalpha[t - 1], M[0], M[1], alpha[t], dalpha[t])
        c, dc = dual.forward_row(x[t], u[t], inverse, shift, alpha[t], dalpha[t])
        if c == 0.0:
            return REDO, 0.0, 0.0  # impossible or underflow: log space decides
        if zeros:
            smallest = min(smallest, smallest_positive(alpha[t]))
        inverse = 1.0 / c
        shift = dc * inverse
        kappa[t] = shift
        entropy += math.log(c) - shift
    return REDO if zeros and smallest < TINY else OK, entropy, inverse


class _Scratch(NamedTuple):
    """Arrays of one sentence, for up to T tokens, and sums over the sentences of a group.

    rows: float64[5, T, P], padded rows of x, u, alpha and dalpha, and one of beta and dbeta;
    kappa: float64[T].  edges: float64[2, L, P] adds up the factors of E and of dE in

        d(alpha_{t-1} E g_t) = (dalpha_{t-1} g_t + alpha_{t-1} dg_t) E + alpha_{t-1} g_t dE;

    counts: float64[L].
    """

    rows: F64
    kappa: F64
    edges: F64
    counts: F64


@kernel
def _scratch(T: int, L: int, P: int) -> _Scratch:
    """Return arrays for sentences of up to T tokens, at least two."""
    work, edges = rows.aligned(5 * T, P), rows.aligned(2 * L, P)
    return _Scratch(work.reshape(5, T, P), np.empty(T), edges.reshape(2, L, P), np.empty(L))


@kernel
def _shared_backward(
    M: F64, zeros: bool, scratch: _Scratch, inverse: float, weight: float, node_slope: F64
) -> int:
    """Fill in node_slope, add to counts; x and u become g and dg, the right factors of edges."""
    work, kappa, _, counts = scratch
    T = node_slope.shape[0]
    x, u, alpha, dalpha = work[0], work[1], work[2], work[3]
    beta, dbeta = work[4, 0], work[4, 1]
    beta[:] = inverse
    dbeta[:] = -kappa[T - 1] * inverse
    smallest = 1.0
    for t in range(T - 1, -1, -1):
        rest = dual.sum_of_slopes(alpha[t], dalpha[t], beta, dbeta)
        dual.marginal_row(alpha[t], dalpha[t], beta, dbeta, rest, weight, node_slope[t], counts)
        if t > 0:
            dual.backward_row(x[t], u[t], kappa[t - 1] + rest, beta, dbeta)
            dual.vector_matrix(x[t], u[t], M[2], M[3], beta, dbeta)
            if zeros:
                smallest = min(smallest, smallest_positive(beta))
    return REDO if zeros and smallest < TINY else OK


@kernel
def _shared_sentence(
    node: F64, transitions: _Transitions, scratch: _Scratch, weight: float, node_slope: F64
) -> tuple[int, float]:
    """Status and entropy of one sentence; its edges and counts are added to those of `scratch`."""
    work, kappa, edges, _ = scratch
    T, M = node.shape[0], transitions.M
    status, zeros = _prepare_shared(node, transitions, work[0], work[1])
    if status != OK:
        return status, 0.0
    status, entropy, inverse = _shared_forward(T, M, zeros, work, kappa)
    if status == OK:
        status = _shared_backward(M, zeros, scratch, inverse, weight, node_slope)
    if status == OK:
        g, dg, alpha, dalpha = work[0, 1:T], work[1, 1:T], work[2, : T - 1], work[3, : T - 1]
        rows.add_outer(dalpha, g, edges[0])
        rows.add_outer(alpha, dg, edges[0])
        rows.add_outer(alpha, g, edges[1])
    return status, entropy


class Slopes(NamedTuple):
    """What the sentences of a batch give; those of weight 0 have entropy and slopes 0.

    entropy: float64[s] in nats; node: float64[n, L]; edge: float64[G, L, L], sums over the
    positions of a group (`shared`), or float64[n, L, L], zero at first tokens (`varying`); counts:
    float64[G, L]; status: int8[s].
    """

    entropy: F64
    node: F64
    edge: F64
    counts: F64
    status: I8


def shared(node: F64, edge: F64, sentences: SentenceGroups, out: Slopes) -> None:
    """All sentences of a batch under one transition matrix.

    node float64[n, L]; edge float64[1, L, L].
    """
    _shared_groups(sentences, _transitions(edge[0]), node, edge, out)


@kernel
def _longest(sentences: SentenceGroups, g: int) -> int:
    """Return the number of tokens of the longest sentence of a group."""
    offsets, groups, _ = sentences
    longest = 0
    for i in range(groups[g], groups[g + 1]):
        longest = max(longest, offsets[i + 1] - offsets[i])
    return longest


@parallel_kernel(lambda sentences, *_: len(sentences.groups) - 1)
def _shared_groups(
    begin: int,
    end: int,
    sentences: SentenceGroups,
    transitions: _Transitions,
    node: F64,
    edge: F64,
    out: Slopes,
) -> None:
    (offsets, groups, weights), M = sentences, transitions.M
    entropy, node_slope, edge_slopes, counts, status = out
    L, P = node.shape[1], M.shape[2]
    for g in range(begin, end):
        scratch = _scratch(max(2, _longest(sentences, g)), L, P)
        edges, own = scratch.edges, scratch.counts
        counts[g], edge_slopes[g] = 0.0, 0.0
        for i in range(groups[g], groups[g + 1]):
            here, slope = node[offsets[i] : offsets[i + 1]], node_slope[offsets[i] : offsets[i + 1]]
            if weights[i] == 0.0:
                status[i], entropy[i], slope[:] = OK, 0.0, 0.0
                continue
            edges[:], own[:] = 0.0, 0.0
            s, entropy[i] = _shared_sentence(here, transitions, scratch, weights[i], slope)
            if s == REDO:
                slow, own[:] = np.zeros((1, L, L)), 0.0
                s, entropy[i] = _log_space_sentence(here, edge, weights[i], slope, slow, own)
                rows.add_scaled(slow[0], 1.0, edge_slopes[g])
            else:
                for a in range(L):
                    for b in range(L):
                        own_edge = edges[0, a, b] * M[0, a, b] + edges[1, a, b] * M[1, a, b]
                        edge_slopes[g, a, b] += weights[i] * own_edge
            rows.add_scaled(own, 1.0, counts[g])
            status[i] = s


# -- a transition matrix for every position --------------------------------------------------------
class _VaryingScratch(NamedTuple):
    """Arrays of one sentence.

    They are potentials float64[T, L, L] and their maxima, messages float64[T, L], and scale = 1 / c
    and kappa, float64[T].
    """

    score: F64
    top: F64
    alpha: F64
    dalpha: F64
    scale: F64
    kappa: F64


@kernel
def _varying_forward(node: F64, M: F64, scratch: _VaryingScratch, zeros: bool) -> tuple[int, float]:
    """M = exp(score - top), normalized alpha and dalpha, row by row; status and entropy."""
    score, top, alpha, dalpha, scale, kappa = scratch
    T, L = node.shape
    entropy, smallest = 0.0, 1.0
    for t in range(T):
        if top[t] == -np.inf:
            return INFEASIBLE, 0.0
        if t == 0:
            for b in range(L):
                u = max(node[0, b] - top[0], dual.FLOOR)
                alpha[0, b] = math.exp(u)
                dalpha[0, b] = alpha[0, b] * u
        else:
            dual.exp_product(
                score[t], top[t], alpha[t - 1], dalpha[t - 1], M[t], alpha[t], dalpha[t]
            )
        c = rows.total(alpha[t])
        if c == 0.0:
            return REDO, 0.0  # impossible or underflow: log space decides
        scale[t], kappa[t] = 1.0 / c, rows.total(dalpha[t]) / c
        for b in range(L):
            dalpha[t, b] = (dalpha[t, b] - kappa[t] * alpha[t, b]) * scale[t]
            alpha[t, b] *= scale[t]
        if zeros:
            smallest = min(smallest, smallest_positive(alpha[t]))
        entropy += math.log(c) - kappa[t]
    return REDO if zeros and smallest < TINY else OK, entropy


@kernel
def _varying_backward(
    M: F64, scratch: _VaryingScratch, zeros: bool, weight: float, node_slope: F64, counts: F64
) -> int:
    """Fill in node_slope, add to counts; M becomes the slopes of the edges (slice 0 is left)."""
    score, top, alpha, dalpha, scale, kappa = scratch
    T, L = node_slope.shape
    beta, dbeta, g, dg = np.ones(L), np.zeros(L), np.empty(L), np.empty(L)
    smallest = 1.0
    for t in range(T - 1, -1, -1):
        rest = dual.sum_of_slopes(alpha[t], dalpha[t], beta, dbeta)
        dual.marginal_row(alpha[t], dalpha[t], beta, dbeta, rest, weight, node_slope[t], counts)
        if t > 0:
            for b in range(L):
                g[b], dg[b] = beta[b] * scale[t], dbeta[b] * scale[t]
            v, dv, shift = alpha[t - 1], dalpha[t - 1], kappa[t] + rest
            dual.edge_slopes(score[t], top[t], shift, weight, v, dv, g, dg, M[t], beta, dbeta)
            if zeros:
                smallest = min(smallest, smallest_positive(beta))
    return REDO if zeros and smallest < TINY else OK


@kernel
def _varying_sentence(
    node: F64, edge: F64, score: F64, weight: float, node_slope: F64, counts: F64
) -> tuple[int, float]:
    """Status and entropy; edge becomes its slopes, score float64[>= T, L, L] is scratch."""
    T, L = node.shape
    top, own = np.empty(T), np.zeros(L)
    safe, zeros = prepare_varying(node, edge, top)
    rows.copy(edge, score[:T])
    status, entropy = REDO, 0.0
    if safe:
        messages = np.empty((2, T, L))
        scratch = _VaryingScratch(score, top, messages[0], messages[1], np.empty(T), np.empty(T))
        status, entropy = _varying_forward(node, edge, scratch, zeros)
        if status == OK:
            status = _varying_backward(edge, scratch, zeros, weight, node_slope, own)
    if status == REDO:
        first = np.zeros((T, L))  # `score` includes the node potentials of the other positions
        rows.copy(node[0], first[0])
        edge[:], own[:] = 0.0, 0.0
        status, entropy = _log_space_sentence(first, score[:T], weight, node_slope, edge, own)
    edge[0] = 0.0
    rows.add_scaled(own, 1.0, counts)
    return status, entropy


@parallel_kernel(lambda node, sentences, *_: len(sentences.groups) - 1)
def varying(begin: int, end: int, node: F64, sentences: SentenceGroups, out: Slopes) -> None:
    """All sentences of a batch with one transition matrix per position.

    node float64[n, L]; out.edge comes in as the potentials float64[n, L, L].
    """
    offsets, groups, weights = sentences
    entropy, node_slope, edge, counts, status = out
    L = node.shape[1]
    for g in range(begin, end):
        score = np.empty((_longest(sentences, g), L, L))
        counts[g] = 0.0
        for i in range(groups[g], groups[g + 1]):
            lo, hi = offsets[i], offsets[i + 1]
            if weights[i] == 0.0:
                status[i], entropy[i], node_slope[lo:hi], edge[lo:hi] = OK, 0.0, 0.0, 0.0
            else:
                status[i], entropy[i] = _varying_sentence(
                    node[lo:hi], edge[lo:hi], score, weights[i], node_slope[lo:hi], counts[g]
                )
