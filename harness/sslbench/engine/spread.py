"""A pass over data in units, in this process or shared out among those of a cluster.

A pass is a function of a unit: a stretch of text, some rows of a matrix.  Results come in the order
of the units, whoever computes them: what is made of them has the same bits for any number of
workers.  What a pass reads, its units and its results can be written as arrays and JSON, so that
no code travels: a worker is given the name of a class, which it imports only from packages that
its installation has as plugins.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, Self, TypeVar

import msgspec
import numpy as np

from sslbench.engine.checked import Saved
from sslbench.engine.types import Arrays

__all__ = ["Pass", "Units", "WorkerError", "over", "using_broker"]

U = TypeVar("U")
U_co = TypeVar("U_co", covariant=True)
R = TypeVar("R")


class WorkerError(Exception):
    """A pass failed on a worker; one line says where and why."""


class Units(Protocol[U_co]):
    """What a pass is over. key: names these units to workers, which keep what they were sent."""

    @property
    def key(self) -> str: ...
    @property
    def several(self) -> bool:
        """Whether there is anything to share out."""
        ...

    def get(self, number: int) -> U_co | None:
        """Unit number 0, 1, ...; None after the last one."""
        ...


class Pass(ABC, Generic[U, R]):
    """A function of a unit, and how it, its units and its results travel.

    Its class stands at the top of a module of sslbench or of a plugin.
    """

    @classmethod
    def target(cls) -> str:
        """Return ``"module:Class"``, by which `pass_at` finds this class elsewhere."""
        return f"{cls.__module__}:{cls.__qualname__}"

    @abstractmethod
    def run(self, unit: U) -> R:
        """The result of one unit."""

    @abstractmethod
    def packed(self) -> Saved | None:
        """What `unpacked` makes this pass from; None: it cannot leave this process."""

    @classmethod
    @abstractmethod
    def unpacked(cls, arrays: Arrays, facts: dict[str, Any]) -> Self:
        """The pass; ValueError or KeyError if arrays and facts do not fit together."""

    @staticmethod
    @abstractmethod
    def pack_unit(unit: Any) -> Saved:
        """What `unpack_unit` makes a unit from."""

    @staticmethod
    @abstractmethod
    def unpack_unit(arrays: Arrays, facts: dict[str, Any]) -> Any:
        """The unit; ValueError or KeyError if it is none."""

    @abstractmethod
    def pack_result(self, result: R) -> Arrays:
        """What `unpack_result` makes a result from."""

    @abstractmethod
    def unpack_result(self, arrays: Arrays) -> R:
        """The result."""


class Broker(Protocol):
    """An object that has passes done elsewhere; it is given the bytes of `pack`."""

    def over(
        self, target: str, work: bytes, key: str, give: Callable[[int], bytes | None], begin: int
    ) -> Iterator[bytes]:
        """Results of the units begin, begin + 1, ...; those that are missing at the end are left to
        the caller.

        target: of the pass.  give: the unit of a number, None after the last one.  WorkerError: a
        pass failed.
        """
        ...


_broker: Broker | None = None


def is_shared() -> bool:
    """Whether this process has a broker."""
    return _broker is not None


@contextmanager
def using_broker(broker: Broker | None) -> Iterator[None]:
    """Have the passes of this process done elsewhere for a while."""
    global _broker
    before, _broker = _broker, broker
    try:
        yield
    finally:
        _broker = before


def over(work: Pass[U, R], units: Units[U], begin: int = 0) -> Iterator[R]:
    """The results of the units begin, begin + 1, ..., in this order."""
    broker = _broker if units.several else None
    saved = None if broker is None else work.packed()
    if broker is not None and saved is not None:

        def give(number: int) -> bytes | None:
            unit = units.get(number)
            return None if unit is None else pack(work.pack_unit(unit))

        def result(data: bytes) -> R:
            nonlocal begin
            begin += 1
            return work.unpack_result(unpack(data)[0])

        # a map, unlike a loop, does not hold the last result while it waits for the next one
        yield from map(result, broker.over(work.target(), pack(saved), units.key, give, begin))
    while (unit := units.get(begin)) is not None:
        yield work.run(unit)
        begin += 1


def is_pass_of(target: str, packages: Collection[str]) -> bool:
    """Whether a target names a module in one of these top-level packages; nothing is imported."""
    module, colon, name = target.partition(":")
    parts = [*module.split("."), name]
    return bool(colon) and parts[0] in packages and all(part.isidentifier() for part in parts)


def pass_at(target: str, packages: Collection[str]) -> type[Pass[Any, Any]]:
    """Import the class of a pass from one of these top-level packages.

    ValueError, before any import, for a module elsewhere; ValueError for another object.
    """
    if not is_pass_of(target, packages):
        raise ValueError(f"{target!r} is no pass of {', '.join(sorted(packages))}")
    module, _, name = target.partition(":")
    found = getattr(importlib.import_module(module), name, None)
    if not (isinstance(found, type) and issubclass(found, Pass)):
        raise ValueError(f"{target!r} is no pass")
    return found


class _Array(msgspec.Struct, array_like=True):
    dtype: str
    shape: list[int]
    data: memoryview


class _Saved(msgspec.Struct, array_like=True):
    facts: bytes
    arrays: dict[str, _Array]


def pack(saved: Saved) -> bytes:
    """Arrays of numbers and JSON-able facts as bytes."""
    arrays = {}
    for name, array in saved[0].items():
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        arrays[name] = _Array(array.dtype.str, list(array.shape), flat.data)
    return msgspec.msgpack.encode(_Saved(msgspec.json.encode(saved[1]), arrays))


def unpack(data: bytes) -> Saved:
    """What `pack` was given; ValueError for other bytes."""
    try:
        found = msgspec.msgpack.decode(data, type=_Saved)
        facts = msgspec.json.decode(found.facts, type=dict[str, Any])
        arrays = {name: _array(own) for name, own in found.arrays.items()}
    except (msgspec.MsgspecError, TypeError) as error:
        raise ValueError(f"not packed arrays ({error})") from None
    return arrays, facts


def _array(own: _Array) -> Any:
    dtype = np.dtype(own.dtype)
    if dtype.kind not in "biuf":
        raise ValueError(f"an array of {dtype}")
    # a copy: kernels are compiled for arrays that can be written
    return np.frombuffer(own.data, dtype).reshape(own.shape).copy()
