"""Small corpora with layouts of all kinds, and terms over them with their values by enumeration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize as scipy_minimize

from sslbench.engine.crf import (
    EncodedCorpus,
    HardLabels,
    Objective,
    PartialLabels,
    SoftTargets,
    Term,
)
from sslbench.engine.crf.optim import lbfgs
from sslbench.engine.crf.weights.layout import Layout, build_layout
from sslbench.engine.features import Attributes
from sslbench.engine.types import F64, I32, Bool
from support.crf_oracle import INF, Enumeration
from support.log_space_chain import Potentials
from support.weights_oracle import RandomFactors, dense_potentials, random_attributes

LENGTHS = [1, 2, 3, 1, 4, 2, 3]
N = sum(LENGTHS)
L = 3
CASES: dict[str, dict[str, object]] = {
    "state": {},
    "observed": {"state_support": "observed"},
    "bare": {"use_start": False, "use_stop": False},
    "observed, no start": {"state_support": "observed", "use_start": False, "n_edge": 4},
    "edges": {"n_edge": 4, "use_stop": False},
    "all transitions": {"n_edge": 2, "transition_support": "all", "mask": True},
    "columns": {"columns": 2, "mask": True},
    "factors": {"factors": 2},
    "node factors": {"factors": 2, "on_edges": False},
    "everything": {
        "state_support": "observed",
        "n_edge": 4,
        "columns": 2,
        "factors": 2,
        "mask": True,
    },
}


@dataclass(frozen=True)
class Case:
    """A small corpus, a layout for it, weights, and labels that obey the transition_mask."""

    layout: Layout
    attributes: Attributes
    labels: I32
    weights: F64
    transition_mask: Bool | None
    factors: RandomFactors | None

    def encode(self) -> EncodedCorpus:
        return EncodedCorpus.build(self.layout, self.attributes, self.factors)

    def objective(self, term: Term, sigma2: float = INF, **options: object) -> Objective:
        return Objective(
            self.layout,
            [(self.encode(), term)],
            sigma2,
            transition_mask=self.transition_mask,
            **options,
        )

    def potentials(self, weights: F64 | None = None) -> list[Potentials]:
        weights = self.weights if weights is None else weights
        return dense_potentials(
            self.layout, weights, self.attributes, self.transition_mask, self.factors
        )

    def sentences(self, array: np.ndarray) -> list[np.ndarray]:
        return np.split(array, self.attributes.offsets[1:-1])


def case(name: str, seed: int = 0, lengths: list[int] = LENGTHS) -> Case:
    options = dict(CASES[name])
    rng = np.random.default_rng([seed, *map(ord, name)])
    n_edge, columns = int(options.pop("n_edge", 0)), int(options.pop("columns", 0))
    masked, n_factors = options.pop("mask", False), int(options.pop("factors", 0))
    on_edges = bool(options.pop("on_edges", True))
    total = sum(lengths)
    attributes = random_attributes(rng, lengths, n_edge=n_edge, columns=columns)
    labels = rng.integers(0, L, total).astype(np.int32)
    transition_mask = None
    if masked:
        labels[(previous_of(attributes, labels) == 0) & (labels == 2)] = 1
        transition_mask = rng.random((L + 1, L)) < 0.3
        transition_mask[previous_of(attributes, labels), labels] = True
        transition_mask[0, 2] = False  # never in the labels
    sizes = {"n_node": 6, "n_edge": n_edge, "n_factors": n_factors}
    layout = build_layout(attributes, labels, L, **sizes, **options)
    factors = None
    if n_factors:
        factors = RandomFactors(
            rng.normal(size=(total, L, n_factors)),
            rng.normal(size=(total, L, L, n_factors)),
            on_edges,
        )
    return Case(layout, attributes, labels, rng.normal(size=layout.size), transition_mask, factors)


def previous_of(attributes: Attributes, labels: I32) -> I32:
    previous = np.roll(labels, 1)
    previous[attributes.offsets[:-1]] = L
    return previous


def evaluate(objective: Objective, weights: F64) -> tuple[float, F64]:
    gradient = np.full_like(weights, np.nan)
    return objective.value_and_gradient(weights, gradient), gradient


def select(c: Case, keep: np.ndarray) -> tuple[Case, np.ndarray]:
    """The sentences `keep` in that order, and their tokens."""
    tokens = np.concatenate([c.sentences(np.arange(N))[i] for i in keep])
    a = c.attributes
    dense = None if a.dense is None else a.dense[tokens]
    offsets = np.cumsum([0, *np.diff(a.offsets)[keep]])
    attributes = Attributes(
        np.ascontiguousarray(a.node[:, tokens]),
        np.ascontiguousarray(a.edge[:, tokens]),
        dense,
        offsets,
    )
    factors = c.factors
    if factors is not None:
        factors = RandomFactors(factors.h_node[tokens], factors.h_edge[tokens], factors.on_edges)
    return replace(c, attributes=attributes, labels=c.labels[tokens], factors=factors), tokens


def restrict(term: Term, tokens: np.ndarray, weights: F64) -> Term:
    parts = {k: None if v is None else v[tokens] for k, v in vars(term).items() if k != "weights"}
    return replace(term, **parts, weights=weights)


def random_rows(rng: np.random.Generator, n: int) -> F64:
    rows = rng.exponential(size=(n, L))
    rows[rng.random((n, L)) < 0.2] = 0.0
    rows[rows.sum(axis=1) == 0] = 1.0
    return rows / rows.sum(axis=1, keepdims=True)


def hard(c: Case, rng: np.random.Generator) -> Term:
    return HardLabels(c.labels, rng.choice([0.0, 0.5, 1.0, 3.0], len(LENGTHS)))


def soft_edges(c: Case, rng: np.random.Generator) -> Term:
    """The marginals of another chain."""
    other = [Enumeration.of(p) for p in c.potentials(rng.normal(size=c.layout.size))]
    node, edge = np.concatenate([e.node for e in other]), np.concatenate([e.edge for e in other])
    return SoftTargets(node, edge, rng.uniform(0, 2, len(LENGTHS)))


def soft_tokens(c: Case, rng: np.random.Generator) -> Term:
    """Independent targets; where transitions are forbidden, the labels themselves."""
    rows = np.eye(L)[c.labels] if c.transition_mask is not None else random_rows(rng, N)
    return SoftTargets(rows, None, rng.uniform(0, 2, len(LENGTHS)))


def partial(c: Case, rng: np.random.Generator) -> Term:
    allowed = rng.random((N, L)) < 0.5
    allowed[np.arange(N), c.labels] = True
    return PartialLabels(allowed, None, rng.uniform(0, 2, len(LENGTHS)))


def evidence(c: Case, rng: np.random.Generator) -> Term:
    log_psi = rng.normal(size=(N, L))
    log_psi[rng.random((N, L)) < 0.2] = -INF
    log_psi[np.arange(N), c.labels] = 0.3
    return PartialLabels(np.ones((N, L), bool), log_psi, rng.uniform(0, 2, len(LENGTHS)))


def value_of(term: Term, c: Case, weights: F64) -> float:
    """The term by enumeration."""
    factors = np.ones(len(LENGTHS)) if term.weights is None else term.weights
    total = 0.0
    for i, p in enumerate(c.potentials(weights)):
        truth, t = Enumeration.of(p), c.sentences(np.arange(N))[i]
        rows = np.arange(len(t))
        if isinstance(term, HardLabels):
            value = p.score(term.labels[t]) - truth.log_z
        elif isinstance(term, SoftTargets):
            q = term.node[t]
            edges = np.zeros((len(t), L, L))
            edges[1:] = q[:-1, :, None] * q[1:, None, :] if term.edge is None else term.edge[t][1:]
            used = edges > 0
            value = (q * np.where(q > 0, p.node, 0)).sum() - truth.log_z
            value += (edges[used] * p.edge[used]).sum()
        else:
            bonus = np.where(term.allowed[t], 0.0, -INF)
            if term.log_evidence is not None:
                bonus = bonus + term.log_evidence[t]
            inside = truth.scores + bonus[rows, truth.paths].sum(axis=1)
            value = np.log(np.exp(inside - truth.log_z).sum())
        total += factors[i] * value
    return total


TERMS: list[Callable[[Case, np.random.Generator], Term]] = [
    hard,
    soft_edges,
    soft_tokens,
    partial,
    evidence,
]


def scipy_optimum(function: lbfgs.Function, n: int, nonnegative: np.ndarray | None = None) -> F64:
    bounds = [(None, None)] * n
    for i in [] if nonnegative is None else nonnegative:
        bounds[i] = (0, None)

    def both(x: F64) -> tuple[float, F64]:
        gradient = np.empty_like(x)
        return function(x, gradient), gradient

    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 0.0, "gtol": 1e-9, "maxcor": 20}
    return scipy_minimize(
        both, np.zeros(n), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x
