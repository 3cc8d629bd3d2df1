"""A reader of the template files of CRF++ and Wapiti.

=========================== =======================================================================
in the file                 template
=========================== =======================================================================
``U01:%x[-1,0]/%x[0,1]``    ``word[-1]|pos[0]`` (columns are numbered from 0 in the order given)
``B``, ``b``                none: the CRF always has a transition table
``B05:%x[0,1]``             ``edge: pos[0]``
``*03:%x[0,0]`` (Wapiti)    ``word[0]`` and ``edge: word[0]``
``U`` alone                 ``bias``
``%X[0,0]``                 ``word.lower[0]``
``%m[0,0,"^..."]``          ``word.prefix3[0]``; ``"...$"`` suffix3
``%m[0,0,"^.?.?"]``         ``word.head2[0]``; ``".?.?$"`` tail2
``%t[0,0,"^\\u"]``           ``word.first_upper[0]``; ``"\\p$"`` last_punct
``%t[0,0,"\\d"]``            ``word.has_digit[0]``; ``"^\\l*$"`` all_lower
=========================== =======================================================================

A template that stands twice counts once; a warning names its line.

Differences from Wapiti: characters are Unicode characters, not bytes, and outside of the sentence
every macro gives the pad (``_B-1``), where Wapiti applies it to the text of the pad. CRF++ has
transitions only with a line B.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from sslbench.engine.errors import UserError
from sslbench.engine.features.derived import pattern_name
from sslbench.engine.features.index import TemplateFeaturizer
from sslbench.engine.features.patterns import NAMES, parse
from sslbench.engine.features.templates import (
    Atom,
    Template,
    is_toml,
    load_templates,
    parse_file,
    read_lines,
)

MACRO = re.compile(
    r"""%(?P<kind>[a-zA-Z])\[\s*(?P<mark>[@*]?)(?P<offset>[+-]?\d{1,9})\s*,\s*(?P<column>\d{1,9})\s*
        (?:,\s*"(?P<regex>(?:\\.|[^"\\])*)"\s*)?\]""",
    re.VERBOSE,
)
_FOREIGN = re.compile(r"%[a-zA-Z]\[|[UuBb]\d*:?$")
_AFFIXES = (
    (re.compile(r"\^((?:\.)+)"), "prefix", 1),
    (re.compile(r"((?:\.)+)\$"), "suffix", 1),
    (re.compile(r"\^((?:\.\?)+)"), "head", 2),
    (re.compile(r"((?:\.\?)+)\$"), "tail", 2),
)
_TESTS = (
    (re.compile(r"\^\\([uldawps])"), "first"),
    (re.compile(r"\\([uldawps])\$"), "last"),
    (re.compile(r"\\([uldawps])"), "has"),
    (re.compile(r"\^(?:\\([uldawps]))(?:\\\1)?\*\$"), "all"),
)


def load_template_file(path: str | os.PathLike[str], columns: Sequence[str]) -> TemplateFeaturizer:
    """Read a template file of CRF++ or Wapiti.

    columns: names of the columns in the order of the data file; ``%x[-1,0]`` reads columns[0].
    UserError with file, line and advice for a line that cannot be parsed or is not supported.
    """
    line_of: dict[str, int] = {}

    def of_line(number: int, line: str) -> list[Template]:
        _check_identifier(line, number, line_of)
        return parse_line(line, columns)

    templates = parse_file(path, of_line, repeats="warn")
    if not templates:
        raise UserError(
            "only the transition template B in this file",
            file=path,
            hint="add a unigram template such as U00:%x[0,0]",
        )
    return TemplateFeaturizer(templates)


def load_featurizer(path: str | os.PathLike[str], columns: Sequence[str]) -> TemplateFeaturizer:
    """Read a template file of CRF++ or Wapiti, or in the project's own form (lines, or TOML).

    columns: names of the columns in the order of the data file.
    UserError with file and line for a line that cannot be parsed.
    """
    if not is_toml(path) and any(_FOREIGN.search(line) for _, line in read_lines(path)):
        return load_template_file(path, columns)
    return TemplateFeaturizer(load_templates(path, columns))


def _check_identifier(line: str, number: int, line_of: dict[str, int]) -> None:
    """UserError for two lines that differ in macros only: both tools make them share weights."""
    if "%" not in line:
        return
    earlier = line_of.setdefault(MACRO.sub("%", line), number)
    if earlier != number:
        raise UserError(
            f"{line!r} has the identifier of line {earlier}, so they would share weights",
            hint="number the templates (U00:, U01:), or write one 'bag:' template",
        )


def parse_line(line: str, columns: Sequence[str]) -> list[Template]:
    """Return the templates of a line: none for a transition without macros, two for Wapiti's ``*``.

    Raises UserError for a line that cannot be parsed or is not supported.
    """
    kind = line[0].lower()
    if kind not in "ub*":
        raise UserError(
            f"cannot parse {line!r}", hint="a template begins with U (label), B (transition) or *"
        )
    rest = MACRO.sub("", line)
    if "%" in rest:
        raise UserError(
            f"cannot parse a macro in {rest[rest.index('%') :]!r}",
            hint="write %x[offset,column], as in %x[-1,0]",
        )
    atoms = tuple(_parse_macro(match, columns) for match in MACRO.finditer(line))
    templates = []
    if kind in "u*":
        templates.append(Template(atoms))
    if kind in "b*" and atoms:
        templates.append(Template(atoms, edge=True))
    return templates


def _parse_macro(match: re.Match[str], columns: Sequence[str]) -> Atom:
    text, column = match[0], int(match["column"])
    if match["mark"]:
        raise UserError(
            f"{text}: absolute and indirect positions are not supported",
            hint="put the value into a column of its own in the data",
        )
    if column >= len(columns):
        raise UserError(
            f"{text}: there is no column {column}",
            hint=f"columns count from 0: {', '.join(columns)}",
        )
    name, kind, regex = columns[column], match["kind"], match["regex"]
    if kind.lower() not in "xmt" or (kind.lower() == "x") != (regex is None):
        raise UserError(
            f"cannot parse {text}", hint='write %x[0,0], %m[0,0,"^..."] or %t[0,0,"^\\u"]'
        )
    if kind.lower() == "m":
        name += "." + _affix(regex)
    elif kind.lower() == "t":
        name += "." + _test(regex)
    if kind in "XM":  # upper-case macros fold case; the values of %T are true and false
        name += ".lower"
    return Atom(name, int(match["offset"]))


def _affix(regex: str) -> str:
    for pattern, name, width in _AFFIXES:
        if match := pattern.fullmatch(regex):
            return f"{name}{len(match[1]) // width}"
    return _other("match", regex)


def _test(regex: str) -> str:
    for pattern, name in _TESTS:
        if match := pattern.fullmatch(regex):
            return f"{name}_{NAMES[match[1]]}"
    return _other("test", regex)


def _other(kind: str, regex: str) -> str:
    parse(regex)  # UserError for what is no expression
    return pattern_name(kind, regex)
