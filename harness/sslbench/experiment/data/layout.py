"""The layout of a file with columns: separator, comments, a line of names; seen, or named."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec

from sslbench.engine.errors import UserError
from sslbench.engine.lazy import lazy
from sslbench.experiment.request.request import SchemeName

#: names of separators; None = runs of white space
SEPARATORS = {"space": None, "tab": "\t", "comma": ",", "semicolon": ";"}

#: beginning of the name of a column with weak labels, see `sslbench.experiment.data.weak`
WEAK = "weak:"

_SAMPLE = 2**20
_ENOUGH = 0.5  # share of lines with the expected number of columns
_WORDS = 5  # most words in a cell
_ENOUGH_TEXT = 0.8  # of a file that may be running text
_SKIPPED = b"-DOCSTART-"
_WHITE = rb"(?:[ \t\v\f]|\xc2\xa0|\xe3\x80\x80|\xe2\x80[\x80-\x8b\xaf]|\xef\xbb\xbf)"
_ODD_BLANK = re.compile(rb"(?m)^" + _WHITE + rb"+(?=\r?$)")
_KEYED = re.compile(rb"#\s*(?:[\w.:-]+\s*=|id\s+\S+\s+\S+=)")
_HASH_LINE = re.compile(rb"(?m)^#[^\n]*")
_NAMES = {
    "word": "word words token tokens form text",
    "label": "label labels tag tags ner ner_tag ner_tags iob bio entity",
    "pos": "pos upos xpos pos_tag pos_tags",
    "document": "document documents doc doc_id document_id",
}
_COLUMN = {name: column for column, names in _NAMES.items() for name in names.split()}


class Reading(msgspec.Struct, frozen=True):
    """What the user says of the files; None = it is seen in them.

    Attributes
    ----------
    separator: a key of `SEPARATORS` or one ASCII character.
    comment: the beginning of lines to leave out; "none" = there are none.
    raw: the unlabeled file is running text.
    label_names: of labels that are numbers, in their order.
    """

    encoding: str | None = None
    separator: str | None = None
    comment: str | None = None
    scheme: SchemeName | None = None
    raw: bool | None = None
    label_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    """How the lines of a text are read.

    width: columns of a line.
    separator: None = runs of white space.  comment: as in `Reading`; None = "#" at the beginning of
        a sentence, on lines that are no tokens.
    header: the names in the first line; () = it is a token.
    """

    width: int
    separator: str | None = None
    comment: str | None = None
    header: tuple[str, ...] = ()

    @property
    def quoted(self) -> bool:
        """Whether cells may stand in quotation marks, as in CSV files."""
        return self.separator in (",", ";")

    def fields(self, line: bytes) -> list[bytes]:
        """The fields of a line, [] for a blank one."""
        line = line.rstrip(b"\r")
        if self.separator is None:
            return line.split()
        if not self.quoted:
            fields = line.rstrip(b" ").split(self.separator.encode())
        else:
            text = line.decode("utf-8", "surrogateescape")
            reader = csv.reader(
                [text], delimiter=self.separator, skipinitialspace=True, strict=True
            )
            cells = next(reader, [])
            fields = [cell.strip().encode("utf-8", "surrogateescape") for cell in cells]
        return fields if any(fields) else []

    def blank_comments(self, text: bytes) -> bytes:
        """The text with comments and blank rows as empty lines."""
        text = without_odd_blanks(text)
        if self.comment == "none":
            return text
        if self.comment:
            return re.sub(rb"(?m)^" + re.escape(self.comment.encode()) + rb"[^\n]*", b"", text)
        pieces, done = [], 0
        for match in self._comments(text):
            pieces.append(text[done : match.start()])
            done = match.end()
        return b"".join([*pieces, text[done:]])

    def _comments(self, text: bytes) -> list[re.Match[bytes]]:
        comments: list[re.Match[bytes]] = []
        for match in _HASH_LINE.finditer(text):
            line, start = match.group(), match.start()
            before = text[max(0, start - 3) : start].replace(b"\r", b"")
            after_comment = bool(comments) and comments[-1].end() + 1 == start
            begins = start == 0 or before.endswith(b"\n\n") or before == b"\n" or after_comment
            if begins and (_KEYED.match(line) or len(self.fields(line)) != self.width):
                comments.append(match)
        return comments

    @lazy
    def names(self) -> tuple[str, ...]:
        """The columns that the header names, "_" for others."""
        names = [name if name.startswith(WEAK) else _COLUMN.get(name, "_") for name in self.header]
        return tuple(names)

    @lazy
    def sentence(self) -> int | None:
        """The column with the number of the sentence, by the header."""
        starts = [i for i, name in enumerate(self.header) if name.startswith("sent")]
        return starts[0] if starts else None

    def __str__(self) -> str:
        parts = []
        if self.separator is not None:
            named = {value: f"{name}s" for name, value in SEPARATORS.items()}
            parts.append(f"columns at {named.get(self.separator, repr(self.separator))}")
        if self.header:
            parts.append("names in line 1")
        return ", ".join(parts)


def checked_separator(given: str | None) -> str | None:
    """The character of an option; None = runs of white space. UserError for another text."""
    if given is None or given in SEPARATORS:
        return SEPARATORS.get(given or "space")
    given = given.replace("\\t", "\t")
    if given == " ":
        return None
    if len(given) != 1 or not given.isascii() or given in "\r\n\0#" or given.isalnum():
        hint = f"give {', '.join(SEPARATORS)} or one ASCII character"
        raise UserError(f"the separator cannot be {given!r}", hint=hint)
    return given


def find_layout(
    text: bytes, widths: Sequence[int], file: str, reading: Reading, labeled: bool = True
) -> Layout | None:
    """The layout of a text; None if most of its lines have other numbers of columns.

    text: UTF-8, or its beginning.  widths: the numbers of columns that it may have.
    labeled: it has labels; otherwise commas separate columns if they do so in all lines, or if the
        file is called .csv.
    UserError for a text that has these columns in two ways.
    """
    whole = text[:_SAMPLE].rpartition(b"\n")[0] if len(text) > _SAMPLE else text
    lines = [line for line in without_odd_blanks(whole).split(b"\n") if _is_row(line)]
    table = file.lower().removesuffix(".gz").endswith(".csv")
    candidates: tuple[str | None, ...] = (None, "\t", ",", ";")
    if table or not labeled:
        candidates = (",", ";", "\t", None)
    if reading.separator is not None:
        candidates = (checked_separator(reading.separator),)
    best, most = None, 0.0
    for layout in (
        each for one in candidates for each in _layouts(one, widths, reading.comment, lines)
    ):
        share = _share(lines, layout)
        doubtful = not labeled and layout.quoted and not table and reading.separator is None
        if share > most and not (doubtful and any(b" " in line.strip() for line in lines)):
            best, most = layout, share if share == 1 or not doubtful else 0.0
    if best is None or most < (_ENOUGH if labeled else _ENOUGH_TEXT):
        return None
    if reading.separator is None and best.separator is None:
        _refuse_both(lines, best.width, file)
    return best


def check_width(file: Path, text: bytes, separator: str | None, columns: Sequence[str]) -> None:
    """UserError for a text whose lines all have the same other number of columns.

    columns: as named; without label for a file without labels, whose lines may lack it.
    """
    rows = [line for line in without_odd_blanks(text).split(b"\n") if _is_row(line)]
    given = ["\t", None, ",", ";"] if separator is None else [checked_separator(separator)]
    widths = [{_width(row, one) for row in rows} for one in given]
    same = [min(each) for each in widths if len(each) == 1]
    width = next((each for each in same if each > 1), min(same, default=0))
    if width in (0, len(columns)):
        return
    message = f"{width} column{'s' * (width != 1)} where {len(columns)} ({', '.join(columns)})"
    line = text.count(b"\n", 0, text.index(rows[0])) + 1
    hint = _columns_hint(width, "label" in columns)
    raise UserError(f"{message} are expected", file=file, line=line, hint=hint)


def _width(row: bytes, separator: str | None) -> int:
    """Number of columns; 0 for a damaged row."""
    try:
        return len(Layout(0, separator).fields(row))
    except csv.Error:
        return 0


def _columns_hint(width: int, labeled: bool) -> str:
    """What reads a file with so many columns."""
    if not labeled:
        return "give it the columns of the labeled files; label may be missing"
    if width < 2:
        return "each line needs a word and its label; a file called unlabeled has text alone"
    usual = {2: "word,label", 3: "word,pos,label"}
    names = usual.get(width) or ",".join(["word", *["_"] * (width - 2), "label"])
    return f"give --columns {names}{'' if width in usual else '; _ leaves a column out'}"


def _is_row(line: bytes) -> bool:
    return bool(line.strip()) and not line.startswith((b"#", _SKIPPED))


def _layouts(
    separator: str | None, widths: Sequence[int], comment: str | None, lines: Sequence[bytes]
) -> list[Layout]:
    """With each of the widths; with the width of a first line of names alone if there is one."""
    names = _names(lines[0], separator) if len(lines) > 1 else ()
    known = {_COLUMN.get(name) for name in names}
    if {"word", "label"} <= known or known == {"word", "pos"}:
        return [Layout(len(names), separator, comment, names)]
    least = 1 if separator is None else 2  # a whole line is no column
    return [Layout(width, separator, comment) for width in widths if width >= least]


def _names(line: bytes, separator: str | None) -> tuple[str, ...]:
    """The fields of a line in small letters."""
    try:
        fields = Layout(0, separator).fields(line)
    except csv.Error:
        return ()
    return tuple(name.decode("utf-8", "replace").lower() for name in fields)


def without_odd_blanks(text: bytes) -> bytes:
    """The text with lines of white space alone, of Unicode as well, made empty."""
    return _ODD_BLANK.sub(b"", text)


def _share(lines: Sequence[bytes], layout: Layout) -> float:
    """Share of the lines that have the columns of a layout."""
    return sum(_fits(line, layout) for line in lines) / max(1, len(lines))


def _fits(line: bytes, layout: Layout) -> bool:
    """Whether a line has the columns of a layout, none of them a sentence."""
    try:
        fields = layout.fields(line)
    except csv.Error:
        return False
    short = layout.separator is None or all(len(field.split()) <= _WORDS for field in fields)
    return len(fields) == layout.width and short


def _refuse_both(lines: Sequence[bytes], width: int, file: str) -> None:
    """UserError if all lines have equally many columns at tabs, and others at white space."""
    tabs = {line.strip().count(b"\t") + 1 for line in lines}
    if len(tabs) == 1 and 1 < (at_tabs := tabs.pop()) < width:
        raise UserError(
            f"the lines have {at_tabs} columns at tabs, and {width} at white space",
            file=file,
            hint=f"give --separator space, or --separator tab and {at_tabs} names in --columns",
        )


def adjacent_breaks(values: Sequence[str]) -> list[bool]:
    """Whether each row begins a sentence: its cell is filled, and not that of the row before."""
    pairs = pairwise(["", *values])
    return [i == 0 or bool(now and now != before) for i, (before, now) in enumerate(pairs)]
