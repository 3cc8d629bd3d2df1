"""Escape names, paths, labels and messages from outside for each format of output.

`sslbench.engine.errors.printable` does so for terminals, HTML (before its markup is escaped) and
curves.
"""

from __future__ import annotations

import re

from sslbench.engine.errors import printable

# "://" and "www." become links without any markup.
_MARKDOWN = re.compile(r"[\\|_*\[\]`~#$@!]|:(?=//)|(?<=www)\.", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")


def markdown_text(text: str) -> str:
    """The text in one line, shown by Markdown as it is: no markup, HTML, link or formula."""
    text = printable(" ".join(text.split()))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(r"\\\g<0>", text)


def csv_cell(value: object) -> object:
    """A value for a CSV file: a text that spreadsheets would take for a formula gets an apostrophe.

    Numbers stay numbers.
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    formula = text[:1] in ("=", "+", "-", "@") and not _NUMBER.fullmatch(text)
    return f"'{text}" if formula else text


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def latex_text(text: str) -> str:
    """The text in one line, set by LaTeX as it is."""
    plain = printable(" ".join(text.split()))
    return "".join(_LATEX.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in plain)
