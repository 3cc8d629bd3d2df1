"""Axes of a search, the space that methods share, and its edges."""

from __future__ import annotations

import math
from itertools import islice
from typing import Annotated, Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench import SearchAxis, TrainingParams, registry
from sslbench.experiment.planning.space import (
    SHARED,
    edge_warning,
    legal_ends,
    open_axes,
    search_digest,
    search_space,
)
from sslbench.experiment.run.tuning import positions

LOG = SearchAxis("s", low=0.01, high=1e4, log=True)
LINE = SearchAxis("s", low=-1, high=3)
ROUNDS = SearchAxis("s", low=1, high=20, log=True, integer=True)
NAMES = SearchAxis("s", ("a", "b", "c"))


class Params(TrainingParams, frozen=True, kw_only=True):
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    rounds: Annotated[int, msgspec.Meta(ge=1)] = 3
    cap: Annotated[int, msgspec.Meta(ge=1)] | None = None
    search: ClassVar[tuple[SearchAxis, ...]] = (
        SearchAxis("sigma2", (1.0, 2.0)),
        SearchAxis("share", low=0, high=1),
        SearchAxis("rounds", low=1, high=9, integer=True),
        SearchAxis("cap", (1, 2, 4)),
    )


@pytest.mark.parametrize("axis", [LOG, LINE, ROUNDS, SearchAxis("s", low=2, high=5, integer=True)])
@given(u=st.floats(0, 1))
def test_positions_of_a_range_come_back(axis: SearchAxis, u: float) -> None:
    value = axis.at(u)
    low, high = axis.limits
    assert low <= value <= high
    assert isinstance(value, int) == axis.integer
    if not axis.integer:
        assert axis.position(value) == pytest.approx(u, abs=0.01)
    assert axis.at(axis.position(value)) == value


def test_a_log_range_is_uniform_in_the_logarithm_and_integers_are_uniform() -> None:
    assert [LOG.at(u) for u in (0, 0.5, 1)] == [0.01, 10.0, 1e4]
    assert LOG.at(math.log(271.828) / math.log(1e6)) == pytest.approx(2.72)
    integers = SearchAxis("s", low=1, high=4, integer=True)
    found = [integers.at((i + 0.5) / 100) for i in range(100)]
    assert [found.count(n) for n in (1, 2, 3, 4)] == [25, 25, 25, 25]


def test_a_list_gives_each_value_the_same_share() -> None:
    assert [NAMES.at(u) for u in (0.0, 0.32, 0.34, 0.65, 0.67, 1.0)] == [
        "a",
        "a",
        "b",
        "b",
        "c",
        "c",
    ]
    assert [NAMES.at(NAMES.position(name)) for name in "abc"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "needs either"),
        ({"values": (1,), "low": 0, "high": 1}, "needs either"),
        ({"low": 1}, "needs either"),
        ({"values": [1, 2]}, "tuple"),
        ({"values": (1, 1)}, "repeated"),
        ({"low": 1, "high": 1}, "empty"),
        ({"low": 1, "high": math.inf}, "empty"),
        ({"low": 0, "high": 1, "log": True}, "positive"),
        ({"low": 0.5, "high": 2, "integer": True}, "integer"),
    ],
)
def test_wrong_axes_are_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchAxis("s", **more)


def test_a_grid_of_numbers_is_a_list_with_edges() -> None:
    grid = SearchAxis("s", (100.0, 1.0, 0.01))
    assert grid.limits == (0.01, 100.0)
    assert [grid.edge(value) for value in grid.values] == ["high", None, "low"]
    assert [axis.limits for axis in (NAMES, SearchAxis("s", (True, False)))] == [None, None]
    assert SearchAxis("s", (1, 3, 2)).edge(1) is None


@pytest.mark.parametrize(
    ("axis", "value", "edge"),
    [
        (LOG, 0.02, "low"),
        (LOG, 0.05, None),
        (LOG, 2e3, None),
        (LOG, 3e3, "high"),
        (LOG, 1e9, "high"),
        (LINE, -0.7, "low"),
        (LINE, 1.0, None),
        (ROUNDS, 1, "low"),
        (ROUNDS, 2, None),
        (ROUNDS, 20, "high"),
    ],
)
def test_a_tenth_of_a_range_at_each_end_is_its_edge(
    axis: SearchAxis, value: float, edge: str | None
) -> None:
    assert axis.edge(value) == edge


def _warning(axis: SearchAxis, value: float) -> str | None:
    return edge_warning(axis, value, legal_ends(Params, axis.param))


def test_an_end_of_the_parameter_itself_is_no_edge() -> None:
    sigma2, share, rounds, cap = search_space(Params)
    assert _warning(share, 0.99) is None
    assert _warning(rounds, 1) is None
    assert _warning(cap, 1) is None
    assert "high edge of its space, 1 to 9" in str(_warning(rounds, 9))
    assert "cap=4" in str(_warning(cap, 4))
    assert "low edge" in str(_warning(sigma2, 0.01))


def test_shared_parameters_have_the_shared_axes_whatever_a_method_declares() -> None:
    axes = search_space(Params)
    assert axes[: len(SHARED)] == SHARED
    assert [axis.param for axis in axes] == ["sigma2", "share", "rounds", "cap"]
    assert search_space(TrainingParams) == SHARED
    assert [axis.param for axis in open_axes(Params, {"sigma2", "cap"})] == ["share", "rounds"]


@pytest.mark.parametrize("name", sorted(registry().methods))
def test_the_space_of_every_built_in_method_is_legal(name: str) -> None:
    params = registry().method(name).load().Params
    axes = search_space(params)
    assert axes
    shared = SHARED if issubclass(params, TrainingParams) else ()
    assert axes[: len(shared)] == shared
    for axis in axes:
        for value in axis.values or axis.limits or ():
            msgspec.convert({axis.param: value}, params)
        default = getattr(params(), axis.param)
        assert axis.values or axis.at(axis.position(default)) == default
        if default != 1e4:  # sigma2 of graph_pr
            assert edge_warning(axis, default, legal_ends(params, axis.param)) is None


def test_the_digest_is_that_of_what_is_searched() -> None:
    axes = (LOG, SearchAxis("b", low=0, high=1))
    assert search_digest(axes) == search_digest(axes[::-1])
    assert search_digest((LOG,)) != search_digest(axes)
    assert search_digest(()) == search_digest((), raced=True) == ""
    assert search_digest(axes, raced=True) != search_digest(axes)
    assert search_digest((SearchAxis("b", low=0, high=2),)) != search_digest(axes[1:])


def test_every_method_over_a_crf_may_choose_the_same_weak_priors() -> None:
    methods = {name: info.load().Params for name, info in registry().methods.items()}
    spaces = {name: {a.param: a for a in search_space(each)} for name, each in methods.items()}
    over_a_crf = [name for name, each in methods.items() if issubclass(each, TrainingParams)]
    assert {"supervised", "jess_cm", "graph_pr", "virtual_evidence"} < set(over_a_crf)
    assert {repr(spaces[name]["sigma2"]) for name in over_a_crf} == {repr(SHARED[0])}
    assert "sigma2" not in {param for name in methods.keys() - over_a_crf for param in spaces[name]}
    assert SHARED[0].limits[1] > 10 * 702  # what tuning has chosen for the baseline
    first = list(islice(positions("sigma2", 0), 8))
    assert sum(SHARED[0].at(u) >= 100 for u in first) >= 2
