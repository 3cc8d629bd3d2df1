"""The level of the test of the methods under normal distributions and many sentences.

``PYTHONPATH=tests python -m studies.levels`` prints, by number of draws, the lowest and the highest
share of true null hypotheses that are rejected at 0.05, over all ratios of the variances.
"""

from __future__ import annotations

from collections.abc import Sequence

import click
import numpy as np
from scipy import stats

from sslbench.report.draws import Components

DRAWS = (2, 3, 4, 5, 7, 10, 20)
_SENTENCES = 10**9  # degrees of freedom: the mean square of sentences is its expectation
_POINTS = 4_000  # of the integral over the mean square of draws
_RATIOS = np.concatenate([[0.0], np.logspace(-2, 4, 31)])


def level(n_draws: int, between_draws: float, between_sentences: float) -> float:
    """Share of rejections at 0.05. The variances are in units of that of the residual.

    The mean square of draws has a chi-squared distribution with n_draws - 1 degrees of freedom
    around 1 + between_draws; the variance of the mean is 1 + between_draws + between_sentences.
    """
    df = n_draws - 1
    draws = stats.chi2.ppf((np.arange(_POINTS) + 0.5) / _POINTS, df) / df * (1 + between_draws)
    ones = np.ones(_POINTS)
    parts = Components(draws, (1 + between_sentences) * ones, ones, n_draws, _SENTENCES)
    sd = np.sqrt(1 + between_draws + between_sentences)
    return float(2 * stats.norm.sf(parts.half_width() / sd).mean())


def extremes(n_draws: int, ratios: Sequence[float] = tuple(_RATIOS)) -> tuple[float, float]:
    """The lowest and the highest level over all pairs of ratios."""
    levels = [level(n_draws, a, b) for a in ratios for b in ratios]
    return min(levels), max(levels)


@click.command()
def main() -> None:
    """Print a Markdown table of the lowest and highest levels."""
    shares = [extremes(n_draws) for n_draws in DRAWS]
    click.echo(f"| draws | {' | '.join(map(str, DRAWS))} |")
    click.echo("|---|" + "---:|" * len(DRAWS))
    for name, side in (("lowest level", 0), ("highest level", 1)):
        click.echo(f"| {name} | {' | '.join(f'{pair[side]:.3f}' for pair in shares)} |")


if __name__ == "__main__":
    main()
