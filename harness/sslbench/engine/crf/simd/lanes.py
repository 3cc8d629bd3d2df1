"""Eight numbers at a time: a vector type for kernels whose inner loop is one row of L labels.

The compiler's own vectorizer is made for long loops: of a row of 22 labels it leaves most to the
scalar remainder.  Kernels that use this module read a row in groups of eight lanes, the last group
masked, and keep sums in registers.  On a processor with narrower vectors the compiler splits the
groups.  The order of every sum is that of the source, so results do not depend on the width.

    L = 22:   load(row, 0), load(row, 8), load_first(row, 16, first(6), 0.0)
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any, TypeAlias

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from sslbench.engine.compilation.compiled import BOUNDS

WIDTH = 8
#: annotations of kernels: eight float64, and which of eight lanes take part
Vector: TypeAlias = Any
Mask: TypeAlias = Any
_I32, _F64, _F32 = ir.IntType(32), ir.DoubleType(), ir.FloatType()
_VECTOR, _BITS = ir.VectorType(_F64, WIDTH), ir.VectorType(ir.IntType(1), WIDTH)
_INDEX = ir.VectorType(_I32, WIDTH)
_ZEROS = ir.Constant(_VECTOR, [0.0] * WIDTH)


class Lanes(types.Type):
    """Eight float64, in one register or in several narrower ones."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


class LaneMask(types.Type):
    """Which of eight lanes take part."""

    def __init__(self) -> None:
        super().__init__(name="LaneMask")


LANES, MASK = Lanes(), LaneMask()
#: numba passes its typing context as first argument; callers of an operation leave it out
_operation: Callable[[Callable[..., Any]], Any] = intrinsic


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, _VECTOR)  # type: ignore[no-untyped-call]


@register_model(LaneMask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, _BITS)  # type: ignore[no-untyped-call]


# -- pieces of generated code ----------------------------------------------------------------
def _call(builder: Any, name: str, result: Any, args: list[Any]) -> Any:
    """Call an LLVM intrinsic."""
    kind = ir.FunctionType(result, [a.type for a in args])
    declared = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
    return builder.call(declared, args)


def _spread(builder: Any, scalar: Any, vector: Any) -> Any:
    """Return a scalar in all lanes."""
    empty = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(empty, scalar, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(_INDEX, [0] * WIDTH))


def _item(context: Any, builder: Any, kind: Any, array: Any, index: Any, count: Any = None) -> Any:
    """Pointer to the item of an array at a flat index.

    count: items from there on that are read or written, an integer value of generated code; None =
    one. IndexError in generated code if not all of them are in the array, with `BOUNDS`.
    """
    struct = context.make_array(kind)(context, builder, array)
    if BOUNDS:
        one, zero = index.type(1), index.type(0)
        count = one if count is None else count
        begins_early = builder.icmp_signed("<", index, zero)
        ends_late = builder.icmp_signed(">", builder.add(index, count), struct.nitems)
        outside = builder.or_(begins_early, ends_late)
        with builder.if_then(builder.and_(outside, builder.icmp_signed(">", count, zero))):
            message = ("lanes are out of bounds",)
            context.call_conv.return_user_exc(builder, IndexError, message)
    return builder.gep(struct.data, [index])


def _address(
    context: Any, builder: Any, kind: Any, array: Any, index: Any, mask: Any = None
) -> tuple[Any, int]:
    """Pointer to eight items of an array, the first at a flat index, and the bits of an item.

    mask: which of them are read or written, the first ones; None = all.
    """
    bits = kind.dtype.bitwidth
    vector = ir.VectorType(_F32 if bits == 32 else _F64, WIDTH)
    count = index.type(WIDTH)
    if mask is not None:
        lanes = builder.ctpop(builder.bitcast(mask, ir.IntType(WIDTH)))
        count = builder.zext(lanes, index.type)
    item = _item(context, builder, kind, array, index, count)
    return builder.bitcast(item, vector.as_pointer()), bits


def _widen(builder: Any, value: Any) -> Any:
    """Return eight numbers as float64."""
    return value if value.type == _VECTOR else builder.fpext(value, _VECTOR)


def _narrow(builder: Any, value: Any, bits: int) -> Any:
    """Return eight numbers as float32 if an item has 32 bits."""
    return value if bits == 64 else builder.fptrunc(value, ir.VectorType(_F32, WIDTH))


