"""The ledger: numbers that papers print, each with what our runs give and a verdict.

    python -m sslbench.report.ledger replications/ledger.csv leaderboards/runs

fills in the values, intervals and verdicts of the lines that name runs. A test holds each value to
its records.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Literal

import click
import msgspec
import numpy as np
from scipy import stats

from sslbench.atomic import write_atomically
from sslbench.errors import UserError
from sslbench.experiment.metrics import SentenceCounts
from sslbench.experiment.record import RunRecord
from sslbench.experiment.store import Store
from sslbench.report.draws import MIN_DRAWS, crossed, values
from sslbench.report.significance import LEVEL, count_table
from sslbench.types import F64

#: agrees: our interval lies within the margin around the printed number.  differs: outside of it.
#: undecided: it crosses the margin.  open: we have no value.
Verdict = Literal["agrees", "undecided", "differs", "open"]
COUNT = "count"
_SD = "sd "
_COUNTS = frozenset(field.name for field in fields(SentenceCounts))
#: shares of sentences: of all, of those whose words are all in the labeled text, of the others
_SHARES = {
    "share_app": "all",
    "u_app": "all",
    "u_app_app": "known",
    "u_app_notapp": "others",
    "sentence_accuracy_app": "known",
    "sentence_accuracy_notapp": "others",
}
_NUMBER = re.compile(r"[+-]?[\d,]*\.?\d+")


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A printed number.

    Attributes
    ----------
    paper, table, row, column: where it stands.  printed: as printed.
    data: same = as in the paper; stand-in = other data in its place; licensed = the paper's, which
        may not be passed on.
    metric: of our runs; "" = the primary one on test, "dev.f1" = of another part, "1-accuracy" =
        one minus a metric, "predicted_chunks" = the sum of a count, "sd accuracy" = the standard
        deviation over draws, "count" = a number that needs the files of a corpus. In percent, or as
        a share where the paper prints one (.50, without % in the name of the column).
    runs: ids of our runs, apart by a space; "A - B" = the mean of A less that of B.
    ours, low, high: our value and its 95 % interval, in the unit of the paper.
    margin: the largest difference that counts as none.
    reason: one sentence.
    """

    paper: str
    table: str
    row: str
    column: str
    printed: str
    data: Literal["same", "stand-in", "licensed"]
    metric: str
    runs: str
    ours: str
    low: str
    high: str
    margin: str
    verdict: Verdict
    reason: str

    @property
    def run_ids(self) -> tuple[list[str], list[str]]:
        """The runs, and those that are subtracted."""
        ours, _, theirs = self.runs.partition(" - ")
        return ours.split(), theirs.split()


COLUMNS = Line.__struct_fields__


