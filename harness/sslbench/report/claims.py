"""Claims of papers: that one method is better than another, as the runs of the ledger show it.

    python -m sslbench.report.claims replications leaderboards/runs

reads `claims.toml` and `ledger.csv` of the folder, and writes `claims.md` and `claims.csv`. A claim
is tested by differences in which the paper prints one sign; each is measured by the runs of two
lines of the ledger, with a 95 % interval over draws and sentences. No number is typed.
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import click
import msgspec

from sslbench.engine.errors import UserError
from sslbench.engine.files.atomic import write_atomically
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.words import in_words
from sslbench.report.intervals import interval_of_metric
from sslbench.report.ledger import Line, number, read_ledger, runs_of
from sslbench.report.render import markdown_table

#: same, opposite: the interval has the printed sign, or the other one.  unclear: it contains 0.
#: none: there are no runs to compare.
Sign = Literal["same", "unclear", "opposite", "none"]
SIGNS: tuple[Sign, ...] = ("same", "unclear", "opposite", "none")
VERDICTS = ("confirmed", "refuted", "undecided", "cannot be tested here")


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows of a printed table that are better than others.

    Attributes
    ----------
    paper, table: of the lines of the ledger.  text: the claim.
    better, than: rows; each of the first is above each of the second.
    gains: rows whose numbers are such differences themselves.
    columns: those that are meant; () = all.  lower: lower numbers are better.
    """

    paper: str
    table: str
    text: str
    better: tuple[str, ...] = ()
    than: tuple[str, ...] = ()
    gains: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    lower: bool = False


class Difference(msgspec.Struct, frozen=True):
    """A printed difference and ours; low and high are the ends of its interval, in points."""

    paper: str
    table: str
    row: str
    than: str
    column: str
    printed: float
    ours: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def sign(self) -> Sign:
        if self.low is None or self.high is None:
            return "none"
        if self.low <= 0 <= self.high:
            return "unclear"
        return "same" if (self.low > 0) == (self.printed > 0) else "opposite"


