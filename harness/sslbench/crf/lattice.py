"""Inference on a block of sentences: potentials in, posteriors out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..types import F64, I8, I32, Bool
from .chain import InfeasibleSentenceError
from .data import Block
from .kernels import scaled, scores


class Triples(NamedTuple):
    """Of a second-order chain: log-potentials, or sums over a block of what belongs to them.

    begin: float64[L, L] of the first two labels of a sentence; inner: float64[L, L, L] of any three
    in a row; end: float64[L, L] of the last two.
    """

    begin: F64
    inner: F64
    end: F64

    def pairs(self) -> F64:
        """Sums over all positions of two labels in a row: float64[1, L, L]."""
        total: F64 = self.begin + self.inner.sum(axis=0)
        return total[None]

    def times(self, factor: float) -> Triples:
        return Triples(*(factor * part for part in self))

    def plus(self, other: Triples, factor: float = 1.0) -> Triples:
        """self + factor other."""
        return Triples(*(a + factor * b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class BlockPotentials:
    """node: float64[n, L] (START and stop folded in); edge: float64[1 or n, L, L]."""

    block: Block
    node: F64
    edge: F64

    @property
    def varying(self) -> bool:
        """Does every position have its own transition scores?"""
        return self.edge.shape[0] != 1 or self.block.n_tokens == 1

    def gold_steps(self, labels: I32) -> F64:
        """Potential of each clique along the labels int32[n]: float64[n]."""
        out = np.empty(self.block.n_tokens)
        scores.path_scores(self.node, self.edge, self.block.offsets, labels, out)
        return out

    def restrict(self, allowed: Bool) -> BlockPotentials:
        """Copies with the labels outside allowed (bool[n, L]) impossible."""
        return self.with_node(np.where(allowed, self.node, -np.inf))

    def with_node(self, node: F64) -> BlockPotentials:
        """With other scores of labels; shares nothing that inference consumes."""
        edge = self.edge if self.edge.shape[0] == 1 else self.edge.copy()
        return replace(self, node=node, edge=edge)

    def posterior(self, weights: F64 | None = None) -> BlockPosterior:
        """Log-partitions, and marginals times the weights float64[s] of the sentences (None = 1).

        Per-position edge scores are consumed (they become xi).
        """
        if weights is not None:
            if (weights != weights[0]).any():  # sentences of one weight can share their sum of arcs
                return self.per_position().posterior().weighted(weights)
            return self.posterior().weighted(weights)
        block = self.block
        n, L = self.node.shape
        step, mu = np.empty(n), np.empty((n, L))
        status = np.empty(len(block.offsets) - 1, np.int8)
        groups = block.groups()
        if self.edge.shape[0] == 1:
            pair = np.empty((len(groups) - 1, L, L))
            scaled.shared(self.node, self.edge, block.offsets, groups, mu, step, pair, status)
            edge = pair.sum(axis=0, keepdims=True)
        else:
            edge = self.edge
            scaled.varying(self.node, edge, block.offsets, groups, mu, step, status)
        check_feasible(block, status)
        return BlockPosterior(block, step, mu, edge)

    def per_position(self) -> BlockPotentials:
        """The same with a transition matrix of its own at every position."""
        n = self.block.n_tokens
        if self.edge.shape[0] == n:
            return self
        edge = np.broadcast_to(self.edge, (n, *self.edge.shape[1:])).copy()
        return replace(self, edge=edge)

    def viterbi(self) -> I32:
        """Best labels int32[n]."""
        path = np.empty(self.block.n_tokens, np.int32)
        status = np.empty(len(self.block.offsets) - 1, np.int8)
        scaled.viterbi(self.node, self.edge, self.block.offsets, path, status)
        check_feasible(self.block, status)
        return path


@dataclass(frozen=True)
class BlockPosterior:
    """step: float64[n], sums to log Z over each sentence; node: mu float64[n, L];
    edge: xi float64[n, L, L] (zero at first tokens) or its sum over positions float64[1, L, L];
    triples: of a second-order chain, sums over the block.  All but step times the weights.
    """

    block: Block
    step: F64
    node: F64
    edge: F64
    triples: Triples | None = None

    def log_z(self) -> F64:
        """float64[s]."""
        return per_sentence(self.step, self.block)

    def weighted(self, weights: F64) -> BlockPosterior:
        """A first-order posterior times the weights of the sentences, in place; edges that all
        positions share: of equal weights."""
        factor = np.repeat(weights, np.diff(self.block.offsets))
        self.node[:] *= factor[:, None]
        if self.edge.shape[0] == len(self.node):
            self.edge[:] *= factor[:, None, None]
        else:
            self.edge[:] *= weights[0]
        return self


def per_sentence(values: F64, block: Block) -> F64:
    """Sums of float64[n] over each sentence: float64[s]."""
    return np.add.reduceat(values, block.offsets[:-1])


def check_feasible(block: Block, status: I8) -> None:
    """Raise for the first sentence that has no possible labelling."""
    if (status == scaled.INFEASIBLE).any():
        i = block.sentence_lo + int(np.argmax(status == scaled.INFEASIBLE))
        raise InfeasibleSentenceError(f"sentence {i}: no label sequence is possible")
