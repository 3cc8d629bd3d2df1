"""Templates: which pieces of the input around a token become one attribute.

A template is a conjunction of atoms (a column read at an offset from the current token). Its text
form is ``word[-1]|word[0]``; ``edge: pos[0]`` conditions a transition instead of a label;
``bag: word[-4..-1]`` is the set of values inside a window; ``bias`` (or ``1``) fires everywhere.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sslbench.errors import UserError

_NAME = re.compile(r"[^\[\]|\s:]+")
_ATOM = re.compile(r"(?P<column>[^\[\]|\s:]+)\[\s*(?P<offset>[+-]?\d{1,9})\s*\]")
_BAG = re.compile(
    r"(?P<column>[^\[\]|\s:]+)\[\s*(?P<first>[+-]?\d{1,9})\s*\.\.\s*(?P<last>[+-]?\d{1,9})\s*\]"
)
_PREFIX = re.compile(r"(?P<word>[^\[\]|\s:]*)\s*:\s*")
_COMMENT = re.compile(r"(?:^|\s)#.*$")

MAX_OFFSET = 100
"""Windows beyond this many tokens are refused: every sentence is padded by the largest offset."""


@dataclass(frozen=True, slots=True)
class Atom:
    """The value of `column` at `offset` tokens from the current one (negative: to the left).

    `column` may be derived: ``word.lower``, ``word.shape``, ``word.suffix3`` (see
    `sslbench.features.derived`).
    """

    column: str
    offset: int

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.column):
            raise UserError(
                f"column name {self.column!r} cannot stand in a template",
                hint="a name has no spaces and none of [ ] | :",
            )

    def __str__(self) -> str:
        return f"{self.column}[{self.offset}]"


@dataclass(frozen=True, slots=True)
class Template:
    """A conjunction of atoms; every distinct tuple of values is one attribute.

    Parameters
    ----------
    atoms: the conjunction; () is the constant attribute that fires on every token.
    edge: the attribute conditions the transition (previous label, label) instead of the label. The
        constant edge is the CRF's own transition table and is never a template.
    bag: (first, last) offsets of a window; `atoms` is then one atom at offset 0 and the attributes
        are the distinct values inside the window and inside the sentence.
    """

    atoms: tuple[Atom, ...]
    edge: bool = False
    bag: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.edge and not self.atoms:
            raise UserError(
                "an edge template needs an atom",
                hint="leave it out: the constant transition table is always part of the CRF",
            )
        if self.bag is not None:
            if len(self.atoms) != 1 or self.atoms[0].offset != 0:
                raise UserError("a bag template holds exactly one column")
            if self.bag[0] > self.bag[1]:
                raise UserError(f"the window of {self} is empty", hint="write the left end first")
        ends = [*(atom.offset for atom in self.atoms), *(self.bag or ())]
        if any(abs(end) > MAX_OFFSET for end in ends):
            raise UserError(f"{self} reads beyond {MAX_OFFSET} tokens")

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where the template's stream is read: one offset from the token, or a bag's window."""
        if self.bag is not None:
            return tuple(range(self.bag[0], self.bag[1] + 1))
        return (self.atoms[-1].offset if self.atoms else 0,)

    @property
    def pattern(self) -> tuple[Atom, ...]:
        """The atoms relative to the last one: equal patterns share one stream of symbols."""
        anchor = self.atoms[-1].offset if self.atoms else 0
        return tuple(Atom(atom.column, atom.offset - anchor) for atom in self.atoms)

    def __str__(self) -> str:
        if self.bag is not None:
            text = f"bag: {self.atoms[0].column}[{self.bag[0]}..{self.bag[1]}]"
        else:
            text = "|".join(map(str, self.atoms)) or "bias"
        return f"edge: {text}" if self.edge else text

    @classmethod
    def parse(cls, text: str, columns: Sequence[str] | None = None) -> Template:
        """Read the text form; `str` of the result reads back as the same template.

        Parameters
        ----------
        text: e.g. ``word[-1]|word[0]``, ``edge: pos[0]``, ``bag: word[-4..-1]``, ``bias``.
        columns: when given, the columns that exist; others (and what is derived from them) are
            errors.

        Raises
        ------
        UserError: names the part that cannot be read and, for a column, the near names.
        """
        body, flags = _take_prefixes(text)
        if body in ("bias", "1"):
            template = cls((), edge="edge" in flags)
            if "bag" in flags:
                raise UserError(f"template {text!r}: a bag needs a column and a window")
        elif "bag" in flags:
            template = _parse_bag(text, body, "edge" in flags)
        else:
            template = cls(tuple(_parse_atom(text, p) for p in body.split("|")), "edge" in flags)
        if columns is not None:
            for atom in template.atoms:
                _check_column(text, atom.column, columns)
        return template


