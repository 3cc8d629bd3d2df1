"""Kinds of parameters, declared once: a parameter of a method is then one line.

    eta: Annotated[Weight, doc("Dirichlet pseudo-count of the embedded models")] = 0.01

``sslbench show METHOD`` prints the text of `doc` and the bounds of the kind; a value beyond them is
an error that names the parameter.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

Weight = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""A number from 0 to 10^9."""
Tolerance = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""A change, relative or absolute, below which an iteration stops."""
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
"""A number above 0, up to 10^9."""
Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]
"""A number from 0 to below 1."""
Variance = Annotated[float, msgspec.Meta(ge=1e-10, le=1e12)]
"""The variance of a Gaussian prior."""
Count = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
"""A number of things, at least one."""
Rounds = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
"""The most rounds of a method."""
Iterations = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
"""The most iterations of an optimizer."""


def doc(meaning: str, **bounds: Any) -> msgspec.Meta:
    """Return what a parameter means, in one line without a period.

    bounds: ``ge``, ``gt``, ``le``, ``lt`` besides those of the kind.
    """
    return msgspec.Meta(description=meaning, **bounds)
