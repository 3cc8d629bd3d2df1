"""Functions of words that similarity graphs use: normal forms, suffixes, character types."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from types import MappingProxyType

from sslbench.engine.errors import UserError

NUMBER = "<num>"

# no two repetitions side by side can match the same characters: that takes quadratic time
_NUMBER = re.compile(r"[0-9][0-9,]*|[0-9]+\.[0-9]+")
#: marks that the graph of He et al. (2013) leaves out
PUNCTUATION = ".,!?:;"
_FULL_WIDTH_DIGITS = "".join(map(chr, range(0xFF10, 0xFF1A)))
_NUMERALS = frozenset("0123456789" + _FULL_WIDTH_DIGITS + "零〇一二三四五六七八九十百千万亿两")

SUFFIX_LENGTHS = (2, 3, 4)


def number(word: str) -> str:
    """`<num>` for a number ("12", "1.5", "1,200"), any other word as it is."""
    return NUMBER if _NUMBER.fullmatch(word) else word


def lower_number(word: str) -> str:
    """Lower case, and `<num>` for a number."""
    return number(word.lower())


FORMS: MappingProxyType[str, Callable[[str], str]] = MappingProxyType(
    {"number": number, "lower_number": lower_number}
)


def form_of(name: str | None) -> Callable[[str], str]:
    """Return the normal form of that name, identity for None; UserError if there is none."""
    if name is None:
        return str
    if name not in FORMS:
        raise UserError(f"no form of words {name!r}", hint=f"there are {', '.join(FORMS)}")
    return FORMS[name]


def learned_suffixes(words: Iterable[str]) -> frozenset[str]:
    """Endings of 2 to 4 characters of 2 % of the distinct `words` of letters, and of at least 5.

    Of longer lists the neighbors agree less in their tags (docs/specs/graph.md, section 3).
    """
    distinct = {word for word in words if word.isalpha()}
    bound = max(5.0, 0.02 * len(distinct))
    ends = Counter(
        word[-length:] for word in distinct for length in SUFFIX_LENGTHS if len(word) >= length
    )
    return frozenset(end for end, count in ends.items() if count >= bound)


def longest_suffix(word: str, suffixes: frozenset[str]) -> str:
    """Return the longest listed suffix of length 2 .. len(word) - 1, "" if there is none."""
    ends = (word[-n:] for n in _lengths(suffixes) if n < len(word))
    return next((end for end in ends if end in suffixes), "")


@lru_cache(maxsize=8)
def _lengths(suffixes: frozenset[str]) -> tuple[int, ...]:
    """Lengths of the suffixes from 2 on, the greatest first: a word may have 10^6 characters."""
    return tuple(sorted({len(suffix) for suffix in suffixes if len(suffix) >= 2}, reverse=True))


def character_type(word: str) -> str:
    """Return the type that all characters of a word have: number, punctuation or letter (Latin).

    "other" if they differ or are of another type, and for the empty word. Source: Zeng et al.
    (2013), table 2 (docs/specs/graph.md, section 3).
    """
    types = set(map(_type, word))
    return types.pop() if len(types) == 1 else "other"


def _type(character: str) -> str:
    category = unicodedata.category(character)
    if character in _NUMERALS:
        return "number"
    if category[0] in "PS":
        return "punctuation"
    if category[0] == "L" and "LATIN" in unicodedata.name(character, ""):  # full-width ones too
        return "letter"
    return "other"