def _take_prefixes(text: str) -> tuple[str, set[str]]:
    """Split ``edge: bag: rest`` into the rest and its flags."""
    body, flags = text.strip(), set[str]()
    while found := _PREFIX.match(body):
        word = found["word"]
        if word not in ("edge", "bag") or word in flags:
            raise UserError(
                f"template {text!r}: {word + ':'!r} is not understood here",
                hint="a template may begin with 'edge:' or 'bag:'",
            )
        flags.add(word)
        body = body[found.end() :].strip()
    return body, flags


def _parse_atom(text: str, part: str) -> Atom:
    part = part.strip()
    found = _ATOM.fullmatch(part)
    if found:
        return Atom(found["column"], int(found["offset"]))
    hint = "write column[offset], as in word[-1]"
    if _NAME.fullmatch(part):
        hint = f"write {part}[0] for the current token"
    elif _BAG.fullmatch(part):
        hint = f"a window is a bag: write 'bag: {part}'"
    raise UserError(f"template {text!r}: cannot read {part!r}", hint=hint)


def _parse_bag(text: str, body: str, edge: bool) -> Template:
    found = _BAG.fullmatch(body)
    if not found:
        raise UserError(
            f"template {text!r}: cannot read {body!r}", hint="write bag: column[-4..-1]"
        )
    return Template((Atom(found["column"], 0),), edge, (int(found["first"]), int(found["last"])))


def _check_column(text: str, name: str, columns: Sequence[str]) -> None:
    if any(name == column or name.startswith(column + ".") for column in columns):
        return
    base, _, operation = name.partition(".")
    near = difflib.get_close_matches(base, columns, n=3, cutoff=0.5)
    if near:
        suffix = f".{operation}" if operation else ""
        hint = "did you mean " + " or ".join(column + suffix for column in near) + "?"
    else:
        hint = "columns: " + ", ".join(columns)
    raise UserError(f"template {text!r}: there is no column {name!r}", hint=hint)


def read_lines(path: str | os.PathLike[str]) -> list[tuple[int, str]]:
    """Numbered lines of a template file without comments and blanks.

    A comment starts at a ``#`` that begins the line or follows a space.

    Raises
    ------
    UserError: the file cannot be read, is not UTF-8, or holds no template.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"cannot read templates: {error.strerror}", file=path) from error
    except UnicodeDecodeError as error:
        raise UserError("not UTF-8 text", file=path, hint="save the file as UTF-8") from error
    numbered = enumerate((_COMMENT.sub("", line).strip() for line in text.splitlines()), 1)
    lines = [(number, line) for number, line in numbered if line]
    if not lines:
        raise UserError("no template in this file", file=path, hint="write one template a line")
    return lines


def load_templates(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None
) -> tuple[Template, ...]:
    """Templates of a file in the project's own form: one a line, ``#`` starts a comment.

    Raises
    ------
    UserError: with file and line, when a line cannot be read or repeats an earlier template.
    """
    seen: dict[Template, int] = {}
    for number, line in read_lines(path):
        try:
            template = Template.parse(line, columns)
        except UserError as error:
            raise UserError(error.message, file=path, line=number, hint=error.hint) from error
        if template in seen:
            raise UserError(
                f"{template} repeats line {seen[template]}",
                file=path,
                line=number,
                hint="remove one of the two",
            )
        seen[template] = number
    return tuple(seen)
