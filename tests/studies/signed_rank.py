"""The gains of a board, read by the Bayesian signed-rank test: a check of the exact test.

``PYTHONPATH=tests python -m studies.signed_rank leaderboards/standard.csv`` prints, for each
method, the probabilities that it is better than the baseline, level with it, or worse, beside the
exact test over families. docs/statistics.md has the table.

Source: A. Benavoli, G. Corani, F. Mangili, M. Zaffalon, F. Ruggeri: A Bayesian Wilcoxon signed-rank
test based on the Dirichlet process, ICML 2014; the region of practical equivalence as in
A. Benavoli, G. Corani, J. Demsar, M. Zaffalon, JMLR 18 (2017).
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from sslbench.engine.types import F64
from sslbench.report.families import mean_p_value
from studies.prediction import gains

SAMPLES, RANDOM_SEED = 20_000, 20_261_128
PRIOR = 0.5  # of the pseudo-observation at 0
LEVEL = 0.1  # points: no difference in practice


def probabilities(values: F64, rng: np.random.Generator, samples: int = SAMPLES) -> F64:
    """Return the probabilities that the median of mean pairs is above LEVEL, within it, below it.

    values: float64[F], a gain in points for each family.  A sample draws weights of the families
    and of the pseudo-observation from a Dirichlet distribution; each pair of values has the product
    of its weights, and the largest of the three sums of products wins.
    """
    all_values = np.append(values, 0.0)
    weights = rng.dirichlet([*np.ones(len(values)), PRIOR], samples)
    pairs = (all_values[:, None] + all_values) / 2
    sides = [pairs > LEVEL, np.abs(pairs) <= LEVEL, pairs < -LEVEL]
    sums = np.stack([np.einsum("si,ij,sj->s", weights, side, weights) for side in sides])
    wins: F64 = np.bincount(sums.argmax(axis=0), minlength=3) / samples
    return wins


@click.command()
@click.argument("board", type=click.Path(path_type=Path, exists=True))
def main(board: Path) -> None:
    """Print a line for each method of the table BOARD."""
    rng = np.random.default_rng(RANDOM_SEED)
    print("| method | mean gain | exact p | better | level | worse |")
    print("|---|---:|---:|---:|---:|---:|")
    table = gains(board)
    for method in table.mean(axis=1).sort_values(ascending=False).index:
        values = table.loc[method].to_numpy()
        better, level, worse = probabilities(values, rng)
        shown = f"{values.mean():+.2f} | {mean_p_value(values):.4f}"
        print(f"| {method} | {shown} | {better:.3f} | {level:.3f} | {worse:.3f} |")


if __name__ == "__main__":
    main()
