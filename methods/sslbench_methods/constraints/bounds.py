"""Bounds on expected labels, as a file gives them and as rows over the unlabeled text.

A line has three fields with tabs between them: where, labels, bound.

    sentence          VERB AUX   at least 1        tokens of each sentence with one of the labels
    word.lower=the    DET        at least 0.95     share of the tokens with such a word
    sentence          PUNCT      at most 5
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from sslbench import Problem, UserError
from sslbench.engine.corpus import numbered_lines
from sslbench.engine.features.derived import coded_column
from sslbench.engine.types import F64, Bool

SENTENCE = "sentence"
_FORM = "write where<TAB>labels<TAB>at least NUMBER, or at most; where: sentence, or column=value"
_SIGN = {"at least": 1.0, "at most": -1.0}


@dataclass(frozen=True)
class Line:
    """A line of the file. sign: +1 for a lower bound, -1 for an upper one."""

    number: int
    where: str
    labels: tuple[str, ...]
    sign: float
    bound: float


def read_lines(path: str) -> list[Line]:
    """Return the lines of a file; "#" begins a comment. UserError, with the line, for others."""
    lines = [_line(path, number, text) for number, text in numbered_lines(Path(path))]
    if not lines:
        raise UserError("no constraint", file=path, hint=_FORM)
    return lines


def _line(path: str, number: int, text: str) -> Line:
    where, labels, bound = (*text.split("\t"), "", "")[:3]
    words, (sign, _, value) = labels.split(), bound.strip().rpartition(" ")
    try:
        least = float(value)
    except ValueError:
        least = math.nan
    share = where != SENTENCE
    whole = text.count("\t") == 2 and words and sign in _SIGN and (not share or "=" in where)
    if not whole or not 0 <= least < math.inf:
        raise UserError("no constraint", file=path, line=number, hint=_FORM)
    if share and least > 1:
        hint = "a bound on the tokens of a value is a share, from 0 to 1"
        raise UserError(f"{value} is no share", file=path, line=number, hint=hint)
    return Line(number, where, tuple(words), _SIGN[sign], least)


@dataclass(frozen=True)
class Bounds:
    """K bounds on expected labels: ``sign * count >= sign * bound * size``, row by row.

    A row counts the tokens that it covers, under a label that it names.

    covers: 0 or 1, csr float64[K, N], over the tokens of the unlabeled text.
    labels: bool[K, L].  sign, bound: float64[K].
    size: float64[K]; 1 for a row of a sentence, whose bound is a number of tokens, and the number
        of tokens for one whose bound is a share of them.
    """

    covers: sparse.csr_array
    labels: Bool
    sign: F64
    bound: F64
    size: F64

    @classmethod
    def of(cls, lines: Sequence[Line], problem: Problem, path: str) -> Bounds:
        """Return the rows of the unlabeled text; lines whose value is nowhere have none.

        UserError, with the line, for a label that no labeled sentence has and a column that is not
        in the text.
        """
        blocks = [_rows(line, problem, path) for line in lines]
        sizes = [block.shape[0] for block in blocks]
        covers = sparse.csr_array(sparse.vstack(blocks, format="csr"))
        labels = np.array([_named(line, problem, path) for line in lines])
        shares = np.repeat([line.where != SENTENCE for line in lines], sizes)
        n = np.asarray(covers.sum(axis=1)).ravel()
        return cls(
            covers,
            np.repeat(labels, sizes, axis=0),
            np.repeat([line.sign for line in lines], sizes),
            np.repeat([line.bound for line in lines], sizes),
            np.where(shares, n, 1.0),
        )

    def counts(self, marginals: F64) -> F64:
        """Return float64[K]: the expected counts under marginals float64[N, L]."""
        counts: F64 = np.einsum("kl,kl->k", self.covers @ marginals, self.labels)
        return counts

    def scores(self, mu: F64) -> F64:
        """Return float64[N, L]: what multipliers float64[K] add to the node scores."""
        scores: F64 = self.covers.T @ ((self.sign * mu)[:, None] * self.labels)
        return scores

    def lack(self, counts: F64) -> F64:
        """Return float64[K]: how far the counts are from the bounds, per unit of size."""
        return np.maximum(0.0, self.sign * (self.bound - counts / self.size))


def _named(line: Line, problem: Problem, path: str) -> Bool:
    for label in line.labels:
        if label not in problem.labels:
            hint = "labels: " + ", ".join(problem.labels)
            raise UserError(f"no label {label!r}", file=path, line=line.number, hint=hint)
    return np.isin(problem.labels, line.labels)


def _rows(line: Line, problem: Problem, path: str) -> sparse.csr_array:
    """Return csr float64[rows, N]: one row per sentence, or one of all tokens with a value."""
    if line.where == SENTENCE:
        lengths = [np.empty(0, np.int64), *(shard.lengths for shard in problem.unlabeled)]
        start = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        n = int(start[-1])
        return sparse.csr_array((np.ones(n), np.arange(n), start), shape=(len(start) - 1, n))
    name, _, value = line.where.partition("=")
    has = [np.empty(0, np.bool_)]
    for shard in problem.unlabeled:
        try:
            column = coded_column(shard, name)
        except (KeyError, UserError) as error:
            raise UserError(f"no column {name!r}: {error}", file=path, line=line.number) from None
        same = np.array([each == value for each in column.vocabulary.strings], np.bool_)
        has.append(same[column.codes])
    tokens = np.flatnonzero(np.concatenate(has))
    start = np.array([0, len(tokens)]) if len(tokens) else np.array([0])
    shape = len(start) - 1, sum(len(part) for part in has)
    return sparse.csr_array((np.ones(len(tokens)), tokens, start), shape=shape)
