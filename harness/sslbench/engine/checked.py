"""Checks of arrays, since compiled code does not check bounds; names of arrays of saved models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from sslbench.engine.types import I64, AnyArray, Arrays

Saved: TypeAlias = tuple[Arrays, dict[str, Any]]
"""What a saved object is restored from: arrays, and JSON-able metadata."""


def joined(**parts: Saved) -> Saved:
    """Put saved objects together: arrays under ``NAME.``, metadata under ``NAME``."""
    arrays = {
        f"{name}.{key}": array for name, (own, _) in parts.items() for key, array in own.items()
    }
    return arrays, {name: metadata for name, (_, metadata) in parts.items()}


def part_of(arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any], name: str) -> Saved:
    """Return one of the objects that `joined` put together; KeyError if it is not there."""
    return subset(arrays, f"{name}."), metadata[name]


def subset(arrays: Mapping[str, AnyArray], prefix: str) -> Arrays:
    """Return the arrays whose names start with `prefix`, by the rest of their names."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def check_array(
    array: object,
    what: str,
    dtype: DTypeLike,
    shape: tuple[int | None, ...],
    bounds: tuple[int, int] | None = None,
) -> None:
    """ValueError, naming `what`, unless this is an array that compiled code can read.

    shape: None = any length. It must be C-contiguous, and have values v with
    bounds[0] <= v < bounds[1].
    """
    wanted = np.dtype(dtype)
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{what}: a {type(array).__name__}, not an array of {wanted}")
    fits = array.ndim == len(shape) and all(
        size in (None, own) for size, own in zip(shape, array.shape, strict=True)
    )
    if array.dtype != wanted or not fits:
        sizes = ", ".join("n" if size is None else str(size) for size in shape)
        raise ValueError(f"{what}: {array.dtype} {list(array.shape)}, not {wanted} [{sizes}]")
    if not array.flags.c_contiguous:
        raise ValueError(f"{what}: the array is not C-contiguous")
    if bounds is not None and array.size:
        low, high = int(array.min()), int(array.max())
        if low < bounds[0] or high >= bounds[1]:
            raise ValueError(
                f"{what}: values {low} to {high}, outside of {bounds[0]} to {bounds[1] - 1}"
            )


def check_borders(array: object, what: str, end: int, n_parts: int | None = None) -> None:
    """ValueError, naming `what`, unless it is int64[n_parts + 1] and ascends from 0 to `end`."""
    check_array(array, what, np.int64, (None if n_parts is None else n_parts + 1,))
    if not is_ascending(array, end):
        raise ValueError(f"{what}: does not ascend from 0 to {end}")


def is_ascending(array: Any, end: int) -> bool:
    """Does an array of integers begin with 0, never decrease and end with `end`?"""
    # a difference of two numbers may overflow, a comparison cannot
    steps = len(array) > 0 and bool((array[1:] >= array[:-1]).all())
    return steps and int(array[0]) == 0 and int(array[-1]) == end


def vector(
    arrays: Mapping[str, AnyArray],
    name: str,
    dtype: DTypeLike,
    size: int | None = None,
    bounds: tuple[int, int] | None = None,
) -> AnyArray:
    """Return the one-dimensional array of this name, C-contiguous.

    ValueError if it is missing, has another dtype, shape or size, or if a value v does not satisfy
    bounds[0] <= v < bounds[1].
    """
    return table(arrays, name, dtype, (size,), bounds)


def table(
    arrays: Mapping[str, AnyArray],
    name: str,
    dtype: DTypeLike,
    shape: tuple[int | None, ...],
    bounds: tuple[int, int] | None = None,
) -> AnyArray:
    """The array of this name, C-contiguous; ValueError as of `vector`. shape: None = any length."""
    if name not in arrays:
        raise ValueError(f"array {name} is missing")
    array = np.ascontiguousarray(arrays[name])
    check_array(array, f"array {name}", dtype, shape, bounds)
    return array


def borders(arrays: Mapping[str, AnyArray], name: str, n_parts: int, end: int) -> I64:
    """The array of this name, int64[n_parts + 1], ascending from 0 to `end`; ValueError if not."""
    array = vector(arrays, name, np.int64)
    check_borders(array, f"array {name}", end, n_parts)
    return array
