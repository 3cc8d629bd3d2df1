"""Brown clustering: the merge that loses least mutual information, again and again.

Let n(a, b) be how often a word of cluster b follows one of a, l and r its row and column sums, and
f(x) = x log x. The average mutual information of a bigram's clusters is, times the number N of
bigrams, sum f(n(a, b)) - sum f(l(a)) - sum f(r(b)) + f(N). With g(x, y) = f(x + y) - f(x) - f(y),
which is 0 if x or y is, a merge of a and b loses

    g(l(a), l(b)) + g(r(a), r(b)) - G(a, b) - S(a, b)
    G(a, b) = sum over other clusters c of g(n(a, c), n(b, c)) + g(n(c, a), n(c, b))
    S(a, b) = f(n(a, a) + n(a, b) + n(b, a) + n(b, b)) - f of each of the four

(`State.gain` is G, `State.loss` the loss). A merge and a new word change G only where clusters
stand beside the one that moves: a step takes O(C^2) at most and O(C d) for d such clusters
(docs/specs/cited_systems.md, section 3). Counts are integers, so only G gathers rounding errors; a
loss that differs from the least one by less than `TIE` of the greatest term counts as equal, and
the pair with the lowest numbers is merged.
"""
# mypy: disallow-untyped-decorators=False, disable-error-code="no-any-return"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import inline_kernel, kernel
from sslbench.engine.types import F64, I32, I64, Bool

TIE = 1e-12
TABLE = 1 << 16


class State(NamedTuple):
    """Clusters in slots 0 .. C, of which one may be empty.

    n: int64[C + 1, C + 1]; left, right: int64[C + 1], its row and column sums. gain, loss: as
    above, symmetric; the loss of pairs that are none is infinite. used: bool[C + 1]. cluster:
    int32[V], the slot of each word or -1. logs: float64[TABLE], f of small integers.
    """

    n: I64
    left: I64
    right: I64
    gain: F64
    loss: F64
    used: Bool
    cluster: I32
    logs: F64


class Bigrams(NamedTuple):
    """Successors and predecessors of each word: rows of sparse matrices, int64."""

    next_start: I64
    next_word: I64
    next_count: I64
    last_start: I64
    last_word: I64
    last_count: I64


