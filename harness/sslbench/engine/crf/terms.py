"""Terms of an objective: each gives values per sentence and potential gradients.

A term reads the potentials of a batch. It returns the value of each sentence and its derivative
with respect to every log-potential, the potential gradient (omega in docs/specs/crf_engine.md,
section 7.7).  The model turns that into a gradient of the weights; no term knows about weights,
attributes or templates.  Every term is maximized.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from sslbench.engine.crf.data import Batch, LabelTriples
from sslbench.engine.crf.first_order.batch import (
    BatchPosterior,
    BatchPotentials,
    InfeasibleSentenceError,
    one_weight_each,
    per_sentence,
)
from sslbench.engine.crf.second_order.batch import (
    SecondOrderPotentials,
    expected_scores,
    soft_label_triples,
)
from sslbench.engine.types import F64, I32, AnyArray, Bool


@dataclass(frozen=True)
class PotentialGradient:
    """Values of a term on a batch and their derivatives with respect to the log-potentials.

    value: float64[s]. node: float64[n, L], edge: float64[1 or n, L, L] and, for second-order
    chains, triples: derivatives with respect to the potentials of the same name and shape.
    live: float64[n, K], with respect to the scores of `LivePotentials`.
    """

    value: F64
    node: F64
    edge: F64
    triples: LabelTriples | None = None
    live: F64 | None = None

    def check(self, n: int, L: int, columns: int | None = None) -> None:
        """Raise ValueError if the derivatives do not fit a batch of n tokens and L labels.

        columns: of scores by position, where transitions depend on it; None: they do not.
        """
        edges = [(n, L, L)] if columns is not None else [(1, L, L), (n, L, L)]
        arrays: list[tuple[F64, list[Any]]] = [(self.node, [(n, L)])]
        if self.live is not None:
            edges, arrays = [(1, L, L)], [*arrays, (self.live, [(n, columns)])]
        for array, shapes in [*arrays, (self.edge, edges)]:
            if array.shape not in shapes or array.dtype != np.float64:
                raise ValueError(f"a term gave derivatives {array.dtype} {array.shape}")
            if not array.flags.c_contiguous:
                raise ValueError("a term gave derivatives that are not C-contiguous")

    @classmethod
    def of(cls, value: F64, slopes: BatchPosterior) -> PotentialGradient:
        """Return a value float64[s] with the derivatives in the arrays of a posterior."""
        return cls(value, slopes.node, slopes.edge, slopes.triples, slopes.live)

    @classmethod
    def of_log_z(cls, posterior: BatchPosterior, factor: float) -> PotentialGradient:
        """Return factor log Z, with factor times the marginals as derivatives.

        Overwrites the posterior.
        """
        return cls.of(factor * posterior.log_z(), posterior.times(factor))

    @classmethod
    def difference(
        cls, value: F64, plus: BatchPosterior, minus: BatchPosterior, factor: float = 1.0
    ) -> PotentialGradient:
        """Return factor times value, with factor times (plus - minus) as derivatives.

        plus, minus: posteriors of one batch; `plus` is overwritten.
        """
        triples = None
        if plus.triples is not None and minus.triples is not None:
            triples = plus.triples.plus(minus.triples, -1.0)
        np.subtract(plus.node, minus.node, out=plus.node)
        np.subtract(plus.edge, minus.edge, out=plus.edge)
        if plus.live is not None and minus.live is not None:
            np.subtract(plus.live, minus.live, out=plus.live)
        return cls.of(factor * value, replace(plus, triples=triples).times(factor))


class Term(Protocol):
    """One summand of an objective over the sentences of one corpus.

    ``weights`` of a term: float64[S], one factor per sentence; None = 1 for all.

    Batches are evaluated in order by one thread, so that a term may add something up. Several
    threads evaluate batches of a term with the class attribute ``stateless = True``.

    A term whose value is a function of the whole text has ``survey(potentials)``, which gets the
    potentials of all batches before the terms of any part are evaluated.

    Only a term with the class attribute ``live = True`` gets `LivePotentials`. A term with
    ``labeled(S)`` that returns labels and weights is the sum of weight_i log p(labels_i) over S
    sentences, which `fused` may compute in its place.
    """

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        """Return values and derivatives on one batch; may overwrite ``potentials.edge``."""
        ...

    def n_tokens(self, lengths: F64) -> float:
        """Return the weighted number of tokens that carry a target; tolerances are per token.

        lengths: float64[S], tokens of each sentence.
        """
        ...


@dataclass
class Observed:
    """A term that also adds up statistics of its corpus while it is evaluated.

    observe: takes the potentials of a batch, and returns the values of the term there and
    statistics of the batch by name (numbers or arrays).
    The last evaluation of each batch counts, in whatever order a training goes through them.
    """

    term: Term
    observe: Callable[[BatchPotentials], tuple[PotentialGradient, dict[str, Any]]]
    _of_batch: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict, init=False)

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        gradient, statistics = self.observe(potentials)
        key = potentials.batch.sentence_lo, potentials.batch.sentence_hi
        if key not in self._of_batch and potentials.batch.sentence_lo == 0:
            self._of_batch.clear()  # the text has been cut anew
        self._of_batch[key] = statistics
        return gradient

    def n_tokens(self, lengths: F64) -> float:
        return self.term.n_tokens(lengths)

    @staticmethod
    def total(terms: Iterable[Observed], name: str) -> Any:
        """Return the sum of a statistic over terms; 0 where none has been evaluated."""
        return sum(part.get(name, 0) for term in terms for part in term._of_batch.values())


def weights_of(weights: F64 | None, batch: Batch) -> F64:
    """Return the weights of a batch, float64[s]; None: ones.

    Raises ValueError unless there is one weight per sentence of the corpus.
    """
    n = batch.sentence_hi - batch.sentence_lo
    return one_weight_each(None if weights is None else weights[batch.sentences], n)


def _rows_of(values: AnyArray, what: str, potentials: BatchPotentials) -> AnyArray:
    """Return the rows of a batch of values [N, L].

    Raises ValueError if there is not one value per token and label.
    """
    own = values[potentials.batch.tokens]
    if own.shape != potentials.node.shape:
        raise ValueError(f"{what} {list(values.shape)} are not one per token and label")
    return own


def _weighted(weight: F64, value: F64) -> F64:
    """Return weight * value, and 0 where the weight is 0 even if the value is -inf."""
    return np.multiply(weight, value, out=np.zeros_like(value), where=weight != 0)


def value_of_labels(weight: F64, log_p: F64, batch: Batch) -> F64:
    """Return float64[s]: weight float64[s] times log p of the labels of each sentence.

    log_p: float64[n], sums to log p over each sentence.
    Raises InfeasibleSentenceError for labels that are impossible.
    """
    value = _weighted(weight, per_sentence(log_p, batch))
    if np.isneginf(value).any():
        i = batch.sentence_lo + int(np.argmin(value))
        raise InfeasibleSentenceError(f"sentence {i}: its labels break the constraints")
    return value


@dataclass(frozen=True)
class MaskedWords:
    """Log-probabilities of words that the model does not see, for texts without labels.

    A model with the capability "masked_words" computes it, and is trained on it alone: it is no
    function of the potentials of a chain.

    share: of the words that are masked.
    """

    share: float

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        """Raise TypeError: no model computes it so."""
        raise TypeError("masked words are no function of potentials: the model cannot guess words")

    def n_tokens(self, lengths: F64) -> float:
        return float(lengths.sum())


@dataclass(frozen=True)
class HardLabels:
    """w_i log p(y_i | x_i): labels int32[N] over all tokens, weights float64[S] or None for 1."""

    stateless: ClassVar[bool] = True
    live: ClassVar[bool] = True

    labels: I32
    weights: F64 | None = None

    def labeled(self, n_sentences: int) -> tuple[I32, F64]:
        """Return int32[N] and float64[S]; ValueError unless there are as many weights."""
        return self.labels, one_weight_each(self.weights, n_sentences)

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        batch = potentials.batch
        weight = weights_of(self.weights, batch)
        y = self.labels[batch.tokens]
        log_p, slopes = potentials.log_likelihood(y, None if self.weights is None else weight)
        return PotentialGradient.of(value_of_labels(weight, log_p, batch), slopes)

    def n_tokens(self, lengths: F64) -> float:
        return float(lengths.sum() if self.weights is None else (lengths * self.weights).sum())


@dataclass(frozen=True)
class SoftTargets:
    """Expected log-likelihood under targets q: sum q phi - log Z, the cross-entropy to a chain.

    node: float64[N, L] node marginals of q; edge: float64[N, L, L] edge marginals (those of
    first tokens are not used), or None for the independent targets q_{t-1} x q_t. These leave out
    transitions that the chain forbids, which would add -inf whatever the weights.
    """

    stateless: ClassVar[bool] = True

    node: F64
    edge: F64 | None = None
    weights: F64 | None = None

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        batch = potentials.batch
        weight = weights_of(self.weights, batch)
        q_node = _rows_of(self.node, "targets", potentials)
        potentials = potentials.per_position()
        q_edge = self._edges(batch, q_node)
        if self.edge is None:
            q_edge[np.isneginf(potentials.edge)] = 0.0
        expected = _dot(q_node, potentials.node) + _dot(q_edge, potentials.edge)
        triples = None
        if isinstance(potentials, SecondOrderPotentials):
            if self.edge is not None:
                raise ValueError("edge marginals do not give those of three labels in a row")
            expected += expected_scores(potentials, q_node)
            triples = soft_label_triples(q_node, batch.offsets, weight)
        posterior = potentials.posterior(weight)
        factor = np.repeat(weight, np.diff(batch.offsets))
        node = factor[:, None] * q_node - posterior.node
        edge = factor[:, None, None] * q_edge - posterior.edge
        if triples is not None and posterior.triples is not None:
            triples = triples.plus(posterior.triples, -1.0)
        value = _weighted(weight, per_sentence(expected - posterior.log_scale, batch))
        return PotentialGradient(value, node, edge, triples)

    def _edges(self, batch: Batch, q_node: F64) -> F64:
        if self.edge is not None:
            edge = self.edge[batch.tokens].copy()
        else:
            edge = np.empty((batch.n_tokens, *q_node.shape[1:], q_node.shape[1]))
            edge[1:] = q_node[:-1, :, None] * q_node[1:, None, :]
        edge[batch.first] = 0.0
        return edge

    def n_tokens(self, lengths: F64) -> float:
        return float(lengths.sum() if self.weights is None else (lengths * self.weights).sum())


@dataclass(frozen=True)
class LogPartition:
    """- weight log Z: an expected log-likelihood without its linear part.

    Together with the ``expected_counts`` of `ChainCRF.train` it is the M-step of EM. The E-step
    then keeps sums only: neither edge marginals nor targets per token.
    """

    stateless: ClassVar[bool] = True
    live: ClassVar[bool] = True

    weight: float = 1.0

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        return PotentialGradient.of_log_z(potentials.posterior(), -self.weight)

    def n_tokens(self, lengths: F64) -> float:
        return self.weight * float(lengths.sum())


@dataclass(frozen=True)
class PartialLabels:
    """log p(A | x) = log Z_A - log Z: allowed bool[N, L] marks the labels of A at each token.

    log_evidence: float64[N, L], added to the node scores of the numerator: the logarithm of
    virtual evidence psi. Partial labels are the case psi in {0, 1}.
    """

    stateless: ClassVar[bool] = True
    live: ClassVar[bool] = True

    allowed: Bool
    log_evidence: F64 | None = None
    weights: F64 | None = None

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        batch = potentials.batch
        weight = weights_of(self.weights, batch)
        unused = np.repeat(weight == 0, np.diff(batch.offsets))  # may forbid everything
        allowed = _rows_of(self.allowed, "allowed labels", potentials)
        inside = potentials.restrict(allowed | unused[:, None])
        if self.log_evidence is not None:
            evidence = _rows_of(self.log_evidence, "log-evidence", potentials)
            inside.node[:] += np.where(unused[:, None], 0.0, evidence)
        numerator, free = inside.posterior(weight), potentials.posterior(weight)
        value = _weighted(weight, per_sentence(numerator.log_scale - free.log_scale, batch))
        return PotentialGradient.difference(value, numerator, free)

    def n_tokens(self, lengths: F64) -> float:
        return float(lengths.sum() if self.weights is None else (lengths * self.weights).sum())


@dataclass(frozen=True)
class VirtualEvidence:
    """weight (log Z(phi + alpha q) - log Z(phi)) of each sentence: its log-probability, up to a
    constant.

    q: float64[V, L], by vertex; vertex_of: int32[N], -1 = no evidence. Rows are gathered
    batch by batch, never for all tokens at once. The normalizer sums over the evidence too, which
    leaves p(y | x) the plain CRF; if it summed over labels alone, every model would be a fixed
    point of EM. Source: Zeng et al. (2013), equations 5 and 6 (docs/specs/virtual_evidence.md,
    section 4).
    """

    stateless: ClassVar[bool] = True
    live: ClassVar[bool] = True

    q: F64
    vertex_of: I32
    alpha: float
    weight: float = 1.0

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        clamped, free = self.posteriors(potentials)
        value = clamped.log_z() - free.log_z()
        return PotentialGradient.difference(value, clamped, free, self.weight)

    def n_tokens(self, lengths: F64) -> float:
        return self.weight * float(lengths.sum())

    def posteriors(self, potentials: BatchPotentials) -> tuple[BatchPosterior, BatchPosterior]:
        """Return the posteriors with the evidence (clamped) and without (free)."""
        return self.clamp(potentials).posterior(), potentials.posterior()

    def clamp(self, potentials: BatchPotentials) -> BatchPotentials:
        """Return potentials with the evidence added, in arrays that inference may overwrite."""
        vertex = self.vertex_of[potentials.batch.tokens]
        node = potentials.node + self.alpha * np.where(vertex[:, None] >= 0, self.q[vertex], 0.0)
        return potentials.with_node(node)

    def informed(self) -> int:
        """Return the number of tokens whose vertex has a distribution that is not all zero."""
        has = np.append(self.q.any(axis=1), False)
        return int(np.count_nonzero(has[self.vertex_of]))


def _dot(target: F64, potential: F64) -> F64:
    """Return the sum of target * potential of each token (float64[n]); 0 * -inf is 0."""
    product = np.where(target > 0.0, target * np.where(target > 0.0, potential, 0.0), 0.0)
    total: F64 = product.reshape(len(product), -1).sum(axis=1)
    return total
