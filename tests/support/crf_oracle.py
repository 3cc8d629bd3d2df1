"""Enumeration of all label sequences of small chains, one factor and one weight at a time.

Written from docs/specs/crf_engine.md, independently of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.engine.types import F64, I32, Bool
from support.log_space_chain import Potentials

INF = np.inf


@dataclass(frozen=True)
class Model:
    """The parts of one chain, named as in docs/specs/crf_engine.md, section 3.

    u float64[T, L]; w float64[L+1, L], row L START; e float64[L]; v float64[T, L+1, L];
    transition_mask bool[L+1, L].
    """

    u: F64
    w: F64
    e: F64
    v: F64 | None = None
    transition_mask: Bool | None = None

    def potentials(self) -> Potentials:
        return Potentials.build(self.u, self.w, self.e, self.v, self.transition_mask)

    def head(self, length: int) -> Model:
        """The model of the first tokens alone."""
        v = None if self.v is None else self.v[:length]
        return replace(self, u=self.u[:length], v=v)

    def score(self, y: Sequence[int]) -> float:
        previous, total = len(self.e), 0.0
        for t, label in enumerate(y):
            total += self.u[t, label] + self.w[previous, label]
            if self.v is not None:
                total += self.v[t, previous, label]
            if self.transition_mask is not None and not self.transition_mask[previous, label]:
                return -INF
            previous = label
        return total + self.e[previous]

    def enumerate(self) -> Enumeration:
        return Enumeration(*self.u.shape, self.score)


class Enumeration:
    """All label sequences of length T over L labels: int[P, T], their scores and probabilities."""

    def __init__(self, T: int, L: int, score: Callable[[Sequence[int]], float]) -> None:
        self.paths = np.array(list(product(range(L), repeat=T)))
        self.scores = np.array([score(y) for y in self.paths.tolist()], dtype=np.float64)
        self.log_z = log_sum(self.scores)
        if self.possible:
            self.p = np.exp(self.scores - self.log_z)
        self.has_label = (self.paths[:, :, None] == np.arange(L)).astype(float)  # [P, T, L]
        self.has_edge = np.zeros((len(self.paths), T, L, L))
        self.has_edge[:, 1:] = self.has_label[:, :-1, :, None] * self.has_label[:, 1:, None, :]

    @classmethod
    def of(cls, potentials: Potentials) -> Enumeration:
        T, L = potentials.node.shape
        edge = np.broadcast_to(potentials.edge, (T, L, L))

        def score(y: Sequence[int]) -> float:
            edges = sum(edge[t, y[t - 1], y[t]] for t in range(1, T))
            return sum(potentials.node[t, y[t]] for t in range(T)) + edges

        return cls(T, L, score)

    @property
    def possible(self) -> bool:
        return self.log_z > -INF

    def mean(self, values: F64) -> float:
        """Expectation of values float64[P]; impossible sequences do not count."""
        return float(self.p[self.p > 0] @ values[self.p > 0])

    @property
    def node(self) -> F64:
        return np.tensordot(self.p, self.has_label, 1)

    @property
    def edge(self) -> F64:
        return np.tensordot(self.p, self.has_edge, 1)

    def entropy(self) -> float:
        return -self.mean(self.scores - self.log_z)

    def additive(self, r_node: F64, r_edge: F64 | None = None) -> F64:
        """R(y) of every sequence: float64[P]."""
        T, L = r_node.shape
        r_edge = np.broadcast_to(0.0 if r_edge is None else r_edge, (T, L, L))

        def score(y: I32) -> float:
            edges = sum(r_edge[t, y[t - 1], y[t]] for t in range(1, T))
            return sum(r_node[t, y[t]] for t in range(T)) + edges

        return np.array([score(y) for y in self.paths], dtype=np.float64)

    def covariance(self, values: F64) -> tuple[float, F64, F64]:
        """E[values] and its covariance with every label and every edge."""
        keep = self.p > 0
        mean = self.mean(values)
        weight = self.p[keep] * (values[keep] - mean)
        return (
            mean,
            np.tensordot(weight, self.has_label[keep], 1),
            np.tensordot(weight, self.has_edge[keep], 1),
        )

    def best(self) -> tuple[float, I32]:
        """Highest score; ties to the smallest final label, then the smallest one before it, ..."""
        winners = self.paths[self.scores == self.scores.max()]
        return self.scores.max(), min(winners.tolist(), key=lambda y: y[::-1])

    def most_expected_labels(self) -> float:
        """The best expected number of correct labels among the possible sequences."""
        gains = np.einsum("ptl,tl->p", self.has_label, self.node)
        return gains[self.scores > -INF].max()


def log_sum(values: F64) -> float:
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum())) if top > -INF else -INF


def random_mask(rng: np.random.Generator, shape: tuple[int, ...], holes: float) -> Bool:
    return rng.random(shape) >= holes


def random_model(rng: np.random.Generator, T: int | None = None, L: int | None = None) -> Model:
    """Up to 4 tokens and 3 labels; half of them with a transition_mask, half with observed
    transitions.
    """
    L = L or int(rng.integers(1, 4))
    T = T or int(rng.integers(1, 5))
    scale = rng.choice([0.3, 3.0, 30.0])
    v = scale * rng.normal(size=(T, L + 1, L)) if rng.random() < 0.5 else None
    transition_mask = random_mask(rng, (L + 1, L), 0.35) if rng.random() < 0.5 else None
    return Model(
        scale * rng.normal(size=(T, L)),
        scale * rng.normal(size=(L + 1, L)),
        scale * rng.normal(size=L),
        v,
        transition_mask,
    )


def random_models(n: int, seed: int = 0) -> Iterator[tuple[Model, Enumeration]]:
    """Random models that allow at least one label sequence, with their enumerations."""
    rng = np.random.default_rng(seed)
    while n:
        model = random_model(rng)
        truth = model.enumerate()
        if truth.possible:
            yield model, truth
            n -= 1


def long_log_z(potentials: Potentials) -> float:
    """log Z by the forward recursion in extended precision (for chains too long to enumerate)."""
    T = len(potentials.node)
    node, edge = potentials.node.astype(np.longdouble), potentials.edge.astype(np.longdouble)
    alpha = node[0]
    for t in range(1, T):
        x = alpha[:, None] + edge[t if len(edge) > 1 else 0]
        top = np.where(np.isneginf(x.max(0)), 0, x.max(0))
        with np.errstate(divide="ignore"):
            alpha = top + np.log(np.exp(x - top).sum(0)) + node[t]
    top = alpha.max()
    return top + np.log(np.exp(alpha - top).sum())


def batch_of(chains: Sequence[Potentials], first_sentence: int = 0) -> BatchPotentials:
    """Chains side by side; they share the first one's transitions if that has only one matrix."""
    lengths = [len(p.node) for p in chains]
    offsets = np.cumsum([0, *lengths]).astype(np.int64)
    n = int(offsets[-1])
    batch = Batch(10, 10 + n, first_sentence, first_sentence + len(chains), offsets)
    node = np.concatenate([p.node for p in chains])
    edge = chains[0].edge.copy()
    if any(p.edge.shape[0] > 1 for p in chains) or len({p.edge.tobytes() for p in chains}) > 1:
        edge = np.concatenate([varying(p).edge for p in chains])
    return BatchPotentials(batch, node, edge)


def varying(potentials: Potentials) -> Potentials:
    """The same chain with a transition matrix of its own at every position."""
    T, L = potentials.node.shape
    return Potentials(potentials.node, np.broadcast_to(potentials.edge, (T, L, L)).copy())


def same_up_to(x: F64, y: F64, tolerance: float) -> None:
    """Equal to an absolute and relative tolerance (infinities in the same places)."""
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def slopes(function: Callable[[F64], float], x: F64, step: float = 1e-6) -> F64:
    """Central differences of a function of float64[...] at x."""
    out = np.empty_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        out[i] = (function(up) - function(down)) / (2 * step)
    return out


def check_sums(node: np.ndarray, edge: np.ndarray, bound: float) -> None:
    """The covariances of the factors of one position sum to zero."""
    assert abs(node.sum(axis=1)).max() <= bound
    assert abs(edge.sum(axis=(1, 2))).max() <= bound
