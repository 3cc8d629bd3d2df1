"""Second-order chains of a few labels, and what all label sequences say of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from sslbench.engine.crf.data import Batch, LabelTriples
from sslbench.engine.crf.first_order.batch import BatchPosterior
from sslbench.engine.crf.second_order.batch import SecondOrderPotentials
from sslbench.engine.types import F64
from support.crf_oracle import log_sum

LENGTHS = [3, 1, 4, 2, 5, 1, 2, 3]


@dataclass(frozen=True)
class Chain:
    """One sentence's log-potentials, enumerated: paths int[P, T], scores and probabilities [P]."""

    node: F64
    edge: F64
    triples: LabelTriples

    def __post_init__(self) -> None:
        T, L = self.node.shape
        paths = np.array(list(product(range(L), repeat=T)))
        scores = np.array([self.score(y) for y in paths.tolist()])
        log_z = log_sum(scores)
        p = np.exp(scores - log_z) if log_z > -np.inf else np.zeros(len(scores))
        for name, value in (("paths", paths), ("scores", scores), ("log_z", log_z), ("p", p)):
            object.__setattr__(self, name, value)

    def score(self, y: list[int]) -> float:
        T, total, of = len(y), 0.0, self.triples
        for t in range(T):
            total += self.node[t, y[t]]
            if t >= 1:
                total += self.edge[t if len(self.edge) > 1 else 0, y[t - 1], y[t]]
            if t == 1:
                total += of.begin[y[0], y[1]]
            if t >= 2:
                total += of.inner[y[t - 2], y[t - 1], y[t]]
        return total + (of.end[y[-2], y[-1]] if T > 1 else 0.0)

    def expected(self, values: F64) -> tuple[F64, F64, LabelTriples]:
        """Sums of values float64[P] over the paths with each label, edge (per position), triple."""
        T, L = self.node.shape
        node, edge = np.zeros((T, L)), np.zeros((T, L, L))
        of = LabelTriples(np.zeros((L, L)), np.zeros((L, L, L)), np.zeros((L, L)))
        for y, value in zip(self.paths, values, strict=True):
            for t in range(T):
                node[t, y[t]] += value
                if t >= 1:
                    edge[t, y[t - 1], y[t]] += value
                if t == 1:
                    of.begin[y[0], y[1]] += value
                if t >= 2:
                    of.inner[y[t - 2], y[t - 1], y[t]] += value
            if T > 1:
                of.end[y[-2], y[-1]] += value
        return node, edge, of

    @property
    def entropy(self) -> float:
        used = self.p > 0
        return -float(self.p[used] @ np.log(self.p[used]))

    @property
    def entropy_slopes(self) -> F64:
        """Per path, what sums to d(-H): p (log p + H)."""
        log_p = np.where(self.p > 0, np.log(np.maximum(self.p, 1e-300)), 0.0)
        return self.p * (log_p + self.entropy)


def potentials_of(
    rng: np.random.Generator,
    lengths: list[int],
    L: int,
    scale: float = 1.0,
    *,
    varying: bool = False,
    masked: bool = False,
) -> SecondOrderPotentials:
    n = sum(lengths)
    offsets = np.cumsum([0, *lengths]).astype(np.int64)
    edge = scale * rng.normal(size=(n if varying else 1, L, L))
    if masked:
        forbidden = rng.random((L, L)) < 0.4
        forbidden[np.arange(L), np.arange(L)] = False
        edge[:, forbidden] = -np.inf
    triples = LabelTriples(*(scale * rng.normal(size=(L,) * k) for k in (2, 3, 2)))
    batch = Batch(0, n, 0, len(lengths), offsets)
    return SecondOrderPotentials(batch, scale * rng.normal(size=(n, L)), edge, triples)


def chains(potentials: SecondOrderPotentials) -> list[Chain]:
    cut = potentials.batch.offsets
    edges = [potentials.edge] * (len(cut) - 1)
    if len(potentials.edge) > 1:
        edges = [potentials.edge[a:b] for a, b in pairwise(cut)]
    nodes = [potentials.node[a:b] for a, b in pairwise(cut)]
    return [Chain(n, e, potentials.triples) for n, e in zip(nodes, edges, strict=True)]


def close(actual: object, wanted: object, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)


def check_sums(
    actual: BatchPosterior, potentials: SecondOrderPotentials, values: list[F64], weights: F64
) -> None:
    """Labels, edges and triples of a posterior, against weighted sums over all paths."""
    parts = [c.expected(w * v) for c, v, w in zip(chains(potentials), values, weights, strict=True)]
    close(actual.node, np.concatenate([node for node, _, _ in parts]))
    edges = np.concatenate([edge for _, edge, _ in parts])
    close(actual.edge, edges if len(potentials.edge) > 1 else edges.sum(axis=0, keepdims=True))
    assert actual.triples is not None
    for k, part in enumerate(actual.triples):
        close(part, sum(triples[k] for _, _, triples in parts))
