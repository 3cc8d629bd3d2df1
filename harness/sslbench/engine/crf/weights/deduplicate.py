"""Attributes that occur at exactly the same tokens are one attribute to the objective.

In CoNLL-2000 half of the 613,701 attributes are copies of another one (most of them occur once).
Copies have equal gradients, so a strictly concave objective gives them equal weights.  Training
with one attribute in place of k copies is exact: with s the sum of their weights the score is
unchanged, the Gaussian prior sum w^2 / sigma^2 becomes s^2 / (k sigma^2) and the L1 penalty stays
|s|.  After training each copy gets s / k, so that text where only some of them occur is scored as
with all of them trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.crf.data import Attributes
from sslbench.engine.crf.weights.layout import Layout
from sslbench.engine.lazy import lazy
from sslbench.engine.types import F32, F64, I32, I64, AnyArray

#: seed of the random 64-bit keys of tokens; the key of an attribute is their sum.  Two different
#: sets of as many tokens have the same key with probability 2^-64.
KEY_SEED = 0x55AA
#: attributes whose weights are merged or split at a time
PIECE = 1 << 14


@dataclass(frozen=True)
class Deduplication:
    """Merges copies of attributes for a training, and splits their weights afterwards.

    full: layout of the model; reduced: layout of the training, with one attribute per group of
    copies.
    group: int32[A] reduced attribute of each attribute, -1 = never occurs; keep: int32[A + 1] the
    same, but -1 for all copies except one, and for id -1 (the last item).
    """

    full: Layout
    reduced: Layout
    group: I32
    keep: I32

    @classmethod
    def build(cls, layout: Layout, corpora: Sequence[Attributes]) -> Deduplication:
        """Find the copies over all corpora of a training."""
        keys, counts = _keys(layout, corpora)
        order = np.lexsort((keys, counts))
        new = np.ones(len(order), np.bool_)
        new[1:] = (keys[order][1:] != keys[order][:-1]) | (counts[order][1:] != counts[order][:-1])
        first = np.minimum.reduceat(order, np.flatnonzero(new)) if len(order) else order
        owner = np.empty(len(order), np.int64)
        owner[order] = first[np.cumsum(new) - 1]
        representative = np.flatnonzero((owner == np.arange(len(owner))) & (counts > 0))
        number = np.full(layout.n_node, -1, np.int32)
        number[representative] = np.arange(len(representative), dtype=np.int32)
        group = np.where(counts > 0, number[owner], -1).astype(np.int32)
        return cls(layout, _select(layout, representative), group, np.append(number, np.int32(-1)))

    @lazy
    def copies(self) -> F64:
        """float64[A']: k of every reduced attribute."""
        used = self.group[self.group >= 0]
        return np.bincount(used, minlength=self.reduced.n_node).astype(np.float64)

    def _pieces(self) -> Iterator[tuple[slice, I64]]:
        """Parts of the full state weights, each with the reduced weight that its weights go to;
        -1 = the attribute never occurs.

        An array for all weights would take as much memory as a training.
        """
        starts, own = _starts(self.full), _starts(self.reduced)
        for begin in range(0, self.full.n_node, PIECE):
            part = starts[begin : begin + PIECE + 1]
            sizes, group = np.diff(part), self.group[begin : begin + PIECE]
            within = np.arange(part[0], part[-1]) - np.repeat(part[:-1], sizes)
            known = np.repeat(group >= 0, sizes)
            target = np.where(known, np.repeat(own[group], sizes) + within, -1)
            yield slice(part[0], part[-1]), target

    @lazy
    def weight_copies(self) -> F32:
        """float32 per reduced weight: k of its attribute, 1 for weights of no attribute."""
        copies = np.ones(self.reduced.size, np.float32)
        copies[self.reduced.span("state")] = self.reduced.of_weights(self.copies)
        return copies

    def preconditioner(self, factors: float = 1.0) -> F32 | F64:
        """Per reduced weight: squared length of its unit step in the space of the full weights, up
        to a constant.  With it the optimizer takes the steps that it would take there.

        factors: the value for factor features (`FactorFeatures.preconditioner`).
        """
        if not self.reduced.n_factors:
            return self.weight_copies
        preconditioner = self.weight_copies.astype(np.float64)
        preconditioner[self.reduced.span("factors")] = factors
        return preconditioner

    @lazy
    def codes(self) -> I32:
        """int32[A + 1]: code for the kernels, in the reduced layout, of every attribute id."""
        states = self.reduced.states
        return self.keep if states is None else states.code[self.keep]

    def merge(self, weights: F64) -> F64:
        """Reduced flat weights from full ones: sums over the copies."""
        own, merged = self.reduced.span("state").stop, np.zeros(self.reduced.size)
        merged[own:] = weights[self.full.span("state").stop :]
        for piece, target in self._pieces():
            known = target >= 0
            np.add.at(merged, target[known], weights[piece][known])
        return merged

    def project(self, expected_counts: F64) -> F64:
        """Linear coefficients of the reduced weights from those of the full ones.

        Copies must have equal coefficients, as all sums over their tokens have; theirs is kept.
        """
        own, projected = self.reduced.span("state").stop, np.empty(self.reduced.size)
        projected[own:] = expected_counts[self.full.span("state").stop :]
        for piece, target in self._pieces():
            known = target >= 0
            projected[target[known]] = expected_counts[piece][known]
        return projected

    def split(self, weights: F64) -> F64:
        """Full flat weights from reduced ones: each copy gets its share, unseen attributes 0."""
        own, full = self.reduced.span("state").stop, np.empty(self.full.size)
        full[self.full.span("state").stop :] = weights[own:]
        share = np.append(weights[:own] / self.reduced.of_weights(self.copies), 0.0)
        for piece, target in self._pieces():
            full[piece] = share[target]
        return full


def _starts(layout: Layout) -> I64:
    """Return int64[A + 1]: where the state weights of each attribute begin."""
    if layout.state_start is not None:
        return layout.state_start
    return np.arange(layout.n_node + 1, dtype=np.int64) * layout.n_labels


def _keys(layout: Layout, corpora: Sequence[Attributes]) -> tuple[AnyArray, I64]:
    """Return uint64[A] keys and int64[A] counts of the attributes; copies have equal ones."""
    rng = np.random.default_rng(KEY_SEED)
    keys = np.zeros(layout.n_node, np.uint64)
    counts = np.zeros(layout.n_node, np.int64)
    for corpus in corpora:
        n = corpus.node.shape[1]
        tokens = np.frombuffer(rng.bytes(8 * n), np.uint64)
        _add_keys(corpus.node, tokens, keys, counts)
    if layout.state_start is not None and layout.state_label is not None:
        # on text other than the indexed one, the same tokens need not mean the same labels
        labels = rng.integers(0, 2**64, layout.n_labels, dtype=np.uint64)[layout.state_label]
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(labels)])
        keys += total[layout.state_start[1:]] - total[layout.state_start[:-1]]
    return keys, counts


@kernel
def _add_keys(codes: I32, tokens: AnyArray, keys: AnyArray, counts: I64) -> None:
    """keys[a] += key of each token where attribute a occurs (uint64, wrapping); counts[a] += 1."""
    for s in range(codes.shape[0]):
        for n in range(codes.shape[1]):
            i = codes[s, n]
            if i >= 0:
                keys[i] += tokens[n]
                counts[i] += 1


def _select(layout: Layout, attributes: I64) -> Layout:
    """Return the layout with only these node attributes."""
    if layout.state_start is None or layout.state_label is None:
        return replace(layout, n_node=len(attributes))
    sizes = np.diff(layout.state_start)[attributes]
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    inside = np.arange(start[-1]) - np.repeat(start[:-1], sizes)
    label = layout.state_label[np.repeat(layout.state_start[attributes], sizes) + inside]
    return replace(layout, n_node=len(attributes), state_start=start, state_label=label)