def read_claims(path: Path) -> list[Claim]:
    """All claims; UserError for a file that is none of them."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8")).get("claims", [])
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UserError(str(error), file=path) from error
    claims = []
    for entry in given:
        try:
            claims.append(msgspec.convert(entry, Claim))
        except msgspec.ValidationError as error:
            raise UserError(in_words(error, entry, Claim), file=path) from None
    return claims


def differences(
    claim: Claim, ledger: Sequence[Line], records: Mapping[str, RunRecord]
) -> list[Difference]:
    """The differences that a claim is about.

    UserError if there are none, or if the paper prints one with another sign, or none at all.
    """
    lines = {
        (line.row, line.column): line
        for line in ledger
        if (line.paper, line.table) == (claim.paper, claim.table)
        and (not claim.columns or line.column in claim.columns)
    }
    found = list(_differences(claim, lines, records))
    wrong = [each for each in found if each.printed <= 0]
    if wrong or not found:
        place = f"{wrong[0].row}, {wrong[0].column}: printed as no gain" if wrong else "no line"
        raise UserError(f"{claim.paper}, {claim.table}, {claim.text!r}: {place}")
    return found


def _differences(
    claim: Claim, lines: Mapping[tuple[str, str], Line], records: Mapping[str, RunRecord]
) -> Iterator[Difference]:
    for (row, column), line in lines.items():
        place = (claim.paper, claim.table, row)
        if row in claim.gains:
            known = [float(text) if text else None for text in (line.ours, line.low, line.high)]
            yield Difference(*place, "", column, _points(line), *known)
        for than in claim.than if row in claim.better else ():
            other = lines.get((than, column))
            if other is not None:
                sign = -1 if claim.lower else 1
                printed = round(sign * (_points(line) - _points(other)), 4)
                ours = _ours(line, other, records, sign)
                yield Difference(*place, than, column, printed, *ours)


def _points(line: Line) -> float:
    """The printed number; a share as 100 times it."""
    return number(line.printed) * (100 if line.printed.startswith(".") else 1)


def _ours(
    line: Line, other: Line, records: Mapping[str, RunRecord], sign: int
) -> tuple[float, float, float] | tuple[()]:
    """The difference of the runs of two lines, and its ends; () if a line has none of its own."""
    same = (line.runs, line.metric) == (other.runs, other.metric)
    if same or not line.runs or not other.runs:
        return ()
    (first, less), (second, more) = runs_of(line, records), runs_of(other, records)
    if less or more:
        where = f"{line.paper}, {line.table}, {line.row}, {line.column}"
        raise UserError(f"{where}: a difference itself", hint="name such rows in gains")
    ends = interval_of_metric(line.metric, first, second, their_metric=other.metric)
    value, low, high = (round(sign * end, 2) for end in ends)
    return value, min(low, high), max(low, high)


def verdict(found: Sequence[Difference]) -> str:
    """What the differences of a claim say of it, a key of `VERDICTS`.

    Confirmed: at least half of those that are measured have the printed sign clearly, and none the
    other one. Refuted: the same of the other sign.
    """
    count = Counter(each.sign for each in found)
    measured = count.total() - count["none"]
    if not measured:
        return "cannot be tested here"
    if 2 * count["same"] >= measured and not count["opposite"]:
        return "confirmed"
    return "refuted" if 2 * count["opposite"] >= measured and not count["same"] else "undecided"


def claims_page(tested: Mapping[Claim, Sequence[Difference]]) -> str:
    """Markdown: verdicts by paper, and for each claim the number of differences of each sign."""
    counts = {paper: Counter[str]() for paper in dict.fromkeys(claim.paper for claim in tested)}
    rows = []
    for claim, found in tested.items():
        said = verdict(found)
        counts[claim.paper][said] += 1
        signs = Counter(each.sign for each in found)
        numbers = [str(signs[sign] or "") for sign in SIGNS]
        rows.append([f"{claim.paper}, {claim.table}", claim.text, *numbers, said])
    total = sum(counts.values(), Counter[str]())
    by_paper = [[paper, *_counted(count)] for paper, count in counts.items()]
    signs = Counter(each.sign for found in tested.values() for each in found)
    shown = ", ".join(f"{signs[sign]} {sign}" for sign in SIGNS)
    return "\n".join(
        [
            _HEAD,
            *markdown_table(["paper", *VERDICTS], [*by_paper, ["all", *_counted(total)]]),
            "",
            f"Printed differences: {signs.total()}; {shown}. [Each of them](claims.csv).",
            "",
            *markdown_table(
                ["place", "claim", *SIGNS, "verdict"],
                rows,
                [False, False, *[True] * len(SIGNS), False],
            ),
            "",
        ]
    )


def _counted(count: Counter[str]) -> list[str]:
    return [str(count[name]) for name in VERDICTS]


def claims_table(tested: Mapping[Claim, Sequence[Difference]]) -> str:
    """CSV: a line for each printed difference."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["claim", *Difference.__struct_fields__, "sign"])
    for claim, found in tested.items():
        writer.writerows([claim.text, *msgspec.structs.astuple(each), each.sign] for each in found)
    return out.getvalue()


def written(folder: Path, store: Store) -> dict[str, str]:
    """The texts of `claims.md` and `claims.csv` of a folder; UserError as of `differences`."""
    claims, ledger = read_claims(folder / "claims.toml"), read_ledger(folder / "ledger.csv")
    tables = {(claim.paper, claim.table) for claim in claims}
    ids = {
        run_id
        for line in ledger
        if (line.paper, line.table) in tables
        for run_id in line.run_ids[0]
    }
    records = {record.run_id: record for record in store.records(ids)}
    tested = {claim: differences(claim, ledger, records) for claim in claims}
    return {"claims.md": claims_page(tested), "claims.csv": claims_table(tested)}


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("store")
def main(folder: Path, store: str) -> None:
    """Write the claims of FOLDER with what the records of STORE say of them."""
    for name, text in written(folder, Store(store)).items():
        write_atomically(folder / name, text.encode())


_HEAD = """\
# What the papers claim, and what our runs say

Made by `python -m sslbench.report.claims replications leaderboards/runs` from `claims.toml`, the
ledger and the records. A claim says that one method is better than another. Each pair of numbers
for which the paper prints such a difference is compared with our difference and its 95 % interval
over draws and sentences:

- *same*: our difference has the printed sign, and the interval leaves out 0;
- *opposite*: our difference has the other sign, and the interval leaves out 0;
- *unclear*: the interval contains 0;
- *none*: we do not have two runs to compare.

A claim is *confirmed* if at least half of the differences that we measured are "same" and none is
"opposite". It is *refuted* if at least half are "opposite" and none is "same". Intervals are not
corrected for their number: of a hundred differences that are really 0, about five would be "same"
or "opposite". Only signs are compared, since most runs are on other data than the paper's.
"""


if __name__ == "__main__":
    main()
