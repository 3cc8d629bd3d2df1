"""The regular expressions of Wapiti's templates, on one word.

``.`` is any character. ``\\a`` is a letter, ``\\d`` a digit, ``\\l`` lower case, ``\\p``
punctuation, ``\\s`` space, ``\\u`` upper case, ``\\w`` a letter or digit; in upper case they are
the complements. Another character after ``\\`` is itself. ``x?`` takes one if it can, ``x*`` as few
as it can. ``^`` at the beginning and ``$`` at the end are the ends of the word.

The first match of Wapiti 1.5 (``rex_match`` in src/pattern.c), computed from the end of the word:
its time is the product of the two lengths for any expression. Characters are those of Unicode.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from sslbench.engine.errors import UserError

Test = Callable[[str], bool]
#: classes of characters
CLASSES: Mapping[str, Test] = {
    "upper": str.isupper,
    "lower": str.islower,
    "digit": str.isdigit,
    "alpha": str.isalpha,
    "alnum": str.isalnum,
    "punct": lambda c: c in string.punctuation or unicodedata.category(c).startswith("P"),
    "dash": lambda c: unicodedata.category(c) == "Pd",
    "period": lambda c: c == ".",
    "space": str.isspace,
}
#: names of classes of characters, by their letters in templates
NAMES = {
    "a": "alpha",
    "d": "digit",
    "l": "lower",
    "p": "punct",
    "s": "space",
    "u": "upper",
    "w": "alnum",
}


@dataclass(frozen=True)
class _Item:
    test: Test
    repeat: Literal["", "?", "*"]


@dataclass(frozen=True)
class Pattern:
    """A parsed expression."""

    items: tuple[_Item, ...]
    at_start: bool
    at_end: bool

    def first_match(self, word: str) -> str | None:
        """Return the part of the word that is matched first; None = no match."""
        n = len(word)
        ends = [n if self.at_end and j == n else -1 if self.at_end else j for j in range(n + 1)]
        for item in reversed(self.items):
            ends = _before(item, word, ends)
        starts = range(1) if self.at_start else range(n + 1)
        start = next((j for j in starts if ends[j] >= 0), None)
        return None if start is None else word[start : ends[start]]


def _before(item: _Item, word: str, after: list[int]) -> list[int]:
    """Ends of the matches of an item and what follows, by where it begins; -1 = none.

    after: the same of what follows alone.
    """
    ends = list(after) if item.repeat else [-1] * len(after)
    for j in range(len(word) - 1, -1, -1):
        if not item.test(word[j]):
            continue
        if item.repeat == "*":
            if after[j] < 0:
                ends[j] = ends[j + 1]
        elif item.repeat == "" or after[j + 1] >= 0:
            ends[j] = after[j + 1]
    return ends


@lru_cache(maxsize=256)
def parse(text: str) -> Pattern:
    """Return the expression of a text; UserError for a repetition of nothing."""
    body = text.removeprefix("^")
    at_end = body.endswith("$") and not _is_escaped(body)
    items, place = [], 0
    body = body[:-1] if at_end else body
    while place < len(body):
        character = body[place]
        if character in "*?":
            raise UserError(f"{character!r} repeats nothing in the expression {text!r}")
        width = 2 if character == "\\" and place + 1 < len(body) else 1
        test = _test(body[place : place + width])
        place += width
        repeat: Literal["", "?", "*"] = ""
        if body[place : place + 1] == "?":
            repeat = "?"
        elif body[place : place + 1] == "*":
            repeat = "*"
        place += len(repeat)
        items.append(_Item(test, repeat))
    return Pattern(tuple(items), text.startswith("^"), at_end)


def _is_escaped(body: str) -> bool:
    """Return whether the last character follows a backslash that is not escaped itself."""
    before = body[:-1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _test(unit: str) -> Test:
    if unit == ".":
        return lambda character: True
    kind = unit[-1]
    if len(unit) == 1 or kind.lower() not in NAMES:
        return lambda character: character == kind
    member = CLASSES[NAMES[kind.lower()]]
    return member if kind.islower() else lambda character: not member(character)