def _masked_load(builder: Any, pointer: Any, bits: int, mask: Any, others: Any) -> Any:
    """Eight items of so many bits; those of `others` where not in the mask."""
    name, align = f"llvm.masked.load.v8f{bits}.p0v8f{bits}", ir.Constant(_I32, bits // 8)
    return _call(builder, name, others.type, [pointer, align, mask, others])


def _masked_store(builder: Any, pointer: Any, bits: int, mask: Any, value: Any) -> None:
    name, align = f"llvm.masked.store.v8f{bits}.p0v8f{bits}", ir.Constant(_I32, bits // 8)
    _call(builder, name, ir.VoidType(), [value, pointer, align, mask])


def _check(array: Any, *dtypes: Any) -> None:
    if not isinstance(array, types.Array) or array.layout != "C" or array.dtype not in dtypes:
        raise TypeError(f"lanes need a C-contiguous array of {dtypes}, not {array}")


def _declared(types_of: Callable[..., Any], count: int, generate: Callable[..., Any]) -> Any:
    """Make an operation of so many arguments from their types and the generator of its code."""

    def operation(_typing: Any, *given: Any) -> Any:
        return types_of(*given), generate

    names = ["typing", *(f"argument{i}" for i in range(count))]
    arguments = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in names]
    operation.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    return _operation(operation)


def _values(*kinds: Any, result: Any = LANES) -> Callable[[Callable[..., Any]], Any]:
    """Make an operation on values of these types from the function that generates its code.

    The function takes the builder and the values.
    """

    def made(code: Callable[..., Any]) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return code(builder, *args)

        return _declared(lambda *_: result(*kinds), len(kinds), generate)

    return made


def _items(
    *dtypes: Any, arguments: tuple[Any, ...] = (), result: Any = LANES
) -> Callable[[Callable[..., Any]], Any]:
    """Make an operation on an array of these types, a flat index and other arguments.

    The function takes context, builder, type of the array, array, index and the other arguments.
    """
    kinds = (types.int64, *arguments)

    def made(code: Callable[..., Any]) -> Any:
        def types_of(array: Any, *_: Any) -> Any:
            _check(array, *dtypes)
            return result(array, *kinds)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = code(context, builder, signature.args[0], *args)
            return context.get_dummy_value() if result is types.void else value

        return _declared(types_of, 1 + len(kinds), generate)

    return made


def _choice(order: str) -> Callable[[Any, Any, Any], Any]:
    """Take the first of two values where it compares so with the second, else the second."""
    return lambda builder, x, y: builder.select(builder.fcmp_ordered(order, x, y), x, y)


def _reduction(step: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Combine the two halves, then their halves, then the last pair: a fixed order."""

    def code(builder: Any, value: Any) -> Any:
        width = WIDTH
        while width > 1:
            width //= 2
            undefined = ir.Constant(value.type, ir.Undefined)
            picks = ir.VectorType(_I32, width)
            halves = [*range(width)], [*range(width, 2 * width)]
            low, high = (
                builder.shuffle_vector(value, undefined, ir.Constant(picks, half))
                for half in halves
            )
            value = step(builder, low, high)
        return builder.extract_element(value, ir.Constant(_I32, 0))

    return code


# -- operations of kernels ------------------------------------------------------------------------
add: Callable[[Vector, Vector], Vector] = _values(LANES, LANES)(ir.IRBuilder.fadd)
subtract: Callable[[Vector, Vector], Vector] = _values(LANES, LANES)(ir.IRBuilder.fsub)
multiply: Callable[[Vector, Vector], Vector] = _values(LANES, LANES)(ir.IRBuilder.fmul)
divide: Callable[[Vector, Vector], Vector] = _values(LANES, LANES)(ir.IRBuilder.fdiv)
maximum: Callable[[Vector, Vector], Vector] = _values(LANES, LANES)(_choice(">"))
minimum: Callable[[Vector, Vector], Vector] = _values(LANES, LANES)(_choice("<"))
_of_lanes = _values(LANES, result=types.float64)
#: sum, largest and smallest of the eight lanes
total: Callable[[Vector], float] = _of_lanes(_reduction(ir.IRBuilder.fadd))
largest: Callable[[Vector], float] = _of_lanes(_reduction(_choice(">")))
smallest: Callable[[Vector], float] = _of_lanes(_reduction(_choice("<")))


@_values(types.int64, result=MASK)
def first(builder: Any, count: Any) -> Any:
    """Mask of the first `count` lanes (all, if count >= 8)."""
    number = _spread(builder, builder.trunc(count, _I32), _INDEX)
    return builder.icmp_signed("<", ir.Constant(_INDEX, [*range(WIDTH)]), number)


@_values(types.float64)
def splat(builder: Any, value: Any) -> Any:
    """Return the same number in all lanes."""
    return _spread(builder, value, _VECTOR)


@_values(LANES, LANES, LANES)
def fma(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """x * y + z, fused where the processor can."""
    return _call(builder, "llvm.fmuladd.v8f64", _VECTOR, [x, y, z])


@_values(LANES)
def power_of_two(builder: Any, shifted: Any) -> Any:
    """2^k, given k + 1023 in the lowest bits of the float (see `exp_lanes`): shifted, these bits
    are the exponent, without a conversion to integers.
    """
    integers = ir.VectorType(ir.IntType(64), WIDTH)
    bits = builder.bitcast(shifted, integers)
    return builder.bitcast(builder.shl(bits, ir.Constant(integers, [52] * WIDTH)), _VECTOR)


@_values(types.float64, result=types.int64)
def word(builder: Any, x: Any) -> Any:
    """Return the 64 bits of one float, as an integer."""
    return builder.bitcast(x, ir.IntType(64))


@_values(types.int64, result=types.float64)
def number(builder: Any, word: Any) -> Any:
    """Return the float of 64 bits."""
    return builder.bitcast(word, _F64)


@_values(LANES, LANES, LANES)
def where_at_least(builder: Any, x: Any, bound: Any, value: Any) -> Any:
    """value where x >= bound, 0 elsewhere."""
    return builder.select(builder.fcmp_ordered(">=", x, bound), value, _ZEROS)


@_values(LANES, LANES, LANES)
def where_positive(builder: Any, x: Any, value: Any, other: Any) -> Any:
    """value where x > 0, the other elsewhere."""
    return builder.select(builder.fcmp_ordered(">", x, _ZEROS), value, other)


@_items(types.uint8, result=MASK)
def bits(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Mask from item `index` of an array of bytes, counted flat: bit 0 is the first lane."""
    return builder.bitcast(builder.load(_item(context, builder, kind, array, index)), _BITS)


@_items(types.float64)
def spread(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Item `index` of an array, counted flat, in all lanes."""
    return _spread(builder, builder.load(_item(context, builder, kind, array, index)), _VECTOR)


@_items(types.float64, types.float32)
def load(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Items index .. index + 7 of a C-contiguous array, counted flat; float32 is widened."""
    pointer, bits = _address(context, builder, kind, array, index)
    return _widen(builder, builder.load(pointer, align=bits // 8))


@_items(types.float64, types.float32, arguments=(MASK, types.float64))
def load_first(
    context: Any, builder: Any, kind: Any, array: Any, index: Any, mask: Any, fill: Any
) -> Any:
    """Load, as `load`, for the lanes of the mask; the others are not read and hold `fill`."""
    pointer, bits = _address(context, builder, kind, array, index, mask)
    other = fill if bits == 64 else builder.fptrunc(fill, _F32)
    others = _spread(builder, other, ir.VectorType(other.type, WIDTH))
    return _widen(builder, _masked_load(builder, pointer, bits, mask, others))


@_items(types.float64, types.float32, arguments=(LANES,), result=types.void)
def store(context: Any, builder: Any, kind: Any, array: Any, index: Any, value: Any) -> None:
    """Write items index .. index + 7; to float32 they are rounded."""
    pointer, bits = _address(context, builder, kind, array, index)
    builder.store(_narrow(builder, value, bits), pointer, align=bits // 8)


@_items(types.float64, types.float32, arguments=(MASK, LANES), result=types.void)
def store_first(
    context: Any, builder: Any, kind: Any, array: Any, index: Any, mask: Any, value: Any
) -> None:
    """Store, as `store`, for the lanes of the mask only."""
    pointer, bits = _address(context, builder, kind, array, index, mask)
    _masked_store(builder, pointer, bits, mask, _narrow(builder, value, bits))


@_items(types.float64, types.float32, result=types.void)
def prefetch(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> None:
    """Fetch the cache line of a flat index that will be read soon; no effect on values."""
    data = context.make_array(kind)(context, builder, array).data
    byte = builder.bitcast(builder.gep(data, [index]), ir.IntType(8).as_pointer())
    flags = [ir.Constant(_I32, flag) for flag in (0, 3, 1)]
    _call(builder, "llvm.prefetch.p0i8", ir.VoidType(), [byte, *flags])
