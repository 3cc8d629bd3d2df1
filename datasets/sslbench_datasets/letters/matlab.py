"""A safe reader of cell arrays of numbers in MATLAB files of version 5.

Source: The MathWorks, MAT-File Format, chapter 1. scipy's reader crashes the process on some
damaged files (null pointers in its compiled code) and does not limit the size of unpacked data.
This reader checks every size against the bytes of the file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MAX_BYTES = 2**26  # of one unpacked variable
_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_CELL = 1
_COMPLEX = 0x0800
_NUMERIC = range(6, 16)  # classes of arrays
# Types of stored numbers. MATLAB stores whole doubles as uint8 where they fit.
_STORED = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}


class _Matrix(NamedTuple):
    """An array of any class: its header, and the elements that follow."""

    kind: int
    flags: int
    shape: tuple[int, ...]
    name: str
    content: Iterator[tuple[int, bytes]]


def read_cells(data: bytes, name: str) -> list[Array] | None:
    """The cells of a variable that is a cell array of one row: matrices of their stored type.

    data: the bytes of the file.
    None if there is no such variable, or if it is not a cell array of one row.
    ValueError for a file of another version or byte order (little-endian is read), a damaged file,
    and a cell that is not an array of real numbers.
    """
    if len(data) < _HEADER or data[124:128] != b"\x00\x01IM":
        raise ValueError("no header of version 5")
    for kind, content in _elements(data[_HEADER:]):
        for matrix in _matrices(kind, content):
            if matrix.name == name:
                one_row = matrix.kind == _CELL and len(matrix.shape) == 2 and matrix.shape[0] == 1
                return _cells(matrix) if one_row else None
    return None


def _matrices(kind: int, content: bytes) -> Iterator[_Matrix]:
    """The variable in a top-level element; nothing for elements of other kinds."""
    if kind == _COMPRESSED:
        for inner, unpacked in _elements(_unpack(content)):
            yield from _matrices(inner, unpacked) if inner != _COMPRESSED else ()
    elif kind == _MATRIX:
        yield _matrix(content)


def _unpack(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(packed, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"damaged: {error}") from None
    if not unpacker.eof:
        raise ValueError(f"truncated, or a variable of more than {MAX_BYTES} bytes")
    return data


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and content of each element; a content of up to four bytes is inside the tag."""
    position = 0
    while position < len(data):
        if len(data) - position < 8:
            raise ValueError("truncated")
        kind, size = struct.unpack_from("<II", data, position)
        if kind >> 16:
            kind, size, start, stop = kind & 0xFFFF, kind >> 16, position + 4, position + 8
            if size > 4:
                raise ValueError(f"damaged: {size} bytes in a tag")
        else:
            start = position + 8
            stop = start + (size if kind == _COMPRESSED else -(-size // 8) * 8)
        if start + size > len(data):
            raise ValueError("truncated")
        yield kind, data[start : start + size]
        position = stop


def _matrix(content: bytes) -> _Matrix:
    parts = _elements(content)
    head = [part for _, part in zip(range(3), (part for _, part in parts), strict=False)]
    if len(head) < 3 or len(head[0]) != 8 or len(head[1]) % 4:
        raise ValueError("damaged: an array without flags, shape or name")
    flags = struct.unpack("<II", head[0])[0]
    shape = struct.unpack(f"<{len(head[1]) // 4}i", head[1])
    return _Matrix(flags & 0xFF, flags, shape, head[2].decode("latin-1"), parts)


def _cells(matrix: _Matrix) -> list[Array]:
    cells = [_numbers(_matrix(part)) for kind, part in matrix.content if kind == _MATRIX]
    if len(cells) != matrix.shape[1]:
        raise ValueError(f"damaged: {len(cells)} cells of {matrix.shape[1]}")
    return cells


def _numbers(matrix: _Matrix) -> Array:
    kind, part = next(matrix.content, (0, b""))
    real = matrix.kind in _NUMERIC and not matrix.flags & _COMPLEX
    if not real or len(matrix.shape) != 2 or min(matrix.shape) < 0 or kind not in _STORED:
        raise ValueError("a cell is not a matrix of real numbers")
    stored = np.dtype("<" + _STORED[kind])
    if prod(matrix.shape) * stored.itemsize != len(part):
        raise ValueError(f"damaged: {len(part)} bytes for a matrix {matrix.shape}")
    return np.frombuffer(part, stored).reshape(matrix.shape, order="F")
