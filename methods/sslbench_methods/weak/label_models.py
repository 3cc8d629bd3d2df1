"""Label models: the probability of each label of a token given what weak sources say, by EM.

Both start from votes. Labels of the labeled text are fixed to the gold ones, which anchors what the
numbers of the labels mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.crf import BatchPosterior, ModelText, chain_potentials
from sslbench.engine.types import F64, I32, I64

from .outcomes import Outcomes, normalized

ROUNDS = 50
_TOLERANCE = 1e-5  # of the mean log-probability of what a token's sources say


class LabelModel(NamedTuple):
    """Result of EM.

    labels: float64[N, L], the probability of each label of each token.
    confusion: float64[K, L, L + 1], see `normalized`.
    transitions: float64[L + 1, L], the probability of a label given the one before; row L: of the
        first label. Without transitions, all rows are equal.
    log_likelihoods: of each round, the log-probability of gold labels and outcomes.
    """

    labels: F64
    confusion: F64
    transitions: F64
    log_likelihoods: list[float]


def dawid_skene(outcomes: Outcomes, gold: I32, offsets: I64, rounds: int = ROUNDS) -> LabelModel:
    """Fit the model of Dawid & Skene (1979): tokens are independent given their labels.

    gold: int32[N], -1 where it is not known.  offsets: int64[S + 1], of the sentences.
    """
    return _fit(outcomes, gold, offsets, rounds, chain=False)


def hidden_markov(outcomes: Outcomes, gold: I32, offsets: I64, rounds: int = ROUNDS) -> LabelModel:
    """Fit a hidden Markov model whose states are the labels, as Lison et al. (2020).

    The arguments are those of `dawid_skene`.
    """
    return _fit(outcomes, gold, offsets, rounds, chain=True)


def _fit(outcomes: Outcomes, gold: I32, offsets: I64, rounds: int, *, chain: bool) -> LabelModel:
    labels = _start(outcomes, gold)
    # In the first round, neighbors are independent and sentences one text.
    pairs = labels[:-1].T @ labels[1:]
    values: list[float] = []
    while True:
        confusion = normalized(outcomes.counts(labels))
        transitions = _transitions(labels, pairs, offsets, chain=chain)
        node = outcomes.evidence(confusion)
        known = np.flatnonzero(gold >= 0)
        node[known] = np.where(
            np.eye(outcomes.n_labels, dtype=bool)[gold[known]], node[known], -np.inf
        )
        posteriors, value = _posteriors(node, transitions, offsets)
        values.append(value)
        labels = np.concatenate([each.node for each in posteriors])
        pairs = np.sum([each.edge[0] for each in posteriors], axis=0)
        small = len(values) > 1 and values[-1] - values[-2] < _TOLERANCE * max(1, len(labels))
        if len(values) >= rounds or small:
            return LabelModel(labels, confusion, transitions, values)


def _start(outcomes: Outcomes, gold: I32) -> F64:
    """Return shares of votes; tokens without any have the shares of all others."""
    votes = outcomes.votes()
    known = np.flatnonzero(gold >= 0)
    votes[known] = np.eye(outcomes.n_labels)[gold[known]]
    total = votes.sum(axis=1, keepdims=True)
    share = votes.sum(axis=0) + 1.0
    start: F64 = np.where(total > 0, votes / np.maximum(total, 1), share / share.sum())
    return start


def _transitions(labels: F64, pairs: F64, offsets: I64, *, chain: bool) -> F64:
    if not chain:
        rows = np.broadcast_to(labels.sum(axis=0), (labels.shape[1] + 1, labels.shape[1])) + 1.0
    else:
        rows = np.vstack([pairs, labels[offsets[:-1]].sum(axis=0)]) + 1.0
    transitions: F64 = rows / rows.sum(axis=1, keepdims=True)
    return transitions


def _posteriors(node: F64, transitions: F64, offsets: I64) -> tuple[list[BatchPosterior], float]:
    """Return the posteriors of all batches and the log-probability of the whole text."""
    scores = np.log(transitions)
    parts = [
        chain_potentials(batch, node[batch.tokens].copy(), scores).posterior()
        for batch in ModelText(None, offsets).batches
    ]
    return parts, float(sum(part.log_scale.sum() for part in parts))
