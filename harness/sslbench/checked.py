"""Arrays of saved models: their names, and checks, since compiled code does not check bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from sslbench.types import I64, AnyArray, Arrays

Saved: TypeAlias = tuple[Arrays, dict[str, Any]]
"""What a saved object is restored from: arrays, and JSON-able metadata."""


def joined(**parts: Saved) -> Saved:
    """Several saved objects as one: arrays under ``NAME.``, metadata under ``NAME``."""
    arrays = {
        f"{name}.{key}": array for name, (own, _) in parts.items() for key, array in own.items()
    }
    return arrays, {name: metadata for name, (_, metadata) in parts.items()}


def part_of(arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any], name: str) -> Saved:
    """One of the objects that `joined` put together; KeyError if it is not there."""
    return subset(arrays, f"{name}."), metadata[name]


def subset(arrays: Mapping[str, AnyArray], prefix: str) -> Arrays:
    """The arrays whose names start with `prefix`, by the rest of their names."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def vector(
    arrays: Mapping[str, AnyArray],
    name: str,
    dtype: DTypeLike,
    size: int | None = None,
    bounds: tuple[int, int] | None = None,
) -> AnyArray:
    """The one-dimensional array of this name, C-contiguous.

    ValueError if it is missing, has another dtype, shape or size, or if a value v does not satisfy
    bounds[0] <= v < bounds[1].
    """
    array = arrays.get(name)
    if array is None:
        raise ValueError(f"array {name} is missing")
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


def borders(arrays: Mapping[str, AnyArray], name: str, n_parts: int, end: int) -> I64:
    """The array of this name, int64[n_parts + 1], ascending from 0 to `end`; ValueError if not."""
    array = vector(arrays, name, np.int64, n_parts + 1)
    if array[0] != 0 or array[-1] != end or (np.diff(array) < 0).any():
        raise ValueError(f"array {name} does not ascend from 0 to {end}")
    return array
