"""Text of any length in parts of whole sentences, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sslbench.engine.errors import UserError

MAX_LINE = 10 * 2**20  # bytes
MAX_SENTENCE = 2**26  # bytes
_PART = 2**20  # bytes
_BLANK = re.compile(rb"\n[ \t\r\v\f]*(?=\n)")


class Part(NamedTuple):
    """Some sentences of a file; lines_before: line breaks before the text."""

    text: bytes
    lines_before: int


def sentence_parts(blocks: Iterable[bytes], name: str) -> Iterator[Part]:
    """Cut the text of a file at blank lines; the texts of all parts, joined, are the file.

    Every part but the first starts with the line break of a blank line, so that no later text is
    taken for a byte order mark.

    name: of the file, for the UserError on a line of more than about 10 MiB, or on a sentence of
        more than 64 MiB.
    """
    text, lines = b"", 0
    for block in blocks:
        text += block
        if len(text) - text.rfind(b"\n") - 1 > MAX_LINE:
            line = lines + text.count(b"\n") + 1
            raise UserError(f"a line of more than {MAX_LINE:,} bytes", file=name, line=line)
        if len(text) < _PART:
            continue
        cut = _last_blank(text)
        if cut > 0:
            yield Part(text[:cut], lines)
            lines += text.count(b"\n", 0, cut)
            text = text[cut:]
        elif len(text) > MAX_SENTENCE:
            message = f"a sentence of more than {MAX_SENTENCE:,} bytes"
            hint = "separate sentences by blank lines"
            raise UserError(message, file=name, line=lines + 1, hint=hint)
    yield Part(text, lines)


def _last_blank(text: bytes) -> int:
    """Place of the line break that ends the last blank line; 0 if there is none."""
    at = max(text.rfind(b"\n\n") + 1, text.rfind(b"\n\r\n") + 2)
    if at > 2:
        return at
    return max((match.end() for match in _BLANK.finditer(text)), default=0)
