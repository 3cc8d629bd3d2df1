"""Does a board predict a family of corpora that it has not seen? One family is left out at a time.

``PYTHONPATH=tests python -m studies.prediction leaderboards/standard.csv`` prints, for each family,
how the gains of the methods there are ordered by their mean gains on the other families. Intervals
resample families. docs/board.md has the results.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pandas as pd
from scipy import stats

from sslbench.engine.types import F64
from sslbench.plugins import registry

RESAMPLES = 10_000
RANDOM_SEED = 20_261_128
GRAPH_ALONE = ("gp_crf", "graph_propagation")  # far below all others everywhere
KINDS = {"f1": "spans", "alt_f1": "spans", "accuracy": "tags"}


@dataclass(frozen=True)
class Outcome:
    """What is said of one family by the others, and what came.

    n_corpora: of this family.  correlation: Spearman's, of the gains of the methods.
    first: the method of the largest mean gain elsewhere.  best: that of the largest gain here.
    gain: of `first` here; highest: of `best`, in points.
    """

    family: str
    n_corpora: int
    correlation: float
    first: str
    gain: float
    best: str
    highest: float


def gains(path: Path, labeled: int = 100) -> pd.DataFrame:
    """Return the mean gain over the baseline in points: a row per method, a column per family.

    path: a table of `sslbench suite report`.  Columns are named (family, kind of task); the number
    of corpora of each is in ``attrs["corpora"]``.
    """
    table = pd.read_csv(path)
    table = table[table["protocol"].str.startswith(f"labeled {labeled},")]
    table = table[~table["method"].isin(GRAPH_ALONE) & table["difference"].notna()]
    table["family"] = [registry().dataset(name).family or name for name in table["dataset"]]
    table["kind"] = table["metric"].map(KINDS).fillna("segmentation and tags")
    keys = ["family", "kind"]
    means = 100 * table.pivot_table("difference", "method", keys, aggfunc="mean")
    result = means.dropna(how="all", axis=1).dropna()
    result.attrs["corpora"] = table.groupby(keys)["dataset"].nunique().to_dict()
    return result


def outcomes(table: pd.DataFrame, same_kind: bool) -> list[Outcome]:
    """Return what the other families say of each; same_kind: only those of its kind of task."""
    result = []
    for here in table.columns:
        others = [c for c in table.columns if c != here and (not same_kind or c[1] == here[1])]
        if not others:
            continue
        said, came = table[others].mean(axis=1), table[here]
        rho = float(stats.spearmanr(said, came).statistic)
        first, best = str(said.idxmax()), str(came.idxmax())
        values = (first, float(came[first]), best, float(came[best]))
        result.append(Outcome(here[0], table.attrs["corpora"][here], rho, *values))
    return result


def interval(values: F64) -> tuple[float, float]:
    """Return the 95 % interval of the mean, by resampling families."""
    rng = np.random.default_rng(RANDOM_SEED)
    means = values[rng.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def summary(found: list[Outcome]) -> str:
    """Return means over families with their intervals, and how often the first is the best."""
    texts = []
    for name, values in (
        ("rank correlation", [each.correlation for each in found]),
        ("gain of the method said to be first", [each.gain for each in found]),
        ("points below the best method", [each.highest - each.gain for each in found]),
    ):
        numbers = np.array(values)
        low, high = interval(numbers)
        texts.append(f"{name} {numbers.mean():.2f} [{low:.2f}, {high:.2f}]")
    right = sum(each.first == each.best for each in found)
    return f"{', '.join(texts)}; first is best in {right} of {len(found)}"


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--labeled", type=int, default=100, show_default=True)
def main(path: Path, labeled: int) -> None:
    """Print a Markdown table for the families, and the means over them."""
    table = gains(path, labeled)
    click.echo("| family | corpora | rank correlation | said to be first | gain | best | gain |")
    click.echo("|---|---:|---:|---|---:|---|---:|")
    for each in outcomes(table, same_kind=False):
        click.echo(
            f"| {each.family} | {each.n_corpora} | {each.correlation:.2f} | {each.first} |"
            f" {each.gain:+.1f} | {each.best} | {each.highest:+.1f} |"
        )
    for name, same in (("all other families", False), ("other families of the kind", True)):
        click.echo(f"\n{name}: {summary(outcomes(table, same))}")


if __name__ == "__main__":
    main()
