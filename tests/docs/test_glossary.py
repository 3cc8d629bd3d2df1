"""The glossary: in alphabetical order, and every name that it gives is one of the code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
PACKAGES = ("harness", "methods", "datasets")


def test_terms_are_in_alphabetical_order() -> None:
    terms = [term.lower() for term in re.findall(r"^\* \*\*(.+?)\*\*", GLOSSARY, re.MULTILINE)]
    assert terms == sorted(set(terms))


def test_every_name_is_one_of_the_code() -> None:
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    known = set(re.findall(r"\w+", "\n".join(p.read_text(encoding="utf-8") for p in sources)))
    names = {
        name for code in re.findall(r"`([^`]+)`", GLOSSARY) for name in re.findall(r"\w+", code)
    }
    assert names - known - {"1"} == set()
