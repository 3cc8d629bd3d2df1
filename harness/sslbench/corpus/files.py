"""Bytes and text of plain files, gzip files and members of zip files, unpacked in memory."""

from __future__ import annotations

import difflib
import gzip
import os
import zipfile
import zlib
from dataclasses import dataclass, field
from typing import Protocol

from sslbench.errors import UserError


@dataclass(frozen=True)
class RawBytes:
    """Bytes in memory, such as standard input, and their name in messages."""

    name: str
    data: bytes = field(repr=False)


Source = str | os.PathLike[str] | tuple[str | os.PathLike[str], str] | RawBytes

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


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def source_name(source: Source) -> str:
    """The name of a source in messages; `file.zip!member` for a member."""
    if isinstance(source, RawBytes):
        return source.name
    if isinstance(source, tuple):
        return f"{os.fspath(source[0])}!{source[1]}"
    return os.fspath(source)


def read_bytes(source: Source, max_bytes: int = MAX_BYTES, max_ratio: float = MAX_RATIO) -> bytes:
    """All bytes of a source, unpacked.

    source: a path of a plain, gzip or zip file, (zip path, member), or `RawBytes`. A zip path
        without a member must hold exactly one file.
    max_bytes, max_ratio: limits of the unpacked size, and of its ratio to the packed size for more
        than 64 MiB.
    UserError for a file that is missing, damaged, truncated or beyond these limits.
    """
    if isinstance(source, RawBytes):
        return source.data
    name = source_name(source)
    path = source[0] if isinstance(source, tuple) else source
    try:
        if isinstance(source, tuple) or _is_zip(path):
            member = source[1] if isinstance(source, tuple) else None
            return _read_member(os.fspath(path), member, max_bytes, max_ratio)
        with open(path, "rb") as file:
            packed = os.fstat(file.fileno()).st_size
            if file.read(2) != b"\x1f\x8b":
                file.seek(0)
                return _read_limited(file, name, packed, max_bytes, float("inf"))
            file.seek(0)
            with gzip.GzipFile(fileobj=file) as unpacked:
                return _read_limited(unpacked, name, packed, max_bytes, max_ratio)
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


def read_text(source: Source, encoding: str = "utf-8", hint: str = COPY_AGAIN) -> str:
    """The text of `source` without a byte order mark; UserError as `read_bytes` and `decode`."""
    return decode(read_bytes(source), encoding, source_name(source), hint)


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


def _is_zip(path: str | os.PathLike[str]) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _read_member(path: str, member: str | None, max_bytes: int, max_ratio: float) -> bytes:
    name = path
    try:
        with zipfile.ZipFile(path) as archive:
            info = _find_member(archive, path, member)
            name = f"{path}!{info.filename}"
            if info.flag_bits & 0x1:
                raise UserError("the member is encrypted", file=name, hint="unpack it yourself")
            block = _SMALL_BLOCK if info.compress_type in _UNBOUNDED else _BLOCK
            packed = info.compress_size
            with archive.open(info) as file:
                return _read_limited(file, name, packed, max_bytes, max_ratio, block)
    except NotImplementedError as error:
        raise UserError(str(error), file=name, hint="unpack it yourself") from None
    except (UserError, EOFError, OSError, zipfile.BadZipFile):
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


def _read_limited(
    file: _Readable,
    name: str,
    packed: int,
    max_bytes: int,
    max_ratio: float,
    block_size: int = _BLOCK,
) -> bytes:
    blocks: list[bytes] = []
    size = 0
    # count unpacked bytes: the sizes in headers may be wrong
    while block := file.read(block_size):
        size += len(block)
        if size > max_bytes:
            hint = "split it"
            raise UserError(f"more than {max_bytes} bytes of text", file=name, hint=hint)
        if size > RATIO_FREE_BYTES and size > max_ratio * max(packed, 1):
            message = f"unpacks to more than {max_ratio:g} times its size"
            raise UserError(message, file=name, hint="unpack it yourself if you trust the file")
        blocks.append(block)
    return b"".join(blocks)
