"""What weak sources say of each token, and the probability that they say so given its label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sslbench import Problem
from sslbench.engine.types import F64, I32, I64, Bool

UNREAD = -1
_SMOOTHING = 1.0


@dataclass(frozen=True)
class Outcomes:
    """What K sources say of N tokens: of the labeled text, then of the unlabeled text.

    codes: int32[K, N], a label below `n_labels`; `n_labels` = the source has read the token and
        gives no label; `UNREAD`.
    """

    codes: I32
    n_labels: int

    @staticmethod
    def of(problem: Problem) -> Outcomes:
        """Return the outcomes of the weak sources of a problem."""
        L = len(problem.labels)
        rows = [
            np.where(each.read, np.where(each.codes < 0, L, each.codes), UNREAD)
            for each in problem.weak
        ]
        n_tokens = problem.labeled.n_tokens + problem.unlabeled.n_tokens
        return Outcomes(np.array(rows, np.int32).reshape(len(rows), n_tokens), L)

    @property
    def read(self) -> Bool:
        """bool[N]: whether some source has read the token."""
        read: Bool = (self.codes != UNREAD).any(axis=0)
        return read

    def between(self, first: int, last: int) -> Outcomes:
        """Return the outcomes of the tokens first to last - 1."""
        return Outcomes(self.codes[:, first:last], self.n_labels)

    def votes(self) -> F64:
        """Return float64[N, L]: how many sources give each label."""
        votes = np.zeros((self.codes.shape[1], self.n_labels))
        for codes in self.codes:
            said = np.flatnonzero((codes >= 0) & (codes < self.n_labels))
            votes[said, codes[said]] += 1
        return votes

    def counts(self, labels: F64) -> F64:
        """Return float64[K, L, L + 1]: the expected number of tokens of each label and outcome.

        labels: float64[N, L], the probability of each label of each token.
        """
        counts = np.zeros((len(self.codes), self.n_labels + 1, self.n_labels))
        for matrix, codes in zip(counts, self.codes, strict=True):
            read = codes != UNREAD
            np.add.at(matrix, codes[read], labels[read])
        return np.ascontiguousarray(counts.transpose(0, 2, 1))

    def evidence(self, confusion: F64) -> F64:
        """Return float64[N, L]: the log-probability of what the sources say given each label.

        confusion: float64[K, L, L + 1], see `normalized`.
        """
        total = np.zeros((self.codes.shape[1], self.n_labels))
        for matrix, codes in zip(confusion, self.codes, strict=True):
            read = codes != UNREAD
            total[read] += np.log(matrix)[:, codes[read]].T
        return total


def normalized(counts: F64, prior: F64 | float = _SMOOTHING) -> F64:
    """Return the probabilities of outcomes given labels, float64[K, L, L + 1].

    counts: float64[K, L, L + 1].  prior: what is added to them.
    """
    smooth = counts + prior
    probabilities: F64 = smooth / smooth.sum(axis=-1, keepdims=True)
    return probabilities


def majority(outcomes: Outcomes, labels: Sequence[str]) -> I32:
    """Return int32[N]: the label that most sources give, -1 where they give none.

    Of equally many votes, those for O count less; then the first label of `labels` is taken.
    """
    votes = outcomes.votes()
    silent = ~votes.any(axis=1)
    if "O" in labels:
        votes[:, labels.index("O")] -= 0.5
    return np.where(silent, -1, votes.argmax(axis=1)).astype(np.int32)


def of_sentences(tokens: Bool, offsets: I64) -> Bool:
    """Return bool[S]: whether it is true of some token of a sentence."""
    total = np.concatenate([[0], np.cumsum(tokens)])
    return np.diff(total[offsets]) > 0
