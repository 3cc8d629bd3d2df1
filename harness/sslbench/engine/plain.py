"""Values of other libraries as those of Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PLAIN = (str, int, float, bool, type(None))


def plain(value: Any) -> Any:
    """Return a value with numpy's and pandas's scalars and arrays as Python's, also inside.

    An array becomes a list. Other values stay as they are.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {plain(key): plain(part) for key, part in value.items()}
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(map(plain, value))
    return value.tolist() if hasattr(value, "tolist") else value
