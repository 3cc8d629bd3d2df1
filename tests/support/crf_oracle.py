"""Enumeration of all label sequences of small chains, one factor and one weight at a time.

Written from docs/specs/crf_engine.md, independently of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.engine.crf.terms import PotentialGradient
from sslbench.engine.crf.weights.layout import Layout
from sslbench.engine.features import Attributes
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


# -- weights -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Places:
    """Where each weight sits in the flat vector, as the layout documents it."""

    state: dict[tuple[int, int], int] = field(default_factory=dict)  # attribute, label
    column: dict[tuple[int, int], int] = field(default_factory=dict)  # column, label
    #: previous label or START, label
    transition: dict[tuple[int, int], int] = field(default_factory=dict)
    stop: dict[int, int] = field(default_factory=dict)
    #: attribute, previous label or START, label
    edge: dict[tuple[int, int, int], int] = field(default_factory=dict)
    factors: dict[int, int] = field(default_factory=dict)


def places(layout: Layout) -> Places:
    """[state | columns | transitions, last row START | stop | edges | factors]."""
    L, at = layout.n_labels, Places()
    if layout.state_start is None:
        pairs = list(product(range(layout.n_node), range(L)))
    else:
        starts = layout.state_start
        pairs = [
            (a, int(layout.state_label[k]))
            for a in range(layout.n_node)
            for k in range(starts[a], starts[a + 1])
        ]
    edges = [
        (a, int(layout.transition_code[k]))
        for a in range(layout.n_edge)
        for k in range(layout.transition_start[a], layout.transition_start[a + 1])
    ]
    groups = (
        (at.state, pairs),
        (at.column, product(range(layout.n_columns), range(L))),
        (at.transition, product(range(L + 1 if layout.use_start else L), range(L))),
        (at.stop, range(L) if layout.use_stop else ()),
        (at.edge, [(a, code // L, code % L) for a, code in edges]),
        (at.factors, range(layout.n_factors)),
    )
    total = 0
    for table, keys in groups:
        for key in keys:
            table[key] = total
            total += 1
    return at


@dataclass(frozen=True)
class RandomFactors:
    """Factor features with random values on nodes and edges."""

    h_node: F64  # float64[N, L, K]
    h_edge: F64  # float64[N, L, L, K]
    on_edges: bool = True
    preconditioner: float = 0.5

    @property
    def n_weights(self) -> int:
        return self.h_node.shape[-1]

    def add_scores(self, weights: F64, batch: Batch, node: F64, edge: F64) -> None:
        node += self.h_node[batch.tokens] @ weights
        if self.on_edges:
            edge += self.h_edge[batch.tokens] @ weights

    def expectation(self, batch: Batch, node: F64, edge: F64) -> F64:
        total = np.einsum("nl,nlk->k", node, self.h_node[batch.tokens])
        if self.on_edges:
            inner = ~batch.first
            total += np.einsum("nab,nabk->k", edge[inner], self.h_edge[batch.tokens][inner])
        return total


def dense_potentials(
    layout: Layout,
    weights: F64,
    attributes: Attributes,
    transition_mask: Bool | None = None,
    factors: RandomFactors | None = None,
) -> list[Potentials]:
    """Potentials of every sentence, added up weight by weight."""
    L, at, START = layout.n_labels, places(layout), layout.n_labels
    chains = []
    for lo, hi in zip(attributes.offsets[:-1], attributes.offsets[1:], strict=True):
        node, edge = np.zeros((hi - lo, L)), np.zeros((hi - lo, L, L))
        for t, n in enumerate(range(lo, hi)):
            for b in range(L):
                for a in attributes.node[:, n].tolist():
                    if (a, b) in at.state:
                        node[t, b] += weights[at.state[a, b]]
                for d in range(layout.n_columns):
                    node[t, b] += attributes.dense[n, d] * weights[at.column[d, b]]
                for previous in [START] if t == 0 else range(L):
                    score = (
                        weights[at.transition[previous, b]]
                        if (previous, b) in at.transition
                        else 0.0
                    )
                    for a in attributes.edge[:, n].tolist():
                        if (a, previous, b) in at.edge:
                            score += weights[at.edge[a, previous, b]]
                    if factors is not None and factors.on_edges and t > 0:
                        score += factors.h_edge[n, previous, b] @ weights[list(at.factors.values())]
                    if transition_mask is not None and not transition_mask[previous, b]:
                        score = -INF
                    if t == 0:
                        node[t, b] += score
                    else:
                        edge[t, previous, b] = score
                if factors is not None:
                    node[t, b] += factors.h_node[n, b] @ weights[list(at.factors.values())]
                if t == hi - lo - 1 and layout.use_stop:
                    node[t, b] += weights[at.stop[b]]
        chains.append(Potentials(node, edge))
    return chains


@dataclass
class Probe:
    """A term that stores the potentials it gets and returns fixed potential gradients.

    node_slope float64[N, L], edge_slope float64[N, L, L] (zero at first tokens).
    """

    node_slope: F64
    edge_slope: F64
    seen: list[BatchPotentials] = field(default_factory=list)

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        batch = potentials.batch
        self.seen.append(BatchPotentials(batch, potentials.node.copy(), potentials.edge.copy()))
        edge = self.edge_slope[batch.tokens].copy()
        if potentials.edge.shape[0] != batch.n_tokens:
            edge = edge.sum(axis=0, keepdims=True)
        value = np.zeros(batch.sentence_hi - batch.sentence_lo)
        return PotentialGradient(value, self.node_slope[batch.tokens].copy(), edge)

    def n_tokens(self, lengths: F64) -> float:
        return float(lengths.sum())


def slopes(function: Callable[[F64], float], x: F64, step: float = 1e-6) -> F64:
    """Central differences of a function of float64[...] at x."""
    out = np.empty_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        out[i] = (function(up) - function(down)) / (2 * step)
    return out


def random_attributes(
    rng: np.random.Generator,
    lengths: Sequence[int],
    *,
    n_node: int = 6,
    n_edge: int = 0,
    columns: int = 0,
) -> Attributes:
    """Two slots with attributes of their own and two that share theirs (a bag); a third of the
    entries is absent.  Edge attributes: one slot of its own, two that share.
    """
    N = int(sum(lengths))

    def slots(n: int, shares: list[tuple[float, float]]) -> I32:
        borders = [(int(n * lo), int(n * hi)) for lo, hi in shares]
        rows = [rng.integers(lo, max(hi, lo + 1), N) for lo, hi in borders]
        table = np.array(rows, np.int32).reshape(len(shares), N)
        table[-1][table[-2] == table[-1]] = -1  # a bag holds an attribute once
        table[rng.random(table.shape) < 0.33] = -1
        return table

    node = slots(n_node, [(0, 0.25), (0.25, 0.5), (0.5, 1), (0.5, 1)])
    edge = np.empty((0, N), np.int32)
    if n_edge:
        edge = slots(n_edge, [(0, 0.5), (0.5, 1), (0.5, 1)])
    dense = rng.normal(size=(N, columns)) if columns else None
    offsets = np.cumsum([0, *lengths]).astype(np.int64)
    return Attributes(node, edge, dense, offsets)


def check_sums(node: np.ndarray, edge: np.ndarray, bound: float) -> None:
    """The covariances of the factors of one position sum to zero."""
    assert abs(node.sum(axis=1)).max() <= bound
    assert abs(edge.sum(axis=(1, 2))).max() <= bound
