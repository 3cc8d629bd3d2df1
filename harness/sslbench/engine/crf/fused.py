"""Labeled text with transitions by position: value and gradient, a few sentences at a time.

A token has hundreds of scores of transitions. Summed up, turned into marginals and added to the
gradient for a few sentences at a time, they stay in the cache; as arrays of a batch they would go
through memory three times. With several threads, some infer batches to come while one adds to the
gradient: the same sums in the same order.

What is computed is that of `HardLabels` on `LivePotentials`, to the last bit. Sentences that have
to be done in log space are left to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.compilation.threads import in_order, number_of_threads
from sslbench.engine.crf.bundle_sums import BundleSums
from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.first_order.batch import check_feasible
from sslbench.engine.crf.first_order.scaled import REDO, shifted_transitions
from sslbench.engine.crf.fused_kernels import Potentials, Slopes, Text, Values, Weights, visit_batch
from sslbench.engine.crf.simd import rows
from sslbench.engine.crf.terms import value_of_labels
from sslbench.engine.crf.weights.rowtable import stride
from sslbench.engine.crf.weights.tables import WeightTables
from sslbench.engine.types import F64, I32, I64, Bool

#: tokens of a step and their scores by position (256 KB): no fewer, unless the batch ends
STEP_TOKENS, STEP_CELLS = 256, 1 << 15


def log_likelihood(
    data: EncodedCorpus,
    labeled: tuple[I32, F64],
    tables: WeightTables,
    sums: BundleSums,
    transition_mask: Bool | None,
    gradient: WeightTables,
    slopes: BundleSums,
) -> tuple[F64, I64]:
    """Return float64[S]: weights times log p(labels | x) of the sentences, and those to be redone.

    data: with live transitions, without dense columns, factor features and forced labels.
    labeled: int32[N] and float64[S]. Adds the derivatives to gradient and slopes, except for those
    of the second result, int64[R].
    Raises InfeasibleSentenceError for a sentence without a possible labeling, or whose labels are
    impossible.
    """
    L, S = tables.layout.n_labels, len(data.offsets) - 1
    assert data.live is not None
    data.check_layout(tables.layout)
    labels, factors = labeled
    check_array(labels, "labels", np.int32, (data.n_tokens,), (0, L))
    text = Text(data.states.tokens, data.edges.tokens, data.first, data.offsets, labels, factors)
    w = tables.allowed_transitions(transition_mask)
    edge = np.ascontiguousarray(w[None, :L])
    potentials = Potentials(edge, shifted_transitions(edge), data.live)
    given = text, _weights(tables, sums, w), potentials
    out = _weights(gradient, slopes, gradient.transitions)
    values = Values(np.empty(data.n_tokens), np.empty(S, np.int8))
    K = len(tables.edges.transitions)
    step = max(1, min(STEP_TOKENS, STEP_CELLS // max(1, K)))
    visit = partial(visit_batch, step, *given, values, out)
    if number_of_threads() == 1:
        for batch in data.live_batches:
            own = _slopes(step + int(np.diff(batch.offsets).max()), L, K)
            visit(batch.sentence_lo, batch.sentence_hi, infer=True, spread=True, own=own)
    else:
        infer = partial(_infer, visit, L, K)
        for batch, own in zip(data.live_batches, in_order(infer, data.live_batches), strict=True):
            visit(batch.sentence_lo, batch.sentence_hi, infer=False, spread=True, own=own)
    whole = Batch(0, data.n_tokens, 0, S, data.offsets)
    check_feasible(whole, values.status)
    found = value_of_labels(factors, values.log_p, whole)
    return found, np.flatnonzero(values.status == REDO)


def _slopes(tokens: int, n_labels: int, columns: int) -> Slopes:
    live = rows.aligned(tokens, stride(columns))
    return Slopes(
        np.empty((tokens, n_labels)), live, np.zeros((n_labels, n_labels)), np.zeros((2, n_labels))
    )


def _infer(visit: Callable[..., None], n_labels: int, columns: int, batch: Batch) -> Slopes:
    own = _slopes(batch.n_tokens, n_labels, columns)
    visit(batch.sentence_lo, batch.sentence_hi, infer=True, spread=False, own=own)
    return own


def _weights(tables: WeightTables, sums: BundleSums, transitions: F64) -> Weights:
    nodes = tables.table, tables.lists, sums.node
    return Weights(*nodes, tables.edges, sums.edge, transitions, tables.stop)
