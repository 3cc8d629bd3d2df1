"""Tables for papers: what is pasted compiles, and its numbers are those of the board."""

from __future__ import annotations

import re

from sslbench.report.board import Board
from sslbench.report.latex import latex
from support.board_records import row_of

#: of LaTeX itself, and the rules of booktabs
COMMANDS = {
    *("begin", "end", "centering", "small", "caption", "label", "textbf", "scriptsize", "%", "_"),
    *("toprule", "midrule", "bottomrule", "\\", "usepackage"),
}


def test_it_needs_booktabs_alone(shown: Board) -> None:
    text = latex(shown, "x")
    assert text.startswith("% in the preamble: \\usepackage{booktabs}\n")
    assert set(re.findall(r"\\([a-z]+|.)", text)) <= COMMANDS
    assert text.count("{") == text.count("}")
    labels = re.findall(r"\\label\{(.*?)\}", text)
    assert labels == ["tab:x-100-1", "tab:x-100-2", "tab:x-500-1", "tab:x-500-2"]
    for table in text.split("\n\n")[1:]:
        (form,) = re.findall(r"\\begin\{tabular\}\{(\w+)\}", table)
        rows = [line for line in table.splitlines() if line.endswith("\\\\")]
        assert {line.count("&") for line in rows} == {len(form) - 1}


def test_numbers_are_means_deviations_and_the_best(shown: Board) -> None:
    text = latex(shown, "x")
    table = next(t for t in shown.tables if t.dataset == "set0" and t.labeled == 100)
    first = text.split("\n\n")[1]
    for name in ("better", "worse"):
        line = next(line for line in first.splitlines() if line.startswith(name))
        row = row_of(table, name)
        assert row.sd is not None
        mean = f"{100 * (row.mean or 0):.2f}"
        shown_mean = f"\\textbf{{{mean}}}" if name == "better" else mean
        assert f"& {shown_mean} {{\\scriptsize {100 * row.sd:.2f}}} &" in line
