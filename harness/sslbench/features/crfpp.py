"""Template files of CRF++ and Wapiti, read as templates.

=========================== =======================================================================
in the file                 becomes
=========================== =======================================================================
``U01:%x[-1,0]/%x[0,1]``    ``word[-1]|pos[0]`` (columns are numbered from 0 in the order given)
``B``, ``b``                nothing: the constant transition table is always part of the CRF
``B05:%x[0,1]``             ``edge: pos[0]``
``*03:%x[0,0]`` (Wapiti)    ``word[0]`` and ``edge: word[0]``
``U`` alone                 ``bias``
``%X[0,0]``                 ``word.lower[0]``
``%m[0,0,"^..."]``          ``word.prefix3[0]``; ``"...$"`` suffix3
``%m[0,0,"^.?.?"]``         ``word.head2[0]``; ``".?.?$"`` tail2
``%t[0,0,"^\\u"]``           ``word.first_upper[0]``; ``"\\p$"`` last_punct
``%t[0,0,"\\d"]``            ``word.has_digit[0]``; ``"^\\l*$"`` all_lower
=========================== =======================================================================

Two details differ from Wapiti: characters are Unicode characters, not bytes, and outside the
sentence every form gives the pad (``_B-1``), where Wapiti applies it to the text of the pad.
CRF++ without a line B has no transitions; the CRF here always has them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from sslbench.errors import UserError
from sslbench.features.index import TemplateFeaturizer
from sslbench.features.templates import Atom, Template, load_templates, read_lines

_MACRO = re.compile(
    r"""%(?P<kind>[a-zA-Z])\[\s*(?P<mark>[@*]?)(?P<offset>[+-]?\d{1,9})\s*,\s*(?P<column>\d{1,9})\s*
        (?:,\s*"(?P<regex>(?:\\.|[^"\\])*)"\s*)?\]""",
    re.VERBOSE,
)
_FOREIGN = re.compile(r"%[a-zA-Z]\[|[UuBb]\d*:?$")
_CLASS_NAMES = {
    "u": "upper",
    "l": "lower",
    "d": "digit",
    "a": "alpha",
    "w": "alnum",
    "p": "punct",
    "s": "space",
}
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

    Parameters
    ----------
    columns: names of the columns in the order of the data file; ``%x[-1,0]`` reads columns[0].

    Raises
    ------
    UserError: with file and line, for what cannot be read or is not supported; the hint says what
        to do.
    """
    templates: dict[Template, int] = {}
    skeletons: dict[str, int] = {}
    for number, line in read_lines(path):
        try:
            found = _read_line(line, columns)
            _check_identifier(line, number, skeletons)
            for template in found:
                if template in templates:
                    raise UserError(
                        f"{line!r} repeats line {templates[template]}", hint="remove one of the two"
                    )
                templates[template] = number
        except UserError as error:
            raise UserError(error.message, file=path, line=number, hint=error.hint) from error
    if not templates:
        raise UserError(
            "only the transition template B in this file",
            file=path,
            hint="add a unigram template such as U00:%x[0,0]",
        )
    return TemplateFeaturizer(templates)


def load_featurizer(path: str | os.PathLike[str], columns: Sequence[str]) -> TemplateFeaturizer:
    """Read a template file of any of the three forms: CRF++, Wapiti, or the project's own.

    Raises
    ------
    UserError: with file and line.
    """
    if any(_FOREIGN.search(line) for _, line in read_lines(path)):
        return load_template_file(path, columns)
    return TemplateFeaturizer(load_templates(path, columns))


def _check_identifier(line: str, number: int, skeletons: dict[str, int]) -> None:
    """Refuse two lines that differ in their macros only: there, both tools share the weights."""
    if "%" not in line:
        return
    skeleton = _MACRO.sub("%", line)
    earlier = skeletons.setdefault(skeleton, number)
    if earlier != number:
        raise UserError(
            f"{line!r} has the identifier of line {earlier}, which would make them share weights",
            hint="number the templates (U00:, U01:), or write one 'bag:' template",
        )


def _read_line(line: str, columns: Sequence[str]) -> list[Template]:
    kind = line[0].lower()
    if kind not in "ub*":
        raise UserError(
            f"cannot read {line!r}", hint="a template begins with U (label), B (transition) or *"
        )
    rest = _MACRO.sub("", line)
    if "%" in rest:
        raise UserError(
            f"cannot read a macro in {rest[rest.index('%') :]!r}",
            hint="write %x[offset,column], as in %x[-1,0]",
        )
    atoms = tuple(_read_macro(found, columns) for found in _MACRO.finditer(line))
    templates = []
    if kind in "u*":
        templates.append(Template(atoms))
    if kind in "b*" and atoms:
        templates.append(Template(atoms, edge=True))
    return templates


def _read_macro(found: re.Match[str], columns: Sequence[str]) -> Atom:
    text, column = found[0], int(found["column"])
    if found["mark"]:
        raise UserError(
            f"{text}: absolute and indirect positions are not supported",
            hint="put the value into a column of its own in the data",
        )
    if column >= len(columns):
        raise UserError(
            f"{text}: there is no column {column}",
            hint=f"columns count from 0: {', '.join(columns)}",
        )
    name, kind, regex = columns[column], found["kind"], found["regex"]
    if kind.lower() not in "xmt" or (kind.lower() == "x") != (regex is None):
        raise UserError(
            f"cannot read {text}", hint='write %x[0,0], %m[0,0,"^..."] or %t[0,0,"^\\u"]'
        )
    if kind.lower() == "m":
        name += "." + _affix(text, regex)
    elif kind.lower() == "t":
        name += "." + _test(text, regex)
    if kind in "XM":  # the upper-case macros fold case; %T changes nothing in true and false
        name += ".lower"
    return Atom(name, int(found["offset"]))


def _affix(text: str, regex: str) -> str:
    for form, name, width in _AFFIXES:
        if matched := form.fullmatch(regex):
            return f"{name}{len(matched[1]) // width}"
    raise UserError(
        f"{text}: this expression is not supported",
        hint='%m takes "^...", "...$", "^.?.?" and ".?.?$" (any length); '
        "put other matches into a column of their own",
    )


def _test(text: str, regex: str) -> str:
    for form, name in _TESTS:
        if matched := form.fullmatch(regex):
            return f"{name}_{_CLASS_NAMES[matched[1]]}"
    raise UserError(
        f"{text}: this expression is not supported",
        hint=r'%t takes "^\u", "\u$", "\u" and "^\u*$" with one of \u \l \d \a \w \p \s; '
        "put other tests into a column of their own",
    )
