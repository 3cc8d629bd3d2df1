"""Kernels of the embedded models of JESS-CM: table rows to potentials, posteriors to counts.

A token reads one row per model slot: ``row = start[s] + code + unknown``, ``code`` being the symbol
of the slot's stream at the slot's window offset and ``unknown`` 1 if row ``start[s]`` is <UNK>, 0
if unknown symbols say nothing about the label.  State rows have L entries, arc rows (L+1) L,
previous label major, the last L of them for START.  Rows are float32 logarithms (an error of 1e-6
in a log-probability is harmless and halves the traffic), all sums float64.

Counting is parallel over models: each table is written by one thread, in token order.  So
counts have the same bits for any number of threads, without copies of the tables.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from sslbench.types import F64, I8, I32, I64, AnyArray, Bool

CHUNK = 64  # tokens per parallel task


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def slot_rows(codes: I32, position: I64, inside: I32, stream: I32, offset: I32, bag: I8,
              start: I64, unknown: int, rows: I32) -> None:  # fmt: skip
    """Table row of every slot at every token; -1 where there is none: outside the sentence (bags),
    or an unknown symbol without <UNK>.

    codes int32[P, padded]; position int64[n] padded position of the tokens; inside int32[n, 2]
    tokens to the left and to the right within the sentence; rows int32[S, n] out.
    """
    for s in prange(stream.shape[0]):
        row, o = codes[stream[s]], offset[s]
        for n in range(position.shape[0]):
            if bag[s] and (o < -inside[n, 0] or o > inside[n, 1]):
                rows[s, n] = -1
                continue
            code = row[position[n] + o] + unknown
            rows[s, n] = start[s] + code if code >= 0 else -1


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def add_state_scores(rows: I32, owner: I32, weights: F64, table: AnyArray, node: F64) -> None:
    """node[n] += weight of the model * its log row, over the state slots.

    rows int32[S, n]; owner int32[S] model of the slot; table float32[R, L]; node float64[n, L].
    """
    N, L = node.shape
    for c in prange((N + CHUNK - 1) // CHUNK):
        for n in range(c * CHUNK, min(N, (c + 1) * CHUNK)):
            for s in range(rows.shape[0]):
                f, r = weights[owner[s]], rows[s, n]
                if f != 0.0 and r >= 0:
                    for b in range(L):
                        node[n, b] += f * table[r, b]


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def add_arc_scores(rows: I32, owner: I32, weights: F64, table: AnyArray, first: Bool,
                   chain: F64, node: F64, edge: F64) -> None:  # fmt: skip
    """The same for arc slots, and the transitions that all models share.

    table float32[R, (L+1) L]; chain float64[(L+1) L]: sum over models of weight * log a.
    At the first token of a sentence START rows go to node float64[n, L], elsewhere the rest goes
    to edge float64[n, L, L].
    """
    N, L = node.shape
    K = L * L
    for c in prange((N + CHUNK - 1) // CHUNK):
        for n in range(c * CHUNK, min(N, (c + 1) * CHUNK)):
            if first[n]:
                for b in range(L):
                    node[n, b] += chain[K + b]
                for s in range(rows.shape[0]):
                    f, r = weights[owner[s]], rows[s, n]
                    if f != 0.0 and r >= 0:
                        for b in range(L):
                            node[n, b] += f * table[r, K + b]
                continue
            out = edge[n].reshape(K)
            for k in range(K):
                out[k] += chain[k]
            _add_rows(rows[:, n], owner, weights, table, K, out)


@njit(cache=True, nogil=True, error_model="numpy")
def _add_rows(rows, owner, weights, table, K, out):  # type: ignore[no-untyped-def]
    """out += sum of weighted rows, two at a time so that `out` passes through half as often."""
    pending, f0 = np.int64(-1), 0.0
    for s in range(rows.shape[0]):
        f, r = weights[owner[s]], rows[s]
        if f == 0.0 or r < 0:
            continue
        if pending < 0:
            pending, f0 = r, f
            continue
        first, second = table[pending], table[r]
        for k in range(K):
            out[k] += f0 * first[k] + f * second[k]
        pending = np.int64(-1)
    if pending >= 0:
        first = table[pending]
        for k in range(K):
            out[k] += f0 * first[k]


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def state_expectation(rows: I32, table: AnyArray, node: F64, out: F64) -> None:
    """out[chunk, s] = sum over the chunk's tokens of omega . log row (float64[chunks, S]).

    Products are added up element by element and summed once per chunk: a running inner product
    would neither vectorise nor pipeline.
    """
    N, L = node.shape
    S = rows.shape[0]
    for c in prange(out.shape[0]):
        sums = np.zeros((S, L))
        for n in range(c * CHUNK, min(N, (c + 1) * CHUNK)):
            for s in range(S):
                r = rows[s, n]
                if r >= 0:
                    for b in range(L):
                        sums[s, b] += node[n, b] * table[r, b]
        for s in range(S):
            out[c, s] = sums[s].sum()


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def arc_expectation(rows: I32, table: AnyArray, first: Bool, node: F64, edge: F64,
                    out: F64) -> None:  # fmt: skip
    """As `state_expectation` for arc rows; START rows meet node at first tokens."""
    N, L = node.shape
    K = L * L
    S = rows.shape[0]
    for c in prange(out.shape[0]):
        sums = np.zeros((S, K))
        for n in range(c * CHUNK, min(N, (c + 1) * CHUNK)):
            omega = edge[n].reshape(K)
            for s in range(S):
                r = rows[s, n]
                if r < 0:
                    continue
                total = sums[s]
                if first[n]:
                    for b in range(L):
                        total[b] += node[n, b] * table[r, K + b]
                else:
                    for k in range(K):
                        total[k] += omega[k] * table[r, k]
        for s in range(S):
            out[c, s] = sums[s].sum()


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def count_states(rows: I32, groups: I32, node: F64, counts: F64) -> None:
    """counts[row] += mu: float64[R, L].  groups int32[G, 2]: slots of one model, one thread."""
    N, L = node.shape
    for g in prange(groups.shape[0]):
        for s in range(groups[g, 0], groups[g, 1]):
            for n in range(N):
                r = rows[s, n]
                if r >= 0:
                    for b in range(L):
                        counts[r, b] += node[n, b]


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def count_arcs(rows: I32, groups: I32, first: Bool, node: F64, edge: F64,
               counts: F64) -> None:  # fmt: skip
    """counts[row] += xi (or mu from START at first tokens): float64[R, (L+1) L]."""
    N, L = node.shape
    K = L * L
    for g in prange(groups.shape[0]):
        for s in range(groups[g, 0], groups[g, 1]):
            for n in range(N):
                r = rows[s, n]
                if r < 0:
                    continue
                row = counts[r]
                if first[n]:
                    for b in range(L):
                        row[K + b] += node[n, b]
                else:
                    xi = edge[n].reshape(K)
                    for k in range(K):
                        row[k] += xi[k]
