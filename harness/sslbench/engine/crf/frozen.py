"""The M-step of EM for any model: the likelihood of labels that a frozen chain expects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.crf.data import Batch, LabelTriples
from sslbench.engine.crf.first_order.batch import BatchPotentials, per_sentence
from sslbench.engine.crf.second_order.batch import SecondOrderPotentials
from sslbench.engine.crf.terms import PotentialGradient
from sslbench.engine.types import F64


@dataclass(frozen=True)
class FrozenChain:
    """weight E_q log p(y | x), with q the posterior of potentials that stay what they were.

    For a model that is linear in its parameters, E_q log p is a product of parameters and expected
    features, less log Z: `LogPartition` with ``expected_counts``, which need no room per token.
    For others, q itself is stored: as potentials, of which any batch can be cut.

    node: float64[N, L], node potentials of q.  edge: float64[1, L, L], of all positions, or
    float64[N, L, L].  triples: of second-order chains.

    The value of three labels in a row is a sum over a batch, and is counted at its first sentence.
    """

    stateless: ClassVar[bool] = True

    node: F64
    edge: F64
    weight: float = 1.0
    triples: LabelTriples | None = None

    def __post_init__(self) -> None:
        check_array(self.node, "node potentials", np.float64, (None, None))
        N, L = self.node.shape
        check_array(self.edge, "edge potentials", np.float64, (None, L, L))
        if len(self.edge) not in (1, N):
            raise ValueError(f"edge potentials of {len(self.edge)} positions, for {N} tokens")

    @classmethod
    def of(
        cls,
        potentials: Iterable[BatchPotentials],
        n_labels: int,
        *,
        evidence: F64 | None = None,
        weight: float = 1.0,
    ) -> FrozenChain:
        """Freeze the potentials of a whole text, in order; evidence: float64[N, L], added to node.

        They are copied, since inference may overwrite them.
        """
        node, edges, triples = [np.empty((0, n_labels))], [], None
        for batch in potentials:
            if isinstance(batch, SecondOrderPotentials):
                triples = batch.triples
            node.append(batch.node.copy())
            edges.append(batch.edge.copy())
        nodes = np.concatenate(node)
        if evidence is not None:
            check_array(evidence, "evidence", np.float64, nodes.shape)
            nodes += evidence
        if not edges:
            return cls(nodes, np.zeros((1, n_labels, n_labels)), weight)
        if all(len(edge) == 1 and np.array_equal(edge, edges[0]) for edge in edges):
            return cls(nodes, edges[0], weight, triples)
        sizes = zip(node[1:], edges, strict=True)
        wide = [np.broadcast_to(edge, (len(n), *edge.shape[1:])) for n, edge in sizes]
        return cls(nodes, np.concatenate(wide), weight, triples)

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        batch = potentials.batch
        if self.node[batch.tokens].shape != potentials.node.shape:
            raise ValueError("the frozen chain is not one of this text")
        q = self._potentials(batch).posterior()
        expected = _products(q.node, potentials.node).sum(axis=1)
        expected += _products(q.edge, potentials.edge).sum(axis=(1, 2))
        value = per_sentence(expected, batch)
        if q.triples is not None and isinstance(potentials, SecondOrderPotentials):
            parts = zip(q.triples, potentials.triples, strict=True)
            value[0] += sum(float(_products(p, score).sum()) for p, score in parts)
        if len(potentials.edge) == 1:
            q = replace(q, edge=q.edge.sum(axis=0, keepdims=True))
        free = potentials.posterior()
        return PotentialGradient.difference(value - free.log_z(), q, free, self.weight)

    def _potentials(self, batch: Batch) -> BatchPotentials:
        """Return the potentials of q on a batch, position by position, in arrays of their own."""
        node, shape = self.node[batch.tokens].copy(), (batch.n_tokens, *self.edge.shape[1:])
        edge = self.edge if len(self.edge) == 1 else self.edge[batch.tokens]
        edge = np.broadcast_to(edge, shape).copy()
        if self.triples is None:
            return BatchPotentials(batch, node, edge)
        return SecondOrderPotentials(batch, node, edge, self.triples)

    def n_tokens(self, lengths: F64) -> float:
        return self.weight * float(lengths.sum())


def _products(probability: F64, score: F64) -> F64:
    """Return probability * score, and 0 where the probability is 0 even if the score is -inf."""
    return np.where(probability > 0.0, probability * np.where(probability > 0.0, score, 0.0), 0.0)
