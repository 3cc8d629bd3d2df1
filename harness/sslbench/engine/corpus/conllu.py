"""A reader of CoNLL-U, the format of Universal Dependencies.

Source: https://universaldependencies.org/format.html. Ten columns, separated by single tabs; a
blank line after each sentence; lines that start with ``#`` are comments. Syntactic words are
numbered 1, 2, ... in each sentence. Ranges (``3-4``: one written token of several words) and empty
nodes (``8.1``) are checked and left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from sslbench.engine.corpus.columns import Column, Corpus, Vocabulary
from sslbench.engine.corpus.files import (
    BYTE_ORDER_MARK,
    COPY_AGAIN,
    Source,
    decode,
    read_bytes,
    source_name,
)
from sslbench.engine.errors import UserError
from sslbench.engine.types import I64, AnyArray, Bool

FIELDS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_ID = FIELDS.index("ID")
_NEWLINE, _TAB, _HASH = b"\n\t#"
_NUMBER = r"(?:0|[1-9][0-9]{0,8})"  # always fits an int64
_WORD_ID = re.compile(rf"(?P<number>{_NUMBER})(?:-(?P<last>{_NUMBER})|\.(?P<extra>{_NUMBER}))?")


def read_conllu(
    source: Source,
    vocabularies: dict[str, Vocabulary] | None = None,
    *,
    columns: Mapping[str, str] = MappingProxyType({"word": "FORM", "upos": "UPOS"}),
    tags: Collection[str] | None = None,
) -> Corpus:
    """Read the syntactic words of a file.

    A byte order mark, CRLF, several blank lines and a missing newline at the end are harmless. A
    form may contain spaces.

    vocabularies: by column, used and extended; splits share those of one dict. Default: new ones.
    columns: names of columns, and the field of each, such as "FORM".
    tags: the tags that UPOS may have (default: any).
    UserError with file and line for: a byte that is not UTF-8, a row without ten columns or with an
    empty one, an ID that is malformed or out of sequence, a sentence without words, a word without
    UPOS or with one not in `tags`; without line for a file without words.
    """
    shared = {} if vocabularies is None else vocabularies
    rows = _find_rows(_read(source), source_name(source))
    is_word, offsets = _number_words(rows)
    read = {}
    for name, field in columns.items():
        vocabulary = shared.setdefault(name, Vocabulary())
        codes = vocabulary.encode(rows.column(FIELDS.index(field), is_word))
        read[name] = Column(vocabulary, codes)
        if field == "UPOS":
            _check_tags(rows, is_word, read[name], tags)
    return Corpus(read, offsets)


def _read(source: Source) -> bytes:
    """The bytes without byte order mark, each line ended by a line feed; UserError as `decode`."""
    text = read_bytes(source).removeprefix(BYTE_ORDER_MARK).replace(b"\r\n", b"\n")
    decode(text, "utf-8", source_name(source), "repair the line; CoNLL-U is UTF-8")
    return text if text.endswith(b"\n") else text + b"\n"


@dataclass(frozen=True, eq=False)
class _Rows:
    """The R lines of a file that are neither blank nor comments.

    text: uint8[bytes].
    borders: int64[R, 11], positions of the separators around the ten fields of a row.
    first: bool[R], whether the row is the first of its sentence.
    line: int64[R], line numbers from 1.
    """

    file: str
    text: AnyArray
    borders: I64
    first: Bool
    line: I64

    def column(self, number: int, selected: Bool | None = None) -> list[str]:
        """Return the fields of one column, of all rows or of the selected ones (bool[R])."""
        borders = self.borders if selected is None else self.borders[selected]
        # +1 where a field starts, -1 behind the tab that ends it: the running sum marks its bytes.
        marks = np.zeros(len(self.text) + 1, dtype=np.int8)
        marks[borders[:, number] + 1] = 1
        marks[borders[:, number + 1] + 1] = -1
        inside = np.cumsum(marks[:-1], dtype=np.int8).view(np.bool_)
        return self.text[inside].tobytes().decode().split("\t")[:-1]

    def error(self, row: int, message: str, hint: str) -> UserError:
        return UserError(message, file=self.file, line=int(self.line[row]), hint=hint)


def _find_rows(data: bytes, file: str) -> _Rows:
    """Find all rows and their fields; UserError for a row without ten nonempty fields."""
    text = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(text == _NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    blank, comment = text[starts] == _NEWLINE, text[starts] == _HASH
    tabs = np.flatnonzero(text == _TAB)
    n_tabs = np.diff(np.searchsorted(tabs, np.append(starts, len(text))))
    is_row = ~(blank | comment)
    line = np.flatnonzero(is_row)
    if not len(line):
        raise UserError("no word in the file", file=file, hint=COPY_AGAIN)
    wrong = line[n_tabs[line] != len(FIELDS) - 1]
    if len(wrong):
        n_columns = int(n_tabs[wrong[0]]) + 1
        message = f"{n_columns} column{'s' * (n_columns != 1)} where CoNLL-U has {len(FIELDS)}"
        hint = "columns are separated by single tabs, sentences by empty lines"
        raise UserError(message, file=file, line=int(wrong[0]) + 1, hint=hint)
    inner = tabs[np.repeat(is_row, n_tabs)].reshape(len(line), len(FIELDS) - 1)
    borders = np.column_stack([starts[line] - 1, inner, ends[line]])
    n_blank = np.cumsum(blank)[line]
    first = np.append(True, n_blank[1:] != n_blank[:-1])
    rows = _Rows(file, text, borders, first, line + 1)
    empty = np.argwhere(np.diff(borders) == 1)
    if len(empty):
        row, column = empty[0].tolist()
        raise rows.error(row, f"{FIELDS[column]} is empty", "an empty value is written _")
    return rows


def _number_words(rows: _Rows) -> tuple[Bool, I64]:
    """Which rows are words, bool[R], and the sentence borders in words, int64[S + 1]."""
    ids = Vocabulary()
    codes = ids.encode(rows.column(_ID))
    table = np.array([_parse_id(text) for text in ids.strings])
    is_word = table[codes, 1] == 1
    words = np.cumsum(is_word)
    starts = np.flatnonzero(rows.first)
    offsets = np.append(words[starts] - is_word[starts], words[-1])
    lengths = np.diff(np.append(starts, len(words)))
    wrong = np.flatnonzero(words - np.repeat(offsets[:-1], lengths) != table[codes, 0])
    if len(wrong):
        row = int(wrong[0])
        message = f"ID {ids.strings[codes[row]]} is malformed or out of sequence"
        hint = "words count from 1 in each sentence; 3-4 comes before 3, and 3.1 after it"
        raise rows.error(row, message, hint)
    wordless = starts[np.diff(offsets) == 0]
    if len(wordless):
        raise rows.error(int(wordless[0]), "a sentence without a word", "remove it")
    return is_word, offsets


def _parse_id(text: str) -> tuple[int, int]:
    """Number of words in the sentence up to and including the row of an ID; 1 if it is a word.

    A range is before its first word, an empty node after the word of its number. The number of
    words is -1, which no row has, for a text that is not an ID.
    """
    match = _WORD_ID.fullmatch(text)
    if match is None:
        return -1, 0
    number = int(match["number"])
    if match["last"]:
        return (number - 1 if int(match["last"]) >= number else -1), 0
    return number, int(match["extra"] is None)


def _check_tags(rows: _Rows, is_word: Bool, upos: Column, tags: Collection[str] | None) -> None:
    """UserError at the first word whose tag is missing or unknown."""
    strings = upos.vocabulary.strings
    bad = [tag == "_" or (tags is not None and tag not in tags) for tag in strings]
    wrong = np.flatnonzero(np.array(bad)[upos.codes])
    if not len(wrong):
        return
    tag, row = strings[upos.codes[wrong[0]]], int(np.flatnonzero(is_word)[wrong[0]])
    message = "a word without UPOS" if tag == "_" else f"unknown UPOS {tag!r}"
    raise rows.error(row, message, f"one of {', '.join(tags)}" if tags else "give it a tag")
