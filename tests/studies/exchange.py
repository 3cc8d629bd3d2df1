"""A null hypothesis from real runs: one method against itself, with other draws.

    PYTHONPATH=tests python -m studies.exchange STORE

The seeds of a method are cut at random into two sets of S, which are compared as if they belonged
to two methods. Samples and training noise are real, and there is nothing to find. Comparisons share
runs: with R seeds there are about R / (2 S) independent ones, so that shares are less exact than
their number suggests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import click
import numpy as np

from sslbench.engine.errors import UserError
from sslbench.experiment.metrics import CountTable
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.report.draws import compare_methods, values
from sslbench.report.escape import markdown_text
from sslbench.report.rows import RowKey, row_key
from sslbench.report.significance import LEVEL, compare_taggers, count_table

SETS = (2, 3, 5, 10)
TAGGER_COMPARISONS = 200
TAGGER_SWAPS = 999


class Shares(NamedTuple):
    """Share of comparisons with p at most 0.05, by question; None = too few runs."""

    methods: float | None
    taggers: float | None


def exchanged(
    records: Sequence[RunRecord], metric: str, size: int, comparisons: int, seed: int = 0
) -> Shares:
    """Compare random disjoint sets of `size` of the runs, which differ in their seeds alone."""
    if len(records) < 2 * size:
        return Shares(None, None)
    table = count_table(records)
    per_draw = values(table, metric)
    rng = np.random.default_rng([seed, size])
    methods, taggers = [], []
    for number in range(comparisons):
        order = rng.permutation(len(records))[: 2 * size]
        ours, theirs = order[:size], order[size:]
        methods.append(compare_methods(per_draw[ours], per_draw[theirs]).p_value)
        if number < TAGGER_COMPARISONS:
            a, b = (CountTable(table.fields, table.rows[part]) for part in (ours, theirs))
            taggers.append(compare_taggers(a, b, metric, TAGGER_SWAPS).p_value)
    return Shares(*(float(np.mean(np.array(p) <= LEVEL)) for p in (methods, taggers)))


def cells(records: Sequence[RunRecord]) -> dict[tuple[str, str, RowKey], list[RunRecord]]:
    """Successful runs that differ in their seeds alone, by dataset, protocol and row."""
    result: dict[tuple[str, str, RowKey], list[RunRecord]] = defaultdict(list)
    for record in records:
        if record.status == "ok":
            place = record.dataset, record.spec.protocol.describe(), row_key(record)
            result[place].append(record)
    return {place: sorted(runs, key=_seed) for place, runs in sorted(result.items())}


def _seed(record: RunRecord) -> int:
    return record.spec.protocol.seed


@click.command()
@click.argument("stores", nargs=-1, required=True)
@click.option("--comparisons", type=click.IntRange(min=1), default=2000, show_default=True)
def main(stores: tuple[str, ...], comparisons: int) -> None:
    """Print a Markdown table of false positives for the cells of STORES with enough seeds."""
    records = [record for store in stores for record in Store(store).records()]
    places = {place: runs for place, runs in cells(records).items() if len(runs) >= 2 * SETS[0]}
    if not places:
        raise UserError(
            f"no row with {2 * SETS[0]} seeds", hint="sslbench run --seed ... makes them"
        )
    sets = "".join(f" {size} draws |" for size in SETS)
    click.echo(f"| method | dataset | protocol | metric | seeds |{sets} taggers, 3 draws |")
    click.echo("|---|---|---|---|---:|" + "---:|" * (len(SETS) + 1))
    for (dataset, protocol, key), runs in places.items():
        metric = runs[0].primary_metric
        shares = {size: exchanged(runs, metric, size, comparisons) for size in SETS}
        texts = [_text(shares[size].methods) for size in SETS] + [_text(shares[3].taggers)]
        names = map(markdown_text, (key.method, dataset, protocol, metric))
        line = [*names, str(len(runs)), *texts]
        click.echo(f"| {' | '.join(line)} |")


def _text(share: float | None) -> str:
    return "" if share is None else f"{share:.3f}"


if __name__ == "__main__":
    main()
