"""Counts per sentence, and the metrics that are ratios of their sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from sslbench.engine.types import F64, I64


@dataclass(frozen=True, eq=False)
class CountTable:
    """Counts by sentence, or their sums. rows: int64[..., k]; fields: names of the k columns."""

    fields: tuple[str, ...]
    rows: I64


@dataclass(frozen=True, eq=False)
class SentenceCounts:
    """The counts that metrics are ratios of, int64[S] each.

    None where a count does not apply: `*_chunks` in "tagging"; correct_words (both borders right)
    in "tagging" and "spans"; `*_tagged` (the tag right too) in every task but "joint"; `oov_*`
    (words of no labeled sentence) if the labeled data are not given; correct_alternatives (gold
    chunks matched by themselves or an alternative) and false_positives (predicted chunks that are
    neither) if no alternatives are given.
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
        """All counts that apply, in one array; `ratios` takes its sums, weighted or not.

        The fields are "sentences" (1 for each), "exact_sentences" (1 if all labels are right), and
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
        """Counts by name as lists, for JSON; those that do not apply are left out."""
        return {name: value.tolist() for name, value in self._applicable().items()}

    @staticmethod
    def from_lists(lists: Mapping[str, Sequence[int]]) -> SentenceCounts:
        """The inverse of `to_lists`."""
        return SentenceCounts(**{n: np.asarray(v, dtype=np.int64) for n, v in lists.items()})

    @staticmethod
    def concatenate(parts: Sequence[SentenceCounts]) -> SentenceCounts:
        """The counts of several texts as one; those that apply to all of them."""
        columns = [part._applicable() for part in parts]
        names = [name for name in columns[0] if all(name in other for other in columns)]
        return SentenceCounts(**{n: np.concatenate([part[n] for part in columns]) for n in names})

    def _applicable(self) -> dict[str, I64]:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if value is not None}


@dataclass(frozen=True)
class _Ratio:
    """A ratio of weighted sums of counts: {field: weight} each."""

    numerator: Mapping[str, int]
    denominator: Mapping[str, int]

    def value(self, sums: Mapping[str, F64]) -> F64:
        """The quotient; 0 if the denominator is 0, as in conlleval."""
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
# F1 = 2 P R / (P + R), written in counts, which are exact.
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
    """All metrics that the fields of a `CountTable` allow, in [0, 1].

    sums: [..., k], sums of its rows; results have the shape of the leading axes, such as bootstrap
    samples.  names: the k fields.
    """
    columns = _columns(sums, names)
    return {name: r.value(columns) for name, r in _METRICS.items() if r.applies(names)}


def ratio(sums: ArrayLike, names: Sequence[str], metric: str) -> F64:
    """One metric of `ratios`; KeyError if these fields do not allow it."""
    if metric not in _METRICS or not _METRICS[metric].applies(names):
        raise KeyError(metric)
    return _METRICS[metric].value(_columns(sums, names))


def needed_fields(metric: str) -> frozenset[str]:
    """Return the fields of a `CountTable` that a metric is made of; KeyError for an unknown one."""
    return frozenset({*_METRICS[metric].numerator, *_METRICS[metric].denominator})


def _columns(sums: ArrayLike, names: Sequence[str]) -> dict[str, F64]:
    parts = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    return dict(zip(names, parts, strict=True))


def metrics_from_counts(counts: SentenceCounts, mask: ArrayLike | None = None) -> dict[str, float]:
    """The metrics of a corpus, in [0, 1].

    mask: the sentences that count, bool[S] or indices; None = all.
    """
    table = counts.table()
    rows = table.rows if mask is None else table.rows[np.asarray(mask)]
    return {name: float(value) for name, value in ratios(rows.sum(axis=0), table.fields).items()}
