"""Bytes and text of plain files, gzip files and members of zip files, unpacked in memory."""

from __future__ import annotations

import difflib
import gzip
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

from sslbench.engine.errors import UserError


@dataclass(frozen=True)
class RawBytes:
    """Bytes in memory, such as standard input, and their name in messages."""

    name: str
    data: bytes = field(repr=False)


Member = tuple[str | os.PathLike[str], str]
Source = str | os.PathLike[str] | Member | RawBytes

COPY_AGAIN = "copy or download it again"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

MAX_BYTES = 4 * 2**30
# Of unpacked to packed bytes. Deflate reaches 1032; text with columns stays below 30.
MAX_RATIO = 300
RATIO_FREE_BYTES = 64 * 2**20  # the ratio is not checked up to this size
_BLOCK = 2**20
# zipfile unpacks each packed block of these two as a whole: small blocks limit the memory
_UNBOUNDED = (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_SMALL_BLOCK = 2**12


def source_name(source: Source) -> str:
    """Return the name of a source in messages; `file.zip!member` for a member."""
    if isinstance(source, RawBytes):
        return source.name
    if isinstance(source, tuple):
        return f"{os.fspath(source[0])}!{source[1]}"
    return os.fspath(source)


def read_bytes(source: Source, max_bytes: int = MAX_BYTES, max_ratio: float = MAX_RATIO) -> bytes:
    """Return all bytes of a source, unpacked; parameters and errors are those of `read_blocks`."""
    if isinstance(source, RawBytes):
        return source.data
    return b"".join(read_blocks(source, max_bytes, max_ratio))


def read_blocks(
    source: Source, max_bytes: float = MAX_BYTES, max_ratio: float = MAX_RATIO
) -> Iterator[bytes]:
    """Yield the bytes of a source, unpacked, in blocks of about 1 MiB.

    source: a path of a plain, gzip or zip file, (zip path, member), or `RawBytes`. A zip path
        without a member must hold exactly one file.
    max_bytes, max_ratio: limits of the unpacked size, and of its ratio to the packed bytes that
        were read for it, for more than 64 MiB.
    Raises UserError for a file that is missing, damaged, truncated or beyond these limits.
    """
    if isinstance(source, RawBytes):
        yield source.data
        return
    name = source_name(source)
    try:
        with _opened(source, max_bytes) as file:
            yield from _limited(file, max_bytes, max_ratio)
    except EOFError:
        message = "the compressed file is truncated"
        raise UserError(message, file=name, hint=COPY_AGAIN) from None
    except (zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        message = f"the compressed file is damaged ({error})"
        raise UserError(message, file=name, hint=COPY_AGAIN) from None
    except FileNotFoundError:
        raise UserError("no such file", file=name) from None
    except OSError as error:
        raise UserError(error.strerror or str(error), file=name) from None


def read_text(
    source: Source, encoding: str = "utf-8", hint: str = COPY_AGAIN, max_bytes: int = MAX_BYTES
) -> str:
    """The text of `source` without a byte order mark; UserError as `read_bytes` and `decode`."""
    return decode(read_bytes(source, max_bytes), encoding, source_name(source), hint)


def numbered_lines(source: Source) -> list[tuple[int, str]]:
    """The lines of `source`, numbered from 1, without blank ones and comments.

    A comment begins with "#".  UserError as `read_text`.
    """
    lines = (line.removesuffix("\r") for line in read_text(source).split("\n"))
    return [(n, line) for n, line in enumerate(lines, 1) if line.strip() and line[0] != "#"]


def decode(data: bytes, encoding: str, name: str, hint: str) -> str:
    """`data` as text without a byte order mark.

    name, hint: file and advice of the UserError for a byte that is not `encoding`, which also has
        the line.
    """
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not {encoding}"
        raise UserError(message, file=name, line=line, hint=hint) from None


@dataclass(frozen=True)
class _Opened:
    """An open source; consumed: gives the packed bytes read so far, None for a plain file."""

    name: str
    read: Callable[[int], bytes]
    consumed: Callable[[], int] | None = None
    block: int = _BLOCK


@contextmanager
def _opened(source: str | os.PathLike[str] | Member, max_bytes: float) -> Iterator[_Opened]:
    path, member = source if isinstance(source, tuple) else (source, None)
    name = os.fspath(path)
    with open(path, "rb") as file:
        start = file.peek(4)[:4]  # without seeking, which pipes cannot
        if member is not None or start == b"PK\x03\x04":
            with _member(file, name, member) as opened:
                yield opened
        elif start[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield _Opened(name, unpacked.read, file.tell)
        elif os.fstat(file.fileno()).st_size > max_bytes:  # before anything is read
            raise _too_large(name, max_bytes)
        else:
            yield _Opened(name, file.read)


@contextmanager
def _member(file: IO[bytes], path: str, member: str | None) -> Iterator[_Opened]:
    name = path
    try:
        with zipfile.ZipFile(file) as archive:
            info = _find_member(archive, path, member)
            name = f"{path}!{info.filename}"
            if info.flag_bits & 0x1:
                raise UserError("the member is encrypted", file=name, hint="unpack it yourself")
            block = _SMALL_BLOCK if info.compress_type in _UNBOUNDED else _BLOCK
            with archive.open(info) as stream:
                yield _Opened(name, stream.read, lambda: file.tell() - info.header_offset, block)
    except NotImplementedError as error:
        raise UserError(str(error), file=name, hint="unpack it yourself") from None
    except (UserError, EOFError, OSError, zipfile.BadZipFile, GeneratorExit):
        raise
    except Exception as error:  # LZMAError, ValueError, ...: a damaged archive may raise anything
        raise zipfile.BadZipFile(str(error) or type(error).__name__) from None


def _find_member(archive: zipfile.ZipFile, path: str, member: str | None) -> zipfile.ZipInfo:
    names = [info.filename for info in archive.infolist() if not info.is_dir()]
    if member is None:
        if len(names) == 1:
            return archive.getinfo(names[0])
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise UserError(f"{len(names)} files in the archive", file=path, hint=f"name one: {shown}")
    if member in names:
        return archive.getinfo(member)
    # the most frequent mistake is a missing folder
    near = [name for name in names if os.path.basename(name) == os.path.basename(member)]
    near = (near or difflib.get_close_matches(member, names) or names)[:5]
    hint = f"near: {', '.join(near)}" if near else "the archive is empty"
    raise UserError("no such member in the archive", file=f"{path}!{member}", hint=hint)


def _limited(file: _Opened, max_bytes: float, max_ratio: float) -> Iterator[bytes]:
    size = 0
    # count unpacked bytes: the sizes in headers may be wrong
    while block := file.read(file.block):
        size += len(block)
        if size > max_bytes:
            raise _too_large(file.name, max_bytes)
        packed = None if file.consumed is None else max(file.consumed(), 1)
        if packed is not None and size > max(RATIO_FREE_BYTES, max_ratio * packed):
            message = f"unpacks to more than {max_ratio:g} times its size"
            hint = "unpack it yourself if you trust the file"
            raise UserError(message, file=file.name, hint=hint)
        yield block


def _too_large(name: str, max_bytes: float) -> UserError:
    return UserError(f"more than {max_bytes} bytes of text", file=name, hint="split it")
