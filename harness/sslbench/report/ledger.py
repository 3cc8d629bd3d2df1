"""The ledger: numbers that papers print, each with what our runs give and a verdict.

    python -m sslbench.report.ledger replications/ledger.csv leaderboards/runs

fills in the values, intervals and verdicts of the lines that name runs. A test compares each
value with its records.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import click
import msgspec
import numpy as np

from sslbench.engine.errors import UserError
from sslbench.engine.files.atomic import write_atomically
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.words import in_words
from sslbench.report.intervals import COUNTS, interval_of_metric, interval_of_sd, metric_values

#: agrees: our interval lies within the margin around the printed number.  differs: outside of it.
#: undecided: it crosses the margin.  not comparable: ours is of other data.  open: there is none.
Verdict = Literal["agrees", "undecided", "differs", "not comparable", "open"]
COUNT = "count"
_SD = "sd "
_NUMBER = re.compile(r"[+-]?[\d,]*\.?\d+")


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A printed number.

    Attributes
    ----------
    paper, table, row, column: its place.  printed: its text.
    data: same = as in the paper; stand-in = other data in its place; licensed = the paper's, which
        may not be passed on.
    metric: the metric of our runs; "" = the primary one on test, "dev.f1" = that of another part,
        "1-accuracy" = one minus a metric, "predicted_chunks" = the sum of a count, "sd accuracy" =
        the standard deviation over draws, "count" = a number that needs the files of a corpus. In
        percent, or as a share where the paper prints one (.50, without % in the column).
    runs: ids of our runs, separated by spaces; "A - B" = the mean of A less that of B.
    ours, low, high: our value and its 95 % interval, in the unit of the paper.
    margin: the largest difference that counts as none.
    reason: of the verdict, in one sentence.
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
        if None in row:
            message = "more cells than columns; a text with a comma needs quotation marks"
            raise UserError(message, file=path, line=reader.line_num)
        try:
            line = msgspec.convert(row, Line)
        except msgspec.ValidationError as error:
            message = in_words(error, row, Line)
            raise UserError(message, file=path, line=reader.line_num) from None
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
    """What our interval says about the printed number, by the margin of the line.

    What runs on other data say is a sign or an order: see `sslbench.report.claims`.
    """
    if not line.ours:
        return "open"
    if line.data == "stand-in":
        return "not comparable"
    low, high = (number(text or line.ours) for text in (line.low, line.high))
    printed, margin = number(line.printed), number(line.margin or "0")
    if printed - margin <= low and high <= printed + margin:
        return "agrees"
    return "undecided" if low <= printed + margin and high >= printed - margin else "differs"


def runs_of(
    line: Line, records: Mapping[str, RunRecord]
) -> tuple[list[RunRecord], list[RunRecord]]:
    """The runs of a line, and those that are subtracted; UserError if one is missing."""
    ours, theirs = line.run_ids
    missing = [run_id for run_id in (*ours, *theirs) if run_id not in records]
    if missing:
        raise UserError(f"{line.paper}, {line.table}, {line.row}: no record {', '.join(missing)}")
    return [records[run_id] for run_id in ours], [records[run_id] for run_id in theirs]


def filled(line: Line, records: Mapping[str, RunRecord]) -> Line:
    """The line with the value, interval and verdict of its runs; as it is if its metric is COUNT.

    UserError if a run is missing.
    """
    ours, theirs = runs_of(line, records)
    if not ours or line.metric == COUNT:
        return line
    metric = line.metric.removeprefix(_SD)
    sides = [side for side in (ours, theirs) if side]
    if metric != line.metric:
        interval = np.array(interval_of_sd(metric_values(sides[0], metric)))
    else:
        interval = np.array(interval_of_metric(metric, *sides))
    count = metric.rpartition(".")[2] in COUNTS
    if not theirs:  # the normal approximation has no bounds
        interval = np.clip(interval, 0, None if count else 100)
    share = line.printed.startswith(".") and "%" not in line.column
    digits = 1 if count else 3 if share else 2
    shown = [f"{value / 100 if share else value:.{digits}f}" for value in interval]
    line = msgspec.structs.replace(line, ours=shown[0], low=shown[1], high=shown[2])
    return msgspec.structs.replace(line, verdict=verdict(line))


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
    cleared = [row | blank if row["runs"] and row["metric"] != COUNT else row for row in rows]
    return [msgspec.convert(row, Line) for row in cleared]


if __name__ == "__main__":
    main()
