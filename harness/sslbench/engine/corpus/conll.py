"""A reader of CoNLL files: one token per line, a blank line between sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.engine.corpus.columns import Column, Corpus, Vocabulary
from sslbench.engine.corpus.encodings import Scheme, describe, tag_fits
from sslbench.engine.corpus.files import (
    BYTE_ORDER_MARK,
    MAX_BYTES,
    Source,
    decode,
    read_bytes,
    source_name,
)
from sslbench.engine.errors import UserError
from sslbench.engine.types import I32, I64

_BLOCK = 2**23  # bytes of text whose fields exist as Python objects at a time


def read_conll(
    source: Source,
    columns: Sequence[str] = ("word", "pos", "label"),
    vocabularies: dict[str, Vocabulary] | None = None,
    *,
    separator: str | None = None,
    encoding: str = "utf-8",
    skip: Sequence[str] = ("-DOCSTART-",),
    comment: str | None = None,
    scheme: Scheme | None = None,
    documents: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Corpus:
    """Read a CoNLL file.

    Only line feeds end lines; CRLF, trailing spaces, a byte order mark, several blank lines and a
    missing newline at the end are harmless.

    Parameters
    ----------
    source: a plain or gzip file, (zip file, member), or `RawBytes`.
    columns: a name for each column of the file; "_" leaves a column out.
    vocabularies: by column, used and extended; splits share those of one dict. Default: new ones.
    separator: None splits at runs of ASCII white space (a no-break or ideographic space is part of
        a word); a character splits at each occurrence, and empty fields are errors.
    skip: lines with one of these in the first column count as blank lines (document marks).
    comment: lines that start with this count as blank lines, such as "#" in CoNLL-U. Default: none,
        since "#" is a word in newswire.
    scheme: of the column "label"; its entries are checked.
    documents: name of a column to add, with the number of the token's document in the file: a
        skipped line begins one.

    Raises
    ------
    UserError: with file and line, for a row with another number of columns, an undecodable byte,
        NUL, a label that is not legal in `scheme` or that has no type where others have one; for a
        file without tokens; and as `read_bytes`.
    """
    name = source_name(source)
    rows = _Rows(name, _checked_names(columns, name), _checked_separator(separator))
    text = _decode(read_bytes(source, max_bytes), encoding, name)
    marks = _marked_lines(text, skip) if documents is not None else np.empty(0, np.int64)
    text = _blank_out(text, skip, comment)
    if separator is not None:  # splitting at white space ignores trailing spaces anyway
        text = re.sub(rb"(?<![ \r])[ \r]+(?=\n|\Z)", b"", text)
    if not columns:
        _refuse_unnamed(text, rows)
    shared = {} if vocabularies is None else vocabularies
    used = {column: shared.setdefault(column, Vocabulary()) for column in columns if column != "_"}
    codes, counts = _encode(text, rows, used)
    corpus = Corpus(
        {column: Column(used[column], codes[column]) for column in used}, _offsets(counts)
    )
    if scheme is not None:
        _check_labels(corpus.column("label"), scheme, counts, name)
    if documents is not None:
        number = np.searchsorted(marks, np.flatnonzero(counts)).tolist()
        numbers = shared.setdefault(documents, Vocabulary())
        corpus = corpus.with_column(documents, Column(numbers, numbers.encode(map(str, number))))
    return corpus


@dataclass(frozen=True)
class _Rows:
    """How the lines of a file are split; `file` is its name in messages."""

    file: str
    columns: tuple[str, ...]
    separator: bytes | None

    def widths(self, lines: list[bytes]) -> I64:
        """Return int64[len(lines)]: fields per line, 0 for a blank line."""
        # each list of fields is counted and freed at once: many would start the garbage collector
        if self.separator is None:
            return np.fromiter(map(len, map(bytes.split, lines)), dtype=np.int64, count=len(lines))
        separator = self.separator
        widths = (line.count(separator) + 1 if line else 0 for line in lines)
        return np.fromiter(widths, dtype=np.int64, count=len(lines))

    def fields(self, lines: list[bytes]) -> list[bytes]:
        """Return the fields of all lines that are not blank, concatenated."""
        if self.separator is None:
            return b"\n".join(lines).split()
        tokens = list(filter(None, lines))
        return self.separator.join(tokens).split(self.separator) if tokens else []


def _checked_names(columns: Sequence[str], file: str) -> tuple[str, ...]:
    repeated = [name for name, n in Counter(columns).items() if n > 1 and name != "_"]
    if repeated:
        raise UserError(f"column name {repeated[0]!r} is given twice", file=file)
    if "" in columns:
        hint = "use _ for a column to leave out"
        raise UserError("a column without a name", file=file, hint=hint)
    return tuple(columns)


def _checked_separator(separator: str | None) -> bytes | None:
    if separator is None:
        return None
    if len(separator) != 1 or not separator.isascii() or separator in "\r\n\0":
        raise UserError(f"the separator must be one ASCII character, not {separator!r}")
    return separator.encode()


def _decode(data: bytes, encoding: str, file: str) -> bytes:
    """The text as UTF-8 without byte order mark; UserError for an undecodable byte or NUL."""
    hint = "name its encoding (for instance latin-1), or repair the line"
    try:
        text = decode(data, encoding, file, hint)
    except LookupError:
        raise UserError(f"unknown encoding {encoding!r}") from None
    if encoding.lower() in ("utf-8", "utf8", "ascii"):  # no second copy
        data = data.removeprefix(BYTE_ORDER_MARK)
    else:
        data = text.encode()
    if (at := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, at) + 1
        hint = "is this a binary file, or UTF-16 (encoding='utf-16')?"
        raise UserError("NUL byte", file=file, line=line, hint=hint)
    return data


def _blank_out(text: bytes, skip: Sequence[str], comment: str | None) -> bytes:
    """Return the text with skipped lines made blank, which keeps the line numbers of the others."""
    for first_field in map(str.encode, skip):
        if first_field in text:
            pattern = rb"(?m)^[ \t\r\v\f]*" + re.escape(first_field) + rb"(?:[ \t\r\v\f][^\n]*)?$"
            text = re.sub(pattern, b"", text)
    if comment:
        text = re.sub(rb"(?m)^" + re.escape(comment.encode()) + rb"[^\n]*$", b"", text)
    return text


def _marked_lines(text: bytes, skip: Sequence[str]) -> I64:
    """Return int64[n]: the numbers, from 0, of the lines that `skip` leaves out."""
    fields = set(map(str.encode, skip))
    lines = (line.split(None, 1) for line in text.split(b"\n"))
    marked = (number for number, line in enumerate(lines) if line and line[0] in fields)
    return np.fromiter(marked, dtype=np.int64)


def _blocks(text: bytes) -> Iterator[bytes]:
    """Yield the text in pieces of about `_BLOCK` bytes, cut at newlines, which are left out."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start + _BLOCK)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


