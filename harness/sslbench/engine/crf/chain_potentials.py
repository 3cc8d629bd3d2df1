"""Potentials of a chain with the same transitions at every position, for models of plugins."""

from __future__ import annotations

import numpy as np

from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.engine.crf.terms import PotentialGradient
from sslbench.engine.types import F64, I32, Bool


def chain_potentials(
    batch: Batch,
    node: F64,
    transitions: F64,
    *,
    mask: Bool | None = None,
    forced_labels: I32 | None = None,
) -> BatchPotentials:
    """Return the potentials of a chain with the same transitions at every position.

    node: float64[n, L], overwritten.  transitions: float64[L+1, L], row L: the scores of the labels
    of first tokens.  mask: bool[L+1, L], the allowed transitions.
    forced_labels: int32[N], of the whole text: the only label that a token may have, -1 = any.
    """
    L = node.shape[1]
    scores = transitions if mask is None else np.where(mask, transitions, -np.inf)
    node[batch.offsets[:-1]] += scores[L]
    if forced_labels is not None:
        force_labels(forced_labels[batch.tokens], node)
    return BatchPotentials(batch, node, np.ascontiguousarray(scores[None, :L]))


def transition_slopes(batch: Batch, by_potential: PotentialGradient) -> F64:
    """Return float64[L+1, L]: the derivatives by the transitions of `chain_potentials`."""
    first = by_potential.node[batch.offsets[:-1]].sum(axis=0)
    return np.vstack([by_potential.edge.sum(axis=0), first])


def force_labels(labels: I32, node: F64) -> None:
    """Make impossible all labels but the given one: labels int32[n], -1 leaves all possible."""
    at = np.flatnonzero(labels >= 0)
    scores_at = node[at, labels[at]]
    node[at] = -np.inf
    node[at, labels[at]] = scores_at
