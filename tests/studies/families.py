"""How often the tests over families of corpora are wrong: made-up columns of a board.

``PYTHONPATH=tests python -m studies.families`` prints a line of a Markdown table for every null
hypothesis, kind of task and number of families. docs/statistics.md has the model and the results.
"""

from __future__ import annotations

from dataclasses import dataclass

import click
import numpy as np
from scipy import stats

from sslbench.engine.types import F64
from sslbench.report.families import family_means, mean_p_value, set_apart
from sslbench.report.significance import LEVEL

NULLS = ("equal", "signs", "normal", "skewed")
#: standard deviation of a gain between draws, in points: that of tags, of spans, of rare entities
DRAW_SD = {"tags": (0.3,), "spans": (1.5,), "rare": (4.0,), "mixed": (0.3, 1.5, 4.0)}
CORPUS_SD = 0.5  # of corpora of one family, in points
SIZES = (10, 3, 2)  # corpora of the first families; the others have one
RANDOM_SEED = 20_261_128
HEAD = "null hypothesis | noise | families | corpora | draws | p of families | of t | of corpora"


@dataclass(frozen=True)
class Cell:
    """A kind of boards.

    null: one of NULLS.  kind: a key of DRAW_SD.  shift: mean of the effects of families, points.
    """

    null: str
    kind: str
    families: int
    draws: int
    shift: float = 0.0

    @property
    def names(self) -> list[str]:
        """The family of each column."""
        return [f"f{i}" for i in range(self.families) for _ in range(self._size(i))]

    def _size(self, family: int) -> int:
        return SIZES[family] if family < len(SIZES) else 1

    def effects(self, rng: np.random.Generator) -> F64:
        """Return float64[families]: what a method gains on each family, in points; mean `shift`."""
        n = self.families
        if self.null == "equal":
            return np.full(n, self.shift)
        if self.null == "signs":  # sizes as unequal as those of the board, each sign as likely
            return self.shift + rng.choice((-1.0, 1.0), n) * np.exp(rng.normal(0.0, 1.0, n))
        if self.null == "normal":
            return self.shift + rng.normal(0.0, 1.5, n)
        return self.shift + 1.5 * (rng.exponential(1.0, n) - 1.0)

    def gains(self, rng: np.random.Generator) -> F64:
        """Return float64[columns]: the mean gain on each corpus over its draws, in points."""
        kinds = DRAW_SD[self.kind]
        effects, columns = self.effects(rng), []
        for i, effect in enumerate(effects):
            own = rng.normal(0.0, CORPUS_SD if self.null != "equal" else 0.0, self._size(i))
            noise = rng.normal(0.0, kinds[i % len(kinds)], (self._size(i), self.draws))
            columns.append(effect + own + noise.mean(axis=1))
        return np.concatenate(columns)


def rejections(cell: Cell, n: int) -> F64:
    """Return float64[3]: the shares of n boards with p <= LEVEL.

    They are those of three tests: ours over families, a t test over families, and Wilcoxon's test
    over corpora, as if each corpus were an independent witness.
    """
    rng = np.random.default_rng(RANDOM_SEED)
    found = np.zeros(3)
    for _ in range(n):
        columns = cell.gains(rng)
        means = family_means(columns, cell.names)
        p = (
            mean_p_value(means),
            stats.ttest_1samp(means, 0).pvalue,
            stats.wilcoxon(columns).pvalue,
        )
        found += np.array(p) <= LEVEL
    return found / n


def any_pair(methods: int, cell: Cell, n: int) -> float:
    """Return the share of n boards of equal methods on which letters set some pair apart."""
    rng = np.random.default_rng(RANDOM_SEED)
    boards = ([cell.gains(rng) for _ in range(methods)] for _ in range(n))
    found = [bool(set_apart(family_means(np.array(board), cell.names))) for board in boards]
    return float(np.mean(found))


def line(cell: Cell, n: int) -> str:
    """Return a line of the table."""
    texts = [f"{cell.null}, {cell.shift:+g} points" if cell.shift else cell.null, cell.kind]
    texts += [str(number) for number in (cell.families, len(cell.names), cell.draws)]
    return " | ".join(texts + [f"{share:.3f}" for share in rejections(cell, n)])


@click.command()
@click.option("--families", multiple=True, type=int, default=(6, 10, 15), show_default=True)
@click.option("--draws", multiple=True, type=int, default=(3,), show_default=True)
@click.option("--shift", "shifts", multiple=True, type=float, default=(0.0,), help="Points.")
@click.option("--null", "nulls", multiple=True, type=click.Choice(NULLS), default=NULLS)
@click.option("--methods", type=int, default=0, help="Boards of so many equal methods instead.")
@click.option("--boards", "n", type=int, default=2000, show_default=True, help="Of a line.")
def main(
    families: tuple[int, ...],
    draws: tuple[int, ...],
    shifts: tuple[float, ...],
    nulls: tuple[str, ...],
    methods: int,
    n: int,
) -> None:
    """Print how often the tests over families reject, a line for each setting."""
    cells = [
        Cell(null, kind, size, S, shift)
        for null in nulls
        for shift in shifts
        for kind in DRAW_SD
        for size in families
        for S in draws
    ]
    head = "null hypothesis | noise | families | some pair set apart" if methods else HEAD
    click.echo(f"| {head} |\n| {' | '.join('---' for _ in head.split('|'))} |")
    for cell in cells:
        if methods:
            share = any_pair(methods, cell, n)
            click.echo(f"| {cell.null} | {cell.kind} | {cell.families} | {share:.3f} |")
        else:
            click.echo(f"| {line(cell, n)} |")


if __name__ == "__main__":
    main()