class _Coder(dict[bytes, int]):
    """Codes of the fields of one column; each distinct field is decoded once per file."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._add = vocabulary.add

    def __missing__(self, field: bytes) -> int:
        code = self[field] = self._add(field.decode())
        return code


def _encode(
    text: bytes, rows: _Rows, vocabularies: dict[str, Vocabulary]
) -> tuple[dict[str, I32], I64]:
    """Codes int32[N] by column, and the number of fields of each line (0 for a blank line)."""
    coders = {name: _Coder(vocabulary) for name, vocabulary in vocabularies.items()}
    codes: dict[str, list[I32]] = {name: [] for name in vocabularies}
    counts: list[I64] = []
    width, n_lines = len(rows.columns), 0
    for block in _blocks(text):
        lines = block.split(b"\n")
        counts.append(rows.widths(lines))
        _check_widths(rows, counts[-1], n_lines)
        fields = rows.fields(lines)
        if rows.separator is not None:
            _check_filled(rows, fields, counts[-1], n_lines)
        for i, name in enumerate(rows.columns):
            if name in coders:
                column = map(coders[name].__getitem__, fields[i::width])
                codes[name].append(np.fromiter(column, dtype=np.int32))
        n_lines += len(lines)
    if not any(count.any() for count in counts):
        raise UserError("no token in the file: it is empty", file=rows.file)
    return {name: np.concatenate(parts) for name, parts in codes.items()}, np.concatenate(counts)


def _check_widths(rows: _Rows, counts: I64, lines_before: int) -> None:
    width = len(rows.columns)
    wrong = np.flatnonzero((counts != width) & (counts != 0))
    if not len(wrong):
        return
    n_columns, line = int(counts[wrong[0]]), lines_before + int(wrong[0]) + 1
    expected = f"{width} ({', '.join(rows.columns)})"
    hint = None
    if lines_before == 0 and len(wrong) == np.count_nonzero(counts):
        hint = "name all columns of the file, _ for one to leave out"
    message = f"{n_columns} column{'s' * (n_columns != 1)} where {expected} are expected"
    raise UserError(message, file=rows.file, line=line, hint=hint)


def _check_filled(rows: _Rows, fields: list[bytes], counts: I64, lines_before: int) -> None:
    if b"" not in fields:
        return
    row, column = divmod(fields.index(b""), len(rows.columns))
    line = lines_before + int(np.flatnonzero(counts)[row]) + 1
    raise UserError(f"column {rows.columns[column]!r} is empty", file=rows.file, line=line)


def _refuse_unnamed(text: bytes, rows: _Rows) -> None:
    widths = (int(rows.widths(block.split(b"\n")).max()) for block in _blocks(text))
    width = next(filter(None, widths), 0)
    message = f"no column names were given; the file has {width} column{'s' * (width != 1)}"
    raise UserError(message, file=rows.file, hint="for example word,pos,label")


def _offsets(counts: I64) -> I64:
    """int64[S + 1]: sentence borders; counts: fields per line. Blank lines separate sentences."""
    is_token = np.concatenate([[False], counts > 0])
    starts = np.flatnonzero(is_token[1:] & ~is_token[:-1])
    tokens_before = np.concatenate([[0], np.cumsum(is_token[1:])])
    return np.append(tokens_before[starts], tokens_before[-1])


def _check_labels(column: Column, scheme: Scheme, counts: I64, file: str) -> None:
    """UserError for the first label that is illegal, or without type in a file with types."""
    present = np.flatnonzero(np.bincount(column.codes)).tolist()
    labels = [column.vocabulary.strings[code] for code in present]
    typed = any("-" in label for label in labels if tag_fits(label, scheme))
    wrong = [
        code
        for code, label in zip(present, labels, strict=True)
        if not tag_fits(label, scheme) or (typed and label != "O" and "-" not in label)
    ]
    if not wrong:
        return
    token = int(np.flatnonzero(np.isin(column.codes, wrong))[0])
    line = int(np.flatnonzero(counts)[token]) + 1
    label = column.vocabulary.strings[column.codes[token]]
    message = f"label {label!r} does not fit {scheme}"
    raise UserError(message, file=file, line=line, hint=describe(scheme))
