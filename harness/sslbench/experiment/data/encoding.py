"""The encoding of a user's file: named by the user, or seen in its bytes."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from sslbench.engine.corpus.files import BYTE_ORDER_MARK
from sslbench.engine.errors import UserError

UTF8 = "utf-8"
LATIN = "cp1252"  # Latin-1 with quotes, dashes and the euro sign in place of control characters
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 2**20
_ASK = "say how the file is written: --encoding latin-1, cp1251, gbk, shift_jis, utf-16, ..."
# letters of western languages, one or two between ASCII letters or at their side
_WESTERN = re.compile(
    rb"(?<![\x80-\xff])(?:(?<=[A-Za-z])[\xc0-\xfd]{1,2}|[\xc0-\xfd]{1,2}(?=[A-Za-z])"
    rb"|[\x80-\xbf])(?![\x80-\xff])"
)


def named_encoding(name: str, data: bytes) -> str:
    """The encoding that a user names; the order of bytes is that of a byte order mark in `data`.

    UserError for an unknown encoding.
    """
    try:
        "".encode(name)  # LookupError also for codecs of other things than text
        name = codecs.lookup(name).name
    except (LookupError, ValueError):
        raise UserError(f"unknown encoding {name!r}", hint=_ASK) from None
    if name == "utf-8-sig":
        return UTF8
    marked = _marked(data)
    return marked if marked and marked.startswith(name) else name


def _marked(data: bytes) -> str | None:
    return next((name for mark, name in _MARKS if data.startswith(mark)), None)


def encoding_title(name: str) -> str:
    """An encoding as people call it."""
    return "Latin-1 (cp1252)" if name == LATIN else re.sub(r"^utf-(\d+)-[lb]e$", r"UTF-\1", name)


def find_encoding(data: bytes, file: str) -> str:
    """The encoding of a text, or of its beginning.

    UTF-16 and UTF-32 are seen by their byte order marks or zero bytes. A text that is not UTF-8 is
    taken for Latin-1 if all its other bytes are single letters beside ASCII letters, or signs.

    UserError with the line for a text that may be written in several encodings, or is binary.
    """
    if marked := _marked(data):
        return marked
    if b"\0" in data[:_SAMPLE]:
        return _by_zeros(data[:_SAMPLE], file)
    try:
        codecs.getincrementaldecoder(UTF8)().decode(data)  # which may end within a character
    except UnicodeDecodeError as error:
        if _is_western(data):
            return LATIN
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not {UTF8}"
        raise UserError(message, file=file, line=line, hint=f"{_ASK}; or repair the line") from None
    return UTF8


def _by_zeros(sample: bytes, file: str) -> str:
    """UTF-16 without a mark: nearly all zero bytes are at even, or at odd places."""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if even + odd > len(sample) // 4:
        if odd > 20 * even:
            return "utf-16-le"
        if even > 20 * odd:
            return "utf-16-be"
    line = sample.count(b"\n", 0, sample.index(b"\0")) + 1
    hint = "is this a binary file, or UTF-16 (--encoding utf-16)?"
    raise UserError("NUL byte", file=file, line=line, hint=hint)


def _is_western(data: bytes) -> bool:
    """Whether all bytes beyond ASCII are letters or signs of Latin-1, in few words."""
    beyond = len(data) - len(data.translate(None, bytes(range(128, 256))))
    seen = sum(len(match.group()) for match in _WESTERN.finditer(data))
    try:
        data.decode(LATIN)
    except UnicodeDecodeError:
        return False
    return seen == beyond and beyond < len(data) // 8


def as_utf8(data: bytes, encoding: str, file: str) -> bytes:
    """The text as UTF-8 without byte order marks; carriage returns alone become line feeds.

    Files that were put together may begin with several marks.

    UserError with the line for a byte that is not in the encoding.
    """
    if encoding == UTF8:
        text = data
        while text.startswith(BYTE_ORDER_MARK):
            text = text.removeprefix(BYTE_ORDER_MARK)
    else:
        try:
            text = data.decode(encoding).lstrip("\ufeff").encode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            message = f"byte 0x{data[error.start]:02x} is not {encoding}"
            raise UserError(message, file=file, line=line, hint=_ASK) from None
    if b"\r" in text and b"\n" not in text:
        return text.replace(b"\r", b"\n")
    return text


@dataclass
class Recoded:
    """A text of any length as UTF-8, and UTF-8 in the encoding of the text.

    blocks: of the text.  name: of the text, for messages.
    encoding: that the user names; None = it is seen in the first MiB.
    used: the encoding, once the first block was read.
    """

    blocks: Iterator[bytes]
    name: str
    encoding: str | None = None
    _alone: bool = False  # carriage returns end the lines
    used: str = UTF8

    def __iter__(self) -> Iterator[bytes]:
        """Blocks of UTF-8; UserError with the line for a byte that is not in the encoding."""
        first = b""
        for block in self.blocks:
            first += block
            if len(first) >= _SAMPLE:
                break
        named = self.encoding
        self.used = named_encoding(named, first) if named else find_encoding(first, self.name)
        decoder, lines = codecs.getincrementaldecoder(self.used)(), 0
        for number, block in enumerate(chain([first], self.blocks, [b""])):
            try:
                text = decoder.decode(block, final=number > 0 and not block)
            except UnicodeDecodeError as error:
                line = lines + error.object.count(b"\n", 0, error.start) + 1
                message = f"byte 0x{error.object[error.start]:02x} is not {self.used}"
                raise UserError(message, file=self.name, line=line, hint=_ASK) from None
            lines += text.count("\n")
            if number == 0:
                self._alone = "\r" in text and "\n" not in text
            yield (text.replace("\r", "\n") if self._alone else text).encode()

    def back(self, text: bytes) -> bytes:
        """The UTF-8 text in the encoding of the blocks; UserError if it has no such character."""
        if self._alone:
            text = text.replace(b"\n", b"\r")
        if self.used == UTF8:
            return text
        try:
            return text.decode().encode(self.used)
        except UnicodeEncodeError as error:
            letter = error.object[error.start]
            message = f"{self.used} cannot write {letter!r} of a label"
            raise UserError(message, file=self.name, hint="use --format jsonl") from None
