"""Second-order inference on a batch of sentences, as `sslbench.engine.crf.first_order.batch`.

Potentials of three labels in a row are the same at every position; those of two may differ
(docs/specs/crf_engine.md, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.crf.data import LabelTriples, SentenceGroups
from sslbench.engine.crf.first_order.batch import (
    BatchPosterior,
    BatchPotentials,
    check_feasible,
    sentence_weights,
)
from sslbench.engine.crf.second_order import log_space, scaled, viterbi
from sslbench.engine.crf.second_order.log_space import BatchMarginals
from sslbench.engine.types import F64, I8, I32, I64

#: tokens that a thread handles at a time: groups do not depend on the number of threads
GROUP_TOKENS = 512


@dataclass(frozen=True)
class SecondOrderPotentials(BatchPotentials):
    """Log-potentials of the sentences of a batch; -inf = impossible.

    node, edge: as in `BatchPotentials`; node includes the START potentials and, of single tokens,
    the stop scores.
    triples: of the first two labels, of three in a row and of the last two.
    """

    triples: LabelTriples

    def __post_init__(self) -> None:
        super().__post_init__()
        L = self.node.shape[1]
        for name, shape in (("begin", (L, L)), ("inner", (L, L, L)), ("end", (L, L))):
            check_array(getattr(self.triples, name), f"potentials {name}", np.float64, shape)

    def path_scores(self, labels: I32) -> F64:
        """Return float64[n]: the potential of each factor along the labels int32[n]."""
        out = super().path_scores(labels)
        triples = self.triples
        second, third, last = _positions(self.batch.offsets)
        out[second] += triples.begin[labels[second - 1], labels[second]]
        out[third] += triples.inner[labels[third - 2], labels[third - 1], labels[third]]
        out[last] += triples.end[labels[last - 1], labels[last]]
        return out

    def with_node(self, node: F64) -> SecondOrderPotentials:
        """Return potentials with other node potentials; inference overwrites none."""
        return replace(self, node=node)

    def posterior(self, weights: F64 | None = None, *, counted: bool = True) -> BatchPosterior:
        """Return log-partitions, and marginals times the weights float64[s] of the sentences.

        weights: None: ones. counted: sums of edge marginals are computed in any case.
        Raises InfeasibleSentenceError for a sentence without a possible labeling.
        """
        n_sentences = len(self.batch.offsets) - 1
        sentences = self._sentences(weights)
        varying = self.edge.shape[0] != 1
        out, log_scale = self._outputs(sentences, varying), np.empty(len(self.node))
        status = np.empty(n_sentences, np.int8)
        if varying:
            inputs = (self.node, self.edge, self.triples, sentences)
            log_space.varying(*inputs, log_scale, out, status)
        else:
            self._shared(sentences, log_scale, out, status)
        check_feasible(self.batch, status)
        triples = _totals(out)
        edge = out.edge if varying else triples.pairs()
        return BatchPosterior(self.batch, log_scale, out.node, edge, triples)

    def log_likelihood(self, labels: I32, weights: F64 | None = None) -> tuple[F64, BatchPosterior]:
        """Return log p of the labels and its derivatives, as `BatchPotentials`."""
        value, slopes = super().log_likelihood(labels, weights)
        if slopes.triples is not None:
            own = sentence_weights(weights, self.batch)
            add_label_triples(labels, self.batch.offsets, own, slopes.triples)
        return value, slopes

    def _shared(
        self, sentences: SentenceGroups, log_scale: F64, out: BatchMarginals, status: I8
    ) -> None:
        """Forward-backward when all positions share their transitions."""
        begin, inner, end = self.triples
        w = self.edge[0]
        triples = LabelTriples(begin + w, inner + w, end)
        order = self._longest_first(sentences.groups)
        scaled.shared(self.node, triples, sentences, order, log_scale, out, status)

    def viterbi(self) -> I32:
        """Return int32[n]: the best labels of every sentence; ties go to the smallest labels.

        Raises InfeasibleSentenceError for a sentence without a possible labeling.
        """
        n_sentences = len(self.batch.offsets) - 1
        path, status = np.empty(self.batch.n_tokens, np.int32), np.empty(n_sentences, np.int8)
        offsets, groups, _ = self._sentences()
        order = self._longest_first(groups)
        viterbi.decode(self.node, self.edge, self.triples, offsets, groups, order, path, status)
        check_feasible(self.batch, status)
        return path

    def entropy(self, weights: F64) -> tuple[F64, F64, F64, F64, LabelTriples]:
        """Return the entropies H of the sentences and the derivatives of -sum weights H.

        They are entropy float64[s], node, edge, labels float64[L] and triples of `BatchEntropy`.
        """
        sentences, varying = self._sentences(weights), self.edge.shape[0] != 1
        out, status = self._outputs(sentences, varying), np.empty(len(weights), np.int8)
        entropy = np.empty(len(weights))
        counts = np.empty((len(sentences.groups) - 1, self.node.shape[1]))
        inputs = (self.node, self.edge, self.triples, sentences)
        log_space.entropy(*inputs, entropy, counts, out, status)
        check_feasible(self.batch, status)
        triples = _totals(out)
        edge = out.edge if varying else triples.pairs()
        return entropy, out.node, edge, counts.sum(axis=0), triples

    def _sentences(self, weights: F64 | None = None) -> SentenceGroups:
        """Return groups of about GROUP_TOKENS tokens; weights: float64[s]; None: ones."""
        offsets = self.batch.offsets
        cuts = np.searchsorted(offsets, np.arange(0, offsets[-1], GROUP_TOKENS))
        groups = np.unique(np.append(cuts, len(offsets) - 1)).astype(np.int64)
        return SentenceGroups(offsets, groups, sentence_weights(weights, self.batch))

    def _outputs(self, sentences: SentenceGroups, varying: bool) -> BatchMarginals:
        (n, L), G = self.node.shape, len(sentences.groups) - 1
        edge, sums = np.empty((n if varying else 0, L, L)), np.zeros((2, G, L, L))
        return BatchMarginals(np.empty((n, L)), edge, sums[0], np.zeros((G, L, L, L)), sums[1])

    def _longest_first(self, groups: I64) -> I64:
        """Return int64[s]: the sentences, those of a group in descending order of their lengths."""
        group = np.repeat(np.arange(len(groups) - 1), np.diff(groups))
        return np.lexsort((-np.diff(self.batch.offsets), group))


def _totals(out: BatchMarginals) -> LabelTriples:
    """Return the sums over all groups."""
    return LabelTriples(out.begin.sum(axis=0), out.inner.sum(axis=0), out.end.sum(axis=0))


def add_label_triples(labels: I32, offsets: I64, weights: F64, out: LabelTriples) -> None:
    """Add the indicators of a labeling int32[n], times the weights float64[s] of the sentences."""
    sentence = np.repeat(np.arange(len(weights)), np.diff(offsets))
    second, third, last = _positions(offsets)
    np.add.at(out.begin, (labels[second - 1], labels[second]), weights[sentence[second]])
    at = labels[third - 2], labels[third - 1], labels[third]
    np.add.at(out.inner, at, weights[sentence[third]])
    np.add.at(out.end, (labels[last - 1], labels[last]), weights[sentence[last]])


def _positions(offsets: I64) -> tuple[I64, I64, I64]:
    """Return second tokens, third and later ones, and last ones of two tokens or more."""
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
    last = (offsets[1:] - 1)[np.diff(offsets) > 1]
    return np.flatnonzero(place == 1), np.flatnonzero(place > 1), last


def soft_label_triples(q: F64, offsets: I64, weights: F64) -> LabelTriples:
    """Return expected triples under independent targets q float64[n, L].

    weights: float64[s] of the sentences.
    """
    second, third, last = _positions(offsets)
    w = np.repeat(weights, np.diff(offsets))[:, None]
    return LabelTriples(
        np.einsum("na,nb->ab", w[second] * q[second - 1], q[second]),
        np.einsum("na,nb,nc->abc", w[third] * q[third - 2], q[third - 1], q[third], optimize=True),
        np.einsum("na,nb->ab", w[last] * q[last - 1], q[last]),
    )


def expected_scores(potentials: SecondOrderPotentials, q: F64) -> F64:
    """Return float64[n]: expected potentials of triples under independent q float64[n, L]."""
    triples = potentials.triples
    second, third, last = _positions(potentials.batch.offsets)
    inner = q[third - 2], q[third - 1], q[third]
    out = np.zeros(len(q))
    out[second] += _finite_sum("na,nb,ab->n", q[second - 1], q[second], triples.begin)
    out[third] += _finite_sum("na,nb,nc,abc->n", *inner, triples.inner)
    out[last] += _finite_sum("na,nb,ab->n", q[last - 1], q[last], triples.end)
    return out


def _finite_sum(subscripts: str, *parts: F64) -> F64:
    """Return the einsum of targets and potentials (the last part), where 0 * -inf is 0.

    It is -inf in rows where a target above 0 meets a potential of -inf.
    """
    potential, targets = parts[-1], parts[:-1]
    total: F64 = np.einsum(
        subscripts, *targets, np.where(np.isfinite(potential), potential, 0.0), optimize=True
    )
    forbidden = np.where(np.isfinite(potential), 0.0, 1.0)
    if forbidden.any():
        total[np.einsum(subscripts, *targets, forbidden, optimize=True) > 0] = -np.inf
    return total
