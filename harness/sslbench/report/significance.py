"""The question "these taggers": the fitted models are fixed, the sentences are exchangeable.

Both the test and its interval use sums of counts, since metrics such as F1 are no means over
sentences. A sentence with all its seeds is one unit: taggers of different seeds err on the same
sentences, and to treat these errors as independent would make p-values too small.

The other question, whether the methods differ, is in `sslbench.report.draws`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sslbench.engine.errors import UserError
from sslbench.engine.types import F64, I64
from sslbench.experiment.metrics import CountTable, SentenceCounts, needed_fields, ratio
from sslbench.experiment.records.predictions import unpack_numbers
from sslbench.experiment.records.record import RunRecord

RANDOMIZATIONS = 9_999
RANDOM_SEED = 20_080_615  # fixed: equal records give equal tables
LEVEL = 0.05
_BLOCK_CELLS = 2**22  # entries of random swaps that are floats at a time
_CACHED_CELLS = 2**27  # most entries that are cached for the next comparison, as int8
_EXACT_IN_FLOAT32 = 2**24  # integers up to it
_ROUNDING = 1e-12  # sums of counts are exact, their ratios are rounded: the tolerance is for ties


@dataclass(frozen=True)
class Paired:
    """Comparison of A with B on the same sentences and seeds.

    Attributes
    ----------
    difference: mean over seeds of metric(A) - metric(B), with metrics in [0, 1].
    low, high: 95 % interval of the difference; 0 is outside of it exactly if p_value <= 0.05.
    p_value: two-sided.
    """

    difference: float
    low: float
    high: float
    p_value: float


def count_table(records: Sequence[RunRecord], split: str = "test") -> CountTable:
    """The counts of the records, rows int64[seeds, sentences, k].

    Where test sentences depend on the seed, the sentences are those of all seeds, and the counts
    of a seed are 0 for those that it lacks: they change no sum. `RunRecord.sentence_ids` says
    which ones are the same; without it, the sentences of different test sets all differ.
    UserError if the records differ in fields, or have other sentences than they should.
    """
    tables = [SentenceCounts.from_lists(record.counts[split]).table() for record in records]
    tables = _aligned(tables, _numbers(records, tables, split))
    if len({(table.fields, table.rows.shape) for table in tables}) != 1:
        raise UserError("the runs have different sentences or counts")
    return CountTable(tables[0].fields, np.stack([table.rows for table in tables]))


def _numbers(records: Sequence[RunRecord], tables: Sequence[CountTable], split: str) -> list[I64]:
    """The number of each sentence, int64[S] by table: the same sentence has the same number."""
    packed = [record.sentence_ids.get(split) for record in records]
    numbered = [unpack_numbers(text) for text in packed if text is not None]
    if len(numbered) == len(tables):
        return numbered
    numbers: dict[str, I64] = {}
    n = 0
    for record, table in zip(records, tables, strict=True):
        test_set = str(record.data.get(f"{split}_sha256"))
        if test_set not in numbers:
            numbers[test_set] = n + np.arange(len(table.rows))
            n += len(table.rows)
    return [numbers[str(record.data.get(f"{split}_sha256"))] for record in records]


def _aligned(tables: Sequence[CountTable], numbers: Sequence[I64]) -> list[CountTable]:
    """The tables with a row for each sentence of any of them, in the order of their numbers."""
    everything = np.unique(np.concatenate(numbers))
    aligned = []
    for table, order in zip(tables, numbers, strict=True):
        if len(order) != len(table.rows):
            raise UserError("the runs have different sentences or counts")
        rows = np.zeros((len(everything), table.rows.shape[1]), dtype=np.int64)
        rows[np.searchsorted(everything, order)] = table.rows
        aligned.append(CountTable(table.fields, rows))
    return aligned


def compare_taggers(
    a: CountTable, b: CountTable, metric: str, n_randomizations: int = RANDOMIZATIONS
) -> Paired:
    """Paired approximate randomization test (Noreen 1989), and the interval that it gives.

    a, b: counts int64[seeds, sentences, k] with seeds and sentences in the same order.

    Under the null hypothesis A and B may be swapped on any sentence, in all its seeds at once.
    p = (1 + number of swaps with |difference| >= observed) / (1 + number of swaps). The hypothesis
    that A is better by x, on all tokens alike, is tested in the same way after x is taken off: a
    swap turns the sign of a sentence's share of the tokens, W is the sum of the shares, and
    |difference - x W| is compared with |observed - x|. The interval has all x that the test does
    not reject at 0.05.

    Raises
    ------
    UserError: the tables differ in shape or fields, or their counts do not give the metric.
    """
    if a.rows.shape != b.rows.shape or a.fields != b.fields:
        raise UserError("the two sides have different sentences, seeds or counts")
    try:
        sums = a.rows.sum(axis=1), b.rows.sum(axis=1)
        observed = float(_difference(sums[0], sums[1], a.fields, metric))
    except KeyError:
        raise UserError(f"no paired test for the metric {metric!r}") from None
    below, above = _accepted(a, b, metric, observed, n_randomizations)
    p_value = (1 + int(((below <= 0) & (above >= 0)).sum())) / (1 + n_randomizations)
    # The hypothesis x is rejected if at most `few` swaps accept it; each accepts an interval of x
    # around the observed difference.
    few = int(LEVEL * (1 + n_randomizations) + 1e-9) - 1
    if few < 0:
        return Paired(observed, -np.inf, np.inf, p_value)
    low, high = np.sort(below)[few], np.sort(-above)[few]
    return Paired(observed, float(low), -float(high), p_value)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values of Holm's step-down correction, in the order of `p_values`."""
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def _accepted(
    a: CountTable, b: CountTable, metric: str, observed: float, n_swaps: int
) -> tuple[F64, F64]:
    """float64[swaps] twice: the ends of the interval of x that each random swap accepts.

    |difference - x W| >= |observed - x| is quadratic in x; its roots are the ends.
    """
    difference, shift = _swaps(a, b, metric, n_swaps)
    with np.errstate(divide="ignore", invalid="ignore"):
        one = (observed - difference) / (1 - shift)
        two = (observed + difference) / (1 + shift)
    below = np.minimum(one, two) - _ROUNDING
    above = np.maximum(one, two) + _ROUNDING
    trivial = np.abs(shift) >= 1 - _ROUNDING  # all or no sentences are swapped: accepts every x
    return np.where(trivial, -np.inf, below), np.where(trivial, np.inf, above)


