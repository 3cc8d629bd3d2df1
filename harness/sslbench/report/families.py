"""Statistics over families of corpora: the unit that repeats is the family, not the corpus.

Ten treebanks with one annotation scheme share what makes a method good or bad there. To count them
as ten independent witnesses makes p-values too small. Here the values of a family's corpora are
averaged first; what is said across corpora is said of the means of families.

Source: J. A. Hartigan: Using subsample values as typical values, JASA 64 (1969). If the values of
n families are independent and symmetric about m, not necessarily of one distribution, the means of
their 2^n - 1 nonempty subsets divide the line into 2^n intervals, and each contains m with the same
probability. The test and the interval below are exact for any number of families.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
from scipy import stats

from sslbench.engine.types import F64
from sslbench.report.ranks import Pair
from sslbench.report.significance import LEVEL

#: with fewer families no p-value can be 0.05
LEAST_FAMILIES = 6
_MOST_EXACT = 16  # families: 2^16 subsets; of more, as many random ones
_SEED = 19_690_401
_RESAMPLES = 10_000


def family_means(values: F64, families: Sequence[str]) -> F64:
    """Return float64[..., families]: means over the columns of each family, by first column.

    values: float64[..., columns].  families: the family of each column.
    """
    kinds = np.array(families)
    names = dict.fromkeys(families)
    return np.stack([values[..., kinds == name].mean(axis=-1) for name in names], axis=-1)


def mean_interval(values: F64, level: float = LEVEL) -> tuple[float, float]:
    """Return the ends of the interval of the mean of float64[families], at 1 - level.

    It has all centers that `mean_p_value` does not reject; infinite with too few families.
    """
    means = _subset_means(values)
    few = int(level * (len(means) + 1) / 2 + 1e-9)
    if few < 1:
        return -np.inf, np.inf
    return float(means[few - 1]), float(means[-few])


def mean_p_value(values: F64) -> float:
    """Return the two-sided p of the hypothesis that float64[families] is symmetric about 0.

    This is the exact test of all changes of signs (Fisher 1935).
    """
    means = _subset_means(values)
    below = np.searchsorted(means, 0.0, side="right")
    above = len(means) - np.searchsorted(means, 0.0, side="left")
    return float(min(1.0, 2 * (1 + min(below, above)) / (len(means) + 1)))


def set_apart(values: F64, rate: float = LEVEL) -> list[Pair]:
    """Return the pairs of lines that differ, at a false-discovery rate.

    values: float64[lines, families].  Of the pairs that are returned, a share of at most `rate` is
    expected to be wrong (Benjamini and Hochberg 1995).
    """
    pairs = list(combinations(range(len(values)), 2))
    if not pairs:
        return []
    p_values = [mean_p_value(values[a] - values[b]) for a, b in pairs]
    adjusted = stats.false_discovery_control(p_values)
    return [pair for pair, p in zip(pairs, adjusted, strict=True) if p <= rate]


def first_shares(values: F64, families: Sequence[str]) -> F64:
    """Return float64[lines]: how often each line has the best mean when corpora are drawn again.

    Families are drawn with replacement, then the corpora of each. Lines that are equal share.
    values: float64[lines, columns], larger is better.
    """
    rng = np.random.default_rng(_SEED)
    places = [np.flatnonzero(np.array(families) == name) for name in dict.fromkeys(families)]
    n = len(places)
    weights = np.empty((_RESAMPLES, values.shape[1]))
    drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=_RESAMPLES)  # how often each family is
    for family, members in enumerate(places):
        size = len(members)
        counts = rng.multinomial(drawn[:, family] * size, np.full(size, 1.0 / size))
        weights[:, members] = counts / (size * n)
    means = weights @ values.T
    best = np.isclose(means, means.max(axis=1, keepdims=True), rtol=0.0, atol=1e-12)
    shares: F64 = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def _subset_means(values: F64) -> F64:
    """Return the sorted means of the nonempty subsets; with many values, of random ones."""
    members = _subsets(len(values))
    means = members @ values / members.sum(axis=1)
    means[np.abs(means) < 1e-12] = 0.0  # rounding: equal values of opposite signs
    return np.sort(means)


@lru_cache(maxsize=2)
def _subsets(n: int) -> F64:
    """Return float64[subsets, n]: 1 for the members of each nonempty subset."""
    if n > _MOST_EXACT:
        drawn = np.random.default_rng(_SEED).integers(0, 2, (2**_MOST_EXACT, n))
        return drawn[drawn.any(axis=1)][: 2**_MOST_EXACT - 1].astype(np.float64)
    numbers = np.arange(1, 2**n)[:, None]
    return ((numbers >> np.arange(n)) & 1).astype(np.float64)
