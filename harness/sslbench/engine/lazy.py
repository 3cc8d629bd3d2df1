"""A property that is computed once, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801  # a decorator
    """As `functools.cached_property`, which holds a lock per class up to Python 3.11.

    A process that is forked while another thread holds that lock would wait for it without end. Two
    threads may both compute a value here; it is the same.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        # not a data descriptor: the next access finds the value in the instance
        value: T = vars(instance).setdefault(self.name, self.function(instance))
        return value

    if TYPE_CHECKING:  # a data descriptor would hide the value in the instance

        def __set__(self, instance: object, value: T) -> None: ...
