"""Counts per sentence, and the metrics that are ratios of their sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from sslbench.types import F64, I64


@dataclass(frozen=True, eq=False)
class CountTable:
    """rows: int64[..., k], sentence by sentence (or summed); fields: the names of the k columns."""

    fields: tuple[str, ...]
    rows: I64


@dataclass(frozen=True, eq=False)
class SentenceCounts:
    """int64[S] each: what the metrics are made of, sentence by sentence.

    None where it does not apply: chunks to "tagging", words (both borders right) to "spans",
    `*_tagged` (the tag right too) to any task but "joint", `oov_*` where labeled data are unknown;
    correct_alternatives (gold chunks found, themselves or by another answer) and false_positives
    (predicted chunks that are neither) where no other answers are listed.
    """

    n_tokens: I64
    correct_tokens: I64
    gold_chunks: I64 | None = None
    predicted_chunks: I64 | None = None
    correct_chunks: I64 | None = None
    correct_words: I64 | None = None
    correct_tagged: I64 | None = None
    oov_words: I64 | None = None
    oov_correct: I64 | None = None
    oov_tagged: I64 | None = None
    correct_alternatives: I64 | None = None
    false_positives: I64 | None = None

    def table(self) -> CountTable:
        """All counts that apply in one array, whose sums (also weighted) `ratios` takes.

        Its fields are "sentences" (1 each), "exact_sentences" (1 where all labels are right), and
        those of this class in their order.
        """
        columns = {
            "sentences": np.ones_like(self.n_tokens),
            "exact_sentences": self.correct_tokens == self.n_tokens,
            **self._applicable(),
        }
        rows = np.stack(list(columns.values()), axis=-1).astype(np.int64)
        return CountTable(tuple(columns), rows)

    def to_lists(self) -> dict[str, list[int]]:
        """For a JSON record; counts that do not apply are left out."""
        return {name: value.tolist() for name, value in self._applicable().items()}

    @staticmethod
    def from_lists(lists: Mapping[str, Sequence[int]]) -> SentenceCounts:
        """The inverse of `to_lists`."""
        return SentenceCounts(**{n: np.asarray(v, dtype=np.int64) for n, v in lists.items()})

    def _applicable(self) -> dict[str, I64]:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if value is not None}


@dataclass(frozen=True)
class _Ratio:
    """Two weighted sums of counts: {field: weight} each."""

    numerator: Mapping[str, int]
    denominator: Mapping[str, int]

    def of(self, sums: Mapping[str, F64]) -> F64:
        """Their quotient; 0 without denominator, as conlleval prints it."""
        above, below = (_weighted(side, sums) for side in (self.numerator, self.denominator))
        zero = np.zeros(np.broadcast_shapes(above.shape, below.shape))
        return np.divide(above, below, out=zero, where=below > 0)

    def applies(self, names: Sequence[str]) -> bool:
        return {*self.numerator, *self.denominator} <= set(names)


def _weighted(weights: Mapping[str, int], sums: Mapping[str, F64]) -> F64:
    total = np.zeros(())
    for name, weight in weights.items():
        total = total + weight * sums[name]
    return total


_CHUNKS = {"gold_chunks": 1, "predicted_chunks": 1}
_ANSWERS = {"correct_alternatives": 1, "false_positives": 1}
# F1 is 2 P R / (P + R) in counts: no rounding in between.
_METRICS = {
    "accuracy": _Ratio({"correct_tokens": 1}, {"n_tokens": 1}),
    "sentence_accuracy": _Ratio({"exact_sentences": 1}, {"sentences": 1}),
    "precision": _Ratio({"correct_chunks": 1}, {"predicted_chunks": 1}),
    "recall": _Ratio({"correct_chunks": 1}, {"gold_chunks": 1}),
    "f1": _Ratio({"correct_chunks": 2}, _CHUNKS),
    "seg_f1": _Ratio({"correct_words": 2}, _CHUNKS),
    "joint_f1": _Ratio({"correct_tagged": 2}, _CHUNKS),
    "oov_recall": _Ratio({"oov_correct": 1}, {"oov_words": 1}),
    "joint_oov_recall": _Ratio({"oov_tagged": 1}, {"oov_words": 1}),
    "alt_precision": _Ratio({"correct_alternatives": 1}, _ANSWERS),
    "alt_recall": _Ratio({"correct_alternatives": 1}, {"gold_chunks": 1}),
    "alt_f1": _Ratio({"correct_alternatives": 2}, {"gold_chunks": 1, **_ANSWERS}),
}


def ratios(sums: ArrayLike, names: Sequence[str]) -> dict[str, F64]:
    """All metrics that can be had from summed rows of a `CountTable`.

    sums: [..., k]; leading axes (say, bootstrap samples) are kept in every result.
    names: the fields of the table.
    """
    columns = _columns(sums, names)
    return {name: made.of(columns) for name, made in _METRICS.items() if made.applies(names)}


def ratio(sums: ArrayLike, names: Sequence[str], metric: str) -> F64:
    """One of the metrics of `ratios`; KeyError when it cannot be had from these fields."""
    if metric not in _METRICS or not _METRICS[metric].applies(names):
        raise KeyError(metric)
    return _METRICS[metric].of(_columns(sums, names))


def _columns(sums: ArrayLike, names: Sequence[str]) -> dict[str, F64]:
    parts = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    return dict(zip(names, parts, strict=True))


def metrics_from_counts(counts: SentenceCounts, mask: ArrayLike | None = None) -> dict[str, float]:
    """What `ratios` says of the sum over sentences; each metric is in [0, 1].

    mask: the sentences to count, bool[S] or indices (default: all).
    """
    table = counts.table()
    rows = table.rows if mask is None else table.rows[np.asarray(mask)]
    return {name: float(value) for name, value in ratios(rows.sum(axis=0), table.fields).items()}
