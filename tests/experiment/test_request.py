"""A parameter of a run stands in one place: options, signatures and suite keys are made from it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import sslbench
from sslbench.cli import cli
from sslbench.engine.errors import UserError
from sslbench.experiment.request.parameters import HIDDEN, parameters
from sslbench.experiment.request.request import RunRequest, TrainRequest
from sslbench.suite.file import KEYS

SHARED = [
    *("method", "dataset", "data", "columns", "labeled", "unlabeled", "text", "params", "preset"),
    *("featurizer", "text_features", "model", "tune", "tune_cpu", "tune_by", "guard", "threads"),
    *("verbose", "encoding", "separator", "comment", "scheme", "raw", "label_names"),
    "weak_sources",
]
RUN = [
    *("seeds", "folds", "tune_seed", "labeled_by", "store"),
    *("jobs", "timeout", "memory", "retry", "reuse", "executor"),
]
#: option of a parameter whose name is not that of the option
SPELLED = {"params": "set", "text_features": "with", "weak_sources": "weak", "seeds": "seed"}
#: keys of a table of a suite that are options of `sslbench run`
SUITE = [
    *("text", "folds", "tune", "tune_cpu", "tune_seed", "tune_by", "labeled_by"),
    *("set", "with", "guard", "preset", "featurizer", "model"),
]
OWN_KEYS = ["datasets", "methods", "without", "variant", "labeled", "unlabeled", "seeds"]
COMMANDS: list[tuple[type[Any], Callable[..., Any], list[str], set[str]]] = [
    (RunRequest, sslbench.run, [*SHARED, *RUN], {"seeds", "dry-run", "format"}),
    (TrainRequest, sslbench.train, [*SHARED, "seed"], {"save"}),
]


@pytest.mark.parametrize(("kind", "function", "names", "more"), COMMANDS)
def test_options_and_signatures_are_those_of_the_request(
    kind: type[Any], function: Callable[..., Any], names: list[str], more: set[str]
) -> None:
    known = parameters(kind)
    assert set(known) == set(names)
    signature = inspect.signature(function)
    assert list(signature.parameters) == list(known)
    command = cli.get_command(click.Context(cli), function.__name__)
    assert command is not None
    options = {each.name: each for each in command.params if isinstance(each, click.Option)}
    spelled = {name.removeprefix("--") for each in options.values() for name in each.opts}
    expected = {SPELLED.get(name, name.replace("_", "-")) for name in names if name != "verbose"}
    assert spelled == expected | more
    for name, each in known.items():
        shown = signature.parameters[name]
        assert shown.default == (inspect.Parameter.empty if each.required else each.default)
        assert f"\n{name}: {each.doc}\n" in (function.__doc__ or "") + "\n"
        if each.option != HIDDEN:
            assert each.option in options[name].opts
            assert options[name].required == each.required
            assert options[name].multiple or options[name].default != ()  # click would show it


def test_keys_of_a_suite_are_spelled_as_options() -> None:
    assert set(KEYS) == {*SUITE, *OWN_KEYS}
    known = parameters(RunRequest)
    assert all(known[KEYS[key]].option == f"--{key.replace('_', '-')}" for key in SUITE)


def test_a_description_stands_in_one_place() -> None:
    sources = Path(sslbench.__file__).parent.rglob("*.py")
    text = " ".join(" ".join(path.read_text(encoding="utf-8").split()) for path in sources)
    for kind in (RunRequest, TrainRequest):
        for name, each in parameters(kind).items():
            sentence = each.doc.partition(". ")[0][:60]
            assert each.doc.endswith("."), name
            if len(sentence) > 20:  # shorter ones may be words of others
                assert text.count(sentence) == 1, name


def test_positional_and_defaults() -> None:
    request = RunRequest(["a", "b", "a"], "d", labeled="10 %".replace(" ", ""), unlabeled="007t")
    assert (request.methods, request.datasets) == (("a", "b"), ("d",))
    assert (request.labeled, request.unlabeled, request.seeds) == ("10%", "7t", (0,))
    values = RunRequest("a", params={"a.rounds": 2, "names": ["x", "y"], "flag": True})
    assert values.settings == ("a.rounds=2", 'names=["x","y"]', "flag=true")
    trained = TrainRequest("a", "d", seed=3)
    assert (trained.guard, RunRequest("a").guard) == (True, False)
    assert RunRequest("a", columns="word,label").columns == ("word", "label")
    assert (trained.run_request().seeds, trained.run_request().guard) == ((3,), True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"folds": -1}, "folds -1; give an integer from 0"),
        ({"text": "outside"}, "text 'outside'; give rest or external or all"),
        ({"labeled": "many"}, "labeled 'many'"),
        ({"unlabeled": "5x"}, "unlabeled '5x'"),
        ({"tune_cpu": float("nan")}, "tune_cpu nan; give a number above 0"),
        ({"timeout": float("inf")}, "timeout inf; give a number above 0"),
        ({"tune": 100_001}, "tune 100001; give an integer from 0 up to 100000"),
        ({"tune": "3"}, "tune '3'; give an integer"),
        ({"jobs": 1.5}, "jobs 1.5; give an integer from 1"),
        ({"guard": 1}, "guard 1; give true or false"),
        ({"seeds": [0, -1]}, "seed -1; give an integer from 0"),
        ({"reuse": "old"}, "reuse 'old'; give current"),
    ],
)
def test_a_wrong_value_is_one_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"^(--)?{message}") as caught:
        sslbench.run("supervised", "synth", **values)
    assert "\n" not in str(caught.value)


def test_an_unknown_keyword_names_the_nearest_one() -> None:
    with pytest.raises(TypeError, match=r"run\(\) has no parameter 'labelled'; did you mean label"):
        sslbench.run("supervised", "synth", labelled=3)
    with pytest.raises(TypeError, match=r"train\(\) has no parameter 'seeds'; did you mean seed"):
        sslbench.train("supervised", "synth", seeds=(0, 1))


def test_one_method_is_trained() -> None:
    with pytest.raises(UserError, match="one method is trained on one dataset"):
        sslbench.train(["supervised", "self_training"], "synth")
