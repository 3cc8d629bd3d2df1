"""Formulas in TeX as MathML, which browsers show without a script."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

_DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_INLINE = re.compile(r"(?<![\\$\w])\$(?![\s$])([^$\n]+?)(?<![\s\\])\$(?![\w$])")
# the converter knows sizes of plain characters only
_SIZE = re.compile(r"\\[Bb]igg?[lrm]?(?=\\[{}|])")
_MARK = "FormulaNumber{}Ends"
_found: dict[str, list[str]] = {}


def take_out(text: str, page: str) -> str:
    """The text with marks in place of formulas."""
    formulas = _found.setdefault(page, [])

    def keep(tex: str, display: str) -> str:
        formulas.append(convert(" ".join(_SIZE.sub("", tex).split()), display=display))
        return _MARK.format(len(formulas) - 1)

    text = _DISPLAY.sub(lambda match: keep(match[1], "block"), text)
    return _INLINE.sub(lambda match: keep(match[1], "inline"), text)


def put_back(html: str, page: str) -> str:
    """The page with its formulas."""
    for number, formula in enumerate(_found.pop(page, [])):
        html = html.replace(_MARK.format(number), formula)
    return html
