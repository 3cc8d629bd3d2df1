"""Auxiliary problems on unlabeled text, and the subspace that their predictors share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from sslbench.engine.checked import Saved, joined, part_of, table, vector
from sslbench.engine.corpus import Corpus
from sslbench.engine.features import AttributeIndex, Template
from sslbench.engine.types import F32, F64, I32, I64, AnyArray, Arrays, Bool


@dataclass(frozen=True)
class Subspace:
    """Theta: what `dense` multiplies the attributes of a token with, group by group.

    index: numbers the attributes.  group: int32[slots], the group of each slot of a token.
    theta: float32[A, h], finite; an attribute's row is for the columns of its group.
    """

    index: AttributeIndex
    group: I32
    theta: F32
    templates: tuple[str, ...] = ()
    prefix: ClassVar[str] = "aso"

    @property
    def n_groups(self) -> int:
        return int(self.group.max(initial=-1)) + 1

    @property
    def dense_columns(self) -> tuple[str, ...]:
        """h per group."""
        size = self.theta.shape[1]
        return tuple(f"{self.prefix}{g}:{d}" for g in range(self.n_groups) for d in range(size))

    def annotate(self, corpus: Corpus) -> Corpus:
        """Return the corpus as it is."""
        return corpus

    def dense(self, corpus: Corpus) -> F64:
        """Return float64[N, groups h]: sums of Theta's rows over the attributes of each token."""
        node, h = self.index.encode(corpus).node, self.theta.shape[1]
        rows = np.vstack([self.theta, np.zeros((1, h), np.float32)])  # the last: no attribute
        out = np.zeros((corpus.n_tokens, self.n_groups * h))
        for slot, g in zip(node, self.group, strict=True):
            out[:, g * h : (g + 1) * h] += rows[slot]
        return out

    def arrays(self) -> Saved:
        """Return what `from_arrays` restores."""
        arrays, facts = joined(index=self.index.arrays())
        return {**arrays, "group": self.group, "theta": self.theta}, facts

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any]) -> Subspace:
        """Restore an object; ValueError when arrays and facts do not fit together."""
        index = AttributeIndex.from_arrays(*part_of(arrays, facts, "index"))
        slots = len(index.node_slots)
        group = vector(arrays, "group", np.int32, slots, (0, slots + 1))
        theta = table(arrays, "theta", np.float32, (index.n_node, None))
        if not np.isfinite(theta).all():
            raise ValueError("a number of Theta is not finite")
        return cls(index, group, theta)


def seen_without(template: Template, column: str, offset: int) -> bool:
    """Whether a template says nothing about the word at an offset, nor about a part of it."""
    reach = range(template.bag[0], template.bag[1] + 1) if template.bag else range(1)
    places = {
        atom.offset + k
        for atom in template.atoms
        if atom.column.partition(".")[0] == column
        for k in reach
    }
    return offset not in places


def attribute_matrix(node: I32, slots: Bool, n_attributes: int) -> sparse.csr_array:
    """float32[N, A]: 1 where a token has an attribute; slots: bool[slots], which are looked at."""
    row_of = np.where(slots[:, None], node, -1).T
    present = row_of >= 0
    start = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    ones = np.ones(int(start[-1]), np.float32)
    return sparse.csr_array((ones, row_of[present], start), shape=(len(row_of), n_attributes))


def word_targets(number: I32, offset: int, sentence: I64, n_words: int) -> sparse.csr_array:
    """Return float32[N, m]: 1 where the word at an offset, in the same sentence, is the m-th.

    number: int32[N], of each token's word, -1 or more than m for none of them.
    """
    n = len(number)
    token = np.arange(max(0, -offset), min(n, n - offset))
    other = token + offset
    pair = (sentence[token] == sentence[other]) & (number[other] >= 0) & (number[other] < n_words)
    places = token[pair], number[other[pair]]
    ones = np.ones(int(pair.sum()), np.float32)
    return sparse.csr_array(sparse.coo_array((ones, places), shape=(n, n_words)))


def ridge(X: sparse.csr_array, Y: F32, weight: float, iterations: int, tolerance: float) -> F32:
    """Return argmin |X U - Y|^2 / N + weight |U|^2, float32[A, m], by conjugate gradients.

    All m columns go on side by side, preconditioned by the diagonal, until the residual of each is
    `tolerance` of its first one, or for so many iterations. A target that is nowhere has zeros.
    """
    n = max(1, X.shape[0])
    XT = X.T.tocsr()
    scale = 1.0 / (np.asarray(X.sum(axis=0)).ravel() / n + weight)[:, None]  # squares of 0 and 1
    U = np.zeros((X.shape[1], Y.shape[1]), np.float32)
    R = np.asarray(XT @ Y, np.float32) / n
    Z = (scale * R).astype(np.float32)
    P = Z.copy()
    first = rz = _dots(R, Z)
    for _ in range(iterations):
        if (rz <= tolerance**2 * first).all():
            break
        Q = XT @ (X @ P) / n + weight * P
        step = _ratio(rz, _dots(P, Q))
        U += step * P
        R -= step * Q
        Z = (scale * R).astype(np.float32)
        rz, last = _dots(R, Z), rz
        P = Z + _ratio(rz, last) * P
    return U


def _dots(a: AnyArray, b: AnyArray) -> F64:
    """Return float64[m]: inner products of the columns."""
    result: F64 = np.einsum("am,am->m", a, b, dtype=np.float64)
    return result


def _ratio(a: F64, b: F64) -> F32:
    ratio: F32 = np.divide(a, b, out=np.zeros_like(a), where=b > 0).astype(np.float32)
    return ratio


def shared_directions(predictors: Sequence[F32], h: int) -> F32:
    """Return float32[A, at most h]: left singular vectors of the positive entries of predictors.

    predictors: float32[A, m] each, of the attributes of one group. From the eigenvectors of the
    small Gram matrix; directions without any weight are left out, the sign makes the sum positive.
    """
    W = np.maximum(np.hstack(predictors), 0.0).astype(np.float64)
    values, vectors = np.linalg.eigh(W.T @ W)
    order = np.argsort(-values, kind="stable")[: min(h, *W.shape)]
    large = order[values[order] > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)]
    result = W @ (vectors[:, large] / np.sqrt(values[large]))
    signed: F32 = (result * np.where(result.sum(axis=0) < 0, -1.0, 1.0)).astype(np.float32)
    return signed
