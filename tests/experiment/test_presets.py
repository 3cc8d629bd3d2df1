"""Named values of parameters, ``--preset``."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from sslbench import TrainingParams
from sslbench.engine.errors import UserError
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.planning.description import method_description
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.settings import method_params
from sslbench.experiment.records.record import RunSpec
from sslbench.experiment.request.request import RunRequest
from sslbench.plugins import registry
from sslbench.suite.file import read_suite
from sslbench.testing import CheckFailure
from sslbench.testing.cases import MethodCase
from sslbench.testing.method_outputs import check_parameters
from support.command import sslbench

METHOD = "graph_self_training"
ROOT = Path(__file__).parents[2]


def specs(*methods: str, **options: Any) -> list[RunSpec]:
    request = RunRequest(methods, ["synth"], labeled=20, **options)
    return [task.spec for task in plan(request, store=None, notice=lambda text: None)]


def preset(method: str, name: str = "paper") -> dict[str, Any]:
    return method_description(registry(), method, {}).presets[name]


def test_a_preset_is_its_values() -> None:
    (plain,), (named,) = specs(METHOD, preset="plain"), specs(METHOD, preset="paper")
    values = preset(METHOD)
    assert {**plain.params, **values} == named.params != plain.params
    settings = [f"{key}={value}" for key, value in values.items()]
    (written,) = specs(METHOD, preset="plain", params=settings)
    assert written.run_id == named.run_id


def test_settings_go_before_a_preset() -> None:
    (spec,) = specs(METHOD, preset="paper", params=["omega=0.5"])
    assert spec.params == {**specs(METHOD, preset="paper")[0].params, "omega": 0.5}


def test_parameters_of_a_preset_are_not_tuned() -> None:
    (spec,) = specs(METHOD, preset="paper", tune=3)
    assert spec.params.items() >= preset(METHOD).items()


def test_methods_without_the_preset_have_their_defaults() -> None:
    lines: list[str] = []
    request = RunRequest([METHOD, "supervised"], ["synth"], labeled=20, preset="paper")
    _, baseline = plan(request, store=None, notice=lines.append)
    assert baseline.spec == specs("supervised")[0]
    assert "supervised: no preset 'paper', its defaults are used" in lines


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(UserError, match="no preset 'papr'") as caught:
        specs(METHOD, preset="papr")
    assert "paper" in str(caught.value.hint)
    with pytest.raises(UserError, match="supervised: no preset"):
        specs("supervised", preset="paper")


def test_show_lists_presets() -> None:
    shown = sslbench("show", METHOD).stdout
    assert "preset paper" in shown
    assert "omega=1.0" in shown


def told(method: str, name: str) -> list[str]:
    lines: list[str] = []
    plan(RunRequest([method], ["synth"], preset=name), store=None, notice=lines.append, load=False)
    return lines


def test_a_preset_that_is_known_to_collapse_says_so() -> None:
    (line,) = told(METHOD, "paper")
    assert line.startswith(f"{METHOD}, preset paper: collapses on small samples")
    assert "collapses" in sslbench("show", METHOD).stdout
    assert told("entropy_regularization", "paper")
    assert told("graph_pr", "paper") == []


#: cells of the replications that show the order of the paper: suite, method, other settings
SHOWN = [
    ("subramanya2010", "type_self_training", "omega=0"),
    ("subramanya2010", "graph_self_training", "omega=0"),
    ("he2013", "graph_pr", "ud_da.draws=true"),
    ("zeng2013", "virtual_evidence", "normalize=true"),
]


@pytest.mark.parametrize(("paper", "method", "setting"), SHOWN)
def test_what_reproduces_a_paper_is_in_its_suite(paper: str, method: str, setting: str) -> None:
    suite = read_suite(str(ROOT / f"replications/{paper}/suite.toml"))
    block = next(b for b in suite.blocks if method in b.methods and setting in b.params)
    values = method_params(block.params, registry(), method, block.preset)
    defaults = method_description(registry(), method, {}).params
    assert {**defaults, **preset(method, "reproduced")} == {**defaults, **values}


def test_what_reproduces_jess_cm_are_its_defaults() -> None:
    described = method_description(registry(), "jess_cm", {})
    assert described.presets["reproduced"].items() <= described.params.items()


def test_notes_are_of_presets_and_name_files_that_exist() -> None:
    for name in registry().methods:
        described = method_description(registry(), name, {})
        assert described.preset_notes.keys() <= described.presets.keys(), name
        for note in described.preset_notes.values():
            for path in re.findall(r"[\w/]+\.md", note):
                assert (ROOT / path).is_file(), (name, path)


@pytest.mark.parametrize("notes", [{"papr": "a line"}, {"paper": "two\nlines"}])
def test_a_note_is_a_line_on_a_preset(notes: dict[str, str]) -> None:
    class Wrong:
        class Params(TrainingParams, frozen=True, kw_only=True):
            presets: ClassVar[dict[str, Any]] = {"paper": {"sigma2": 1.0}}
            preset_notes: ClassVar[dict[str, str]] = notes

    with pytest.raises(CheckFailure, match="preset_notes"):
        check_parameters(cast(MethodCase, SimpleNamespace(cls=Wrong)))


def test_warnings_of_a_method_are_lines() -> None:
    run = RunContext()
    run.warn("beware")
    assert run.warnings == ("beware",)
    run.trace["warnings"] = ["fine", 7, *["more"] * 50]
    assert run.warnings[0] == "fine"
    assert 7 not in run.warnings
    assert len(run.warnings) < 25
    run.trace["warnings"] = "text"
    assert run.warnings == ()
