"""Blocks of tables in Markdown files: of the ledger, of gains, of means and scores."""

from __future__ import annotations

from pathlib import Path

import pytest

from sslbench.engine.errors import UserError
from sslbench.report.blocks import with_blocks
from sslbench.report.board import Board
from sslbench.report.ledger import COLUMNS, Line
from sslbench.report.overview import (
    overview,
)


def test_blocks_of_tables_that_papers_print(shown: Board, tmp_path: Path) -> None:
    blank = dict.fromkeys(COLUMNS, "") | {"paper": "A 2000", "table": "table 1", "data": "same"}
    ours = {"ours": "81.00", "low": "80.00", "high": "82.00", "verdict": "differs", "runs": "r"}
    ledger = [
        Line(**{**blank, "row": "CRF", "column": "F1", "printed": "80.0", **ours}),
        Line(**{**blank, "row": "CRF", "column": "recall", "printed": "70", "verdict": "open"}),
        Line(**{**blank, "row": "SSL", "column": "recall", "printed": "71", "verdict": "open"}),
    ]
    page = tmp_path / "report.md"
    page.write_text("before\n<!-- ledger A 2000 | table 1 -->\nold\n<!-- end -->\n")
    text = with_blocks(shown, "toy", ledger, [page], tmp_path)["report.md"].decode()
    assert text == (
        "before\n<!-- ledger A 2000 | table 1 -->\n"
        "| table 1 | F1 | recall |\n| :--- | ---: | ---: |\n"
        "| CRF | 81.00 (80.00 to 82.00); paper 80.0 | paper 70 |\n| SSL |  | paper 71 |\n"
        "<!-- end -->\n"
    )
    page.write_text(text)
    assert with_blocks(shown, "toy", ledger, [page], tmp_path)["report.md"].decode() == text
    page.write_text(text.replace("table 1 -->", "table 2 -->"))
    with pytest.raises(UserError, match=r"report\.md:2: the ledger has no A 2000 | table 2"):
        with_blocks(shown, "toy", ledger, [page], tmp_path)


def test_a_block_of_gains_has_the_test_of_the_methods(shown: Board, tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    report.write_text("<!-- gains toy | set0, labeled 100* | accuracy -->\n<!-- end -->\n")
    text = with_blocks(shown, "toy", [], [report], tmp_path)["report.md"].decode()
    number = next(
        i
        for i, column in enumerate(shown.columns)
        if column.dataset == "set0" and column.size == "100"
    )
    rows = {line: shown.score(line, number) for line in shown.lines}
    lines = dict.fromkeys(text.splitlines()[3:-1])
    assert len(lines) == sum(row is not None for row in rows.values())
    base = rows["supervised"]
    assert base is not None
    assert f"| supervised | {100 * (base.mean or 0):.2f} |  |" in lines
    better = rows["better"]
    assert better is not None
    assert better.paired is not None
    actual = [
        100 * each for each in (better.paired.difference, better.paired.low, better.paired.high)
    ]
    gain = "{:+.2f} ({:+.2f} to {:+.2f})".format(*actual)
    assert f"| better | {100 * (better.mean or 0):.2f} | {gain} |" in lines
    report.write_text(text.replace("labeled 100*", "labeled *"))
    text = with_blocks(shown, "toy", [], [report], tmp_path)["report.md"].decode()
    assert "| set0, labeled 500" in text
    only = text.replace("| accuracy -->", "| accuracy | b* -->")
    report.write_text(only)
    text = with_blocks(shown, "toy", [], [report], tmp_path)["report.md"].decode()
    assert "| better |" in text
    assert "| supervised |" not in text
    for wrong, message in (
        ("set9*", r"report\.md:1: no column set9\*; there are: set0, labeled 100"),
        ("set0*", r"report\.md:1: no metric 'f9' in the records"),
        ("set0* | set1* | f1", r"report\.md:1: a block of gains is"),
    ):
        metric = "f9" if wrong == "set0*" else "accuracy"
        report.write_text(f"<!-- gains toy | {wrong} | {metric} -->\n<!-- end -->\n")
        with pytest.raises(UserError, match=message):
            with_blocks(shown, "toy", [], [report], tmp_path)


def test_blocks_of_other_files_are_made_from_the_board(shown: Board, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    blocks = ["<!-- suite toy 100 means -->\nold\n<!-- end -->"]
    blocks.append("<!-- suite toy 100 scores -->\n<!-- end -->")
    readme.write_text("before\n\n" + "\n".join(blocks) + "\nafter\n")
    (actual,) = with_blocks(shown, "toy", [], [readme], tmp_path / "out").items()
    assert actual[0] == "../README.md"
    text = actual[1].decode()
    assert text.startswith("before\n\n<!-- suite toy 100 means -->\n| method | mean rank |")
    assert "old" not in text
    assert text.endswith("<!-- end -->\nafter\n")
    assert "| better | 1.00 |" in text
    readme.write_text(text)
    assert with_blocks(shown, "toy", [], [readme], tmp_path)["README.md"].decode() == text
    with pytest.raises(UserError, match="no block"):
        with_blocks(shown, "other", [], [readme], tmp_path)
    readme.write_text(text.replace("toy 100", "toy 200"))
    with pytest.raises(UserError, match=r"README\.md:3: no size 200; 100, 500"):
        with_blocks(shown, "toy", [], [readme], tmp_path)


def test_a_summary_has_the_named_lines_in_four_columns(shown: Board, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("<!-- suite toy 100 summary worse better -->\nold\n<!-- end -->\n")
    text = with_blocks(shown, "toy", [], [page], tmp_path)["README.md"].decode()
    better = overview(shown, "100").lines[0]
    assert text.splitlines()[1:4] == [
        "| method | mean gain | group | CPU s |",
        "| :--- | ---: | ---: | ---: |",
        f"| better | {better.gain:+.2f} | a | 10.0 |",
    ]
    assert "supervised" not in text
    page.write_text(text.replace("summary worse", "summary nobody"))
    with pytest.raises(UserError, match=r"README\.md:1: no means of nobody at 100 labeled"):
        with_blocks(shown, "toy", [], [page], tmp_path)
