"""Terms of an objective: each gives values per sentence and clique weights.

A term looks at the potentials of a block and returns the value of each sentence and its derivative
with respect to every log-potential (clique weights omega, specification section 7.7).  The model
turns clique weights into a gradient; no term knows about weights, attributes or templates.
Signs: every term is something to maximise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..types import F64, I32, Bool
from .chain import InfeasibleSentenceError
from .data import Block
from .kernels import scores
from .lattice import BlockPosterior, BlockPotentials, Triples, per_sentence
from .trigrams import TriplePotentials, add_triples, expected_steps, soft_triples


@dataclass(frozen=True)
class CliqueWeights:
    """value: float64[s]; node: float64[n, L], edge: float64[1 or n, L, L] and, of second-order
    chains, triples: d value / d phi.
    """

    value: F64
    node: F64
    edge: F64
    triples: Triples | None = None

    @classmethod
    def difference(
        cls, value: F64, plus: BlockPosterior, minus: BlockPosterior, factor: float = 1.0
    ) -> CliqueWeights:
        """factor (value, plus - minus): posteriors of one block."""
        triples = None
        if plus.triples is not None and minus.triples is not None:
            triples = plus.triples.plus(minus.triples, -1.0).times(factor)
        node, edge = plus.node - minus.node, plus.edge - minus.edge
        return cls(factor * value, factor * node, factor * edge, triples)


class Term(Protocol):
    """One summand of an objective over the sentences of one corpus."""

    def evaluate(self, potentials: BlockPotentials) -> CliqueWeights:
        """May consume potentials.edge."""
        ...

    def n_tokens(self, lengths: F64) -> float:
        """Weighted tokens that carry a target (tolerances are per token)."""
        ...


def _weights_of(weights: F64 | None, block: Block) -> F64:
    n = block.sentence_hi - block.sentence_lo
    return np.ones(n) if weights is None else weights[block.sentences]


def _weighted(weight: F64, value: F64) -> F64:
    """weight * value, and 0 where the weight is 0 even if the value is -inf."""
    return np.multiply(weight, value, out=np.zeros_like(value), where=weight != 0)


@dataclass(frozen=True)
class HardLabels:
    """w_i log p(y_i | x_i): labels int32[N] over all tokens, weights float64[S] or None for 1."""

    labels: I32
    weights: F64 | None = None

    def evaluate(self, potentials: BlockPotentials) -> CliqueWeights:
        block = potentials.block
        weight = _weights_of(self.weights, block)
        y = self.labels[block.tokens]
        gold = potentials.gold_steps(y)
        posterior = potentials.posterior(None if self.weights is None else weight)
        node, edge, triples = posterior.node, posterior.edge, posterior.triples
        np.negative(node, out=node)
        np.negative(edge, out=edge)
        scores.add_path(block.offsets, y, weight, node, edge)
        if triples is not None:
            triples = triples.times(-1.0)
            add_triples(y, block.offsets, weight, triples)
        value = _weighted(weight, per_sentence(gold - posterior.step, block))
        if np.isneginf(value).any():
            i = block.sentence_lo + int(np.argmin(value))
            raise InfeasibleSentenceError(f"sentence {i}: its labels break the constraints")
        return CliqueWeights(value, node, edge, triples)

    def n_tokens(self, lengths: F64) -> float:
        return float(lengths.sum() if self.weights is None else (lengths * self.weights).sum())


@dataclass(frozen=True)
class SoftTargets:
    """Expected log-likelihood under targets q: sum q phi - log Z, the cross-entropy to a chain.

    node: float64[N, L] node marginals of q; edge: float64[N, L, L] arc marginals (slice 0 of each
    sentence unused), or None for the independent targets q_{t-1} x q_t.
    """

    node: F64
    edge: F64 | None = None
    weights: F64 | None = None

    def evaluate(self, potentials: BlockPotentials) -> CliqueWeights:
        block = potentials.block
        weight = _weights_of(self.weights, block)
        q_node = self.node[block.tokens]
        q_edge = self._edges(block, q_node)
        potentials = potentials.per_position()
        expected = _dot(q_node, potentials.node) + _dot(q_edge, potentials.edge)
        triples = None
        if isinstance(potentials, TriplePotentials):
            if self.edge is not None:
                raise ValueError("targets of arcs do not tell those of three labels in a row")
            expected += expected_steps(potentials, q_node)
            triples = soft_triples(q_node, block.offsets, weight)
        posterior = potentials.posterior(weight)
        factor = np.repeat(weight, np.diff(block.offsets))
        node = factor[:, None] * q_node - posterior.node
        edge = factor[:, None, None] * q_edge - posterior.edge
        if triples is not None and posterior.triples is not None:
            triples = triples.plus(posterior.triples, -1.0)
        value = _weighted(weight, per_sentence(expected - posterior.step, block))
        return CliqueWeights(value, node, edge, triples)

    def _edges(self, block: Block, q_node: F64) -> F64:
        if self.edge is not None:
            edge = self.edge[block.tokens].copy()
        else:
            edge = np.empty((block.n_tokens, *q_node.shape[1:], q_node.shape[1]))
            edge[1:] = q_node[:-1, :, None] * q_node[1:, None, :]
        edge[block.first] = 0.0
        return edge

    def n_tokens(self, lengths: F64) -> float:
        return float(lengths.sum() if self.weights is None else (lengths * self.weights).sum())


@dataclass(frozen=True)
class LogPartition:
    """- weight log Z: what an expected log-likelihood has besides its linear part.

    With ``ChainCRF.train(linear=)`` holding expected counts it is the M-step of any EM whose
    E-step sums its posteriors up: neither arc marginals nor targets per token are kept.
    """

    weight: float = 1.0

    def evaluate(self, potentials: BlockPotentials) -> CliqueWeights:
        posterior = potentials.posterior()
        of, factor = posterior.triples, -self.weight
        triples = None if of is None else of.times(factor)
        value = factor * posterior.log_z()
        return CliqueWeights(value, factor * posterior.node, factor * posterior.edge, triples)

    def n_tokens(self, lengths: F64) -> float:
        return self.weight * float(lengths.sum())


@dataclass(frozen=True)
class PartialLabels:
    """log p(A | x) = log Z_A - log Z: allowed bool[N, L] marks the labels of A at each token.

    ``log_evidence`` float64[N, L], when given, is added to the node scores of the numerator:
    virtual evidence psi with log psi, of which partial labels are the case psi in {0, 1}.
    """

    allowed: Bool
    log_evidence: F64 | None = None
    weights: F64 | None = None

    def evaluate(self, potentials: BlockPotentials) -> CliqueWeights:
        block = potentials.block
        weight = _weights_of(self.weights, block)
        unused = np.repeat(weight == 0, np.diff(block.offsets))  # may forbid everything
        inside = potentials.restrict(self.allowed[block.tokens] | unused[:, None])
        if self.log_evidence is not None:
            inside.node[:] += np.where(unused[:, None], 0.0, self.log_evidence[block.tokens])
        numerator, free = inside.posterior(weight), potentials.posterior(weight)
        value = _weighted(weight, per_sentence(numerator.step - free.step, block))
        return CliqueWeights.difference(value, numerator, free)

    def n_tokens(self, lengths: F64) -> float:
        return float(lengths.sum() if self.weights is None else (lengths * self.weights).sum())


def _dot(target: F64, potential: F64) -> F64:
    """sum target * potential per token (float64[n]); 0 * -inf = 0."""
    product = np.where(target > 0.0, target * np.where(target > 0.0, potential, 0.0), 0.0)
    total: F64 = product.reshape(len(product), -1).sum(axis=1)
    return total
