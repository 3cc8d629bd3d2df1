"""Templates: which values around a token form one attribute.

A template is a conjunction of atoms; an atom is a column at an offset from the current token. In
text form: ``word[-1]|word[0]``; ``edge: pos[0]`` is a feature of the transition into the token
instead of its label; ``bag: word[-4..-1]`` is the set of values in a window; ``bias`` (or ``1``)
occurs at every token.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sslbench.engine.corpus import read_text
from sslbench.engine.errors import InputWarning, UserError

_NAME = re.compile(r"[^\[\]|\s:]+")
_ATOM = re.compile(r"(?P<column>[^\[\]|\s:]+)\[\s*(?P<offset>[+-]?\d{1,9})\s*\]")
_BAG = re.compile(
    r"(?P<column>[^\[\]|\s:]+)\[\s*(?P<first>[+-]?\d{1,9})\s*\.\.\s*(?P<last>[+-]?\d{1,9})\s*\]"
)
_PREFIX = re.compile(r"(?P<word>[^\[\]|\s:]*)\s*:\s*")
MAX_FILE = 2**20  # bytes of a template file
_COMMENT = re.compile(r"(?:^|\s)#.*$")

MAX_OFFSET = 100
"""Largest offset in tokens; every sentence is padded by the largest offset in use."""


@dataclass(frozen=True, slots=True)
class Atom:
    """The value of a column at an offset from the current token.

    Attributes
    ----------
    column: name of a column, also a derived one (see `sslbench.engine.features.derived`).
    offset: in tokens; negative to the left.
    """

    column: str
    offset: int

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.column):
            raise UserError(
                f"column name {self.column!r} is not allowed in a template",
                hint="names have no spaces and none of [ ] | :",
            )

    def __str__(self) -> str:
        return f"{self.column}[{self.offset}]"


@dataclass(frozen=True, slots=True)
class Template:
    """A conjunction of atoms; every distinct tuple of values is one attribute.

    UserError for a template that is not allowed.

    Parameters
    ----------
    atoms: the conjunction; () is the constant attribute, which occurs at every token.
    edge: whether the attribute has weights for pairs (previous label, label) instead of labels. The
        constant edge template is not allowed: the CRF always has a transition table.
    bag: (first, last) offsets of a window, with one atom at offset 0. The attributes are the
        distinct values in the window, inside the sentence.
    """

    atoms: tuple[Atom, ...]
    edge: bool = False
    bag: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.edge and not self.atoms:
            raise UserError(
                "an edge template needs an atom",
                hint="leave it out: the CRF always has a transition table",
            )
        if self.bag is not None:
            if len(self.atoms) != 1 or self.atoms[0].offset != 0:
                raise UserError("a bag template needs exactly one column")
            if self.bag[0] > self.bag[1]:
                raise UserError(f"the window of {self} is empty", hint="write the left end first")
        ends = [*(atom.offset for atom in self.atoms), *(self.bag or ())]
        if any(abs(end) > MAX_OFFSET for end in ends):
            raise UserError(f"{self} reads beyond {MAX_OFFSET} tokens")

    @property
    def offsets(self) -> tuple[int, ...]:
        """Offsets from the token at which the template's stream is read; a bag has several."""
        if self.bag is not None:
            return tuple(range(self.bag[0], self.bag[1] + 1))
        return (self.atoms[-1].offset if self.atoms else 0,)

    @property
    def pattern(self) -> tuple[Atom, ...]:
        """The atoms with offsets relative to the last one; equal patterns share one stream."""
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
        """Return the template of a text, such as ``word[-1]|word[0]`` or ``edge: pos[0]``.

        `str` of the template gives a text that is parsed as the same template.

        columns: the existing columns, if known; others and their derived columns are errors.
        UserError with the part that cannot be parsed, and similar names for an unknown column.
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
    while match := _PREFIX.match(body):
        word = match["word"]
        if word not in ("edge", "bag") or word in flags:
            raise UserError(
                f"template {text!r}: unexpected {word + ':'!r}",
                hint="a template may begin with 'edge:' or 'bag:'",
            )
        flags.add(word)
        body = body[match.end() :].strip()
    return body, flags


def _parse_atom(text: str, part: str) -> Atom:
    part = part.strip()
    if match := _ATOM.fullmatch(part):
        return Atom(match["column"], int(match["offset"]))
    hint = "write column[offset], as in word[-1]"
    if _NAME.fullmatch(part):
        hint = f"write {part}[0] for the current token"
    elif _BAG.fullmatch(part):
        hint = f"a window needs a bag: write 'bag: {part}'"
    raise UserError(f"template {text!r}: cannot parse {part!r}", hint=hint)


def _parse_bag(text: str, body: str, edge: bool) -> Template:
    match = _BAG.fullmatch(body)
    if not match:
        raise UserError(
            f"template {text!r}: cannot parse {body!r}", hint="write bag: column[-4..-1]"
        )
    return Template((Atom(match["column"], 0),), edge, (int(match["first"]), int(match["last"])))


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
    """Line number and text of the templates of a file.

    Each is a line, without comments, which start with a ``#`` at the beginning of the line or after
    a space. In a file .toml they are the array ``templates``.

    Raises UserError for a file that is missing, not UTF-8, no TOML, or without templates.
    """
    text = read_text(path, hint="save the file as UTF-8", max_bytes=MAX_FILE)
    if is_toml(path):
        lines = _toml_lines(path, text)
    else:
        numbered = enumerate((_COMMENT.sub("", line).strip() for line in text.splitlines()), 1)
        lines = [(number, line) for number, line in numbered if line]
    if not lines:
        raise UserError("no template in this file", file=path, hint="write one template per line")
    return lines


def is_toml(path: str | os.PathLike[str]) -> bool:
    """Return whether a template file is in TOML, by the end of its name."""
    return os.fspath(path).lower().endswith(".toml")


def _toml_lines(path: str | os.PathLike[str], text: str) -> list[tuple[int, str]]:
    """As `read_lines`; the parser tells no lines, so each template is looked for in the text."""
    hint = 'write templates = ["word[0]", "word[-1]|word[0]"]'
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        match = re.search(r"line (\d+)", str(error))
        line = int(match[1]) if match else None
        raise UserError(f"no TOML: {error}", file=path, line=line, hint=hint) from None
    templates = content.pop("templates", None)
    if content:
        raise UserError(f"unknown key {next(iter(content))!r}", file=path, hint=hint)
    if not isinstance(templates, list) or not all(isinstance(each, str) for each in templates):
        raise UserError("templates is no array of texts", file=path, hint=hint)
    lines, place = list[tuple[int, str]](), 0
    for template in templates:
        match = re.search(rf"[\"']{re.escape(template)}[\"']", text[place:])
        place += match.start() if match else 0
        lines.append((text.count("\n", 0, place) + 1, template.strip()))
        place += match is not None
    return lines


def parse_file(
    path: str | os.PathLike[str],
    parse: Callable[[int, str], Iterable[Template]],
    *,
    repeats: Literal["refuse", "warn"] = "refuse",
) -> tuple[Template, ...]:
    """Return the templates of a file, in order.

    parse: gives the templates of a line, given its number and text; its UserError needs no file.
    repeats: what is done about a line that repeats a template.
    UserError with file and line for a line that cannot be parsed, or repeats a template.
    """
    line_of: dict[Template, int] = {}
    for number, line in read_lines(path):
        try:
            for template in parse(number, line):
                if template in line_of:
                    message = f"{line!r} repeats line {line_of[template]}"
                    if repeats == "refuse":
                        raise UserError(message, hint="remove one of the two")
                    text = f"{path}:{number}: {message}: it counts once"
                    warnings.warn(text, InputWarning, stacklevel=2)
                line_of.setdefault(template, number)
        except UserError as error:
            raise UserError(error.message, file=path, line=number, hint=error.hint) from error
    return tuple(line_of)


def load_templates(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None
) -> tuple[Template, ...]:
    """Return the templates of a file in the project's own form; see `read_lines`.

    columns: as in `Template.parse`.
    UserError with file and line for a line that cannot be parsed or repeats a template.
    """
    return parse_file(path, lambda _, line: [Template.parse(line, columns)])
