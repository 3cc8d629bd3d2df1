"""One user's file as a corpus: its encoding and layout are seen, or named by the user."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from sslbench.engine.corpus import Corpus, RawBytes, Vocabulary, read_bytes, read_conll, read_conllu
from sslbench.engine.corpus.conllu import FIELDS
from sslbench.engine.corpus.files import read_blocks
from sslbench.engine.corpus.raw import default_split, raw_parts
from sslbench.engine.corpus.tokens import corpus_of
from sslbench.engine.errors import UserError
from sslbench.experiment.data.documents import sentence_starts, with_documents
from sslbench.experiment.data.encoding import (
    UTF8,
    as_utf8,
    encoding_title,
    find_encoding,
    named_encoding,
)
from sslbench.experiment.data.imports.files import import_file, kind_of
from sslbench.experiment.data.layout import (
    WEAK,
    Layout,
    Reading,
    adjacent_breaks,
    check_width,
    find_layout,
    without_odd_blanks,
)

Vocabularies = dict[str, Vocabulary]


@dataclass(frozen=True)
class Read:
    """A file that was read.

    notes: how it was read, in words; () = as UTF-8, columns at white space.
    line: gives the line number of a token, by its number from 0.
    """

    corpus: Corpus
    notes: tuple[str, ...]
    line: Callable[[int], int | None]


def conllu_fields(columns: Sequence[str]) -> dict[str, str]:
    """The field of CoNLL-U of each column: by its place among ten, else FORM and UPOS."""
    if len(columns) == len(FIELDS):
        return {name: field for name, field in zip(columns, FIELDS, strict=True) if name != "_"}
    usual = {"word": "FORM", "label": "UPOS"}
    return {name: usual[name] for name in columns if name in usual}


def is_conllu(file: Path) -> bool:
    """Whether the name of a file says CoNLL-U, or CoNLL-X: both have ten fields."""
    return file.name.lower().removesuffix(".gz").endswith((".conllu", ".conllx"))


def columns_in(file: Path, columns: Sequence[str], reading: Reading) -> tuple[str, ...]:
    """The columns of a file: as named, but those of CoNLL-U or of a line of names.

    columns: as named; ten of them name the fields of CoNLL-U.
    """
    if kind_of(file) is not None:
        return ("word", "label")
    if is_conllu(file):
        return tuple(columns) if len(columns) == len(FIELDS) else ("word", "label")
    layout = find_layout(_sample(file, reading), [*_rows_with(columns)], file.name, reading)
    if layout is None or not layout.header or len(layout.header) == len(columns):
        return tuple(columns)
    weak = (name for name in columns if name.startswith(WEAK) and name not in layout.names)
    return (*layout.names, *weak)


def _rows_with(columns: Sequence[str], *, label: bool = True) -> dict[int, tuple[str, ...]]:
    """The columns that the rows of a file may have, by their number.

    They are all columns, or those without weak labels. label: False for a text without labels,
    whose rows lack the label, or have something to skip in its place.
    """
    plain = [name for name in columns if not name.startswith(WEAK)]
    forms = [tuple(columns), tuple(plain)]
    if not label:
        masked = [["_" if name == "label" else name for name in form] for form in forms]
        without = [[name for name in form if name != "label"] for form in forms]
        forms = [tuple(each) for pair in zip(masked, without, strict=True) for each in pair]
    return {len(form): form for form in reversed(forms)}


def _sample(file: Path, reading: Reading) -> bytes:
    """The beginning of a file as UTF-8, cut at a line."""
    data = next(read_blocks(file), b"")
    encoding = _encoding(data, file, reading)
    if len(data) >= 2**20 and encoding == UTF8:
        data = data[: data.rfind(b"\n") + 1 or None]
    elif len(data) >= 2**20:
        data = read_bytes(file)
    return as_utf8(data, encoding, str(file))


def _encoding(data: bytes, file: Path, reading: Reading) -> str:
    if reading.encoding is not None:
        return named_encoding(reading.encoding, data)
    return find_encoding(data, str(file))


def read_file(
    file: Path, columns: Sequence[str], vocabularies: Vocabularies, reading: Reading
) -> Read:
    """Read a file with labels; UserError, with file and line, if it cannot be read."""
    if kind_of(file) is not None:
        return _imported(file, vocabularies, reading, labeled=True)
    text, notes = _decoded(file, reading)
    if is_conllu(file):
        return Read(read_words(file, text, columns, vocabularies), notes, lambda token: None)
    rows = _rows_with(columns)
    layout = find_layout(text, [*rows], file.name, reading)
    if layout is None:
        check_width(file, text, reading.separator, columns)
        layout = Layout(len(columns))
    names = rows.get(layout.width, tuple(columns))
    return read_table(file, text, layout, names, vocabularies, notes)


def _decoded(file: Path, reading: Reading) -> tuple[bytes, tuple[str, ...]]:
    data = read_bytes(file)
    encoding = _encoding(data, file, reading)
    return as_utf8(data, encoding, str(file)), () if encoding == UTF8 else (
        encoding_title(encoding),
    )


def read_text_file(
    file: Path, columns: Sequence[str], vocabularies: Vocabularies, reading: Reading, task: str
) -> Read:
    """Read a file without labels: columns with or without label, or running text.

    UserError, with file and line, if it cannot be read.
    """
    shared = {name: words for name, words in vocabularies.items() if name != "label"}
    if kind_of(file) is not None:
        return _imported(file, shared, reading, labeled=False)
    rows = _rows_with(columns, label=False)
    masked, words = rows[len(columns)], {name for name in columns if not name.startswith(WEAK)}
    text, notes = _decoded(file, reading)
    if is_conllu(file):
        return Read(read_words(file, text, masked, shared), notes, lambda token: None)
    layout = None if reading.raw else find_layout(text, [*rows], file.name, reading, False)
    if layout is None and (reading.raw or (reading.raw is None and _is_prose(text, [*rows]))):
        return _prose(file, text, words - {"_", "label"}, shared, notes, task)
    if layout is None:
        check_width(file, text, reading.separator, masked)
        layout = Layout(len(columns))
    names = rows.get(layout.width, masked)
    if layout.header:
        names = tuple(name if name in masked else "_" for name in layout.names)
    return read_table(file, text, layout, names, shared, notes)


def text_notes(file: Path, columns: Sequence[str], reading: Reading, task: str) -> tuple[str, ...]:
    """How the beginning of a file without labels is read, in words."""
    if (kind := kind_of(file)) is not None:
        return (kind,)
    if is_conllu(file):
        return ()
    widths = [*_rows_with(columns, label=False)]
    text = _sample(file, reading)
    layout = None if reading.raw else find_layout(text, widths, file.name, reading, False)
    if layout is not None:
        return tuple(filter(None, [str(layout)]))
    raw = reading.raw or (reading.raw is None and _is_prose(text, widths))
    kind = "characters" if default_split(task) == "characters" else "punctuation apart"
    return (f"running text, a sentence per line, {kind} (--no-raw: columns)",) if raw else ()


def _imported(file: Path, vocabularies: Vocabularies, reading: Reading, labeled: bool) -> Read:
    """Read a file of another program."""
    kind = str(kind_of(file))
    text, notes = _decoded(file, reading) if kind == "JSON" else (b"", ())
    read = import_file(file, text.decode(), reading.label_names, vocabularies, labeled)
    offsets = read.corpus.offsets

    def line(token: int) -> int | None:
        return read.items[int(np.searchsorted(offsets, token, side="right")) - 1].place.line

    return Read(read.corpus, (*notes, kind, *read.notes), line)


def _is_prose(text: bytes, widths: Sequence[int]) -> bool:
    """Whether lines have many different numbers of words, so that they are no columns."""
    lines = [line for line in text[: 2**16].split(b"\n") if line.strip()]
    counts = [len(line.split()) for line in lines]
    longer = sum(count > max(widths) for count in counts)
    return 2 * longer > len(counts) and (len(set(counts)) > 1 or len(counts) == 1)


def _prose(
    file: Path,
    text: bytes,
    needed: set[str],
    vocabularies: Vocabularies,
    notes: tuple[str, ...],
    task: str,
) -> Read:
    if needed != {"word"}:
        others = ", ".join(sorted(needed - {"word"}))
        raise UserError(
            f"running text has words alone, the labeled files have {others} too",
            file=file,
            hint=f"leave the column out with --columns, _ in place of {others}",
        )
    parts = raw_parts([text], default_split(task), str(file))
    sentences = list(chain.from_iterable(parts))
    if not sentences:
        raise UserError("no token in the file: it is empty", file=file)
    return Read(corpus_of(sentences, ("word",), vocabularies), notes, lambda token: None)


def read_words(
    file: Path | str, text: bytes, columns: Sequence[str], vocabularies: Vocabularies
) -> Corpus:
    """Read the words of a text in CoNLL-U, with the fields of the columns."""
    fields = conllu_fields(columns)
    plain = without_odd_blanks(text)
    corpus = read_conllu(RawBytes(str(file), plain), vocabularies, columns=fields)
    return with_documents(corpus, text, lambda: sentence_starts(plain, comments=True))


def read_table(
    file: Path | str,
    text: bytes,
    layout: Layout,
    columns: Sequence[str],
    vocabularies: Vocabularies,
    notes: tuple[str, ...] = (),
) -> Read:
    """Read the rows of a text, UTF-8, with columns; UserError, with line, for a damaged row."""
    notes = tuple(filter(None, [*notes, str(layout)]))
    plain = layout.blank_comments(text)
    if plain.count(b"\n#") != text.count(b"\n#") or text[:1] != plain[:1]:
        notes += ("lines of comments left out",)
    if layout.quoted or layout.header:
        return _cells(file, text, layout, columns, vocabularies, notes)
    source = RawBytes(str(file), plain)
    corpus = read_conll(source, columns, vocabularies, separator=layout.separator)
    corpus = with_documents(corpus, text, lambda: sentence_starts(plain))

    def line(token: int) -> int:
        rows = (n for n, row in enumerate(plain.split(b"\n"), 1) if is_token(layout.fields(row)))
        return next(n for i, n in enumerate(rows) if i == token)

    return Read(corpus, notes, line)


def is_token(fields: Sequence[bytes]) -> bool:
    """Whether the fields of a line are those of a token; others are blank, or mark a document."""
    return bool(fields) and fields[0] != b"-DOCSTART-"


def _cells(
    file: Path | str,
    text: bytes,
    layout: Layout,
    columns: Sequence[str],
    vocabularies: Vocabularies,
    notes: tuple[str, ...],
) -> Read:
    """The rows of a table with quoted cells or a line of names."""
    sentences: list[list[list[str]]] = [[]]
    lines: list[int] = []
    before = ""
    for number, fields in _rows(file, layout.blank_comments(text), layout, columns):
        if not fields:
            sentences.append([])
            continue
        if layout.sentence is not None:
            number_of = fields[layout.sentence]
            if adjacent_breaks([before, number_of])[1]:
                sentences.append([])
            before = number_of or before
        sentences[-1].append(fields)
        lines.append(number)
    full = [sentence for sentence in sentences if sentence]
    if not full:
        raise UserError("no token in the file: it is empty", file=file)
    read = {
        name: [[row[i] for row in sentence] for sentence in full]
        for i, name in enumerate(columns)
        if name != "_"
    }
    corpus = Corpus.from_sentences(read, vocabularies)
    firsts = corpus.offsets[:-1].tolist()
    corpus = with_documents(corpus, text, lambda: [lines[token] - 1 for token in firsts])
    return Read(corpus, notes, lines.__getitem__)


def _rows(
    file: Path | str, text: bytes, layout: Layout, columns: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields; [] for a blank line or a mark of a document."""
    waiting = bool(layout.header)
    for number, line in enumerate(text.split(b"\n"), 1):
        try:
            fields = [field.decode() for field in layout.fields(line)]
        except csv.Error as error:
            hint = 'a quoted cell ends in its line; a quotation mark alone is written """"'
            raise UserError(f"a damaged row ({error})", file=file, line=number, hint=hint) from None
        if fields and waiting:
            waiting = False
            continue
        if fields[:1] == ["-DOCSTART-"]:
            fields = []
        if fields and len(fields) != len(columns):
            message = f"{len(fields)} columns where {len(columns)} ({', '.join(columns)})"
            raise UserError(f"{message} are expected", file=file, line=number)
        for name, field in zip(columns, fields, strict=False):
            if name != "_" and not field:
                raise UserError(f"column {name!r} is empty", file=file, line=number)
        yield number, fields
