"""Arguments of kernels, without counting references to their arrays.

numba counts the references to an array. Each view of the array, such as a row, costs one atomic
operation when it is made and one when it ends, which adds up in a loop that makes views for each
token. A kernel does not have to count references to its arguments: its caller keeps the arrays
until the kernel returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

T = TypeVar("T")


def _uncounted(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)  # type: ignore[no-untyped-call]
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for i, each in enumerate(cast("Iterable[Any]", kind)):
            item = _uncounted(context, builder, each, builder.extract_value(value, i))
            value = builder.insert_value(value, item, i)
        return value
    context.nrt.incref(builder, kind, value)  # of what may be an array or None
    return value


@intrinsic
def _borrowed(_typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _uncounted(context, builder, signature.args[0], args[0])

    return value(value), generate


#: for kernels: return an argument, an array or a tuple of arrays, whose views are not counted.
#: The argument and its views must not be used after the kernel that got it has returned.
borrowed = cast("Callable[[T], T]", _borrowed)
