"""Arrays of saved models, checked before compiled code indexes with them unchecked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sslbench.types import I64


def vector(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    dtype: DTypeLike,
    size: int | None = None,
    bounds: tuple[int, int] | None = None,
) -> NDArray[Any]:
    """The array of that name, C-contiguous.

    ValueError when it is missing, of another type, not a vector of `size`, or when a value v is not
    bounds[0] <= v < bounds[1].
    """
    array = arrays.get(name)
    if array is None:
        raise ValueError(f"there is no array {name}")
    if array.dtype != np.dtype(dtype) or array.ndim != 1 or size not in (None, len(array)):
        shape = "n" if size is None else size
        raise ValueError(
            f"array {name} is {array.dtype} {array.shape}, not {np.dtype(dtype)} ({shape},)"
        )
    if (
        bounds is not None
        and len(array)
        and not bounds[0] <= array.min() <= array.max() < bounds[1]
    ):
        raise ValueError(f"array {name} has values outside {bounds[0]} to {bounds[1] - 1}")
    return np.ascontiguousarray(array)


def borders(arrays: Mapping[str, NDArray[Any]], name: str, n_parts: int, end: int) -> I64:
    """int64[n_parts + 1] that rises from 0 to `end`; ValueError otherwise."""
    array = vector(arrays, name, np.int64, n_parts + 1)
    if array[0] != 0 or array[-1] != end or (np.diff(array) < 0).any():
        raise ValueError(f"array {name} does not rise from 0 to {end}")
    return array
