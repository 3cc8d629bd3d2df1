"""The question "the methods": other draws and other sentences might have come.

D[draw, sentence] is what a sentence adds to the difference of two methods in a draw. With random
effects of draws, of sentences and of both together, the variance of the mean over S draws and n
sentences is a + b - e, where a, b and e are the mean squares of draws, of sentences and of the
residual, each divided by S n. They are unbiased for any distribution of D if draws and sentences
are exchangeable (Hoeffding's decomposition).

The half width of the interval is the modified large-sample one (Graybill and Wang 1980; Burdick and
Graybill 1992), where each mean square has the t quantile of its degrees of freedom:

    h^2 = max(t_draws^2 a - c t^2 e, 0) + t_sentences^2 b,    c = 1 + (2 / (S - 1))^2

t is t_sentences, or t_draws where that is smaller: with fewer sentences than draws the interval
would otherwise shrink at smaller levels. h is never less than the width for fixed draws, h^2 =
t_sentences^2 b. That makes it timid with few draws that differ little; c > 1 gives part of it back.
Under normal distributions and many sentences
the test at 0.05 then rejects a true null hypothesis in 0.014 to 0.060 of comparisons with two
draws, 0.020 to 0.057 with three, 0.025 to 0.053 with five, 0.031 to 0.051 with ten
(docs/statistics.md). The p-value is the level at which the interval just contains 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from sslbench.engine.types import F64
from sslbench.experiment.metrics import CountTable, ratio
from sslbench.report.significance import LEVEL, Paired

MIN_DRAWS = 2
_SMALLEST_P = 1e-12
POWER = 0.8
#: the smallest difference that the test detects, in half widths of its interval
_SEEN = 1 + stats.norm.ppf(POWER) / stats.norm.isf(LEVEL / 2)


@dataclass(frozen=True)
class Components:
    """Variances of the mean difference, in squared units of the metric, float64[...] each.

    draws, sentences, residual: mean squares divided by the number of values of D.
    n_draws; df: degrees of freedom of `sentences`.
    """

    draws: F64
    sentences: F64
    residual: F64
    n_draws: int
    df: int

    def half_width(self, level: float = LEVEL) -> F64:
        """Half the width of the interval that misses the truth with probability `level`."""
        # as stats.t.isf, without the checks of arguments that take most of its time
        of_draws, of_sentences = special.stdtrit([self.n_draws - 1, self.df], level / 2) ** 2
        c = 1 + (2 / (self.n_draws - 1)) ** 2
        of_residual = min(of_draws, of_sentences)
        between = np.maximum(of_draws * self.draws - c * of_residual * self.residual, 0)
        width: F64 = np.sqrt(between + of_sentences * self.sentences)
        return width


@dataclass(frozen=True)
class MethodsTest(Paired):
    """Comparison of two methods. seen: the smallest difference that the test detects four times in
    five.
    """

    seen: float


def values(table: CountTable, metric: str) -> F64:
    """float64[..., sentences] with the metric as mean: what each sentence adds to it.

    table: int64[..., sentences, k]. A sentence's value is by how much the metric falls without it,
    times n - 1 (jackknife influence; B. Efron and C. Stein 1981). KeyError if the counts do not
    give the metric.
    """
    n = table.rows.shape[-2]
    sums = table.rows.sum(axis=-2, keepdims=True)
    whole = ratio(sums, table.fields, metric)
    influence = (n - 1) * (whole - ratio(sums - table.rows, table.fields, metric))
    centered: F64 = whole + influence - influence.mean(axis=-1, keepdims=True)
    return centered


def crossed(D: F64) -> Components:
    """Components of float64[..., draws, sentences]."""
    S, n = D.shape[-2:]
    mean = D.mean(axis=(-2, -1), keepdims=True)
    rows, columns = D.mean(axis=-1, keepdims=True), D.mean(axis=-2, keepdims=True)
    draws = ((rows - mean) ** 2).sum(axis=(-2, -1)) / (S - 1)
    sentences = ((columns - mean) ** 2).sum(axis=(-2, -1)) / (n - 1)
    rest = ((D - rows - columns + mean) ** 2).sum(axis=(-2, -1)) / ((S - 1) * (n - 1))
    return Components(draws / S, sentences / n, rest / (S * n), S, n - 1)


def compare_methods(a: F64, b: F64) -> MethodsTest:
    """Test the mean difference of two methods.

    a, b: `values` float64[draws, sentences] with at least `MIN_DRAWS` draws and two sentences. A
        sentence that is not tested in a draw has no counts there, and adds nothing to the metric.
    """
    parts = crossed(a - b)
    mean, width = float((a - b).mean()), float(parts.half_width())
    p = p_value(mean, parts)
    return MethodsTest(mean, mean - width, mean + width, p, float(width * _SEEN))


def p_value(mean: float, parts: Components) -> float:
    """The level at which the interval around `mean` just contains 0."""

    def outside(log_level: float) -> float:
        return abs(mean) - float(parts.half_width(np.exp(log_level)))

    if outside(0.0) <= 0:
        return 1.0
    smallest = float(np.log(_SMALLEST_P))
    if outside(smallest) >= 0:
        return _SMALLEST_P
    return float(np.exp(optimize.brentq(outside, smallest, 0.0, xtol=1e-12)))
