"""Kinds of parameters: bounds, meanings and errors are those of plain `msgspec.Meta`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

import sslbench
from sslbench import Count, Iterations, Positive, Rounds, Share, Tolerance, Variance, Weight, doc
from sslbench.cli.parameters import describe

#: the least and the greatest value of each kind, and values beyond
KINDS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "Weight": (Weight, [0.0, 1e9], [-1e-9, 1.1e9]),
    "Tolerance": (Tolerance, [0.0, 1e9], [-1e-9, 1.1e9]),
    "Positive": (Positive, [1e-300, 1e9], [0.0, 1.1e9]),
    "Share": (Share, [0.0, 0.999], [-1e-9, 1.0]),
    "Variance": (Variance, [1e-10, 1e12], [0.0, 2e12]),
    "Count": (Count, [1, 10**9], [0, 10**9 + 1, 1.5]),
    "Rounds": (Rounds, [1, 100_000], [0, 100_001]),
    "Iterations": (Iterations, [1, 1_000_000], [0, 1_000_001]),
}


@pytest.mark.parametrize("name", list(KINDS))
def test_the_bounds_of_a_kind(name: str) -> None:
    kind, inside, outside = KINDS[name]
    assert getattr(sslbench, name) is kind
    for value in inside:
        assert msgspec.convert(value, kind) == value
    for value in outside:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(value, kind)


class Short(msgspec.Struct):
    eta: Annotated[Weight, doc("pseudo-count")] = 0.1
    most: Annotated[Count | None, doc("sentences; None = all")] = None
    depth: Annotated[int, doc("levels", ge=0, le=20)] = 1


class Plain(msgspec.Struct):
    eta: Annotated[float, msgspec.Meta(ge=0, le=1e9, description="pseudo-count")] = 0.1
    most: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=10**9)] | None,
        msgspec.Meta(description="sentences; None = all"),
    ] = None
    depth: Annotated[int, msgspec.Meta(ge=0, le=20, description="levels")] = 1


def test_short_and_plain_parameters_are_the_same() -> None:
    assert describe(Short) == describe(Plain)
    for values in ({"eta": -1.0}, {"most": 0}, {"depth": 21}, {"eta": "x"}):
        messages = []
        for struct in (Short, Plain):
            with pytest.raises(msgspec.ValidationError) as caught:
                msgspec.convert(values, struct)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
        assert f"$.{next(iter(values))}" in messages[0]
