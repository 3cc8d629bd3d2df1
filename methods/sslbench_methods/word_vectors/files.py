"""Files of word vectors: word2vec (text and binary), GloVe, fastText ``.vec``.

All but GloVe begin with a line "words dimensions". A line of text is a word and its numbers; a word
of GloVe may hold spaces. A binary entry is a word, a space and its numbers as little-endian
float32, and may be followed by a line feed. The most frequent words come first.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from collections.abc import Iterator

import numpy as np

from sslbench.engine.errors import UserError
from sslbench.engine.types import F32

MAX_DIMENSIONS = 4_096
MAX_WORD = 1_000  # bytes
_HEADER = re.compile(rb"(\d{1,10}) (\d{1,5})\s*")
_NUMBER = 64  # bytes of a number at most

Entry = tuple[str, F32]


def read_vectors(path: str, most: int) -> tuple[list[str], F32]:
    """Return the first `most` words of a file and their vectors, float32[V, D].

    Of a word that occurs again, the first vector counts. UserError, with the line or the number of
    the entry, for a file that is none of these.
    """
    words: dict[str, F32] = {}
    with _mapped(path) as data:
        for word, vector in _entries(data, path):
            words.setdefault(word, vector)
            if len(words) == most:
                break
    if not words:
        raise UserError("there are no word vectors in it", file=path)
    return list(words), np.array(list(words.values()), np.float32)


def _mapped(path: str) -> mmap.mmap:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a device may have no end
            raise UserError("no regular file", file=path)
        if not os.path.getsize(path):
            raise UserError("there are no word vectors in it", file=path)
        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", file=path) from None


def _entries(data: mmap.mmap, path: str) -> Iterator[Entry]:
    longest = MAX_WORD + MAX_DIMENSIONS * _NUMBER
    header = _HEADER.fullmatch(_line(data, 0, 100) or b"")
    if header is None:
        first = _line(data, 0, longest)
        size = 0 if first is None else len(first.split()) - 1
        if not 1 <= size <= MAX_DIMENSIONS:
            hint = "give a file of word2vec, GloVe or fastText"
            raise UserError("no word vectors", file=path, line=1, hint=hint)
        return _text_entries(data, 0, 1, size, path)
    number, size = map(int, header.groups())
    if not 1 <= size <= MAX_DIMENSIONS:
        raise UserError(f"{size} dimensions, expected 1 to {MAX_DIMENSIONS:,}", file=path, line=1)
    begin = len(header[0]) + 1
    second = _line(data, begin, longest)
    if second is not None and _numbers(second, size) is not None:
        return _text_entries(data, begin, 2, size, path)
    return _binary_entries(data, begin, number, size, path)


def _line(data: mmap.mmap, begin: int, longest: int) -> bytes | None:
    """Return the line that begins here, without its end; None if it is longer."""
    end = data.find(b"\n", begin, begin + longest)
    if end < 0:
        rest = data[begin : begin + longest]
        return rest if begin + len(rest) == len(data) else None
    return data[begin:end]


def _numbers(line: bytes, size: int) -> Entry | None:
    """Return the word and the numbers of a line; None if it has none of this size."""
    parts = line.rstrip().rsplit(b" ", size)
    if len(parts) != size + 1 or not 0 < len(parts[0]) <= MAX_WORD:
        return None
    try:
        vector = np.array(parts[1:]).astype(np.float32)
    except ValueError:
        return None
    if not np.isfinite(vector).all():
        return None
    return parts[0].decode(errors="replace"), vector


def _text_entries(
    data: mmap.mmap, begin: int, number: int, size: int, path: str
) -> Iterator[Entry]:
    longest = MAX_WORD + size * _NUMBER
    while begin < len(data):
        line = _line(data, begin, longest)
        entry = None if line is None else _numbers(line, size)
        if line is None or entry is None:
            raise UserError(f"no word and {size} finite numbers", file=path, line=number)
        yield entry
        begin, number = begin + len(line) + 1, number + 1


def _binary_entries(
    data: mmap.mmap, begin: int, number: int, size: int, path: str
) -> Iterator[Entry]:
    for entry in range(1, number + 1):
        while data[begin : begin + 1] == b"\n":
            begin += 1
        space = data.find(b" ", begin, begin + MAX_WORD + 1)
        raw = data[space + 1 : space + 1 + 4 * size]
        vector = np.frombuffer(raw, "<f4") if len(raw) == 4 * size else np.array([np.nan])
        if space <= begin or not np.isfinite(vector).all():
            raise UserError(
                f"entry {entry} of {number} is no word and {size} finite numbers",
                file=path,
                hint="give a file of word2vec, GloVe or fastText that is complete",
            )
        yield data[begin:space].decode(errors="replace"), vector.astype(np.float32)
        begin = space + 1 + 4 * size
