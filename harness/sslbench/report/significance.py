"""Paired tests between two taggers, from per-sentence counts.

Both work on sums of counts, so that F1 (which is no mean over sentences) is tested as it is
reported. A sentence is one unit with all its seeds: the taggers of different seeds err on the same
sentences, and treating those errors as independent would make p-values too small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.errors import UserError
from sslbench.experiment.metrics import CountTable, SentenceCounts, ratio
from sslbench.experiment.record import RunRecord
from sslbench.types import F64, I64

RANDOMIZATIONS = 9_999
RESAMPLES = 2_000
RANDOM_SEED = 20_080_615  # fixed: the same records give the same table
_BLOCK_CELLS = 2**22  # bounds the memory of a block of random masks


@dataclass(frozen=True)
class Paired:
    """Comparison of A with B on the same sentences and seeds.

    Attributes
    ----------
    difference: mean over seeds of metric(A) - metric(B).
    low, high: 95 % bootstrap interval of the difference, over sentences and seeds.
    p_value: two-sided, approximate randomization.
    n_sentences, n_seeds: what it rests on.
    """

    difference: float
    low: float
    high: float
    p_value: float
    n_sentences: int
    n_seeds: int


def count_table(records: Sequence[RunRecord], split: str = "test") -> CountTable:
    """The counts of all records, rows int64[seeds, sentences, k].

    UserError when they do not count the same things in the same number of sentences.
    """
    tables = [SentenceCounts.from_lists(record.counts[split]).table() for record in records]
    if len({(table.fields, table.rows.shape) for table in tables}) != 1:
        raise UserError("the runs have different sentences or counts")
    return CountTable(tables[0].fields, np.stack([table.rows for table in tables]))


def compare_counts(a: CountTable, b: CountTable, metric: str) -> Paired:
    """Test and interval for two tables, rows int64[seeds, sentences, k] (same seed = same index).

    Raises
    ------
    UserError: the tables differ in shape or fields, or the metric cannot be had from counts.
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
    # A swap moves b - a to A's side; sentences on which nothing differs change no sum.
    gain = np.moveaxis(b.rows - a.rows, 1, 0).reshape(a.rows.shape[1], -1).astype(np.float64)
    gain = gain[gain.any(axis=1)]
    rng = np.random.default_rng(RANDOM_SEED)
    at_least = 0
    for size in _blocks(n_randomizations, len(gain)):
        swap = rng.integers(0, 2, size=(size, len(gain)), dtype=np.int8).astype(np.float64)
        moved = (swap @ gain).reshape(size, *total_a.shape)
        found = np.abs(_difference(total_a + moved, total_b - moved, a.fields, metric))
        # Sums of counts are exact; the ratios need a hair's breadth for ties.
        at_least += int((found >= observed - 1e-12).sum())
    return (1 + at_least) / (1 + n_randomizations)


def bootstrap_interval(
    a: CountTable, b: CountTable, metric: str, n_resamples: int = RESAMPLES
) -> tuple[float, float]:
    """95 % percentile interval of the difference, resampling sentences and (if several) seeds."""
    n_seeds, n_sentences, _ = a.rows.shape
    if not n_sentences:
        return 0.0, 0.0
    both = np.moveaxis(np.stack([a.rows, b.rows]), 2, 0).astype(np.float64)
    flat = both.reshape(n_sentences, -1)
    rng = np.random.default_rng(RANDOM_SEED)
    found = []
    for size in _blocks(n_resamples, n_sentences):
        weights = rng.multinomial(n_sentences, np.full(n_sentences, 1 / n_sentences), size=size)
        sums = (weights.astype(np.float64) @ flat).reshape(size, *both.shape[1:])
        per_seed = _per_seed(sums[:, 0], sums[:, 1], a.fields, metric)
        drawn = rng.integers(0, n_seeds, size=(size, n_seeds))
        found.append(np.take_along_axis(per_seed, drawn, axis=1).mean(axis=1))
    low, high = np.quantile(np.concatenate(found), [0.025, 0.975])
    return float(low), float(high)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: adjusted p-values in the order given."""
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def _per_seed(sums_a: F64, sums_b: F64, fields: Sequence[str], metric: str) -> F64:
    """[..., seeds] differences from sums [..., seeds, k]."""
    return ratio(sums_a, fields, metric) - ratio(sums_b, fields, metric)


def _difference(sums_a: F64 | I64, sums_b: F64 | I64, fields: Sequence[str], metric: str) -> F64:
    per_seed = _per_seed(np.asarray(sums_a), np.asarray(sums_b), fields, metric)
    mean: F64 = per_seed.mean(axis=-1)
    return mean


def _blocks(total: int, width: int) -> Iterator[int]:
    step = max(1, _BLOCK_CELLS // max(1, width))
    for first in range(0, total, step):
        yield min(step, total - first)
