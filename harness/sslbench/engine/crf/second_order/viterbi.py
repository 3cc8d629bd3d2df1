"""Best labelings of second-order chains (docs/specs/crf_engine.md, section 4).

Potentials as in `log_space`.  The best score of a labeling that ends with the labels (b, c):

    best_t(b, c) = (node_t(c) + edge_t(b, c)) + max_a (best_{t-1}(a, b) + inner(a, b, c))   t >= 2

Four sentences of about the same length are done side by side, so that every part of ``inner`` that
is read serves four tokens.  The loop takes the maximum alone.  The best a is looked for on the way
back, for one pair at each position.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import kernel, parallel_kernel
from sslbench.engine.crf.data import LabelTriples
from sslbench.engine.crf.first_order.scaled import INFEASIBLE, OK
from sslbench.engine.crf.second_order.tiles import QUAD, WIDTH, padded
from sslbench.engine.crf.simd import lanes, rows
from sslbench.engine.types import F64, I8, I32, I64


class _Text(NamedTuple):
    """Potentials of a batch as in `decode`.

    inner: float64[b, a, P of c], the log-potentials of three labels in a row.
    """

    node: F64
    edge: F64
    triples: LabelTriples
    inner: F64


class _Quad(NamedTuple):
    """Four sentences side by side, in descending order of their lengths.

    begin, length: int64[4], first token and number of tokens; 0 tokens = an empty place.
    place: int64[4], row of `best` of the first token; those of an empty place may be overwritten.
    best: float64[rows, L, P], by (b, c); row 0 is of no token.
    local: float64[4, P], node and edge potential.
    """

    begin: I64
    length: I64
    place: I64
    best: F64
    local: F64


def decode(
    node: F64,
    edge: F64,
    triples: LabelTriples,
    offsets: I64,
    groups: I64,
    order: I64,
    path: I32,
    status: I8,
) -> None:
    """Write the best labels of every sentence into path int32[n], and status int8[s].

    Ties go to the smallest labels, decided from the last label to the first.
    node: float64[n, L]; edge: float64[1 or n, L, L].  groups: int64[G + 1], of the sentences that a
    thread does at a time.  order: int64[s] sentences, those of a group in descending order of their
    lengths.
    """
    L = node.shape[1]
    inner = rows.aligned(L * L, padded(L, WIDTH)).reshape(L, L, -1)
    inner[:, :, :L] = triples.inner.transpose(1, 0, 2)
    _groups(_Text(node, edge, triples, inner), offsets, groups, order, path, status)


@parallel_kernel(lambda text, offsets, groups, *_: len(groups) - 1)
def _groups(
    begin: int,
    end: int,
    text: _Text,
    offsets: I64,
    groups: I64,
    order: I64,
    path: I32,
    status: I8,
) -> None:
    """Groups of sentences, four at a time."""
    L, P = text.node.shape[1], text.inner.shape[2]
    for g in range(begin, end):
        first, last = groups[g], groups[g + 1]
        most = 1  # the longest ones come first; one row is for empty places
        for i in order[first : min(first + QUAD, last)]:
            most += offsets[i + 1] - offsets[i]
        numbers, best = np.zeros((3, QUAD), np.int64), rows.aligned(most * L, P)
        quad = _Quad(
            numbers[0],
            numbers[1],
            numbers[2],
            best.reshape(most, L, P),
            np.zeros((QUAD, P)),
        )
        for at in range(first, last, QUAD):
            own = order[at : min(at + QUAD, last)]
            _fill(quad, own, offsets)
            _forward(text, quad)
            for s in range(len(own)):
                i = own[s]
                score = _back(text, quad, s, path)
                status[i] = INFEASIBLE if score == -np.inf else OK


@kernel
def _fill(quad: _Quad, sentences: I64, offsets: I64) -> None:
    """Give each sentence a place and rows for its scores."""
    begin, length, place = quad.begin, quad.length, quad.place
    length[:], row = 0, 1
    for s in range(len(sentences)):
        i = sentences[s]
        begin[s], length[s], place[s] = offsets[i], offsets[i + 1] - offsets[i], row
        row += length[s]


@kernel
def _forward(text: _Text, quad: _Quad) -> None:
    """Fill in the best scores."""
    L, P = text.inner.shape[0], text.inner.shape[2]
    flat = quad.best.reshape(quad.best.size)
    before, out = np.empty(QUAD, np.int64), np.empty(QUAD, np.int64)
    for s in range(QUAD):
        if quad.length[s] > 1:
            _first_pairs(text, quad, s)
    for t in range(2, quad.length[0]):
        for b in range(L):
            for s in range(QUAD):
                here = t < quad.length[s]
                row = quad.place[s] + t if here else 0
                before[s], out[s] = max(row - 1, 0) * L * P + b, (row * L + b) * P
                if here:
                    _local(text, quad.begin[s] + t, b, quad.local[s])
            _step(text.inner, b, quad.local, flat, before, out)


@kernel
def _first_pairs(text: _Text, quad: _Quad, s: int) -> None:
    """Scores of the labels at the first two positions."""
    at, best, first = quad.begin[s], quad.best[quad.place[s] + 1], text.triples.begin
    for b in range(best.shape[0]):
        _local(text, at + 1, b, quad.local[s])
        for c in range(best.shape[0]):
            best[b, c] = text.node[at, b] + (quad.local[s, c] + first[b, c])


@kernel
def _local(text: _Text, token: int, b: int, out: F64) -> None:
    """out[c] = node(c) + edge(b, c) of a token."""
    edge = text.edge[token if text.edge.shape[0] > 1 else 0, b]
    for c in range(edge.shape[0]):
        out[c] = text.node[token, c] + edge[c]


@kernel
def _step(inner: F64, b: int, local: F64, best: F64, before: I64, out: I64) -> None:
    """best[out[s] + c] = local[s, c] + max over a of best[before[s] + a P] + inner[b, a, c], s < 4.

    P is the width of the rows; best is flat.
    """
    n, P = inner.shape[1], local.shape[1]
    for k in range(0, P, WIDTH):
        s0 = s1 = s2 = s3 = lanes.splat(-np.inf)
        i, at0, at1, at2, at3 = b * n * P + k, before[0], before[1], before[2], before[3]
        for _ in range(n):
            e = lanes.load(inner, i)
            s0 = lanes.maximum(lanes.add(lanes.spread(best, at0), e), s0)
            s1 = lanes.maximum(lanes.add(lanes.spread(best, at1), e), s1)
            s2 = lanes.maximum(lanes.add(lanes.spread(best, at2), e), s2)
            s3 = lanes.maximum(lanes.add(lanes.spread(best, at3), e), s3)
            i, at0, at1, at2, at3 = i + P, at0 + P, at1 + P, at2 + P, at3 + P
        lanes.store(best, out[0] + k, lanes.add(s0, lanes.load(local, k)))
        lanes.store(best, out[1] + k, lanes.add(s1, lanes.load(local, P + k)))
        lanes.store(best, out[2] + k, lanes.add(s2, lanes.load(local, 2 * P + k)))
        lanes.store(best, out[3] + k, lanes.add(s3, lanes.load(local, 3 * P + k)))


@kernel
def _back(text: _Text, quad: _Quad, s: int, path: I32) -> float:
    """Write the labels of the sentence in place s into the path; return their score."""
    at, T = quad.begin[s], quad.length[s]
    own = path[at : at + T]
    if T == 1:
        own[0] = np.argmax(text.node[at])
        return float(text.node[at, own[0]])
    score, b, c = -np.inf, 0, 0
    last = quad.best[quad.place[s] + T - 1]
    for y in range(len(last)):
        for x in range(len(last)):
            value = last[x, y] + text.triples.end[x, y]
            if value > score:
                score, b, c = value, x, y
    own[T - 1], own[T - 2] = c, b
    for t in range(T - 1, 1, -1):
        before, most, best_a = quad.best[quad.place[s] + t - 1], -np.inf, 0
        for a in range(len(before)):
            value = before[a, b] + text.inner[b, a, c]
            if value > most:
                most, best_a = value, a
        own[t - 2] = best_a
        b, c = best_a, b
    return float(score)
