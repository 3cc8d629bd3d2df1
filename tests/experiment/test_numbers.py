"""Numbers that make no sense are refused where they are typed, for every method and option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from sslbench.engine.errors import UserError
from sslbench.experiment.planning.settings import dataset_options, method_params
from sslbench.experiment.planning.space import search_space
from sslbench.experiment.planning.values import typed_values
from sslbench.plugins import registry
from support.command import sslbench

#: as they are typed
NOT_FINITE = ("inf", "-inf", "nan", "1e400", "-1e400", "[nan]")
ENDLESS = ("9" * 30, "-" + "9" * 30, "9" * 5000)
METHODS = sorted(registry().of_kind("methods"))
DATASETS = sorted(name for name, info in registry().of_kind("datasets").items() if info.options)


def numeric(struct: type[Any]) -> list[tuple[str, bool]]:
    """Parameters that are numbers, and whether they are integers."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    found = []
    for field in info.fields:
        kinds = _kinds(field.type)
        if kinds & {inspect.IntType, inspect.FloatType}:
            found.append((field.name, inspect.FloatType not in kinds))
    return found


def _kinds(kind: Any) -> set[type[Any]]:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        return set().union(*map(_kinds, kind.types))
    return {type(kind)}


def refused(error: UserError, name: str) -> None:
    text = str(error)
    assert name in text
    assert text.isprintable()
    assert len(text) < 2500


def test_a_list_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text("ing\n\n  s \né\n", encoding="utf-8")
    params = method_params([f"suffixes=@{file}"], registry(), "graph_pr")
    assert params == method_params(['suffixes=["ing", "s", "é"]'], registry(), "graph_pr")
    with pytest.raises(UserError, match="nothing"):
        method_params([f"suffixes=@{tmp_path / 'nothing'}"], registry(), "graph_pr")
    with pytest.raises(UserError, match="lam"):
        method_params([f"lam=@{file}"], registry(), "graph_pr")
    with pytest.raises(UserError, match="reads no list of suffixes"):
        method_params(["similarity=letters", 'suffixes=["s"]'], registry(), "graph_pr")


@pytest.mark.parametrize("method", METHODS)
def test_parameters_of_methods(method: str) -> None:
    struct = registry().method(method).load().Params
    for name, integer in numeric(struct):
        texts = [*NOT_FINITE, *ENDLESS, "-1", *(["1.5", "1e-3"] if integer else [])]
        for text in texts:
            with pytest.raises(UserError) as error:
                method_params([f"{name}={text}"], registry(), method)
            refused(error.value, name)


@pytest.mark.parametrize("method", METHODS)
def test_every_number_has_a_range(method: str) -> None:
    """Values in use are inside: defaults, and the ends of the search space."""
    struct = registry().method(method).load().Params
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    defaults = msgspec.to_builtins(struct())
    assert msgspec.to_builtins(typed_values(struct, defaults)) == defaults
    for axis in search_space(struct):
        for value in axis.values or (axis.low, axis.high):
            typed_values(struct, {axis.param: axis._end(value) if axis.low is not None else value})
    names = dict(numeric(struct))
    for field in info.fields:
        if field.name in names:
            kind: Any = field.type
            while isinstance(kind, inspect.Metadata):
                kind = kind.type
            options = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
            for option in options:
                while isinstance(option, inspect.Metadata):
                    option = option.type
                if isinstance(option, inspect.IntType | inspect.FloatType):
                    assert (option.ge, option.gt) != (None, None), field.name
                    assert (option.le, option.lt) != (None, None), field.name


@pytest.mark.parametrize("dataset", DATASETS)
def test_options_of_datasets(dataset: str) -> None:
    info = registry().dataset(dataset)
    options = dataset_options(info, {})
    numbers = [name for name, value in options.items() if type(value) in (int, float)]
    for name in numbers:
        for text in (*NOT_FINITE, *ENDLESS, "-1"):
            with pytest.raises(UserError) as error:
                dataset_options(info, {name: text})
            refused(error.value, name)


def test_numbers_within_lists_and_mappings() -> None:
    class Params(msgspec.Struct):
        parts: list[float] = []
        named: dict[str, float] = {}

    assert typed_values(Params, {"parts": [1.0, 2.0]}).parts == [1.0, 2.0]
    for values in ({"parts": [1.0, float("inf")]}, {"named": {"a": float("nan")}}):
        with pytest.raises(msgspec.ValidationError, match="out of range"):
            typed_values(Params, values)


OPTIONS = [
    ("--labeled", "nan"),
    ("--labeled", "inf%"),
    ("--labeled", "9" * 5000),
    ("--labeled", "-1"),
    ("--unlabeled", "9" * 5000),
    ("--unlabeled", "-1"),
    ("--seed", "9" * 30),
    ("--seed", "nan"),
    ("--tune", "9" * 30),
    ("--tune-cpu", "nan"),
    ("--tune-cpu", "inf"),
    ("--timeout", "nan"),
    ("--timeout", "1e400"),
    ("--timeout", "0"),
    ("--set", "sigma2=inf"),
    ("--set", "sigma2=0"),
    ("--set", "synth.noise=nan"),
]


@pytest.mark.parametrize(("option", "text"), OPTIONS, ids=lambda text: text[:16])
def test_options_of_the_command(option: str, text: str) -> None:
    words = ["run", "--method", "supervised", "--dataset", "synth", option, text]
    done = sslbench(*words)
    assert done.exit_code == 2
    assert "internal error" not in done.output


@pytest.mark.parametrize("sigma2", ["1e-10", "1e12"])
def test_the_ends_of_a_range_run(sigma2: str, tmp_path: Any) -> None:
    data = tmp_path / "t.conll"
    data.write_text("the B\nn1 I\n\nout O\n\n" * 6)
    words = ["train", "--method", "supervised", "--data", str(data), "--columns", "word,label"]
    words += ["--save", str(tmp_path / "model")]
    done = sslbench(*words, "--set", f"sigma2={sigma2}")
    assert done.exit_code == 0, done.output
    assert "Traceback" not in done.output
