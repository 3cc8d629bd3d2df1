"""Names from outside in every format of the tables: they are shown, and never act."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re
from collections import Counter
from xml.etree import ElementTree

import pytest

from sslbench.cli.run_results import print_results
from sslbench.experiment.records.record import RunRecord
from sslbench.report.escape import csv_cell, latex_text, markdown_text
from sslbench.report.render import plain
from support.board_records import boards, files, record
from support.hostile_text import FORMULAS, NAME, SURROGATE, acts_on_a_terminal


def hostile_records() -> list[RunRecord]:
    """Two labeled sizes, so that there is a curve; names from outside in every field."""
    made = []
    for labeled in (100, 200):
        for seed in range(3):
            for method in ("supervised", NAME):
                run = record(method, seed, dataset=NAME, labeled=labeled, featurizer=f"f{NAME}")
                run.params = {"text": NAME}
                run.warnings = [NAME]
                made.append(run)
    return made


FILES = {"leaderboard.csv", "leaderboard.md", "leaderboard.tex"}  # the same table, to download


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] += 1
        assert not [name for name, _ in attrs if name.startswith("on")]
        places = [value for name, value in attrs if name in ("href", "src")]
        assert all(value and (value.startswith("#") or value in FILES) for value in places)


def test_no_format_of_a_table_lets_a_name_act() -> None:
    actual = files(hostile_records())
    page = actual["leaderboard.html"].decode()
    parser = Tags()
    parser.feed(page)
    assert parser.count["script"] == 2  # the details as JSON, and the page's own
    assert parser.count["a"] == 4 + len(FILES)  # the contents
    assert "&lt;script&gt;alert(1)" in page
    text = actual["leaderboard.md"].decode()
    for line in text.split("\n"):
        plain_line = re.sub(r"\\.", "", line)
        assert not re.search(r"[<>`~@$]|\]\((?!curve)|://|www\.", plain_line), line
    rows = [line for line in text.split("\n") if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    for name, data in actual.items():
        assert not acts_on_a_terminal(data.decode()), name
        if name.endswith(".svg"):
            assert ElementTree.fromstring(data).tag.endswith("svg")
    assert any(name.endswith(".svg") for name in actual)
    assert not acts_on_a_terminal(plain(boards(hostile_records())))


def test_cells_of_a_spreadsheet_are_no_formulas_and_numbers_stay_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(files(hostile_records())["leaderboard.csv"].decode())))
    assert {row["dataset"][:2] for row in rows} == {"'="}
    assert all(float(row["mean"]) >= 0 for row in rows)
    assert any(float(row["difference"]) < 0 for row in rows if row["difference"])
    for text in FORMULAS:
        assert str(csv_cell(text))[0] in "'\\"
    assert [csv_cell(x) for x in (-1.5, "-1.5", "+2", "-3e-5", None, "a=b")] == [
        *(-1.5, "-1.5", "+2", "-3e-5", None, "a=b")
    ]


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_results_of_runs(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    runs = hostile_records()[:2]
    runs[1].status, runs[1].error = "failed", NAME * 100
    print_results(runs, form)
    out = capsys.readouterr().out
    assert not acts_on_a_terminal(out)
    if form == "json":
        assert [run["error"] for run in json.loads(out)] == [None, NAME * 100]
    elif form == "csv":
        (_, failed) = csv.DictReader(io.StringIO(out))
        assert failed["method"].startswith("'=1+1")
        assert failed["seed"] == "0"
    else:
        assert len(out.splitlines()) == 3
        assert len(out) < 20_000


def test_markdown_text() -> None:
    assert markdown_text("a_b | <c>") == r"a\_b \| &lt;c&gt;"
    assert markdown_text("see http://b.c") == r"see http\://b.c"
    assert markdown_text("WWW.b.c") == r"WWW\.b.c"
    assert markdown_text("f1, 0.5: x") == "f1, 0.5: x"
    assert markdown_text(SURROGATE) == r"caf\\udce9"


def test_latex_text() -> None:
    assert latex_text("a_b & 5 % {x}^2 \\y") == (
        r"a\_b \& 5 \% \{x\}\textasciicircum{}2 \textbackslash{}y"
    )
