"""Expressions of Wapiti's templates, against Python's `re`."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.features import coded_column
from sslbench.engine.features.derived import pattern_name
from sslbench.engine.features.patterns import parse

#: ASCII characters of the classes
SETS = {
    "a": string.ascii_letters,
    "d": string.digits,
    "l": string.ascii_lowercase,
    "p": string.punctuation,
    "s": string.whitespace,
    "u": string.ascii_uppercase,
    "w": string.ascii_letters + string.digits,
}
CLASSES = [rf"\{name}" for name in "adlpsuwADLPSUW"]
UNITS = [".", "a", "B", "1", "-", "$", "^", r"\.", r"\*", r"\$", *CLASSES]


def in_python(text: str) -> re.Pattern[str]:
    """The same expression of `re`: its ? is greedy, its * takes as few as it can."""
    found, place = "", 0
    start, body = text[:1] == "^", text.removeprefix("^")
    end = body.endswith("$") and not body.endswith(r"\$")
    body = body[:-1] if end else body
    while place < len(body):
        width = 2 if body[place] == "\\" else 1
        unit, place = body[place : place + width], place + width
        if unit == ".":
            found += "."
        elif len(unit) == 2 and unit[1].lower() in SETS:
            sign = "^" if unit[1].isupper() else ""
            found += f"[{sign}{re.escape(SETS[unit[1].lower()])}]"
        else:
            found += re.escape(unit[-1])
        if body[place : place + 1] in ("*", "?"):
            found += "*?" if body[place] == "*" else "?"
            place += 1
    return re.compile((r"\A" if start else "") + found + (r"\Z" if end else ""), re.DOTALL)


items = st.tuples(st.sampled_from(UNITS), st.sampled_from(["", "", "?", "*"])).map("".join)
texts = st.builds(
    lambda start, middle, end: start + "".join(middle) + end,
    st.sampled_from(["", "^"]),
    st.lists(items, max_size=5),
    st.sampled_from(["", "$"]),
)


@given(texts, st.text("abAB12-.$^* ", max_size=7))
def test_the_first_match_is_that_of_python(text: str, word: str) -> None:
    if text.removeprefix("^")[:1] in ("*", "?"):
        return
    expected = in_python(text).search(word)
    assert parse(text).first_match(word) == (None if expected is None else expected[0])


def test_a_repetition_of_repetitions_ends() -> None:
    """Backtracking would take longer than there is time."""
    assert parse("a*" * 30 + "b$").first_match("a" * 2000) is None


def test_characters_are_those_of_unicode() -> None:
    assert parse(r"^\u\l*$").first_match("Été") == "Été"
    assert parse(r"\p").first_match("ab«c") == "«"


@pytest.mark.parametrize("text", ["*a", "?", "^*", "a**", "a?*"])
def test_a_repetition_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="repeats nothing"):
        parse(text)


def test_columns_of_matches_and_tests() -> None:
    corpus = Corpus.from_sentences({"word": [["1990s", "U.S.", "x"]]})
    digits = coded_column(corpus, "word." + pattern_name("match", r"\d\d"))
    assert digits.strings() == ["19", "<none>", "<none>"]
    inner = coded_column(corpus, "word." + pattern_name("test", r".\p."))
    assert inner.strings() == ["false", "true", "false"]
