"""Random chains for batches: one or many transition matrices, forbidden labels and pairs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from sslbench.engine.crf import InfeasibleSentenceError
from sslbench.engine.crf.first_order.batch import BatchPosterior
from sslbench.engine.types import F64
from support.crf_oracle import INF, random_mask, same_up_to
from support.log_space_chain import Potentials, infer

LENGTHS = [1, 2, 1, 7, 3, 1, 1, 30, 2, 12, 1]


def random_chains(
    rng: np.random.Generator,
    L: int,
    scale: float,
    holes: float,
    per_position: bool,
    lengths: list[int] = LENGTHS,
) -> list[Potentials]:
    """Chains that share one transition matrix or have one per position; all are possible."""
    chains: list[Potentials] = []
    shared = _with_holes(rng, scale * rng.normal(size=(1, L, L)), holes)
    while len(chains) < len(lengths):
        T = lengths[len(chains)]
        node = _with_holes(rng, scale * rng.normal(size=(T, L)), holes)
        edge = shared
        if per_position:
            edge = _with_holes(rng, scale * rng.normal(size=(T, L, L)), holes)
        p = Potentials(node, edge)
        if holes and not possible(p):
            if T > 2:  # a possible path is rare by chance: allow one
                y = rng.integers(0, L, T)
                node[np.arange(T), y] = scale * rng.normal(size=T)
                if per_position:
                    edge[np.arange(1, T), y[:-1], y[1:]] = scale * rng.normal(size=T - 1)
            if not possible(p):
                shared = _with_holes(rng, scale * rng.normal(size=(1, L, L)), holes)
                chains.clear()
                continue
        chains.append(p)
    return chains


def _with_holes(rng: np.random.Generator, x: F64, holes: float) -> F64:
    if holes:
        x[~random_mask(rng, x.shape, holes)] = -INF
    return x


def possible(p: Potentials) -> bool:
    try:
        infer(p)
    except InfeasibleSentenceError:
        return False
    return True


def sentences(posterior: BatchPosterior) -> Iterator[slice]:
    offsets = posterior.batch.offsets
    yield from (slice(a, b) for a, b in pairwise(offsets))


def only_stay() -> F64:
    return np.array([[[0.0, -INF], [-INF, 0.0]]])


def check_against_chains(
    chains: list[Potentials], posterior: BatchPosterior, log_z: float = 1e-12
) -> None:
    """log Z relative, marginals absolute and relative; -inf give marginals of exactly 0."""
    references = [infer(p) for p in chains]
    np.testing.assert_allclose(
        posterior.log_z(), [r.log_z for r in references], rtol=log_z, atol=1e-12
    )
    total, marginal = 0.0, 1e-10
    for p, r, tokens in zip(chains, references, sentences(posterior), strict=True):
        same_up_to(posterior.node[tokens], r.node, marginal)
        assert (posterior.node[tokens][np.isneginf(p.node)] == 0).all()
        assert abs(posterior.node[tokens].sum(axis=1) - 1).max() < 1e-9
        if posterior.edge.shape[0] > 1:
            same_up_to(posterior.edge[tokens], r.edges(), marginal)
        total = total + r.edges().sum(axis=0)
    same_up_to(posterior.edge.sum(axis=0), total, marginal * 10)
