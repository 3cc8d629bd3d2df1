"""Potentials of a few sentences, with the same bits as those of a corpus, in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.engine.crf.model import ChainCRF
from sslbench.engine.crf.weights import scores
from sslbench.engine.crf.weights.layout import DENSE_FROM
from sslbench.engine.features.index import QuickEncoder
from sslbench.engine.types import F64, I32, I64

#: tokens; more are tagged as a corpus
FEW = 2000


def quick_encoder(crf: ChainCRF, columns: Sequence[str]) -> QuickEncoder | None:
    """Return what encodes a few tokens with these columns for `quick_potentials`.

    None for a CRF that needs more: of second order, with transition attributes, factor features or
    label constraints.
    """
    layout = crf.layout
    more = layout.n_edge or layout.n_factors or crf.label_constraint is not None
    return None if more or layout.order != 1 else crf.index.quick(columns)


def quick_potentials(
    crf: ChainCRF, encoder: QuickEncoder, tokens: Sequence[Any], offsets: I64
) -> BatchPotentials:
    """Return the log-potentials of sentences.

    encoder: from `quick_encoder`.  tokens: as their reader gives them.  offsets: int64[S + 1], the
    borders of sentences.

    Raises ArithmeticError if a weight that they depend on is not finite.
    """
    layout, weights = crf.layout, crf.weights
    L = layout.n_labels
    ids, dense = encoder.attributes(tokens, offsets)
    start, label = layout.state_start, layout.state_label
    if start is None or label is None:
        start, label = np.empty(0, np.int64), np.empty(0, np.int32)
    node = np.empty((len(tokens), L))
    _node_scores(ids, start, label, layout.part(weights, "state"), DENSE_FROM, node)
    if dense is not None:
        scores.column_scores(dense, layout.part(weights, "columns").reshape(-1, L), node)
    edge = layout.part(weights, "transitions").reshape(-1, L)
    first = edge[L] if layout.use_start else np.zeros(L)
    if not (np.isfinite(node).all() and np.isfinite(edge).all()):
        crf.check_finite()
    if crf.transition_mask is not None:
        first = np.where(crf.transition_mask[L], first, -np.inf)
        edge = np.where(crf.transition_mask[:L], edge[:L], -np.inf)
    node[offsets[:-1]] += first
    if layout.use_stop:
        node[offsets[1:] - 1] += layout.part(weights, "stop")
    batch = Batch(0, len(tokens), 0, len(offsets) - 1, offsets)
    return BatchPotentials(batch, node, np.ascontiguousarray(edge[None, :L]))


@kernel
def _node_scores(ids: I32, start: I64, label: I32, weights: F64, dense_from: int, out: F64) -> None:
    """Write the node scores float64[N, L] of tokens with the attributes int32[N, S].

    start, label: of `Layout`; an empty start: every attribute has a weight for every label.

    The weights of a token are added in the order of `scores.node_scores`: first those of attributes
    with at least `dense_from` labels, then the others.
    """
    L = out.shape[1]
    for n in range(len(ids)):
        out[n] = 0.0
        for i in ids[n]:
            if i >= 0 and len(start) == 0:
                for b in range(L):
                    out[n, b] += weights[i * L + b]
            elif i >= 0 and start[i + 1] - start[i] >= dense_from:
                for k in range(start[i], start[i + 1]):
                    out[n, label[k]] += weights[k]
        for i in ids[n]:
            if i >= 0 and len(start) > 0 and start[i + 1] - start[i] < dense_from:
                for k in range(start[i], start[i + 1]):
                    out[n, label[k]] += weights[k]
