"""Kernels of symbol tables: table rows to potentials, posteriors to counts.

A token reads one row per slot (`sslbench.features.SymbolRows`).  State rows have L entries, arc
rows (L+1) L, previous label major, the last L of them for START.  Rows are float32 logarithms (an
error of 1e-6 in a log-probability is harmless and halves the traffic), all sums float64.

Counting is parallel over tables: each is written by one thread, in token order.  So counts have the
same bits for any number of threads, without copies of the tables.
"""

from __future__ import annotations

import numpy as np

from sslbench.compiled import chunks, kernel, parallel_kernel
from sslbench.crf.simd import rows
from sslbench.types import F64, I32, I64, AnyArray, Bool

CHUNK = 64  # tokens of a task


@parallel_kernel(lambda *arguments: chunks(len(arguments[-1]), CHUNK))
def add_state_scores(
    begin: int,
    end: int,
    found: I32,
    owner: I32,
    weights: F64,
    table: AnyArray,
    lo: int,
    node: F64,
) -> None:
    """node[n] += weight of the table * its log row, over the state slots.

    found int32[N, S] rows, -1 = none; owner int32[S] table of the slot; table float32[R, L];
    node float64[n, L] of the tokens lo, lo + 1, ...
    """
    N, L = node.shape
    flat = node.reshape(N * L)
    row, factor = np.empty(owner.shape[0], np.int64), np.empty(owner.shape[0])
    for n in range(begin * CHUNK, min(N, end * CHUNK)):
        count = _pick(found[lo + n], owner, weights, row, factor)
        rows.add_weighted_rows(row, factor, count, table, 0, L, flat, n * L)


@parallel_kernel(lambda *arguments: chunks(len(arguments[-1]), CHUNK))
def add_arc_scores(
    begin: int,
    end: int,
    found: I32,
    owner: I32,
    weights: F64,
    table: AnyArray,
    lo: int,
    first: Bool,
    chain: F64,
    node: F64,
    edge: F64,
) -> None:
    """The same for arc slots, and the transitions that all tables share.

    table float32[R, (L+1) L]; chain float64[(L+1) L]: sum over tables of weight * log a.
    At the first token of a sentence START rows go to node float64[n, L], elsewhere the rest goes
    to edge float64[n, L, L].
    """
    N, L = node.shape
    K = L * L
    nodes, edges = node.reshape(N * L), edge.reshape(N * K)
    row, factor = np.empty(owner.shape[0], np.int64), np.empty(owner.shape[0])
    for n in range(begin * CHUNK, min(N, end * CHUNK)):
        count = _pick(found[lo + n], owner, weights, row, factor)
        if first[n]:
            for b in range(L):
                node[n, b] += chain[K + b]
            rows.add_weighted_rows(row, factor, count, table, K, L, nodes, n * L)
        else:
            for k in range(K):
                edges[n * K + k] += chain[k]
            rows.add_weighted_rows(row, factor, count, table, 0, K, edges, n * K)


@kernel
def _pick(found: I32, owner: I32, weights: F64, row: I64, factor: F64) -> int:
    """The rows that count at a token, with the weights of their tables; how many."""
    count = 0
    for s in range(found.shape[0]):
        f = weights[owner[s]]
        if f != 0.0 and found[s] >= 0:
            row[count], factor[count] = found[s], f
            count += 1
    return count


@parallel_kernel(lambda *arguments: len(arguments[-1]))
def state_expectation(
    begin: int, end: int, found: I32, table: AnyArray, lo: int, node: F64, out: F64
) -> None:
    """out[chunk, s] = sum over the chunk's tokens of omega . log row (float64[chunks, S])."""
    N, L = node.shape
    flat = node.reshape(N * L)
    for c in range(begin, end):
        out[c] = 0.0
        for n in range(c * CHUNK, min(N, (c + 1) * CHUNK)):
            for s in range(found.shape[1]):
                r = np.int64(found[lo + n, s])
                if r >= 0:
                    out[c, s] += rows.inner(flat, n * L, table, r * L, L)


@parallel_kernel(lambda *arguments: len(arguments[-1]))
def arc_expectation(
    begin: int,
    end: int,
    found: I32,
    table: AnyArray,
    lo: int,
    first: Bool,
    node: F64,
    edge: F64,
    out: F64,
) -> None:
    """As `state_expectation` for arc rows; START rows meet node at first tokens."""
    N, L = node.shape
    K = L * L
    nodes, edges = node.reshape(N * L), edge.reshape(N * K)
    for c in range(begin, end):
        out[c] = 0.0
        for n in range(c * CHUNK, min(N, (c + 1) * CHUNK)):
            for s in range(found.shape[1]):
                r = np.int64(found[lo + n, s]) * (K + L)
                if r < 0:
                    continue
                if first[n]:
                    out[c, s] += rows.inner(nodes, n * L, table, r + K, L)
                else:
                    out[c, s] += rows.inner(edges, n * K, table, r, K)


@parallel_kernel(lambda found, shares, *_: len(shares) - 1)
def count_states(
    begin: int, end: int, found: I32, shares: I32, lo: int, node: F64, counts: F64
) -> None:
    """counts[row] += mu: float64[R, L].  shares int32[T + 1]: slots that one thread counts."""
    N, L = node.shape
    flat = node.reshape(N * L)
    row = np.empty(found.shape[1], np.int64)
    for g in range(begin, end):
        for n in range(N):
            count = _present(found[lo + n], shares[g], shares[g + 1], row)
            rows.add_to_rows(row, 0, count, flat, n * L, counts, 0, L)


@parallel_kernel(lambda found, shares, *_: len(shares) - 1)
def count_arcs(
    begin: int,
    end: int,
    found: I32,
    shares: I32,
    lo: int,
    first: Bool,
    node: F64,
    edge: F64,
    counts: F64,
) -> None:
    """counts[row] += xi (or mu from START at first tokens): float64[R, (L+1) L]."""
    N, L = node.shape
    K = L * L
    nodes, edges = node.reshape(N * L), edge.reshape(N * K)
    row = np.empty(found.shape[1], np.int64)
    for g in range(begin, end):
        for n in range(N):
            count = _present(found[lo + n], shares[g], shares[g + 1], row)
            if first[n]:
                rows.add_to_rows(row, 0, count, nodes, n * L, counts, K, L)
            else:
                rows.add_to_rows(row, 0, count, edges, n * K, counts, 0, K)


@kernel
def _present(found: I32, begin: int, end: int, row: I64) -> int:
    """The rows of some slots at a token; how many."""
    count = 0
    for s in range(begin, end):
        if found[s] >= 0:
            row[count] = found[s]
            count += 1
    return count
