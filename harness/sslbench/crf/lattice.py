"""Inference on a block of sentences: potentials in, posteriors out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import F64, I8, I32, Bool
from .chain import InfeasibleSentenceError
from .data import Block
from .kernels import scaled, scores


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
        node = np.where(allowed, self.node, -np.inf)
        return BlockPotentials(self.block, node, self.edge.copy())

    def posterior(self) -> BlockPosterior:
        """Log-partitions and marginals.  Per-position edge scores are consumed (they become xi)."""
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
    edge: xi float64[n, L, L] (zero at first tokens) or its sum over positions float64[1, L, L].
    """

    block: Block
    step: F64
    node: F64
    edge: F64

    def log_z(self) -> F64:
        """float64[s]."""
        return per_sentence(self.step, self.block)


def per_sentence(values: F64, block: Block) -> F64:
    """Sums of float64[n] over each sentence: float64[s]."""
    return np.add.reduceat(values, block.offsets[:-1])


def check_feasible(block: Block, status: I8) -> None:
    """Raise for the first sentence that has no possible labelling."""
    if (status == scaled.INFEASIBLE).any():
        i = block.sentence_lo + int(np.argmax(status == scaled.INFEASIBLE))
        raise InfeasibleSentenceError(f"sentence {i}: no label sequence is possible")
