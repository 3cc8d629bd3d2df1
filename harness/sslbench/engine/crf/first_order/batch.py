"""First-order inference on a batch of sentences: potentials, and the posterior that they give.

n is the number of tokens of the batch, s that of its sentences, L the number of labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.crf.data import Batch, LabelTriples
from sslbench.engine.crf.first_order import paths, scaled, shared, varying
from sslbench.engine.types import F64, I8, I32, Bool


class InfeasibleSentenceError(ValueError):
    """No label sequence is possible under the constraints: log Z = -inf."""


@dataclass(frozen=True)
class BatchPotentials:
    """Log-potentials of the sentences of a batch; -inf = impossible.

    node: float64[n, L], START transitions and stop scores included.
    edge: float64[1, L, L] (the same at every position) or float64[n, L, L] (unused at the first
    token of a sentence), by previous label and label.

    ValueError for arrays of other types or shapes: kernels read them unchecked.
    """

    batch: Batch
    node: F64
    edge: F64

    def __post_init__(self) -> None:
        n = self.batch.n_tokens
        check_array(self.node, "node potentials", np.float64, (n, None))
        L = self.node.shape[1]
        check_array(self.edge, "edge potentials", np.float64, (None, L, L))
        if len(self.edge) not in (1, n):
            raise ValueError(f"edge potentials of {len(self.edge)} positions, for {n} tokens")

    def path_scores(self, labels: I32) -> F64:
        """Return float64[n]: the potential of each factor along the labels int32[n].

        Raises ValueError unless there is a label of the model for every token.
        """
        n, L = self.node.shape
        check_array(labels, "labels", np.int32, (n,), (0, L))
        out = np.empty(n)
        paths.path_scores(self.node, self.edge, self.batch.offsets, labels, out)
        return out

    def restrict(self, allowed: Bool) -> BatchPotentials:
        """Return potentials with labels impossible where they are not allowed (bool[n, L])."""
        return self.with_node(np.where(allowed, self.node, -np.inf))

    def with_node(self, node: F64) -> BatchPotentials:
        """Return potentials with other node potentials; inference overwrites no shared array."""
        edge = self.edge if self.edge.shape[0] == 1 else self.edge.copy()
        return replace(self, node=node, edge=edge)

    def posterior(self, weights: F64 | None = None, *, counted: bool = True) -> BatchPosterior:
        """Return log-partitions, and marginals times the weights of the sentences.

        weights: float64[s]; None: ones.
        counted: False may leave out sums of edge marginals over positions, for callers that read
            none: `edge` is float64[0, L, L] then.
        Edge potentials that depend on the position are overwritten with the edge marginals.
        Raises InfeasibleSentenceError for a sentence without a possible labeling.
        """
        if weights is not None:
            weights = sentence_weights(weights, self.batch)
            if (weights != weights[0]).any():  # a sum over all edges cannot be weighted by sentence
                return self.per_position().posterior().weighted(weights)
            return self.posterior().weighted(weights)
        batch = self.batch
        n, L = self.node.shape
        log_scale, mu = np.empty(n), np.empty((n, L))
        status = np.empty(len(batch.offsets) - 1, np.int8)
        if self.edge.shape[0] == 1:
            out = mu, log_scale, status
            edge = shared.shared(self.node, self.edge, batch, *out, counted=counted)
        else:
            edge, groups = self.edge, batch.groups()
            varying.varying(self.node, edge, batch.offsets, groups, mu, log_scale, status)
        check_feasible(batch, status)
        return BatchPosterior(batch, log_scale, mu, edge)

    def log_likelihood(self, labels: I32, weights: F64 | None = None) -> tuple[F64, BatchPosterior]:
        """Return float64[n], sums to log p of the labels int32[n] over each sentence.

        Also its derivatives by the potentials, times the weights float64[s] of the sentences: as
        a posterior, of which `log_scale` stays that of all labelings.
        weights: None: ones. Raises InfeasibleSentenceError as `posterior`, which overwrites the
        same potentials.
        """
        gold = self.path_scores(labels)
        slopes = self.posterior(weights).times(-1.0)
        own = sentence_weights(weights, self.batch)
        paths.add_path(self.batch.offsets, labels, own, slopes.node, slopes.edge)
        return gold - slopes.log_scale, slopes

    def per_position(self) -> BatchPotentials:
        """Return the same potentials with a transition matrix for every position."""
        n = self.batch.n_tokens
        if self.edge.shape[0] == n:
            return self
        edge = np.broadcast_to(self.edge, (n, *self.edge.shape[1:])).copy()
        return replace(self, edge=edge)

    def viterbi(self) -> I32:
        """Return int32[n]: the best labels of every sentence; ties go to the smallest labels.

        Raises InfeasibleSentenceError for a sentence without a possible labeling.
        """
        path = np.empty(self.batch.n_tokens, np.int32)
        status = np.empty(len(self.batch.offsets) - 1, np.int8)
        scaled.viterbi(self.node, self.edge, self.batch.offsets, path, status)
        check_feasible(self.batch, status)
        return path


@dataclass(frozen=True)
class BatchPosterior:
    """Posterior of the sentences of a batch.

    Marginals are multiplied by the weights of their sentences, if there are any.

    Attributes
    ----------
    log_scale: float64[n], sums to log Z over each sentence.
    node: float64[n, L], mu_t(b) = p(y_t = b | x).
    edge: float64[n, L, L], xi_t(a, b) = p(y_{t-1} = a, y_t = b | x), zero at first tokens; or
        float64[1, L, L], the sum of xi over the batch; float64[0, L, L] where it was left out.
    triples: of second-order chains, the sums over the batch of the marginals of three labels.
    live: of `LivePotentials`, float64[n, K], the marginals of transitions with scores by position;
        `edge` is the sum over the batch then, theirs included.
    """

    batch: Batch
    log_scale: F64
    node: F64
    edge: F64
    triples: LabelTriples | None = None
    live: F64 | None = None

    def log_z(self) -> F64:
        """Return float64[s]: the log-partition of each sentence."""
        return per_sentence(self.log_scale, self.batch)

    def times(self, factor: float) -> BatchPosterior:
        """Multiply the marginals by a factor, in place where they are arrays over tokens."""
        if factor == 1.0:
            return self
        for marginals in (self.node, self.edge, self.live):
            if marginals is not None:  # edges of a batch take up to 1 MB
                np.multiply(marginals, factor, out=marginals)
        return self if self.triples is None else replace(self, triples=self.triples.times(factor))

    def weighted(self, weights: F64) -> BatchPosterior:
        """Multiply a first-order posterior by sentence weights float64[s], in place.

        The weights must be equal if the edge marginals are a sum over positions.
        """
        factor = np.repeat(weights, np.diff(self.batch.offsets))
        self.node[:] *= factor[:, None]
        if self.edge.shape[0] == len(self.node):
            self.edge[:] *= factor[:, None, None]
        else:
            self.edge[:] *= weights[0]
        return self


def per_sentence(values: F64, batch: Batch) -> F64:
    """Return float64[s]: the sum of values float64[n] over each sentence."""
    return np.add.reduceat(values, batch.offsets[:-1])


def sentence_weights(weights: F64 | None, batch: Batch) -> F64:
    """Return the weights of the sentences of a batch, as `one_weight_each`."""
    return one_weight_each(weights, len(batch.offsets) - 1)


def one_weight_each(weights: F64 | None, n: int) -> F64:
    """Return the weights float64[n] of n sentences; None: ones.

    Raises ValueError unless there is one weight per sentence.
    """
    if weights is None:
        return np.ones(n)
    if weights.shape != (n,):
        raise ValueError(f"{list(weights.shape)} weights for {n} sentences, not one per sentence")
    return weights


def check_feasible(batch: Batch, status: I8) -> None:
    """Raise InfeasibleSentenceError for the first sentence of status INFEASIBLE (int8[s])."""
    if status.any() and (status == scaled.INFEASIBLE).any():  # any() alone is fast
        i = batch.sentence_lo + int(np.argmax(status == scaled.INFEASIBLE))
        raise InfeasibleSentenceError(f"sentence {i}: no label sequence is possible")
