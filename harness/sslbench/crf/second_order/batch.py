"""Second-order chains on a batch of sentences: what `first_order.batch` is for first-order ones.

Potentials of three labels in a row are the same at every position; those of two may differ.
Source: docs/specs/crf_engine.md, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sslbench.crf.first_order.batch import (
    BatchPosterior,
    BatchPotentials,
    LabelTriples,
    check_feasible,
)
from sslbench.crf.second_order import log_space as triple_chain
from sslbench.crf.second_order import scaled as triples
from sslbench.crf.second_order import sparse
from sslbench.types import F64, I32, I64

#: tokens that a thread handles at a time: groups do not depend on the number of threads
GROUP_TOKENS = 512


@dataclass(frozen=True)
class SecondOrderPotentials(BatchPotentials):
    """node, edge as in `BatchPotentials`, START and, of single tokens, stop folded into node.

    triples: log-potentials of the first two labels, of three in a row and of the last two.
    """

    triples: LabelTriples

    def path_scores(self, labels: I32) -> F64:
        """Potential of each clique along the labels int32[n]: float64[n]."""
        out = super().path_scores(labels)
        of, offsets = self.triples, self.batch.offsets
        second, third, last = _places(offsets)
        out[second] += of.begin[labels[second - 1], labels[second]]
        out[third] += of.inner[labels[third - 2], labels[third - 1], labels[third]]
        out[last] += of.end[labels[last - 1], labels[last]]
        return out

    def with_node(self, node: F64) -> SecondOrderPotentials:
        return replace(self, node=node)  # inference leaves the others as they are

    def posterior(self, weights: F64 | None = None) -> BatchPosterior:
        """Log-partitions and marginals, times the weights float64[s] of the sentences."""
        batch, (n, L) = self.batch, self.node.shape
        weights = np.ones(len(batch.offsets) - 1) if weights is None else weights
        groups, fixed = self._groups(), self.edge.shape[0] == 1
        G = len(groups) - 1
        mu, log_scale, status = np.empty((n, L)), np.empty(n), np.empty(len(weights), np.int8)
        first, inner, last = np.zeros((G, L, L)), np.zeros((G, L, L, L)), np.zeros((G, L, L))
        if fixed:
            self._same_everywhere(groups, weights, mu, log_scale, first, inner, last, status)
        else:
            arcs = np.empty((n, L, L))
            triple_chain.varying(
                self.node,
                self.edge,
                *self.triples,
                batch.offsets,
                groups,
                weights,
                mu,
                log_scale,
                arcs,
                first,
                inner,
                last,
                status,
            )
        check_feasible(batch, status)
        found = LabelTriples(first.sum(axis=0), inner.sum(axis=0), last.sum(axis=0))
        edge = found.pairs() if fixed else arcs
        return BatchPosterior(batch, log_scale, mu, edge, found)

    def _same_everywhere(self, groups: I64, weights: F64, *out: NDArray[Any]) -> None:
        """Forward-backward when all positions share their transitions; out: as the kernels'."""
        of, w, offsets = self.triples, self.edge[0], self.batch.offsets
        chains = self.node, of.begin + w, of.inner + w, of.end, offsets, groups
        if sparse.few(pairs := np.isfinite(w)):
            sparse.shared(pairs, *chains, weights, *out)
        else:
            triples.shared(*chains, self._longest_first(groups), weights, *out)

    def viterbi(self) -> I32:
        """Best labels int32[n]."""
        path = np.empty(self.batch.n_tokens, np.int32)
        status = np.empty(len(self.batch.offsets) - 1, np.int8)
        triple_chain.viterbi(self.node, self.edge, *self.triples, self.batch.offsets, path, status)
        check_feasible(self.batch, status)
        return path

    def entropy(self, weights: F64) -> tuple[F64, F64, F64, F64, LabelTriples]:
        """(H float64[s], and the derivatives of -sum weights H: node, edge, triples after them;
        between them labels float64[L]): see `BatchEntropy`.
        """
        batch, (n, L) = self.batch, self.node.shape
        groups, varying = self._groups(), self.edge.shape[0] != 1
        G, status = len(groups) - 1, np.empty(len(weights), np.int8)
        found, omega, mass = np.empty(len(weights)), np.empty((n, L)), np.empty((G, L))
        arcs = np.empty((n if varying else 0, L, L))
        sums = np.empty((G, L, L)), np.empty((G, L, L, L)), np.empty((G, L, L))
        triple_chain.entropy(
            self.node,
            self.edge,
            *self.triples,
            batch.offsets,
            groups,
            weights,
            found,
            omega,
            mass,
            arcs,
            *sums,
            status,
        )
        check_feasible(batch, status)
        slopes = LabelTriples(*(part.sum(axis=0) for part in sums))
        return found, omega, arcs if varying else slopes.pairs(), mass.sum(axis=0), slopes

    def as_pairs(self) -> BatchPotentials:
        """The same chains as first-order ones over L^2 labels, the pairs (y_{t-1}, y_t).

        First tokens have the pairs (0, y). For comparison: n L^4 cells.
        """
        batch, of, (n, L) = self.batch, self.triples, self.node.shape
        second, third, last = _places(batch.offsets)
        node = np.full((n, L, L), -np.inf)
        node[batch.first, 0] = self.node[batch.first]
        later = ~batch.first
        pairs = np.broadcast_to(self.edge, (n, L, L))
        node[later] = self.node[later, None, :] + pairs[later]
        node[second] += of.begin
        node[last] += of.end
        edge = np.full((n, L, L, L, L), -np.inf)
        shared = np.arange(L)
        edge[:, :, shared, shared, :] = 0.0
        edge[third[:, None], :, shared, shared, :] = of.inner.transpose(1, 0, 2)
        return BatchPotentials(batch, node.reshape(n, L * L), edge.reshape(n, L * L, L * L))

    def from_pairs(self, node: F64, edge: F64) -> tuple[F64, F64, LabelTriples]:
        """Derivatives by the potentials of `as_pairs` as those by node, edge and triples here."""
        batch, (n, L) = self.batch, self.node.shape
        second, third, last = _places(batch.offsets)
        pairs, arcs = node.reshape(n, L, L), edge.reshape(n, L, L, L, L)
        shared = np.arange(L)
        inner = arcs[third].sum(axis=0)[:, shared, shared, :]
        found = LabelTriples(pairs[second].sum(axis=0), inner, pairs[last].sum(axis=0))
        if self.edge.shape[0] == 1:
            return pairs.sum(axis=1), found.pairs(), found
        return pairs.sum(axis=1), np.where(batch.first[:, None, None], 0.0, pairs), found

    def _longest_first(self, groups: I64) -> I64:
        """int64[s]: the sentences, those of a group in descending order of their lengths."""
        group = np.repeat(np.arange(len(groups) - 1), np.diff(groups))
        return np.lexsort((-np.diff(self.batch.offsets), group))

    def _groups(self) -> I64:
        """Sentence ranges of about GROUP_TOKENS tokens."""
        offsets = self.batch.offsets
        cuts = np.searchsorted(offsets, np.arange(0, offsets[-1], GROUP_TOKENS))
        return np.unique(np.append(cuts, len(offsets) - 1)).astype(np.int64)


