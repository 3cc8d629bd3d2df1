"""How the vertices of a similarity graph are joined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias

import msgspec

Progress: TypeAlias = Callable[[str], None]
"""Called with one line of text at each step of a long computation."""


class GraphOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a graph; the defaults are those of Subramanya et al. (2010).

    k: nearest neighbors per vertex.
    symmetry: "union" joins two vertices if either is a neighbor of the other, "mutual" if both are.
    max_df: context features of more vertices produce no neighbors; None = all do.
    search: of the neighbors; "approximate" needs pynndescent.
    min_count: n-grams with fewer occurrences are not vertices.
    """

    k: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 5
    symmetry: Literal["union", "mutual"] = "union"
    max_df: Annotated[int, msgspec.Meta(ge=2, le=10**9)] | None = None
    search: Literal["exact", "approximate"] = "exact"
    min_count: Annotated[int, msgspec.Meta(ge=1, le=10**9)] = 1


def silent(_message: str) -> None:
    """A `Progress` that reports nothing."""
