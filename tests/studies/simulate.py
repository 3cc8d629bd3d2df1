"""How often the tests of the leaderboard are wrong: comparisons of made-up taggers.

``PYTHONPATH=tests python -m studies.simulate`` prints a line of a Markdown table for every null
hypothesis, metric, number of draws and size of the test set. docs/statistics.md has the model and
the results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click
import numpy as np

from sslbench.engine.types import F64, I64
from sslbench.experiment.metrics import CountTable, ratio
from sslbench.report.draws import MIN_DRAWS, crossed, values
from sslbench.report.significance import LEVEL, compare_taggers

METRICS = {
    "accuracy": ("n_tokens", "correct_tokens"),
    "f1": ("n_tokens", "gold_chunks", "predicted_chunks", "correct_chunks"),
}
NULLS = ("swapped", "shared", "independent", "systematic")
SWAPS = 199  # of a randomization test: 0.05 is a level that it can have exactly
RANDOM_SEED = 1_947
_BLOCK = 2**20  # sentences of one tagger that are in memory at a time


@dataclass(frozen=True)
class World:
    """The made-up data and taggers.

    Attributes
    ----------
    error: about the share of wrong tokens or chunks.
    chunks: per sentence of mean length.
    draw_sd: of a training: how much better or worse it is on all sentences, in logits.
    noise_sd: of a training and a sentence, likewise.  method_sd: of a method and a sentence.
    tail: degrees of freedom of the t distribution of the noise; None = normal.
    spread: the larger, the more alike are the lengths of sentences.
    """

    error: float = 0.14
    chunks: float = 3.0
    draw_sd: float = 0.1
    noise_sd: float = 1.0
    method_sd: float = 0.5
    tail: float | None = None
    spread: float = 2.0


WORLDS = {
    "usual": World(),
    "two-percent": World(error=0.02),
    "forty-percent": World(error=0.4),
    "few-chunks": World(chunks=0.5),
    "heavy-tails": World(tail=3.0, spread=0.4),
    "same-draws": World(draw_sd=0.0),
    "wide-draws": World(draw_sd=0.4, noise_sd=0.2),
}
MEAN_LENGTH = 20
_REPLACED = 0.6  # of the wrong chunks: another chunk is predicted in their place


@dataclass(frozen=True)
class Cell:
    """A kind of comparisons.

    null: one of NULLS.  effect: of the first method, as a share of its errors that it corrects.
    """

    null: str
    metric: str
    draws: int
    sentences: int
    effect: float = 0.0


def comparisons(cell: Cell, world: World, n: int, rng: np.random.Generator) -> I64:
    """Counts int64[n, 2, draws, sentences, k] of two taggers; fields: METRICS[cell.metric]."""
    shape = (n, 2, cell.draws, cell.sentences)
    one = (n, 1, 1, cell.sentences)
    mean = MEAN_LENGTH - 1
    tokens = 1 + rng.negative_binomial(world.spread, world.spread / (world.spread + mean), size=one)
    share = world.chunks / MEAN_LENGTH
    units = tokens if cell.metric == "accuracy" else rng.binomial(tokens, share)
    hard_share = min(2.2 * world.error, 0.95)  # about half of the hard units are wrong
    ease = rng.normal(np.log(hard_share / (1 - hard_share)), 0.7, size=one)
    hard = np.broadcast_to(rng.binomial(units, _logistic(ease)), shape)
    wrong = rng.binomial(hard, _logistic(_logits(cell, world, shape, rng)))
    wrong[:, 0] = rng.binomial(wrong[:, 0], 1 - cell.effect)
    units, tokens = np.broadcast_to(units, shape), np.broadcast_to(tokens, shape)
    if cell.metric == "accuracy":
        counts = np.stack([tokens, tokens - wrong], axis=-1)
    else:
        spurious = rng.binomial(tokens, 0.1 * share * world.error)
        predicted = units - wrong + rng.binomial(wrong, _REPLACED) + spurious
        counts = np.stack([tokens, units, predicted, units - wrong], axis=-1)
    if cell.null != "swapped":
        return counts
    swap = rng.random((n, 1, 1, cell.sentences, 1)) < 0.5  # in all draws at once
    return np.where(swap, counts[:, ::-1], counts)


def _logits(cell: Cell, world: World, shape: tuple[int, ...], rng: np.random.Generator) -> F64:
    """Of the probability that a hard unit is wrong, float64[n, 2, draws, sentences]."""
    shared = {"shared": 0.75, "independent": 0.0}.get(cell.null, 0.5)

    def noise(size: tuple[int, ...]) -> F64:
        drawn = rng.normal(size=size) if world.tail is None else rng.standard_t(world.tail, size)
        return np.asarray(drawn)

    def of_trainings(size: tuple[int, ...]) -> F64:
        # What two trainings have in common since their labeled samples overlap.
        both = noise((size[0], 1, *size[2:]))
        own = noise(size)
        total: F64 = np.sqrt(shared) * both + np.sqrt(1 - shared) * own
        return total

    logits = world.draw_sd * of_trainings((*shape[:3], 1)) + world.noise_sd * of_trainings(shape)
    if cell.null in ("swapped", "systematic"):
        better = world.method_sd * noise((shape[0], 1, 1, shape[3]))
        logits += np.array([1.0, -1.0]).reshape(1, 2, 1, 1) * better
    return logits


def _logistic(x: F64) -> F64:
    probability: F64 = 1 / (1 + np.exp(-x))
    return probability


@dataclass(frozen=True)
class Result:
    """What the tests said about comparisons; float64[comparisons] each, in [0, 1].

    scores, difference: of the metric.  width: half of the interval of "the methods", NaN with one
    draw.  taggers: p-values of "these taggers", empty if not asked for.
    draws, sentences: mean squares by that of the residual, means over comparisons.
    """

    scores: F64
    difference: F64
    width: F64
    taggers: F64
    draws: float
    sentences: float

    def rejected(self) -> float:
        """Share of comparisons with p <= 0.05 for "the methods"."""
        return float((np.abs(self.difference) >= self.width).mean())

    def coverage(self, truth: float) -> float:
        """Share of the intervals of "the methods" that contain a difference."""
        return float((np.abs(self.difference - truth) < self.width).mean())


def simulate(cell: Cell, world: World, n: int, taggers: bool = True) -> Result:
    """Make and test `n` comparisons; equal arguments give equal results.

    taggers: also test "these taggers".
    """
    rng = np.random.default_rng([RANDOM_SEED, cell.draws, cell.sentences])
    fields = METRICS[cell.metric]
    columns: list[tuple[F64, ...]] = []
    for size in _blocks(n, cell.draws * cell.sentences):
        counts = comparisons(cell, world, size, rng)
        parts = values(CountTable(fields, counts), cell.metric)
        scores = ratio(counts.sum(axis=-2), fields, cell.metric).mean(axis=2)
        actual = _methods(parts[:, 0] - parts[:, 1])
        p_values = [_taggers(pair, fields, cell.metric) for pair in counts] if taggers else []
        columns.append((scores[:, 1], scores[:, 0] - scores[:, 1], *actual, np.array(p_values)))
    scores, difference, width, draws, sentences, p = map(np.concatenate, zip(*columns, strict=True))
    return Result(scores, difference, width, p, float(draws.mean()), float(sentences.mean()))


def _methods(D: F64) -> tuple[F64, F64, F64]:
    """float64[comparisons] each: half widths, and the mean squares by that of the residual."""
    if D.shape[1] < MIN_DRAWS:
        return (np.full(len(D), np.nan),) * 3
    parts = crossed(D)
    rest = np.maximum(parts.residual, np.finfo(float).tiny)
    return parts.half_width(), parts.draws / rest, parts.sentences / rest


def _taggers(counts: I64, fields: tuple[str, ...], metric: str) -> float:
    a, b = (CountTable(fields, side) for side in counts)
    return compare_taggers(a, b, metric, SWAPS).p_value


def _blocks(n: int, size: int) -> Iterator[int]:
    step = max(1, _BLOCK // size)
    for first in range(0, n, step):
        yield min(step, n - first)


NULL_HEAD = (
    "null hypothesis | metric | draws | sentences | score % | sd of score | draws / rest"
    " | sentences / rest | methods: p <= .05 | methods: coverage | taggers: p <= .05"
)
POWER_HEAD = (
    "samples | metric | draws | sentences | planted | mean difference | methods: p <= .05"
    " | methods: coverage | half width"
)


def null_line(cell: Cell, world: World, n: int) -> str:
    """A line of the table of null hypotheses; all numbers in percent but shares and ratios."""
    found = simulate(cell, world, n)
    several = cell.draws >= MIN_DRAWS
    shares = [found.rejected(), found.coverage(0.0)] if several else []
    ratios = [found.draws, found.sentences] if several else []
    texts = [
        *(cell.null, cell.metric, str(cell.draws), str(cell.sentences)),
        *(f"{100 * found.scores.mean():.1f}", f"{100 * found.scores.std():.2f}"),
        *([f"{ratio:.2f}" for ratio in ratios] or ["", ""]),
        *([f"{share:.3f}" for share in shares] or ["one draw", "one draw"]),
        f"{(found.taggers <= LEVEL).mean():.3f}",
    ]
    return " | ".join(texts)


def power_line(cell: Cell, world: World, points: float, n: int) -> str:
    """A line of the table of planted effects of so many points."""
    errors = 1 - simulate(cell, world, 200, taggers=False).scores.mean()
    planted = Cell(cell.null, cell.metric, cell.draws, cell.sentences, points / 100 / errors)
    found = simulate(planted, world, n, taggers=False)
    mean = float(found.difference.mean())
    texts = [
        *(cell.null, cell.metric, str(cell.draws), str(cell.sentences), f"{points:g}"),
        *(f"{100 * mean:+.2f}", f"{found.rejected():.3f}", f"{found.coverage(mean):.3f}"),
        f"{100 * found.width.mean():.2f}",
    ]
    return " | ".join(texts)


@click.command()
@click.option("--world", type=click.Choice(list(WORLDS)), default="usual", show_default=True)
@click.option("--null", "nulls", multiple=True, type=click.Choice(NULLS), default=NULLS)
@click.option("--metric", "metrics", multiple=True, type=click.Choice(list(METRICS)))
@click.option("--draws", multiple=True, type=int, default=(1, 2, 3, 5, 10), show_default=True)
@click.option("--sentences", multiple=True, type=int, default=(40, 300, 2000), show_default=True)
@click.option("--effect", "effects", multiple=True, type=float, help="Points: power, not level.")
@click.option("--comparisons", "n", type=int, default=2000, show_default=True, help="Of a line.")
def main(
    world: str,
    nulls: tuple[str, ...],
    metrics: tuple[str, ...],
    draws: tuple[int, ...],
    sentences: tuple[int, ...],
    effects: tuple[float, ...],
    n: int,
) -> None:
    """Print how often the tests of the leaderboard reject and cover, a line for each setting."""
    head = POWER_HEAD if effects else NULL_HEAD
    click.echo(f"| {head} |\n| {' | '.join('---' for _ in head.split('|'))} |")
    for null in nulls:
        for metric in metrics or METRICS:
            for S in draws:
                for size in sentences:
                    cell = Cell(null, metric, S, size)
                    lines = [power_line(cell, WORLDS[world], x, n) for x in effects if S > 1]
                    for line in lines if effects else [null_line(cell, WORLDS[world], n)]:
                        click.echo(f"| {line} |")


if __name__ == "__main__":
    main()
