"""Lines of Markdown that people write can be read in an editor and in a diff."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
LIMIT = 120
PAGES = sorted(
    path
    for path in [*TOP.glob("*.md"), *TOP.glob("[!.]*/**/*.md")]
    if path.relative_to(TOP).parts[0] in {"docs", "replications"} or path.parent == TOP
)
#: rows of tables, formulas, beginnings of generated blocks, and the commands of the README that
#: continuous integration runs: they cannot be broken
WHOLE = re.compile(r"\s*(\||\$\$|<!-- (suite|gains|ledger) |python3 -m venv )")


def long_lines(text: str) -> list[int]:
    """Numbers of the lines, from 1, that are too long and could be shorter."""
    formula = re.compile(r"^\$\$.*?\$\$", re.MULTILINE | re.DOTALL)
    shortened = formula.sub(lambda actual: "\n" * actual[0].count("\n"), text)
    return [
        number
        for number, line in enumerate(shortened.splitlines(), 1)
        if len(line) > LIMIT and not WHOLE.match(line)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_lines_are_short(page: Path) -> None:
    assert long_lines(page.read_text(encoding="utf-8")) == []


def test_long_lines_are_noticed() -> None:
    long = "word " * 30
    assert long_lines(f"{long}\n| {long} |\n$$\n{long}\n$$\n- {long}\n") == [1, 6]
