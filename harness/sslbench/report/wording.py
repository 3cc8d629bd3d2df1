"""The words and numbers of leaderboard tables, before they are escaped for a format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sslbench.report.leaderboard import Table
from sslbench.report.rows import Row
from sslbench.report.significance import Paired

FEW_DRAWS = 4

LEGEND = (
    "Scores and differences are percentages on the test split; mean and standard deviation (sd)"
    " are over seeds. Each seed draws another labeled sample, the same for every method.",
    "The methods: differences, 95 % interval and p are for other draws and other sentences of the"
    " same kind. These taggers: the trained models are fixed, other sentences might have come"
    " (approximate randomization test). An interval excludes 0 exactly if its p is at most 0.05;"
    " intervals are not corrected. Holm: corrected for the comparisons of the table.",
    "ranks: those that remain possible when all ranked rows are compared in pairs (the methods,"
    " Holm). group: rows with a letter in common do not differ significantly.",
    "Ranks are over the seeds that the ranked rows share. Rows below them, without a rank, lack a"
    " successful run for one of these seeds; their mean is over the seeds that they have.",
    "Identical runs, where there is nothing to draw, are counted once.",
    "tuning: trials and their CPU seconds, of all seeds, or of the draw that all are tuned on."
    " untuned: the method has nothing to search in a table with a tuning budget.",
    "stale: of an earlier version of the code, which may have had other predictions.",
    "Wall time, CPU time and peak memory are medians over runs and include tuning trials, except"
    " those that the store had already. Compare them on one machine only.",
    "not converged: a training of the row stopped at its limit of iterations, or could not improve"
    " its weights, before its objective was flat.",
    "mixed code: the runs of the row are of more than one version of the code.",
)


def heading(table: Table) -> str:
    """Dataset, options and protocol."""
    name = f"{table.dataset} ({table.options})" if table.options else table.dataset
    return f"{name}, {table.protocol}"


def about(table: Table) -> str:
    """Data and seeds."""
    seeds = ", ".join(map(str, table.seeds))
    return f"Data {table.data}, {'seed' if len(table.seeds) == 1 else 'seeds'} {seeds}."


def power(table: Table) -> str:
    """What the tests of a table could have seen, and what not."""
    if not table.baselines:
        if len(table.rows) == 1:
            return ""
        return "No baseline with the same featurizer and model: no differences (--baseline NAME)."
    base = _baseline(table)
    seen = [100 * row.paired.seen for row in table.rows if row.paired]
    one = [row.name for row in table.rows if row.draws == 1]
    lines = []
    if seen:
        few = min(row.draws for row in table.rows if row.paired)
        amount = f"{min(seen):.2f}"
        if len(seen) > 1:
            amount += f" to {max(seen):.2f} points, depending on the method"
        else:
            amount += " points"
        lines.append(
            f"Power: the test of the methods finds a difference from {base} with probability 0.8"
            f" if it is {amount} (before Holm's correction)."
        )
        if few <= FEW_DRAWS:
            lines.append(
                f"With {few} draws the variance between draws is poorly known: a smaller difference"
                " may be due to the draws."
            )
    if one:
        which = "" if len(one) == sum(row.draws > 0 for row in table.rows) else f" of {_list(one)}"
        lines.append(
            f"One draw{which}: the spread between draws is unknown, so there is no p for the"
            " methods. p is of these taggers; another labeled sample may turn the result around."
        )
    return " ".join(lines)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)


def _baseline(table: Table) -> str:
    return table.baselines[0] if len(table.baselines) == 1 else "baseline"


@dataclass(frozen=True)
class Heading:
    """A column of a table.

    text: "{metric}" and "{baseline}" stand for those of the table.
    short: on a terminal; "" = the column is not shown there.
    cell: the text of a row.
    """

    text: str
    short: str
    cell: Callable[[Row, Table], str]
    numeric: bool = True
    wrapped: bool = False


def _rank(row: Row, _: Table) -> str:
    return "" if row.rank is None else f"{row.rank}{'*' * row.stale}"


def _ranks(row: Row, _: Table) -> str:
    low, high = row.rank_low, row.rank_high
    return "" if low is None else f"{low}" if low == high else f"{low}-{high}"


def _difference(row: Row, _: Table) -> str:
    test = row.paired or row.taggers
    return "" if test is None else f"{100 * test.difference:+.2f}"


def _interval(row: Row, _: Table) -> str:
    return interval(row.paired) if row.paired or not row.taggers else "one draw"


HEADINGS = (
    Heading("rank", "rank", _rank),
    Heading("ranks", "", _ranks, numeric=False),
    Heading("group", "", lambda row, _: row.group, numeric=False),
    Heading("method", "method", lambda row, _: row.name, numeric=False, wrapped=True),
    Heading("{metric} (%)", "{metric} %", lambda row, _: percent(row.mean)),
    Heading("sd", "sd", lambda row, _: percent(row.sd)),
    Heading("seeds", "seeds", lambda row, table: seeds(row, table)),
    Heading("vs {baseline}", "vs base", _difference),
    Heading("95 % interval", "95 % interval", _interval, numeric=False),
    Heading("p", "", lambda row, _: p_text(row.paired.p_value if row.paired else None)),
    Heading("p (Holm)", "p Holm", lambda row, _: p_text(row.p_holm)),
    Heading("taggers: 95 % interval", "", lambda r, _: interval(r.taggers), numeric=False),
    Heading("taggers: p (Holm)", "taggers", lambda row, _: p_text(row.taggers_holm)),
    Heading("tuning", "", lambda row, _: tuning(row), numeric=False),
    Heading("wall s", "", lambda row, _: decimals(row.wall_s, 1)),
    Heading("CPU s", "", lambda row, _: decimals(row.cpu_s, 1)),
    Heading("peak MB", "", lambda row, _: decimals(row.peak_rss_mb, 0)),
    Heading("failed", "", lambda row, _: str(row.failed or "")),
    Heading("notes", "", lambda row, _: notes(row), numeric=False, wrapped=True),
)


def head(table: Table) -> list[str]:
    """The names of the columns."""
    base = _baseline(table) if table.baselines else "baseline"
    return [each.text.format(metric=table.metric, baseline=base) for each in HEADINGS]


def cells(row: Row, table: Table) -> list[str]:
    """The texts of a row, in the order of `HEADINGS`."""
    return [each.cell(row, table) for each in HEADINGS]


def seeds(row: Row, table: Table) -> str:
    """How many of the seeds of the table count."""
    n = len(row.seeds) - row.repeats if row.missing else len(row.counted)
    total = len(table.seeds)
    if row.missing:
        return f"{total - len(row.missing)}/{total}"
    return f"{n} (x{total})" if row.repeats else f"{n}/{total}"


def all_notes(row: Row) -> list[str]:
    """The notes of a row."""
    return [*row.notes, *(["mixed code"] if row.mixed else [])]


def notes(row: Row) -> str:
    """The notes of a row in one line."""
    return "; ".join(all_notes(row))


def remarks(table: Table) -> list[str]:
    """Each note on rows once, with the names of its rows."""
    about_rows: dict[str, list[str]] = {}
    for row in table.rows:
        for note in all_notes(row):
            about_rows.setdefault(note, []).append(row.name)
    return [
        f"{'all rows' if len(names) == len(table.rows) else ', '.join(names)}: {note}"
        for note, names in about_rows.items()
    ]


def tuning(row: Row) -> str:
    """Trials and CPU seconds."""
    return f"{row.trials}, {row.tune_cpu_s:.0f} s" if row.trials else ""


def interval(test: Paired | None) -> str:
    """The ends of an interval in percent."""
    return "" if test is None else f"{100 * test.low:+.2f} to {100 * test.high:+.2f}"


def percent(value: float | None) -> str:
    """A number in [0, 1] as a percentage with two digits; "" for None."""
    return "" if value is None else f"{100 * value:.2f}"


def p_text(value: float | None) -> str:
    """A p-value with three digits; "" for None."""
    return "" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def decimals(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
