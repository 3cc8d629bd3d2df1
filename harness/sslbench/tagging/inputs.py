"""How a text to tag is read, and the same text with labels; all else keeps its bytes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sslbench.engine.corpus import Corpus
from sslbench.engine.corpus.conllu import FIELDS
from sslbench.engine.corpus.files import BYTE_ORDER_MARK
from sslbench.engine.errors import UserError
from sslbench.experiment.data.layout import Layout, Reading, find_layout, without_odd_blanks
from sslbench.experiment.data.reading import conllu_fields, is_token, read_table, read_words
from sslbench.experiment.run.saved import SavedTagger, TrainingCorpus

_MISC = FIELDS.index("MISC")
_WORD_ROW = re.compile(rb"[1-9][0-9]*\t")
_CONLLU_ROW = re.compile(rb"[0-9]+(?:[-.][0-9]+)?(?:\t[^\t\n]+){9}\r?")


class TextInput(Protocol):
    """A form of text.

    columns: what is read of a token, () before there is one.
    layout: in words, by `str`.
    """

    columns: tuple[str, ...]

    @property
    def layout(self) -> object: ...

    def read(self, text: bytes) -> Corpus | None:
        """The tokens of a part of the text, UTF-8; None if there are none."""

    def write(self, text: bytes, values: Sequence[Sequence[str]]) -> bytes:
        """The part that was read last with a label, and further values, for each token."""


@dataclass
class TableInput:
    """Lines with columns; labels become a further column, behind the separator of the line.

    tagger: says the columns, unless the user does.  name: of the text.
    """

    tagger: SavedTagger
    name: str
    reading: Reading
    columns: tuple[str, ...] = ()
    layout: Layout | None = None
    _started: bool = False

    def read(self, text: bytes) -> Corpus | None:
        text = text.removeprefix(BYTE_ORDER_MARK)
        if self.layout is None:
            if not any(map(is_token, map(bytes.split, without_odd_blanks(text).split(b"\n")))):
                return None
            self.layout, self.columns = self._find(text)
        elif self._started:  # names are in the first line
            self.layout = replace(self.layout, header=())
        if not self._lines(text):
            return None
        self._started = True
        return read_table(self.name, text, self.layout, self.columns, {}).corpus

    def _find(self, text: bytes) -> tuple[Layout, tuple[str, ...]]:
        """Layout and columns: those of the training file, with or without label, or those given."""
        trained = self.columns or _trained(self.tagger).columns
        without = tuple(name for name in trained if name != "label")
        options = [trained] if self.columns else [trained, without, self.tagger.needed]
        widths = [len(each) for each in options]
        layout = find_layout(text, widths, self.name, self.reading, False)
        if layout is None:
            layout = find_layout(text, widths, self.name, self.reading) if self.columns else None
        if layout is not None and layout.header:
            return layout, self._named(layout)
        if layout is None:
            rows = (line.split() for line in without_odd_blanks(text).split(b"\n"))
            width = next(len(row) for row in rows if is_token(row))
            if width not in widths and not self.columns:
                raise self._strange(width, trained)
            layout = Layout(width if width in widths else len(trained))
        return layout, next((each for each in options if len(each) == layout.width), without)

    def _named(self, layout: Layout) -> tuple[str, ...]:
        if self.columns:
            return self.columns
        missing = set(self.tagger.columns) - set(layout.names)
        if missing:
            names, line = ", ".join(sorted(missing)), ",".join(layout.header)
            message = f"line 1 has the names {line}, the tagger reads {names} too"
            raise UserError(message, file=self.name, hint="name the columns with --columns")
        read = (*self.tagger.columns, "label")
        return tuple(name if name in read else "_" for name in layout.names)

    def _strange(self, width: int, trained: Sequence[str]) -> UserError:
        read = self.tagger.columns
        example = ",".join([*read, *["_"] * (width - len(read))])
        return UserError(
            f"{width} column{'s' * (width != 1)}, but the tagger was trained on"
            f" {','.join(trained)} (label may be missing)",
            file=self.name,
            hint=f"name them, as in --columns {example}; _ skips one; --raw reads running text",
        )

    def _lines(self, text: bytes) -> list[int]:
        """The numbers, from 0, of the lines with a token."""
        layout = self.layout or Layout(0)
        plain = layout.blank_comments(text).split(b"\n")
        split = bytes.split if layout.separator is None else layout.fields
        tokens = [number for number, line in enumerate(plain) if is_token(split(line))]
        return tokens[bool(layout.header) :]

    def write(self, text: bytes, values: Sequence[Sequence[str]]) -> bytes:
        mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else b""
        lines = text.removeprefix(BYTE_ORDER_MARK).split(b"\n")
        tokens = self._lines(b"\n".join(lines))
        if self.layout is not None and self.layout.header:
            title = next(i for i, line in enumerate(lines) if line.strip() and line[:1] != b"#")
            extra = [str(i) for i in range(2, len(values[0]) + 1)] if values else []
            lines[title] = self._line(lines[title], ["predicted", *extra])
        for number, value in zip(tokens, values, strict=True):
            lines[number] = self._line(lines[number], value)
        return mark + b"\n".join(lines)

    def _line(self, line: bytes, values: Sequence[str]) -> bytes:
        separator = self.layout.separator if self.layout is not None else None
        body = line.rstrip()
        end = b"\r" if line.endswith(b"\r") else b""
        if separator is None:
            separator = "\t" if b"\t" in body else " "
        cells = [_quoted(value, separator) if separator in ",;" else value for value in values]
        return separator.encode().join([body, *map(str.encode, cells)]) + end


def _quoted(value: str, separator: str) -> str:
    """A cell of a CSV file."""
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="").writerow([value])
    return out.getvalue()


@dataclass
class ConlluInput:
    """CoNLL-U; labels go into the field of the training file, or to MISC, with further values.

    columns: word, and label if the field of the training file is filled.
    """

    tagger: SavedTagger
    name: str
    extra: tuple[str, ...] = ()  # names of further values
    columns: tuple[str, ...] = ()

    def read(self, text: bytes) -> Corpus | None:
        text = text.removeprefix(BYTE_ORDER_MARK)
        rows = list(filter(_WORD_ROW.match, text.split(b"\n")))
        if not rows:
            return None
        trained, field = _trained(self.tagger), self._field
        columns = trained.columns if trained.conllu else ("word", "label")
        if not self.columns:
            cells = [row.split(b"\t")[field] for row in rows] if trained.conllu else [b"_"]
            masked = tuple("_" if name == "label" else name for name in columns)
            self.columns = masked if b"_" in cells else columns
        return read_words(self.name, text, self.columns, {})

    @property
    def layout(self) -> str:
        """What is done, in words."""
        return f"CoNLL-U, the labels go to {FIELDS[self._field]}"

    @property
    def _field(self) -> int:
        """The place of the label; MISC if the tagger was not trained on CoNLL-U."""
        trained = _trained(self.tagger)
        if not trained.conllu:
            return _MISC
        return FIELDS.index(conllu_fields(trained.columns)["label"])

    def write(self, text: bytes, values: Sequence[Sequence[str]]) -> bytes:
        lines = text.split(b"\n")
        mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else b""
        lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
        words = [number for number, line in enumerate(lines) if _WORD_ROW.match(line)]
        for number, value in zip(words, values, strict=True):
            lines[number] = self._line(lines[number], value)
        return mark + b"\n".join(lines)

    def _line(self, line: bytes, values: Sequence[str]) -> bytes:
        end = b"\r" if line.endswith(b"\r") else b""
        fields = line.removesuffix(b"\r").split(b"\t")
        named = dict(zip(("Label", *self.extra), values, strict=True))
        if self._field != _MISC or _trained(self.tagger).conllu:
            fields[self._field] = named.pop("Label").encode()
        if named:
            notes = [] if fields[_MISC] == b"_" else [fields[_MISC]]
            notes += [f"{name}={value}".encode() for name, value in named.items()]
            fields[_MISC] = b"|".join(notes)
        return b"\t".join(fields) + end


def _trained(tagger: SavedTagger) -> TrainingCorpus:
    if tagger.corpus is None:
        message = "the model does not say which columns it reads"
        raise UserError(message, hint="give --columns, e.g. word,pos")
    return tagger.corpus


def looks_like_conllu(text: bytes) -> bool:
    """Whether all lines of a text are comments, blank or rows of CoNLL-U."""
    rows = [line for line in text.split(b"\n") if line.strip() and not line.startswith(b"#")]
    return bool(rows) and all(map(_CONLLU_ROW.fullmatch, rows[:1000]))