def add_label_triples(labels: I32, offsets: I64, weights: F64, out: LabelTriples) -> None:
    """Indicators of a labeling int32[n], times the weights float64[s], into `out`."""
    sentence = np.repeat(np.arange(len(weights)), np.diff(offsets))
    second, third, last = _places(offsets)
    np.add.at(out.begin, (labels[second - 1], labels[second]), weights[sentence[second]])
    at = labels[third - 2], labels[third - 1], labels[third]
    np.add.at(out.inner, at, weights[sentence[third]])
    np.add.at(out.end, (labels[last - 1], labels[last]), weights[sentence[last]])


def _places(offsets: I64) -> tuple[I64, I64, I64]:
    """Second tokens, third and later ones, last ones (of sentences with two tokens or more)."""
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
    last = (offsets[1:] - 1)[np.diff(offsets) > 1]
    return np.flatnonzero(place == 1), np.flatnonzero(place > 1), last


def soft_label_triples(q: F64, offsets: I64, weights: F64) -> LabelTriples:
    """Expected triples of independent targets q float64[n, L], times the weights float64[s]."""
    second, third, last = _places(offsets)
    w = np.repeat(weights, np.diff(offsets))[:, None]
    return LabelTriples(
        np.einsum("na,nb->ab", w[second] * q[second - 1], q[second]),
        np.einsum("na,nb,nc->abc", w[third] * q[third - 2], q[third - 1], q[third], optimize=True),
        np.einsum("na,nb->ab", w[last] * q[last - 1], q[last]),
    )


def expected_scores(potentials: SecondOrderPotentials, q: F64) -> F64:
    """Expected potential of the triples under independent targets q, per token: float64[n]."""
    of = potentials.triples
    second, third, last = _places(potentials.batch.offsets)
    out = np.zeros(len(q))
    out[second] += _finite_sum("na,nb,ab->n", q[second - 1], q[second], of.begin)
    out[third] += _finite_sum("na,nb,nc,abc->n", q[third - 2], q[third - 1], q[third], of.inner)
    out[last] += _finite_sum("na,nb,ab->n", q[last - 1], q[last], of.end)
    return out


def _finite_sum(how: str, *parts: F64) -> F64:
    """einsum in which -inf potentials count where a target meets them: those rows are -inf."""
    potential, targets = parts[-1], parts[:-1]
    total: F64 = np.einsum(
        how, *targets, np.where(np.isfinite(potential), potential, 0.0), optimize=True
    )
    forbidden = np.where(np.isfinite(potential), 0.0, 1.0)
    if forbidden.any():
        total[np.einsum(how, *targets, forbidden, optimize=True) > 0] = -np.inf
    return total