def read_ledger(path: Path) -> list[Line]:
    """All lines; UserError with file and line for a wrong one, or one that occurs twice."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(error.strerror or str(error), file=path) from error
    reader = csv.DictReader(io.StringIO(text))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise UserError(f"the columns are not {', '.join(COLUMNS)}", file=path, line=1)
    lines, places = [], set()
    for row in reader:
        try:
            line = msgspec.convert(row, Line)
        except msgspec.ValidationError as error:
            raise UserError(str(error), file=path, line=reader.line_num) from None
        place = (line.paper, line.table, line.row, line.column)
        problem = "printed twice: another line has this place" if place in places else _wrong(line)
        if problem:
            raise UserError(problem, file=path, line=reader.line_num)
        places.add(place)
        lines.append(line)
    return lines


def _wrong(line: Line) -> str:
    """What is wrong with a line in itself; "" if nothing is."""
    if not _NUMBER.fullmatch(line.printed):
        return f"printed is {line.printed!r}, no number"
    for name in ("ours", "low", "high", "margin"):
        text = getattr(line, name)
        if text and not _NUMBER.fullmatch(text):
            return f"{name} is {text!r}, no number"
    if line.verdict != verdict(line):
        return f"the verdict is {line.verdict!r}, its numbers say {verdict(line)!r}"
    if line.verdict != "open" and not line.runs and line.metric != COUNT:
        return "a value without runs"
    return ""


def number(text: str) -> float:
    """A number with or without separators of thousands."""
    return float(text.replace(",", ""))


def verdict(line: Line) -> Verdict:
    """What our interval says about the printed number, by the margin of the line."""
    if not line.ours:
        return "open"
    low, high = (number(text or line.ours) for text in (line.low, line.high))
    printed, margin = number(line.printed), number(line.margin or "0")
    if printed - margin <= low and high <= printed + margin:
        return "agrees"
    return "undecided" if low <= printed + margin and high >= printed - margin else "differs"


def filled(line: Line, records: Mapping[str, RunRecord]) -> Line:
    """The line with the value, interval and verdict of its runs; as it is if its metric is COUNT.

    UserError if a run is missing.
    """
    ours, theirs = line.run_ids
    if not ours or line.metric == COUNT:
        return line
    missing = [run_id for run_id in (*ours, *theirs) if run_id not in records]
    if missing:
        raise UserError(f"{line.paper}, {line.table}, {line.row}: no record {', '.join(missing)}")
    metric = line.metric.removeprefix(_SD)
    sides = [[records[run_id] for run_id in ids] for ids in (ours, theirs) if ids]
    if all(len(side) == 1 and _sentences(side[0], line.metric) for side in sides):
        found = np.array(_interval_of_shares([side[0] for side in sides], metric))
    else:
        D, *others = (_values(side, metric) for side in sides)
        interval = _interval_of_sd if metric != line.metric else _interval
        found = np.array(interval(D - sum(others)))
    count = metric.rpartition(".")[2] in _COUNTS
    if not theirs:  # the normal approximation knows no bounds
        found = np.clip(found, 0, None if count else 100)
    share = line.printed.startswith(".") and "%" not in line.column
    digits = 1 if count else 3 if share else 2
    shown = [f"{value / 100 if share else value:.{digits}f}" for value in found]
    line = msgspec.structs.replace(line, ours=shown[0], low=shown[1], high=shown[2])
    return msgspec.structs.replace(line, verdict=verdict(line))


def _values(records: Sequence[RunRecord], metric: str) -> F64:
    """float64[runs, sentences] with the metric as mean, in percent; the sum of a count.

    float64[runs, 1] of a metric that does not come from counts of sentences.
    """
    split, _, name = metric.removeprefix("1-").rpartition(".")
    split, name = split or "test", name or records[0].primary_metric
    if any(split not in record.counts for record in records):
        raise UserError(f"no part {split!r} in the records of {metric!r}")
    table = count_table(records, split)
    if name in table.fields:
        counts = table.rows[..., table.fields.index(name)].astype(np.float64)
        sums: F64 = counts * counts.shape[1]
        return sums
    try:
        found = values(table, name)
    except KeyError:
        scores = [record.metrics[split].get(name) for record in records]
        if None in scores:
            raise UserError(f"no metric {name!r} in the records") from None
        found = np.array(scores, np.float64)[:, None]
    percent: F64 = 100 * (1 - found) if metric.startswith("1-") else 100 * found
    return percent


def _interval(D: F64) -> tuple[float, float, float]:
    """Mean and its interval: over draws and sentences, or over one of them if the other is alone.

    UserError if there is one number in all.
    """
    if D.size == 1:
        raise UserError("an interval needs two draws, or a metric of sentences")
    if min(D.shape) >= MIN_DRAWS:
        half = float(crossed(D).half_width())
    else:
        spread = D.std(ddof=1) / np.sqrt(D.size)
        half = float(stats.t.isf(LEVEL / 2, D.size - 1) * spread)
    return float(D.mean()), float(D.mean()) - half, float(D.mean()) + half


def _sentences(record: RunRecord, metric: str) -> int:
    """Sentences of which a metric of `_SHARES` is a share; 0 for other metrics."""
    split, _, name = metric.removeprefix("1-").rpartition(".")
    group, split = _SHARES.get(name), split or "test"
    if group is None or name not in record.metrics.get(split, {}):
        return 0
    n = len(record.counts[split]["n_tokens"])
    known = round((record.metrics[split]["share_app"] or 0) * n)
    return {"all": n, "known": known, "others": n - known}[group]


def _interval_of_shares(sides: Sequence[RunRecord], metric: str) -> tuple[float, float, float]:
    """Share of one run, or of the first less that of the second, and its normal interval.

    The interval of a difference ignores that both have the same sentences, and is too wide.
    """
    split, _, name = metric.removeprefix("1-").rpartition(".")
    metrics = [record.metrics[split or "test"] for record in sides]
    shares = np.array([found[name] for found in metrics], dtype=np.float64)
    if metric.startswith("1-"):
        shares = 1 - shares
    variance = sum(shares * (1 - shares) / [_sentences(record, metric) for record in sides])
    half = 100 * float(stats.norm.isf(LEVEL / 2) * np.sqrt(variance))
    mean = 100 * float(shares[0] - sum(shares[1:]))
    return mean, mean - half, mean + half


def _interval_of_sd(D: F64) -> tuple[float, float, float]:
    """Standard deviation over draws and its interval, if the means of draws are normal."""
    n = len(D)
    if n < MIN_DRAWS:
        raise UserError("a standard deviation needs two draws")
    sd = float(D.mean(axis=1).std(ddof=1))
    low, high = (
        sd * float(np.sqrt((n - 1) / stats.chi2.isf(tail, n - 1)))
        for tail in (LEVEL / 2, 1 - LEVEL / 2)
    )
    return sd, low, high


def ledger_text(lines: Sequence[Line]) -> str:
    """The file."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(msgspec.structs.astuple(line) for line in lines)
    return out.getvalue()


def wrong_lines(lines: Sequence[Line], records: Mapping[str, RunRecord]) -> list[str]:
    """Lines whose values are not those of their runs."""
    wrong = []
    for line in lines:
        try:
            if filled(line, records) != line:
                wrong.append(f"{line.paper}, {line.table}, {line.row}, {line.column}: other value")
        except UserError as error:
            wrong.append(str(error))
    return wrong


@click.command()
@click.argument("ledger", type=click.Path(path_type=Path))
@click.argument("stores", nargs=-1, required=True)
def main(ledger: Path, stores: tuple[str, ...]) -> None:
    """Fill in values, intervals and verdicts of LEDGER from the records of STORES."""
    records = {record.run_id: record for store in stores for record in Store(store).records()}
    with_verdicts = _read_unchecked(ledger)
    text = ledger_text([filled(line, records) for line in with_verdicts])
    write_atomically(ledger, text.encode())


def _read_unchecked(path: Path) -> list[Line]:
    """Lines whose values and verdicts are about to be replaced."""
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    blank = {"ours": "", "low": "", "high": "", "verdict": "open"}
    kept = [row | blank if row["runs"] and row["metric"] != COUNT else row for row in rows]
    return [msgspec.convert(row, Line) for row in kept]


if __name__ == "__main__":
    main()
