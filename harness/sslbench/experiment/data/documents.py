"""The documents of a user's text, by the marks in its file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.types import I32

#: the column that names the document of each token
COLUMN = "document"
_MARK = re.compile(rb"(?m)^[ \t]*(?:-DOCSTART-(?=\s|\Z)|#[ \t]*newdoc\b)")
_BLANK_RUN = re.compile(rb"\n[ \t\r]*\n[ \t\r]*\n")
_DOCSTART = b"-DOCSTART-"
#: a blank run after more sentences than this is the usual border of sentences
_MOST_RUNS = 0.5


def with_documents(corpus: Corpus, text: bytes, starts: Callable[[], Sequence[int]]) -> Corpus:
    """Return the corpus with the documents that its file marks.

    A column "document" says them; else lines ``-DOCSTART-`` or ``# newdoc`` begin documents; else
    two or more blank lines do, if they are rarer than sentences.

    text: of the file, with its comments.
    starts: gives the line number, from 0, of the first token of each sentence; called only if the
        file has marks.
    """
    if COLUMN in corpus.columns:
        numbers: I32 | None = corpus.column(COLUMN).codes[corpus.offsets[:-1]]
    else:
        numbers = _numbers(text, starts)
    return corpus if numbers is None else replace(corpus, documents=numbers)


def _numbers(text: bytes, starts: Callable[[], Sequence[int]]) -> I32 | None:
    marks = [match.end() for match in _MARK.finditer(text)]
    if marks:
        return _by_lines(text, marks, starts())
    runs = [match.end() for match in _BLANK_RUN.finditer(text)]
    lines = starts() if runs else ()
    numbers = _by_lines(text, runs, lines) if runs else None
    if numbers is None or numbers[-1] - numbers[0] > _MOST_RUNS * (len(lines) - 1):
        return None
    return numbers


def _by_lines(text: bytes, marks: Sequence[int], starts: Sequence[int]) -> I32 | None:
    """int32[S]: the marks, given as places in the text, before each sentence; None = one number."""
    newlines = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n"))
    lines = np.searchsorted(newlines, marks)
    _, numbers = np.unique(np.searchsorted(lines, starts, side="right"), return_inverse=True)
    return numbers.astype(np.int32) if numbers.any() else None


def sentence_starts(text: bytes, comments: bool = False) -> list[int]:
    """The line numbers, from 0, of the first token of each sentence.

    comments: lines that begin with # are no tokens, and separate no sentences, as in CoNLL-U.
    """
    starts, inside = [], False
    for number, line in enumerate(text.split(b"\n")):
        if comments and line.startswith(b"#"):
            continue
        is_token = bool(line.strip()) and line.split(None, 1)[0] != _DOCSTART
        if is_token and not inside:
            starts.append(number)
        inside = is_token
    return starts
