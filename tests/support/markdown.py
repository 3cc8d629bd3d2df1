"""Tables of Markdown."""

from __future__ import annotations

import re

Rows = dict[str, dict[str, str]]


def numbers(sentence: str) -> list[float]:
    """The numbers with a decimal point, in order."""
    return [float(each) for each in re.findall(r"(?<![\w.])-?\d+\.\d+", sentence)]


def table(text: str) -> Rows:
    """A table of Markdown: rows by their first cell, cells by the heading of their column."""
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").replace("\\", "").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}
