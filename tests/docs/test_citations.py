"""Citations of the specifications: each one names a page, and a number that the page has.

The one form is "docs/specs/NAME.md, section 7.2" (likewise "erratum 10", "oracle G6"; several
numbers: "sections 3 to 5", "oracles 3, 9 and 10").  A section of a paper has the paper's year in
front of it, or "of the paper" behind it.  On a page of docs/specs a number alone means that page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "specs"
FOLDERS = ("harness", "methods", "datasets", "tests", "docs", "replications")

#: white space, also across the line break of a comment
SPACE = r"(?:\s+(?:#:?\s+)?)"
NUMBER = r"[A-Z]?\d+(?:\.\d+)*"
NUMBERS = rf"{NUMBER}(?:(?:,{SPACE}and|,|{SPACE}and|{SPACE}to){SPACE}{NUMBER})*"
KIND = r"(?P<kind>[Ss]ections?|[Ee]rrat(?:um|a)|[Oo]racles?)"
REFERENCE = re.compile(rf"\b{KIND}{SPACE}(?P<numbers>{NUMBERS})")
PAGE = re.compile(r"docs/specs/(?P<page>\w+)\.md")
CITED_PAGE = re.compile(rf"docs/specs/(?P<page>\w+)\.md`?,{SPACE}$")
#: what stands before the section of a paper, and after it
PAPER = re.compile(rf"(?:19|20)\d\d[)}}]?,{SPACE}$")
OF_A_PAPER = re.compile(rf"{SPACE}of{SPACE}the{SPACE}paper\b")
TREEBANK = re.compile(r"Treebank|\.mrg|[Ww][Ss][Jj]")
UNNAMED = re.compile(r"(?<!run )(?<!hook )\bspecifications?\b(?!\]\()|§", re.IGNORECASE)
EQUATION = re.compile(rf"\b[Ee]quations?{SPACE}\d")
YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
#: these pages explain the form
EXPLAINED = {Path("docs/specs/README.md"), Path("tests/docs/test_citations.py")}


@cache
def numbers_of(page: str) -> dict[str, set[str]]:
    """The numbers of sections, errata and oracles on a page, by the first letter of their kind."""
    actual: dict[str, set[str]] = {"s": set(), "e": set(), "o": set()}
    kind = ""
    for line in (PAGES / f"{page}.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"#{2,3} (\d+(?:\.\d+)*)\.? (.*)", line):
            actual["s"].add(heading[1])
            titles = {"e": heading[2].startswith("Errata"), "o": heading[2] == "Oracles"}
            kind = next((letter for letter, here in titles.items() if here), "")
        elif kind and (item := re.match(r"(?:(\d+)\. |\* \*\*([A-Z]\d+)\*\*)", line)):
            actual[kind].add(item[1] or item[2])
    return actual


def troubles(text: str, own_page: str | None = None) -> Iterator[tuple[int, str]]:
    """(line, what is wrong) for each citation of a text that does not resolve.

    own_page: the page of docs/specs that the text is; numbers alone then mean that page.
    """
    for match in PAGE.finditer(text):
        if not (PAGES / f"{match['page']}.md").exists():
            yield _line(text, match), f"no page {match[0]}"
    for match in REFERENCE.finditer(text):
        before, after = text[: match.start()][-200:], text[match.end() :][:200]
        cited = CITED_PAGE.search(before)
        page = cited["page"] if cited else own_page
        if not cited and (PAPER.search(before) or OF_A_PAPER.match(after)):
            continue
        if page is None:
            if not TREEBANK.search(before + after):
                yield _line(text, match), f"names no document: {match[0]}"
        elif (PAGES / f"{page}.md").exists():
            known = numbers_of(page)[match["kind"][0].lower()]
            for number in re.findall(NUMBER, match["numbers"]):
                if number not in known:
                    yield _line(text, match), f"docs/specs/{page}.md has no {number}: {match[0]}"


def unnamed(text: str) -> Iterator[tuple[int, str]]:
    """(line, what is wrong) for each mention of a document or equation that is not named."""
    for match in UNNAMED.finditer(text):
        yield _line(text, match), f"which document? {match[0]}"
    equation = EQUATION.search(text)
    if equation and not YEAR.search(text):
        yield _line(text, equation), f"of which paper? {equation[0]}"


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1


def files() -> list[Path]:
    """Sources and pages of the repository, by relative path."""
    actual = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    actual += ROOT.glob("*.md")
    return sorted(p.relative_to(ROOT) for p in actual if p.suffix in (".py", ".md"))


def test_every_citation_resolves() -> None:
    wrong = []
    for path in files():
        if path in EXPLAINED:
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        own_page = path.stem if path.parent == Path("docs/specs") else None
        actual = [*troubles(text, own_page), *unnamed(text)]
        wrong += [f"{path}:{line}: {message}" for line, message in actual]
    assert not wrong, "\n".join(wrong)


def test_numbers_of_the_pages() -> None:
    """Errata and oracles are numbered from 1 without a gap, and every page is listed."""
    pages = sorted(path.stem for path in PAGES.glob("*.md") if path.stem != "README")
    assert pages
    listed = (PAGES / "README.md").read_text(encoding="utf-8")
    for page in pages:
        assert f"[{page}.md]({page}.md)" in listed
        numbers = numbers_of(page)
        assert numbers["s"]
        assert numbers["o"], page
        for kind in "eo":
            actual = sorted(int(number.lstrip("GPSV")) for number in numbers[kind])
            assert actual == list(range(1, len(actual) + 1)), page


@pytest.mark.parametrize(
    "text",
    [
        "as in docs/specs/crf_engine.md, section 7.1.",
        "docs/specs/crf_engine.md, sections 3 to 7, and more",
        "docs/specs/graph_self_training.md, erratum 10; see `docs/specs/graph.md`, oracle G6",
        "docs/specs/entropy_regularization.md, oracles 3, 9 and 10",
        "# docs/specs/crf_engine.md,\n    # section\n    # 7.2",
        "Suzuki & Isozaki (2008), section 4.2",
        "He, Gillenwater & Taskar, CoNLL 2013, sections 3 and 4",
        "section 5.1 of the paper",
        'f"{SUBRAMANYA_2010}, section 6"',
        "the sections 00 to 24 of the Penn Treebank",
    ],
)
def test_these_resolve(text: str) -> None:
    assert [*troubles(text), *unnamed(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "docs/specs/engine.md, section 7.1",
        "docs/specs/crf_engine.md, section 7.9",
        "docs/specs/crf_engine.md, sections 3 to 70",
        "docs/specs/graph_self_training.md, erratum 18",
        "docs/specs/graph.md, oracle G16",
        "docs/specs/graph.md, oracle 6",
        "docs/specs/entropy_regularization.md, oracles 3, 9 and 20",
        "docs/specs/crf_engine.md,\n    # section 7.9",
        "E[R] and Cov(1_c, R) (section 7.4)",
        "the distance of section 4.5",
        "(erratum 11 of our reading)",
        "# -- oracles 10 and 11 ------",
        "as in the engine's specification",
        "crf_engine §7.1",
        "the optimum of equation 2",
    ],
)
def test_these_do_not(text: str) -> None:
    assert [*troubles(text), *unnamed(text)] != []


def test_a_page_may_cite_itself() -> None:
    assert list(troubles("see section 7.2 and oracle 20", "crf_engine")) == []
    assert len(list(troubles("see section 7.12 and oracle 21", "crf_engine"))) == 2
