"""CoNLL files as bytes: the number of columns, and the same file with more columns."""

from __future__ import annotations

from collections.abc import Sequence

from sslbench.engine.corpus.files import BYTE_ORDER_MARK

_SKIP = (b"-DOCSTART-",)


def n_columns(text: bytes) -> int:
    """Columns of the first line with a token; 0 if there is none."""
    for line in text.split(b"\n"):
        if _is_token(line):
            return len(line.split())
    return 0


def append_columns(text: bytes, values: Sequence[Sequence[str]]) -> bytes:
    """Return the file with more columns; blank lines, document marks and line ends are unchanged.

    A new column follows a tab if the line has tabs, else a space.

    text: a file as `read_conll` reads it with its default separator.
    values: of the new columns, for each token; ValueError if their number differs.
    """
    lines = text.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    tokens = [number for number, line in enumerate(lines) if _is_token(line)]
    for number, value in zip(tokens, values, strict=True):
        line = lines[number]
        body = line.rstrip()
        separator = b"\t" if b"\t" in body else b" "
        end = b"\r" if line.endswith(b"\r") else b""
        lines[number] = separator.join([body, *(text.encode() for text in value)]) + end
    return b"\n".join(lines)


def _is_token(line: bytes) -> bool:
    """Return whether a line is neither blank nor a document mark."""
    first = line.split(None, 1)[:1]
    return bool(first) and first[0] not in _SKIP
