"""Rows of eight by eight numbers to columns and back: eight sentences side by side in lanes.

Exchanges in registers: numbers written one by one are slow to read again as a register.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from sslbench.engine.crf.simd.lanes import (
    _BITS,
    _I32,
    _INDEX,
    _VECTOR,
    MASK,
    WIDTH,
    _address,
    _check,
    _item,
    _masked_load,
    _masked_store,
    _operation,
)


def _transposed(builder: Any, vectors: list[Any]) -> list[Any]:
    """Rows of eight by eight numbers as columns: exchange single ones, then pairs, then fours."""
    for size in (1, 2, 4):
        low = [i + (WIDTH - size if i & size else 0) for i in range(WIDTH)]
        high = [i + size for i in low]
        for i in range(WIDTH):
            if not i & size:
                pair = vectors[i], vectors[i + size]
                for place, picks in ((i, low), (i + size, high)):
                    vectors[place] = builder.shuffle_vector(*pair, ir.Constant(_INDEX, picks))
    return vectors


def _place(context: Any, builder: Any, kind: Any, array: Any, s: int) -> tuple[Any, Any]:
    """Item s of an array of places, and in all lanes whether it is one: not below 0."""
    place = builder.load(_item(context, builder, kind, array, ir.IntType(64)(s)))
    there = builder.icmp_signed(">=", place, place.type(0))
    empty = ir.Constant(_BITS, ir.Undefined)
    one = builder.insert_element(empty, there, ir.Constant(_I32, 0))
    return place, builder.shuffle_vector(one, empty, ir.Constant(_INDEX, [0] * WIDTH))


@_operation
def gather(_typing: Any, array: Any, places: Any, k: Any, mask: Any, out: Any, j: Any) -> Any:
    """out[j + 8 b + s] = array[places[s] + k + b], all counted flat, for b and s of 0 to 7.

    -inf where b is not in the mask or places[s] < 0; places int64[8].
    """
    _check(array, types.float64)
    _check(out, types.float64)
    _check(places, types.int64)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, places, k, mask, out, j = args
        kinds, rows = signature.args, []
        nothing = ir.Constant(_VECTOR, [-math.inf] * WIDTH)
        for s in range(WIDTH):
            place, there = _place(context, builder, kinds[1], places, s)
            read = builder.and_(mask, there)
            pointer, _ = _address(context, builder, kinds[0], array, builder.add(place, k), read)
            rows.append(_masked_load(builder, pointer, 64, read, nothing))
        for b, value in enumerate(_transposed(builder, rows)):
            at = builder.add(j, j.type(b * WIDTH))
            pointer, _ = _address(context, builder, kinds[4], out, at)
            builder.store(value, pointer, align=8)
        return context.get_dummy_value()

    return types.void(array, places, types.int64, MASK, out, types.int64), code


@_operation
def scatter(_typing: Any, array: Any, j: Any, out: Any, places: Any, k: Any, mask: Any) -> Any:
    """out[places[s] + k + b] = array[j + 8 b + s]: the inverse of `gather`."""
    _check(array, types.float64)
    _check(out, types.float64)
    _check(places, types.int64)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, j, out, places, k, mask = args
        kinds, columns = signature.args, []
        for b in range(WIDTH):
            at = builder.add(j, j.type(b * WIDTH))
            pointer, _ = _address(context, builder, kinds[0], array, at)
            columns.append(builder.load(pointer, align=8))
        for s, value in enumerate(_transposed(builder, columns)):
            place, there = _place(context, builder, kinds[3], places, s)
            written = builder.and_(mask, there)
            pointer, _ = _address(context, builder, kinds[2], out, builder.add(place, k), written)
            _masked_store(builder, pointer, 64, written, value)
        return context.get_dummy_value()

    return types.void(array, types.int64, out, places, types.int64, MASK), code
