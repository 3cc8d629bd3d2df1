"""The encoding of a user's file: named by the user, or seen in its bytes."""

from __future__ import annotations

import codecs
import re

from sslbench.engine.corpus.files import BYTE_ORDER_MARK
from sslbench.engine.errors import UserError

UTF8 = "utf-8"
LATIN = "cp1252"  # Latin-1 with quotes, dashes and the euro sign in place of control characters
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 2**20
_ASK = "say how the file is written: --encoding latin-1, cp1251, gbk, shift_jis, utf-16, ..."
# letters of western languages, one or two between ASCII letters or at their side
_WESTERN = re.compile(
    rb"(?<![\x80-\xff])(?:(?<=[A-Za-z])[\xc0-\xfd]{1,2}|[\xc0-\xfd]{1,2}(?=[A-Za-z])"
    rb"|[\x80-\xbf])(?![\x80-\xff])"
)


def checked_encoding(name: str) -> str:
    """The name of a text encoding; UserError for an unknown one."""
    try:
        info = codecs.lookup(name)
    except (LookupError, ValueError):
        raise UserError(f"unknown encoding {name!r}", hint=_ASK) from None
    if not getattr(info, "_is_text_encoding", True):
        raise UserError(f"{name!r} is no encoding of text", hint=_ASK)
    return info.name


def find_encoding(data: bytes, file: str) -> str:
    """The encoding of a text, or of its beginning.

    UTF-16 and UTF-32 are seen by their byte order marks or zero bytes. A text that is not UTF-8 is
    taken for Latin-1 if all its other bytes are single letters beside ASCII letters, or signs.

    UserError with the line for a text that may be written in several encodings, or is binary.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return name
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
    """The text as UTF-8 without byte order mark; carriage returns alone become line feeds.

    UserError with the line for a byte that is not in the encoding.
    """
    if encoding == UTF8:
        text = data.removeprefix(BYTE_ORDER_MARK)
    else:
        try:
            text = data.decode(encoding).removeprefix("\ufeff").encode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            message = f"byte 0x{data[error.start]:02x} is not {encoding}"
            raise UserError(message, file=file, line=line, hint=_ASK) from None
    if b"\r" in text and b"\n" not in text:
        return text.replace(b"\r", b"\n")
    return text
