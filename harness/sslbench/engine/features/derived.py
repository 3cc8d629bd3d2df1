"""Derived columns: functions of one value, computed once per vocabulary entry.

The name of a derived column is that of its base and the operations from left to right:
``word.lower``, ``word.suffix3``, ``word.lower.prefix2``. A column of the corpus that has such a
name itself takes precedence.

=============== ================================================================================
operation       value
=============== ================================================================================
lower           in lower case (Unicode)
shape           word type: 16 orthographic tests as 4 hex digits (`word_type`)
compressed      characters by their class, repeated ones once: A, a, 0 or themselves (``Aa``)
prefixN suffixN first / last N characters; ``<short>`` if the value has fewer
headN tailN     first / last N characters; the whole value if it has fewer
Q_C             ``true`` or ``false``: Q of first, last, has, all; C of upper, lower, digit, alpha,
                alnum, punct, dash, period, space, as in ``first_upper`` or ``has_digit``
match-X test-X  first match of the expression X (``<none>`` without one), or ``true`` or ``false``;
                X as in `pattern_name` (see `sslbench.engine.features.patterns`)
=============== ================================================================================
"""

from __future__ import annotations

import difflib
import re
import string
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import groupby

from sslbench.engine.corpus import Column, Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.features.patterns import CLASSES, parse

SHORT = "<short>"
"""Prefix or suffix of a value that has too few characters."""

NO_MATCH = "<none>"

_PATTERN = re.compile(r"(match|test)-((?:[0-9a-f]{2})*)")
_AFFIX = re.compile(r"(prefix|suffix|head|tail)([1-9]\d?)")
_TEST = re.compile(r"(first|last|has|all)_([a-z]+)")
_EXAMPLES = [
    *("lower", "shape", "compressed", "prefix1", "prefix3", "suffix1", "suffix3", "head3", "tail3"),
    *(f"{q}_{c}" for q in ("first", "last", "has", "all") for c in CLASSES),
]

_CAMEL = re.compile(r"[A-Z][a-z]+[A-Z][A-Za-z]*")
# one separator, then the rest: `[.,]+[0-9.,]+`, which means the same, takes quadratic time
_NUMBER = re.compile(r"[-0-9]+[.,][0-9.,]+")
_INITIALS = re.compile(r"[A-Z][A-Z.]*")


def word_type(word: str) -> str:
    """Orthographic type of a word: the results of 16 tests as 4 hex digits.

    Upper and lower case are the Unicode categories Lu and Ll, digits are ASCII. Suzuki & Isozaki
    (2008) use such a feature (``wtp``) without listing its tests; these are the tests commonly used
    for CoNLL-2003.
    """
    if not word:
        return "0000"
    kinds = [unicodedata.category(c) for c in word]
    upper = [kind == "Lu" for kind in kinds]
    digit = [c in string.digits for c in word]
    single, length = word if len(word) == 1 else "", len(word)
    left, dash, right = word.partition("-")
    tests = (
        upper[0],
        upper[0] and all(kind == "Ll" for kind in kinds[1:]),
        all(upper),
        _CAMEL.fullmatch(word) is not None,
        any(digit),
        all(digit),
        _NUMBER.fullmatch(word) is not None,
        length >= 2 and set(word) == {"."},
        length >= 2 and word[0] != "." and word[-1] == ".",
        bool(left and dash) and _letters_or_digits(left + right),
        "." in word and _INITIALS.fullmatch(word) is not None,
        length == 2 and upper[0] and word[1] == ".",
        single != "" and kinds[0].startswith("L"),
        single != "" and single in string.ascii_uppercase,
        single != "" and single in ",.;:?!()",
        single != "" and single in "\"`'",
    )
    return f"{sum(bool(test) << bit for bit, test in enumerate(tests)):04x}"


def compressed(word: str) -> str:
    """The characters, capitals as A, other letters as a, digits as 0, without repetitions."""
    classes = (
        "A" if c.isupper() else "a" if c.isalpha() else "0" if c.isdigit() else c for c in word
    )
    return "".join(key for key, _ in groupby(classes))


def _letters_or_digits(text: str) -> bool:
    return all(c in string.digits or c.isalpha() for c in text)


def _affix(kind: str, n: int) -> Callable[[str], str]:
    if kind == "prefix":
        return lambda value: value[:n] if len(value) >= n else SHORT
    if kind == "suffix":
        return lambda value: value[-n:] if len(value) >= n else SHORT
    if kind == "head":
        return lambda value: value[:n]
    return lambda value: value[-n:]


def _test(where: str, member: Callable[[str], bool]) -> Callable[[str], str]:
    def test(value: str) -> str:
        if where == "has":
            holds = any(map(member, value))
        elif where == "all":
            holds = all(map(member, value))
        else:
            edge = value[:1] if where == "first" else value[-1:]
            holds = bool(edge) and member(edge)
        return "true" if holds else "false"

    return test


def pattern_name(kind: str, expression: str) -> str:
    """The operation "match" or "test" with an expression, whose UTF-8 is written as hex digits."""
    return f"{kind}-{expression.encode().hex()}"


def _pattern(kind: str, expression: str) -> Callable[[str], str]:
    pattern = parse(expression)

    def apply(value: str) -> str:
        match = pattern.first_match(value)
        if kind == "match":
            return NO_MATCH if match is None else match
        return "false" if match is None else "true"

    return apply


@lru_cache(maxsize=256)
def operation(name: str) -> Callable[[str], str]:
    """Return the function of an operation such as ``lower`` or ``suffix3``.

    Raises UserError for an unknown operation, with similar names in the hint.
    """
    if name == "lower":
        return str.lower
    if name == "shape":
        return word_type
    if name == "compressed":
        return compressed
    if affix := _AFFIX.fullmatch(name):
        return _affix(affix[1], int(affix[2]))
    if pattern := _PATTERN.fullmatch(name):
        return _pattern(pattern[1], bytes.fromhex(pattern[2]).decode())
    test = _TEST.fullmatch(name)
    if test and test[2] in CLASSES:
        return _test(test[1], CLASSES[test[2]])
    near = difflib.get_close_matches(name, _EXAMPLES, n=3, cutoff=0.5)
    hint = (
        "did you mean " + ", ".join(near) + "?" if near else "lower, shape, prefixN, suffixN, ..."
    )
    raise UserError(f"no derived column {name!r}", hint=hint)


def split_name(name: str, columns: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """Base column and operations of a column name; the base is the longest existing column."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        base = ".".join(parts[:n])
        if base in columns:
            return base, tuple(parts[n:])
    return parts[0], tuple(parts[1:])


def derived_value(values: Mapping[str, str], name: str) -> str:
    """Return the value of the plain or derived column of that name; values: by column."""
    base, operations = split_name(name, frozenset(values))
    value = values[base]
    for step in operations:
        value = operation(step)(value)
    return value


def coded_column(corpus: Corpus, name: str) -> Column:
    """Return the plain or derived column of that name.

    Corpora that share the vocabulary of the base column share the vocabulary of the derived one.
    Raises UserError for an unknown column or operation.
    """
    base, operations = split_name(name, frozenset(corpus.columns))
    column = corpus.column(base)
    for step in operations:
        derived = column.vocabulary.derived(step, operation(step))
        column = Column(derived.vocabulary, derived.codes()[column.codes])
    return column
