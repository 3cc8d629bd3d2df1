"""Messages of msgspec as sentences: the field, its value, and what it must be."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from sslbench.experiment.request.words import first_field, in_words


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    size: int


class Fields(msgspec.Struct, forbid_unknown_fields=True):
    rounds: Annotated[int, Meta(ge=1)] = 1
    share: Annotated[float, Meta(gt=0, le=1)] = 0.5
    sign: Literal["free", "nonneg"] | None = None
    guard: bool = False
    sizes: tuple[int, ...] = ()
    weights: dict[str, float] = {}
    cap: int | None = None
    name: Annotated[str, Meta(min_length=1)] = "a"
    inner: list[Inner] = []


def problem(values: dict[str, Any], strict: bool = False) -> msgspec.ValidationError:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(values, Fields, strict=strict)
    return caught.value


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rounds": "0"}, "rounds is 0, but must be an integer >= 1"),
        ({"rounds": "x"}, "rounds is 'x', but must be an integer"),
        ({"rounds": 1.5}, "rounds is 1.5, but must be an integer"),
        ({"rounds": None}, "rounds is none, but must be an integer"),
        ({"share": "2"}, "share is 2, but must be a number <= 1"),
        ({"share": float("nan")}, "share is nan, but must be a number > 0"),
        ({"sign": "fre"}, "sign is fre, but must be free or nonneg"),
        ({"guard": "maybe"}, "guard is 'maybe', but must be true or false"),
        ({"sizes": "3"}, "sizes is '3', but must be a list"),
        ({"sizes": [1, "x"]}, "sizes[1] is 'x', but must be an integer"),
        ({"weights": {"a": "x"}}, "a value of weights must be a number"),
        ({"weights": 3}, "weights is 3, but must be a table of keys and values"),
        ({"cap": "x"}, "cap is 'x', but must be an integer or none"),
        ({"name": ""}, "name is '', but must be a text of length >= 1"),
        ({"inner": [{}]}, "size is missing (in inner[0])"),
        ({"inner": [{"size": 1, "b": 1}]}, "b is no key that can be given (in inner[0])"),
        ({"round": 1}, "round is no key that can be given"),
        ({"name": ["x" * 99]}, f"name is {['x' * 99]!r:.60}..., but must be a text"),
    ],
)
def test_words(values: dict[str, Any], words: str) -> None:
    assert in_words(problem(values), values, Fields) == words


def test_a_field_has_the_name_that_the_user_knows() -> None:
    values = {"sizes": ["x"]}
    error = problem(values, strict=True)
    assert in_words(error, values, Fields, {"sizes": "labeled"}).startswith(
        "labeled[0] is 'x', but"
    )
    assert first_field(error) == "sizes"
    assert first_field(problem({"round": 1})) == "round"
    assert first_field(msgspec.ValidationError("Expected `object`, got `array`")) is None


def test_other_messages_are_said_with_their_field() -> None:
    assert in_words(msgspec.ValidationError("inf is too large - at `$.cap`")) == (
        "cap: inf is too large"
    )
    error = msgspec.ValidationError("Expected `object`, got `array`")
    assert in_words(error, [1]) == "the value is [1], but must be a table of keys and values"