def _swaps(a: CountTable, b: CountTable, metric: str, n_swaps: int) -> tuple[F64, F64]:
    """float64[swaps] twice: the difference of the metric, and W, after random swaps."""
    shift = _shift(_token_shares(a).tobytes(), n_swaps)
    a, b = _needed(a, metric), _needed(b, metric)
    n_seeds, n_sentences, k = a.rows.shape
    total_a, total_b = a.rows.sum(axis=1), b.rows.sum(axis=1)
    # A swap adds b - a to the counts of A.
    gain = np.moveaxis(b.rows - a.rows, 1, 0).reshape(n_sentences, -1)
    changes = gain.any(axis=0)  # gold counts are the same on both sides
    gain = gain[:, changes]
    # Sums of integers are exact in both, and float32 takes half the time.
    small = np.abs(gain).sum(axis=0).max(initial=0) < _EXACT_IN_FLOAT32
    kind = np.float32 if small else np.float64
    differ = gain.any(axis=1)
    moves = gain[differ].astype(kind).T
    differences = []
    for chosen in _random_swaps(n_swaps, n_sentences):
        sums = np.zeros((chosen.shape[1], n_seeds * k))
        sums[:, changes] = np.dot(moves, chosen[differ].astype(kind)).T
        moved = sums.reshape(-1, n_seeds, k)
        differences.append(_difference(total_a + moved, total_b - moved, a.fields, metric))
    return np.concatenate(differences), shift


@lru_cache(maxsize=1)
def _shift(shares: bytes, n_swaps: int) -> F64:
    """float64[swaps]: W after random swaps, for the next comparison too.

    shares: float64[sentences], see `_token_shares`.
    """
    each = np.frombuffer(shares)
    blocks = _random_swaps(n_swaps, len(each))
    return np.concatenate([1 - 2 * (each @ chosen.astype(np.float64)) for chosen in blocks])


def _needed(table: CountTable, metric: str) -> CountTable:
    """The counts that the metric is made of."""
    fields = needed_fields(metric)
    places = [place for place, name in enumerate(table.fields) if name in fields]
    return CountTable(tuple(table.fields[place] for place in places), table.rows[..., places])


def _token_shares(table: CountTable) -> F64:
    """float64[sentences]: the share of each sentence in the tokens, mean over seeds."""
    tokens = table.rows[..., table.fields.index("n_tokens")].astype(np.float64)
    shares: F64 = (tokens / np.maximum(tokens.sum(axis=1, keepdims=True), 1.0)).mean(axis=0)
    return shares


def _difference(sums_a: F64 | I64, sums_b: F64 | I64, fields: Sequence[str], metric: str) -> F64:
    """Mean over seeds of the differences of the metric, from sums [..., seeds, k]."""
    per_seed = ratio(sums_a, fields, metric) - ratio(sums_b, fields, metric)
    mean: F64 = per_seed.mean(axis=-1)
    return mean


def _random_swaps(n_swaps: int, n_sentences: int) -> Iterable[NDArray[np.int8]]:
    """Which sentences each swap changes, int8[sentences, swaps] in blocks of columns."""
    if n_swaps * n_sentences <= _CACHED_CELLS:
        return _cached_swaps(n_swaps, n_sentences)
    return _new_swaps(n_swaps, n_sentences)


@lru_cache(maxsize=1)
def _cached_swaps(n_swaps: int, n_sentences: int) -> list[NDArray[np.int8]]:
    """For the next comparison: those of a table mostly have the same number of sentences."""
    return list(_new_swaps(n_swaps, n_sentences))


def _new_swaps(n_swaps: int, n_sentences: int) -> Iterator[NDArray[np.int8]]:
    rng = np.random.default_rng(RANDOM_SEED)
    step = max(1, _BLOCK_CELLS // max(1, n_sentences))
    for first in range(0, n_swaps, step):
        size = min(step, n_swaps - first)
        chosen = rng.integers(0, 2, size=(size, n_sentences), dtype=np.int8)
        yield np.ascontiguousarray(chosen.T)
