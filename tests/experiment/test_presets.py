"""Named values of parameters, ``--preset``."""

from __future__ import annotations

from typing import Any

import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.planning.description import method_description
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.records.record import RunSpec
from sslbench.experiment.request.request import RunRequest
from sslbench.plugins import registry
from support.command import sslbench

METHOD = "graph_self_training"


def specs(*methods: str, **options: Any) -> list[RunSpec]:
    request = RunRequest(methods, ["synth"], labeled=20, **options)
    return [task.spec for task in plan(request, store=None, notice=lambda text: None)]


def preset(method: str) -> dict[str, Any]:
    return method_description(registry(), method, {}).presets["paper"]


def test_a_preset_is_its_values() -> None:
    (plain,), (named,) = specs(METHOD), specs(METHOD, preset="paper")
    values = preset(METHOD)
    assert {**plain.params, **values} == named.params != plain.params
    (written,) = specs(METHOD, params=[f"{key}={value}" for key, value in values.items()])
    assert written.run_id == named.run_id


def test_settings_go_before_a_preset() -> None:
    (spec,) = specs(METHOD, preset="paper", params=["omega=0.5"])
    assert spec.params == {**specs(METHOD, preset="paper")[0].params, "omega": 0.5}


def test_parameters_of_a_preset_are_not_tuned() -> None:
    (spec,) = specs(METHOD, preset="paper", tune=3)
    assert spec.params.items() >= preset(METHOD).items()


def test_methods_without_the_preset_have_their_defaults() -> None:
    told: list[str] = []
    request = RunRequest([METHOD, "supervised"], ["synth"], labeled=20, preset="paper")
    _, baseline = plan(request, store=None, notice=told.append)
    assert baseline.spec == specs("supervised")[0]
    assert "supervised: no preset 'paper', its defaults are used" in told


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