def empty_state(n_words: int, clusters: int) -> State:
    """No clusters yet."""
    size = clusters + 1
    logs = np.arange(TABLE, dtype=np.float64)
    logs[1:] *= np.log(logs[1:])
    return State(
        np.zeros((size, size), np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros((size, size)),
        np.full((size, size), np.inf),
        np.zeros(size, np.bool_),
        np.full(n_words, -1, np.int32),
        logs,
    )


@inline_kernel
def _f(x: int, logs: F64) -> float:
    return logs[x] if x < TABLE else x * np.log(float(x))


@kernel
def _g(x: int, y: int, logs: F64) -> float:
    if x == 0 or y == 0:
        return 0.0
    return _f(x + y, logs) - _f(x, logs) - _f(y, logs)


@kernel
def _renew_losses(a: int, s: State) -> None:
    """Return the losses of all pairs with cluster a."""
    n, logs = s.n, s.logs
    for b in range(len(s.used)):
        if not s.used[b] or b == a:
            continue
        four = n[a, a] + n[a, b] + n[b, a] + n[b, b]
        inner = _f(n[a, a], logs) + _f(n[a, b], logs) + _f(n[b, a], logs) + _f(n[b, b], logs)
        loss = _g(s.left[a], s.left[b], logs) + _g(s.right[a], s.right[b], logs)
        loss += inner - _f(four, logs) - s.gain[a, b]
        s.loss[a, b] = s.loss[b, a] = loss


@kernel
def _beside(i: int, j: int, s: State) -> I64:
    """Return the clusters other than i and j that occur next to i, ascending."""
    near = np.empty(len(s.used), np.int64)
    count = 0
    for c in range(len(s.used)):
        if c != i and c != j and s.used[c] and (s.n[i, c] > 0 or s.n[c, i] > 0):
            near[count] = c
            count += 1
    return near[:count]


@kernel
def add_word(word: int, slot: int, bigrams: Bigrams, s: State) -> None:
    """Make a word a cluster, in an empty slot."""
    n, gain, logs = s.n, s.gain, s.logs
    s.cluster[word], s.used[slot] = slot, True
    for e in range(bigrams.next_start[word], bigrams.next_start[word + 1]):
        other = s.cluster[bigrams.next_word[e]]
        if other >= 0:
            n[slot, other] += bigrams.next_count[e]
    for e in range(bigrams.last_start[word], bigrams.last_start[word + 1]):
        other = s.cluster[bigrams.last_word[e]]
        if other >= 0 and other != slot:
            n[other, slot] += bigrams.last_count[e]
    near = _beside(slot, slot, s)
    s.left[slot] = s.right[slot] = n[slot, slot]
    gain[slot, :] = 0.0
    gain[:, slot] = 0.0
    for c in near:
        s.left[slot] += n[slot, c]
        s.right[slot] += n[c, slot]
        s.left[c] += n[c, slot]
        s.right[c] += n[slot, c]
    for a in near:
        for b in near:
            if a != b:
                gain[a, b] += _g(n[a, slot], n[b, slot], logs) + _g(n[slot, a], n[slot, b], logs)
    for a in range(len(s.used)):
        if s.used[a] and a != slot:
            total = 0.0
            for c in near:
                if c != a:
                    total += _g(n[slot, c], n[a, c], logs) + _g(n[c, slot], n[c, a], logs)
            gain[slot, a] = gain[a, slot] = total
    for a in near:
        _renew_losses(a, s)
    _renew_losses(slot, s)


@kernel
def _gains_of_others(i: int, j: int, near: I64, s: State) -> None:
    """Return what the merge of i into j changes in G of pairs of other clusters."""
    n, logs, is_near = s.n, s.logs, np.zeros(len(s.used), np.bool_)
    for a in near:
        is_near[a] = True
    for a in near:
        for b in range(len(s.used)):
            if not s.used[b] or b in (i, j, a) or (is_near[b] and b < a):
                continue
            change = _g(n[a, i] + n[a, j], n[b, i] + n[b, j], logs)
            change -= _g(n[a, i], n[b, i], logs) + _g(n[a, j], n[b, j], logs)
            change += _g(n[i, a] + n[j, a], n[i, b] + n[j, b], logs)
            change -= _g(n[i, a], n[i, b], logs) + _g(n[j, a], n[j, b], logs)
            s.gain[a, b] += change
            s.gain[b, a] = s.gain[a, b]


@kernel
def _gains_of_merged(i: int, j: int, near: I64, s: State) -> None:
    """G of the pairs with the cluster that i and j become."""
    n, logs = s.n, s.logs
    for a in range(len(s.used)):
        if not s.used[a] or a in (i, j):
            continue
        change = -_g(n[j, i], n[a, i], logs) - _g(n[i, j], n[i, a], logs)
        for c in near:
            if c != a:
                change += _g(n[j, c] + n[i, c], n[a, c], logs) - _g(n[j, c], n[a, c], logs)
                change += _g(n[c, j] + n[c, i], n[c, a], logs) - _g(n[c, j], n[c, a], logs)
        s.gain[j, a] += change
        s.gain[a, j] = s.gain[j, a]


@kernel
def merge(i: int, j: int, s: State) -> None:
    """Cluster i becomes a part of cluster j; its slot is empty."""
    n = s.n
    near = _beside(i, j, s)
    _gains_of_others(i, j, near, s)
    _gains_of_merged(i, j, near, s)
    n[j, j] += n[i, i] + n[i, j] + n[j, i]
    for c in near:
        n[j, c] += n[i, c]
        n[c, j] += n[c, i]
    n[i, :] = 0
    n[:, i] = 0
    s.left[j] += s.left[i]
    s.right[j] += s.right[i]
    s.left[i] = s.right[i] = 0
    s.used[i] = False
    s.loss[i, :] = np.inf
    s.loss[:, i] = np.inf
    for w in range(len(s.cluster)):
        if s.cluster[w] == i:
            s.cluster[w] = j
    for a in near:
        _renew_losses(a, s)
    _renew_losses(j, s)


@kernel
def cheapest(s: State) -> tuple[int, int]:
    """Return the pair a < b of clusters whose merge loses least; of equal ones the first."""
    size, least, scale = len(s.used), np.inf, 1.0
    for a in range(size):
        scale += _f(s.left[a], s.logs)
        for b in range(a + 1, size):
            least = min(least, s.loss[a, b])
    for a in range(size):
        for b in range(a + 1, size):
            if s.loss[a, b] <= least + TIE * scale:
                return a, b
    return -1, -1


@kernel
def cluster_words(clusters: int, bigrams: Bigrams, s: State) -> None:
    """Words in the order of their numbers: each is added, and then two clusters are merged."""
    slot = 0
    for word in range(len(s.cluster)):
        add_word(word, slot, bigrams, s)
        if word < clusters:
            slot += 1
            continue
        a, b = cheapest(s)
        # what the smaller one stands beside is what changes
        if len(_beside(a, b, s)) < len(_beside(b, a, s)):
            a, b = b, a
        merge(b, a, s)
        slot = b
