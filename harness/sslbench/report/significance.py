"""Paired test and bootstrap interval of the difference of two taggers, from sentence counts.

Both use sums of counts, since metrics such as F1 are no means over sentences. A sentence with all
its seeds is one unit: taggers of different seeds err on the same sentences, and to treat these
errors as independent would make p-values too small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.errors import UserError
from sslbench.experiment.metrics import CountTable, SentenceCounts, ratio
from sslbench.experiment.predictions import unpack_numbers
from sslbench.experiment.record import RunRecord
from sslbench.types import F64, I64

RANDOMIZATIONS = 9_999
RESAMPLES = 2_000
RANDOM_SEED = 20_080_615  # fixed: equal records give equal tables
_BLOCK_CELLS = 2**22  # entries of the random masks that are in memory at a time


@dataclass(frozen=True)
class Paired:
    """Comparison of A with B on the same sentences and seeds.

    Attributes
    ----------
    difference: mean over seeds of metric(A) - metric(B), with metrics in [0, 1].
    low, high: 95 % bootstrap interval of the difference, over sentences and seeds.
    p_value: of the two-sided approximate randomization test.
    n_sentences, n_seeds: sizes of the sample.
    """

    difference: float
    low: float
    high: float
    p_value: float
    n_sentences: int
    n_seeds: int


def count_table(records: Sequence[RunRecord], split: str = "test") -> CountTable:
    """The counts of the records, rows int64[seeds, sentences, k].

    Where each seed has its own test sentences (`RunRecord.sentence_ids`), the sentences are those
    of all seeds, and the counts of a seed are 0 for sentences that it lacks: they change no sum.
    UserError if the records differ in fields, or in the number of sentences without such numbers.
    """
    tables = [SentenceCounts.from_lists(record.counts[split]).table() for record in records]
    packed = [record.sentence_ids.get(split) for record in records]
    numbers = [unpack_numbers(text) for text in packed if text is not None]
    if len(numbers) == len(tables):
        tables = _aligned(tables, numbers)
    if len({(table.fields, table.rows.shape) for table in tables}) != 1:
        raise UserError("the runs have different sentences or counts")
    return CountTable(tables[0].fields, np.stack([table.rows for table in tables]))


def _aligned(tables: Sequence[CountTable], numbers: Sequence[I64]) -> list[CountTable]:
    """The tables with a row for each sentence of any of them, in the order of their numbers.

    numbers: int64[S] by table, each sentence of it once.
    """
    everything = np.unique(np.concatenate(numbers))
    aligned = []
    for table, own in zip(tables, numbers, strict=True):
        if len(own) != len(table.rows):
            raise UserError(f"{len(own)} sentence numbers for {len(table.rows)} sentences")
        rows = np.zeros((len(everything), table.rows.shape[1]), dtype=np.int64)
        rows[np.searchsorted(everything, own)] = table.rows
        aligned.append(CountTable(table.fields, rows))
    return aligned


def compare_counts(a: CountTable, b: CountTable, metric: str) -> Paired:
    """Compare two tables, rows int64[seeds, sentences, k] with the seeds in the same order.

    Raises
    ------
    UserError: the tables differ in shape or fields, or their counts do not give the metric.
    """
    if a.rows.shape != b.rows.shape or a.fields != b.fields:
        raise UserError("the two sides have different sentences, seeds or counts")
    try:
        observed = float(_difference(a.rows.sum(axis=1), b.rows.sum(axis=1), a.fields, metric))
    except KeyError:
        raise UserError(f"no paired test for the metric {metric!r}") from None
    n_seeds, n_sentences, _ = a.rows.shape
    low, high = bootstrap_interval(a, b, metric)
    return Paired(
        difference=observed,
        low=low,
        high=high,
        p_value=randomization_p_value(a, b, metric),
        n_sentences=n_sentences,
        n_seeds=n_seeds,
    )


def randomization_p_value(
    a: CountTable, b: CountTable, metric: str, n_randomizations: int = RANDOMIZATIONS
) -> float:
    """Two-sided p-value of the paired approximate randomization test (Noreen 1989).

    Under the null hypothesis A and B may be swapped on any sentence (in all its seeds at once).
    p = (1 + number of swaps with |difference| >= observed) / (1 + number of swaps).
    """
    total_a, total_b = a.rows.sum(axis=1), b.rows.sum(axis=1)
    observed = abs(_difference(total_a, total_b, a.fields, metric))
    # A swap adds b - a to the counts of A; sentences without a difference change no sum.
    gain = np.moveaxis(b.rows - a.rows, 1, 0).reshape(a.rows.shape[1], -1).astype(np.float64)
    gain = gain[gain.any(axis=1)]
    rng = np.random.default_rng(RANDOM_SEED)
    at_least = 0
    for size in _blocks(n_randomizations, len(gain)):
        swap = rng.integers(0, 2, size=(size, len(gain)), dtype=np.int8).astype(np.float64)
        moved = (swap @ gain).reshape(size, *total_a.shape)
        swapped = np.abs(_difference(total_a + moved, total_b - moved, a.fields, metric))
        # Sums of counts are exact, their ratios are rounded: the tolerance is for ties.
        at_least += int((swapped >= observed - 1e-12).sum())
    return (1 + at_least) / (1 + n_randomizations)


def bootstrap_interval(
    a: CountTable, b: CountTable, metric: str, n_resamples: int = RESAMPLES
) -> tuple[float, float]:
    """95 % percentile interval of the difference; sentences and seeds are resampled."""
    n_seeds, n_sentences, _ = a.rows.shape
    if not n_sentences:
        return 0.0, 0.0
    both = np.moveaxis(np.stack([a.rows, b.rows]), 2, 0).astype(np.float64)
    flat = both.reshape(n_sentences, -1)
    rng = np.random.default_rng(RANDOM_SEED)
    differences = []
    for size in _blocks(n_resamples, n_sentences):
        weights = rng.multinomial(n_sentences, np.full(n_sentences, 1 / n_sentences), size=size)
        sums = (weights.astype(np.float64) @ flat).reshape(size, *both.shape[1:])
        per_seed = _per_seed(sums[:, 0], sums[:, 1], a.fields, metric)
        drawn = rng.integers(0, n_seeds, size=(size, n_seeds))
        differences.append(np.take_along_axis(per_seed, drawn, axis=1).mean(axis=1))
    low, high = np.quantile(np.concatenate(differences), [0.025, 0.975])
    return float(low), float(high)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values of Holm's step-down correction, in the order of `p_values`."""
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def _per_seed(sums_a: F64, sums_b: F64, fields: Sequence[str], metric: str) -> F64:
    """float64[..., seeds]: differences of the metric, from sums [..., seeds, k]."""
    return ratio(sums_a, fields, metric) - ratio(sums_b, fields, metric)


def _difference(sums_a: F64 | I64, sums_b: F64 | I64, fields: Sequence[str], metric: str) -> F64:
    per_seed = _per_seed(np.asarray(sums_a), np.asarray(sums_b), fields, metric)
    mean: F64 = per_seed.mean(axis=-1)
    return mean


def _blocks(total: int, width: int) -> Iterator[int]:
    step = max(1, _BLOCK_CELLS // max(1, width))
    for first in range(0, total, step):
        yield min(step, total - first)
