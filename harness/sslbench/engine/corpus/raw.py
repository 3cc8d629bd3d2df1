"""Raw text, one sentence per line, cut into tokens.

How a line is cut:

- "words": at white space.
- "rules": as "words", and punctuation is apart from letters and digits. Hyphens, apostrophes, dots
  and commas between them stay: ``state-of-the-art``, ``l'eau``, ``3.14``, ``U.S.``.
- "english": as "rules", with clitics apart as in the Penn Treebank: ``do n't``, ``John 's``.
- "characters": each character that is no white space, for Chinese and Japanese.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from sslbench.engine.corpus.files import BYTE_ORDER_MARK
from sslbench.engine.corpus.sentence_parts import MAX_LINE
from sslbench.engine.errors import UserError

_PART = 2**20  # bytes of text whose tokens exist as Python objects at a time
RULES = re.compile(
    r"(?:https?://|www\.)\S+[^\s.,;:!?)\]\"'»”’]"  # addresses
    r"|(?:[^\W\d_]\.){2,}"  # U.S.
    r"|[^\W_]+(?:[-'’.,:·][^\W_]+)*"
    r"|\S"
)
_CLITIC = re.compile(r"(?i)(.+?)(n['’]t|['’](?:s|m|d|re|ve|ll))")


def _english(line: str) -> list[str]:
    tokens: list[str] = []
    for token in RULES.findall(line):
        parts = _CLITIC.fullmatch(token)
        tokens += parts.groups() if parts else [token]
    return tokens


SPLITS: Mapping[str, Callable[[str], list[str]]] = {
    "words": str.split,
    "rules": RULES.findall,
    "english": _english,
    "characters": lambda line: [character for character in line if not character.isspace()],
}


def default_split(task: str) -> str:
    """How raw text for a task is cut by default."""
    return "characters" if task in ("segmentation", "joint") else "rules"


def raw_parts(blocks: Iterable[bytes], split: str, name: str) -> Iterator[list[list[str]]]:
    """The sentences of a text, some at a time. Lines without a token are left out.

    split: a key of `SPLITS`.
    name: name of the file, for the UserError with the line of a byte that is not UTF-8, of NUL or
        of more than 10 MiB.
    """
    cut = SPLITS[split]
    for number, lines in _lines(blocks, name):
        sentences = []
        for place, line in enumerate(lines, number):
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                message = f"byte {line[error.start]:#04x} is not UTF-8"
                raise UserError(message, file=name, line=place) from None
            if "\0" in text:
                raise UserError("a NUL character", file=name, line=place)
            if tokens := cut(text):
                sentences.append(tokens)
        if sentences:
            yield sentences


def _lines(blocks: Iterable[bytes], name: str) -> Iterator[tuple[int, list[bytes]]]:
    """Number of the first line, from 1, and lines without their ends."""
    rest, number = b"", 1
    for block in blocks:
        rest += block.removeprefix(BYTE_ORDER_MARK) if number == 1 and not rest else block
        if len(rest) < _PART:
            continue
        *lines, rest = rest.split(b"\n")
        if len(rest) > MAX_LINE:
            message = f"a line of more than {MAX_LINE:,} bytes"
            raise UserError(message, file=name, line=number + len(lines))
        yield number, lines
        number += len(lines)
    yield number, rest.split(b"\n")
