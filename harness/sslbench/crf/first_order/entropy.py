"""Entropy of many chains and its derivative, in shifted probability space.

Forward-backward on dual numbers: all log-potentials are multiplied by 1 + eps, and every message
carries its derivative at eps = 0 (`d` in front of its name) beside it.  With S the score of a label
sequence,

    d log Z = E[S],                H = log Z - d log Z,
    d xi_c  = Cov(1_c, S)          = the derivative of -H by the log-potential of clique c

(docs/specs/entropy_regularization.md, section 4; docs/specs/virtual_evidence.md, section 8).
Messages and guards are those of `scaled`: c_t scales position t.  kappa_t = dc_t / c_t centers the
derivatives, which so stay of the size of one position's potentials, however long the sentence:

    H = sum_t (log c_t - kappa_t)

where the shifts max phi_t have canceled.  The derivatives of a position's marginals sum to 0; what
rounding leaves of the sum is taken out of the backward messages at every step.

A sentence that `scaled` would do in log space is done by `chain.additive_covariance` here.  All
outputs are sums in an order fixed by the sentences: the same bits for any number of threads.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from sslbench.compiled import njit
from sslbench.crf.first_order import log_space as chain
from sslbench.crf.first_order.scaled import (
    INFEASIBLE,
    OK,
    REDO,
    TINY,
    _prepare_varying,
    _safe,
    smallest_positive,
)
from sslbench.crf.simd import dual_rows as dual
from sslbench.crf.simd import rows
from sslbench.types import F64, I8, I64


@njit(cache=True, nogil=True, error_model="numpy")
def _log_space_sentence(node, edge, weight, omega, arcs, mass):  # type: ignore[no-untyped-def]
    """The reference recursion; arcs float64[1 or T, L, L] comes in as zeros."""
    T, L = node.shape
    beta, z, mu = np.empty((T, L)), np.empty((T, L)), np.empty((T, L))
    if chain.backward(node, edge, beta, z) == -np.inf:
        return INFEASIBLE, 0.0
    chain.marginals(node, edge, beta, z, mu, np.empty((0, L, L)))
    omega[:] = 0.0
    mean = chain.additive_covariance(
        node, edge, beta, z, np.empty((0, L)), np.empty((0, L, L)), True, omega, arcs
    )
    omega *= weight
    arcs *= weight
    mass += mu.sum(axis=0)
    return OK, -mean


# -- one transition matrix for all positions -------------------------------------------------------
@njit(cache=True, nogil=True, error_model="numpy")
def _matrices(w, top, P):  # type: ignore[no-untyped-def]
    """E = exp(w - top), dE = (w - top) E, and their transposes: float64[4, L, P], padded."""
    L = w.shape[0]
    M = rows.aligned(4 * L, P).reshape(4, L, P)
    x, u = np.empty(P), np.empty(P)
    for a in range(L):
        dual.exp_row(w[a], top, x, u)
        for b in range(L):
            M[0, a, b] = M[2, b, a] = x[b]
            M[1, a, b] = M[3, b, a] = x[b] * u[b]
    return M


@njit(cache=True, nogil=True, error_model="numpy")
def _prepare_shared(node, e_span, e_zeros, x, u):  # type: ignore[no-untyped-def]
    """u = node - max, x = exp(u) of every position; status, and whether there are -inf."""
    zeros = e_zeros
    for t in range(node.shape[0]):
        top, low, holes = rows.bounds(node[t])
        if top == -np.inf:
            return INFEASIBLE, zeros
        zeros = zeros or holes
        if not _safe(top - low + (e_span if t > 0 else 0.0), zeros):
            return REDO, zeros
        dual.exp_row(node[t], top, x[t], u[t])
    return OK, zeros


@njit(cache=True, nogil=True, error_model="numpy")
def _shared_forward(T, M, zeros, work, kappa):  # type: ignore[no-untyped-def]
    """alpha, dalpha (rows 2 and 3 of work) and kappa; status, entropy and the last 1 / c."""
    x, u, alpha, dalpha = work[0], work[1], work[2], work[3]
    entropy, inverse, shift, smallest = 0.0, 1.0, 0.0, 1.0
    alpha[0, :] = 1.0
    dalpha[0, :] = 0.0
    for t in range(T):
        if t > 0:
            dual.vector_matrix(alpha[t - 1], dalpha[t - 1], M[0], M[1], alpha[t], dalpha[t])
        c, dc = dual.forward_row(x[t], u[t], inverse, shift, alpha[t], dalpha[t])
        if c == 0.0:
            return REDO, 0.0, 0.0  # impossible or underflow: log space tells
        if zeros:
            smallest = min(smallest, smallest_positive(alpha[t]))
        inverse = 1.0 / c
        shift = dc * inverse
        kappa[t] = shift
        entropy += math.log(c) - shift
    return REDO if zeros and smallest < TINY else OK, entropy, inverse


@njit(cache=True, nogil=True, error_model="numpy")
def _shared_backward(M, zeros, work, kappa, inverse, weight, omega, mass):  # type: ignore[no-untyped-def]
    """omega of the labels; x and u of work become the right-hand factors of the arcs."""
    T = omega.shape[0]
    x, u, alpha, dalpha = work[0], work[1], work[2], work[3]
    beta, dbeta = work[4, 0], work[4, 1]
    beta[:] = inverse
    dbeta[:] = -kappa[T - 1] * inverse
    smallest = 1.0
    for t in range(T - 1, -1, -1):
        rest = dual.sum_of_slopes(alpha[t], dalpha[t], beta, dbeta)
        dual.marginal_row(alpha[t], dalpha[t], beta, dbeta, rest, weight, omega[t], mass)
        if t > 0:
            dual.backward_row(x[t], u[t], kappa[t - 1] + rest, beta, dbeta)
            dual.vector_matrix(x[t], u[t], M[2], M[3], beta, dbeta)
            if zeros:
                smallest = min(smallest, smallest_positive(beta))
    return REDO if zeros and smallest < TINY else OK


@njit(cache=True, nogil=True, error_model="numpy")
def _shared_sentence(  # type: ignore[no-untyped-def]
    node, M, e_span, e_zeros, work, kappa, weight, omega, arcs, mass
):
    """One sentence: status and entropy.

    M as from `_matrices`; work float64[5, >= T and 2, P] and kappa float64[>= T] are scratch;
    arcs float64[2, L, P] adds up the factors of E and of dE in

        d(alpha_{t-1} E g_t) = (dalpha_{t-1} g_t + alpha_{t-1} dg_t) E + alpha_{t-1} g_t dE.
    """
    T = node.shape[0]
    status, zeros = _prepare_shared(node, e_span, e_zeros, work[0], work[1])
    if status != OK:
        return status, 0.0
    status, entropy, inverse = _shared_forward(T, M, zeros, work, kappa)
    if status == OK:
        status = _shared_backward(M, zeros, work, kappa, inverse, weight, omega, mass)
    if status == OK:
        g, dg, alpha, dalpha = work[0, 1:T], work[1, 1:T], work[2, : T - 1], work[3, : T - 1]
        rows.add_outer(dalpha, g, arcs[0])
        rows.add_outer(alpha, dg, arcs[0])
        rows.add_outer(alpha, g, arcs[1])
    return status, entropy


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def shared(
    node: F64,
    edge: F64,
    offsets: I64,
    groups: I64,
    weight: F64,
    entropy: F64,
    omega: F64,
    pair: F64,
    mass: F64,
    status: I8,
) -> None:
    """All sentences of a block with one transition matrix.

    node float64[n, L]; edge float64[1, L, L]; offsets int64[s+1] of the sentences; groups
    int64[G+1] sentence ranges handled by one thread at a time; weight float64[s], 0 = left out.
    Out: entropy float64[s] in nats; omega float64[n, L] and pair float64[G, L, L] (summed over the
    group's positions), weight times the derivatives of -H; mass float64[G, L] expected numbers of
    tokens of each label; status int8[s].
    """
    L = node.shape[1]
    P = (L + rows.WIDTH - 1) // rows.WIDTH * rows.WIDTH
    top, low, zeros = rows.bounds(edge[0].copy().reshape(L * L))
    M = _matrices(edge[0], top, P)
    for g in prange(groups.shape[0] - 1):
        longest = 2
        for i in range(groups[g], groups[g + 1]):
            longest = max(longest, offsets[i + 1] - offsets[i])
        work, kappa = rows.aligned(5 * longest, P).reshape(5, longest, P), np.empty(longest)
        arcs, own = rows.aligned(2 * L, P).reshape(2, L, P), np.empty(L)
        mass[g], pair[g] = 0.0, 0.0
        for i in range(groups[g], groups[g + 1]):
            here, out = node[offsets[i] : offsets[i + 1]], omega[offsets[i] : offsets[i + 1]]
            if weight[i] == 0.0:
                status[i], entropy[i], out[:] = OK, 0.0, 0.0
                continue
            arcs[:], own[:] = 0.0, 0.0
            s, entropy[i] = _shared_sentence(
                here, M, top - low, zeros, work, kappa, weight[i], out, arcs, own
            )
            if s == REDO:
                slow, own[:] = np.zeros((1, L, L)), 0.0
                s, entropy[i] = _log_space_sentence(here, edge, weight[i], out, slow, own)
                pair[g] += slow[0]
            else:
                for a in range(L):
                    for b in range(L):
                        slope = arcs[0, a, b] * M[0, a, b] + arcs[1, a, b] * M[1, a, b]
                        pair[g, a, b] += weight[i] * slope
            mass[g] += own
            status[i] = s


# -- a transition matrix for every position --------------------------------------------------------
@njit(cache=True, nogil=True, error_model="numpy")
def _varying_forward(node, score, M, top, alpha, dalpha, scale, kappa, zeros):  # type: ignore[no-untyped-def]
    """M = exp(score - top) and normalized alpha, d alpha, row by row; status and entropy."""
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
            return REDO, 0.0  # impossible or underflow: log space tells
        scale[t], kappa[t] = 1.0 / c, rows.total(dalpha[t]) / c
        for b in range(L):
            dalpha[t, b] = (dalpha[t, b] - kappa[t] * alpha[t, b]) * scale[t]
            alpha[t, b] *= scale[t]
        if zeros:
            smallest = min(smallest, smallest_positive(alpha[t]))
        entropy += math.log(c) - kappa[t]
    return REDO if zeros and smallest < TINY else OK, entropy


@njit(cache=True, nogil=True, error_model="numpy")
def _varying_backward(  # type: ignore[no-untyped-def]
    score, M, top, alpha, dalpha, scale, kappa, zeros, weight, omega, mass
):
    """omega of the labels; M becomes omega of the arcs (slice 0 is left alone)."""
    T, L = omega.shape
    beta, dbeta, g, dg = np.ones(L), np.zeros(L), np.empty(L), np.empty(L)
    smallest = 1.0
    for t in range(T - 1, -1, -1):
        rest = dual.sum_of_slopes(alpha[t], dalpha[t], beta, dbeta)
        dual.marginal_row(alpha[t], dalpha[t], beta, dbeta, rest, weight, omega[t], mass)
        if t > 0:
            for b in range(L):
                g[b], dg[b] = beta[b] * scale[t], dbeta[b] * scale[t]
            dual.arc_slopes(
                score[t],
                top[t],
                kappa[t] + rest,
                weight,
                alpha[t - 1],
                dalpha[t - 1],
                g,
                dg,
                M[t],
                beta,
                dbeta,
            )
            if zeros:
                smallest = min(smallest, smallest_positive(beta))
    return REDO if zeros and smallest < TINY else OK


@njit(cache=True, nogil=True, error_model="numpy")
def _varying_sentence(node, edge, score, weight, omega, mass):  # type: ignore[no-untyped-def]
    """Status and entropy; edge becomes omega, score float64[>= T, L, L] is scratch."""
    T, L = node.shape
    top, kappa, scale = np.empty(T), np.empty(T), np.empty(T)
    alpha, dalpha, own = np.empty((T, L)), np.empty((T, L)), np.zeros(L)
    safe, zeros = _prepare_varying(node, edge, top)
    score[:T] = edge
    status, entropy = REDO, 0.0
    if safe:
        status, entropy = _varying_forward(
            node, score, edge, top, alpha, dalpha, scale, kappa, zeros
        )
        if status == OK:
            status = _varying_backward(
                score, edge, top, alpha, dalpha, scale, kappa, zeros, weight, omega, own
            )
    if status == REDO:
        first = np.zeros((T, L))  # the other positions' node scores are inside `score` already
        first[0] = node[0]
        edge[:], own[:] = 0.0, 0.0
        status, entropy = _log_space_sentence(first, score[:T], weight, omega, edge, own)
    edge[0] = 0.0
    mass += own
    return status, entropy


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def varying(
    node: F64,
    edge: F64,
    offsets: I64,
    groups: I64,
    weight: F64,
    entropy: F64,
    omega: F64,
    mass: F64,
    status: I8,
) -> None:
    """All sentences of a block with one transition matrix per position.

    As `shared`, but edge is float64[n, L, L] and is replaced by the arcs' omega (zero at the first
    token of each sentence).
    """
    L = node.shape[1]
    for g in prange(groups.shape[0] - 1):
        longest = 0
        for i in range(groups[g], groups[g + 1]):
            longest = max(longest, offsets[i + 1] - offsets[i])
        score = np.empty((longest, L, L))
        mass[g] = 0.0
        for i in range(groups[g], groups[g + 1]):
            lo, hi = offsets[i], offsets[i + 1]
            if weight[i] == 0.0:
                status[i], entropy[i], omega[lo:hi], edge[lo:hi] = OK, 0.0, 0.0, 0.0
            else:
                status[i], entropy[i] = _varying_sentence(
                    node[lo:hi], edge[lo:hi], score, weight[i], omega[lo:hi], mass[g]
                )


# -- the nested dynamic program, for comparison --------------------------------------------------
@njit(cache=True, nogil=True, error_model="numpy")
def _conditionals(node, edge, beta, z):  # type: ignore[no-untyped-def]
    """q float64[T, L, L] local conditionals and xi, the arcs' probabilities.

    At the first position all arcs come from label 0, which stands for START.
    """
    T, L = node.shape
    q, xi, mu = np.empty((T, L, L)), np.zeros((T, L, L)), np.zeros(L)
    for t in range(T):
        chain.log_conditional(node, edge, beta, z, t, q[t])
        q[t] = np.exp(q[t])
        if t == 0:
            xi[0, 0] = q[0, 0]
        else:
            for a in range(L):
                xi[t, a] = mu[a] * q[t, a]
        mu = xi[t].sum(axis=0)
    return q, xi


@njit(cache=True, nogil=True, error_model="numpy")
def _scores(node, edge, xi):  # type: ignore[no-untyped-def]
    """Potentials of the arcs float64[T, L, L], 0 where the arc is impossible."""
    T, L = node.shape
    score = np.zeros((T, L, L))
    for t in range(T):
        w = edge[t if edge.shape[0] > 1 else 0]
        for a in range(L):
            for b in range(L):
                if xi[t, a, b] > 0.0:
                    score[t, a, b] = node[t, b] + (w[a, b] if t > 0 else 0.0)
    return score


@njit(cache=True, nogil=True, error_model="numpy")
def _product(A, B):  # type: ignore[no-untyped-def]
    """A B, summed in the order of the rows of B."""
    out = np.zeros((A.shape[0], B.shape[1]))
    for a in range(A.shape[0]):
        for b in range(B.shape[0]):
            for c in range(B.shape[1]):
                out[a, c] += A[a, b] * B[b, c]
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _nested_sentence(node, edge, weight, omega, arcs, mass):  # type: ignore[no-untyped-def]
    """Cov(1_c, S) as the sum over all pairs of positions p <= q of the joint probabilities

        P(arc (a, b) at p, arc (c, d) at q) = xi_p(a, b) [prod_{p < l < q} q_l](b, c) q_q(d | c),

    with their scores on either side, less xi_c E[S]: O(T^2 L^3) (Jiao et al. 2006, section 4;
    docs/specs/entropy_regularization.md, section 5.1).  Status and entropy log Z - E[S].
    """
    T, L = node.shape
    beta, z = np.empty((T, L)), np.empty((T, L))
    log_z = chain.backward(node, edge, beta, z)
    if log_z == -np.inf:
        return INFEASIBLE, 0.0
    q, xi = _conditionals(node, edge, beta, z)
    score = _scores(node, edge, xi)
    joint = xi * score
    mean = joint.sum()
    for p in range(T):
        between, before = np.eye(L), (xi[p] * score[p]).sum(axis=0).reshape(1, L)
        for r in range(p + 1, T):
            after = _product(between, (q[r] * score[r]).sum(axis=1).reshape(L, 1))
            joint[p] += xi[p] * after[:, 0]
            joint[r] += _product(before, between).reshape(L, 1) * q[r]
            between = _product(between, q[r])
    joint -= xi * mean
    for t in range(T):
        omega[t] = weight * joint[t].sum(axis=0)
        mass += xi[t].sum(axis=0)
        if t > 0:
            arcs[t if arcs.shape[0] > 1 else 0] += weight * joint[t]
    return OK, log_z - mean


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def nested(
    node: F64,
    edge: F64,
    offsets: I64,
    weight: F64,
    entropy: F64,
    omega: F64,
    arcs: F64,
    mass: F64,
    status: I8,
) -> None:
    """As `shared` and `varying`, by the nested dynamic program; edge is left alone.

    arcs float64[s, L, L] or float64[n, L, L] and mass float64[s, L] come in as zeros.
    """
    for i in prange(offsets.shape[0] - 1):
        lo, hi = offsets[i], offsets[i + 1]
        own = edge if edge.shape[0] == 1 else edge[lo:hi]
        out = arcs[i : i + 1] if edge.shape[0] == 1 else arcs[lo:hi]
        if weight[i] == 0.0:
            status[i], entropy[i], omega[lo:hi] = OK, 0.0, 0.0
        else:
            status[i], entropy[i] = _nested_sentence(
                node[lo:hi], own, weight[i], omega[lo:hi], out, mass[i]
            )
