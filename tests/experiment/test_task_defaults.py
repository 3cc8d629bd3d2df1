"""Defaults that depend on the task, and graphs that a corpus declares."""

from __future__ import annotations

import shlex
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from sslbench import run
from sslbench.experiment.planning.description import method_description
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.records.record import RunSpec
from sslbench.experiment.request.request import RunRequest
from sslbench.plugins import registry
from sslbench.report.reproduce import Commands
from sslbench.sklearn import SequenceTagger
from support.command import sslbench

METHOD = "graph_self_training"


def spec_of(method: str = METHOD, dataset: str = "synth", **options: Any) -> RunSpec:
    request = RunRequest([method], [dataset], labeled=20, **options)
    (task,) = plan(request, store=None, notice=lambda text: None, load=False)
    return task.spec


def usual(task: str = "tagging", method: str = METHOD) -> dict[str, Any]:
    found = method_description(registry(), method, {}).task_defaults[task]
    assert found
    return found


def own(method: str = METHOD) -> dict[str, Any]:
    return method_description(registry(), method, {}).params


def test_a_task_has_its_defaults() -> None:
    assert spec_of().params == {**own(), **usual()} != own()
    assert spec_of(dataset="conll00").params == {**own(), **usual("spans")}
    assert usual("spans") != usual()


def test_settings_and_presets_go_before_them() -> None:
    assert spec_of(params=["eta=0.25"]).params == {**own(), **usual(), "eta": 0.25}
    paper = method_description(registry(), METHOD, {}).presets["paper"]
    assert spec_of(preset="paper").params == {**own(), **paper}
    assert spec_of(preset="plain").params == own()
    # the baseline has no preset of this name
    assert spec_of("supervised", preset="plain").params == own("supervised")


def test_a_written_default_is_the_same_run() -> None:
    written = [f"{key}={value}" for key, value in usual().items()]
    assert spec_of(params=written).run_id == spec_of().run_id
    assert spec_of(preset="plain", params=written).run_id == spec_of().run_id


def test_tuning_begins_with_them() -> None:
    spec, plain = spec_of(tune=3), spec_of(tune=3, preset="plain")
    searched = {name for name in usual() if name not in spec.params}
    assert spec.first_trial == {name: usual()[name] for name in searched} != {}
    assert spec.params.items() >= {n: v for n, v in usual().items() if n not in searched}.items()
    assert plain.first is msgspec.UNSET
    assert spec.search == plain.search
    request: dict[str, Any] = {"labeled": 30, "unlabeled": 20, "tune": 2, "tune_by": "cv"}
    (record,) = run(METHOD, "synth", **request)
    first = record.tuning[0]["params"]
    assert {name: first[name] for name in searched} == spec.first_trial


def test_a_guard_compares_with_the_baseline_on_the_task() -> None:
    spec = spec_of(guard=True)
    assert spec.guard is not msgspec.UNSET
    assert spec.guard.params == spec_of("supervised").params


@pytest.mark.parametrize("dataset", ["synth", "conll00", "ocr"])
@pytest.mark.parametrize("options", [{}, {"tune": 2}, {"preset": "plain"}, {"preset": "paper"}])
@pytest.mark.parametrize("method", [METHOD, "graph_pr"])
def test_the_command_of_a_row_makes_it_again(
    method: str, dataset: str, options: dict[str, Any]
) -> None:
    spec = spec_of(method, dataset, unlabeled=10, text="rest", **options)
    words = shlex.split(Commands(registry()).command(spec, [0]))
    again: dict[str, Any] = {"params": []}
    names = {"--tune": "tune", "--preset": "preset"}
    for word, value in pairwise(words):
        if word == "--set":
            again["params"].append(value)
        elif word in names:
            again[names[word]] = int(value) if word == "--tune" else value
    assert spec_of(method, dataset, unlabeled=10, text="rest", **again) == spec


def test_a_tuned_row_of_other_first_trials_says_so() -> None:
    command = Commands(registry()).command(spec_of(tune=2, preset="plain"), [0])
    assert "--preset plain" in command
    assert "--preset" not in Commands(registry()).command(spec_of(tune=2), [0])


def test_estimators_have_them() -> None:
    words, tags = [["a", "b"], ["b"], ["a"]] * 4, [["X", "Y"], ["Y"], ["X"]] * 4

    def marginals(**params: float) -> NDArray[np.float64]:
        tagger = SequenceTagger("supervised", params=params).fit(words, tags)
        return np.concatenate(tagger.predict_proba(words))

    np.testing.assert_array_equal(marginals(), marginals(**usual(method="supervised")))
    assert not np.array_equal(marginals(), marginals(**own("supervised")))


def test_a_corpus_says_what_its_graph_is() -> None:
    declared = registry().dataset("ocr").graph
    for method in (METHOD, "graph_pr", "virtual_evidence", "graph_lift", "graph_propagation"):
        assert spec_of(method, "ocr").params.items() >= declared.items()
        assert spec_of(method, "ocr", preset="plain").params.items() >= declared.items()
    spec = spec_of(METHOD, "ocr", params=["column=word", "neighbors=7"])
    assert (spec.params["column"], spec.params["neighbors"]) == ("word", 7)
    assert spec.params["similarity"] == declared["similarity"]
    assert spec_of("supervised", "ocr").params == spec_of("supervised").params


def test_a_graph_has_no_other_values() -> None:
    info = registry().dataset("ocr")
    with pytest.raises(ValueError, match="graph has 'sigma2'; there are column, similarity"):
        replace(info, graph={"sigma2": 1})


def test_show_lists_them() -> None:
    assert "for tagging" in sslbench("show", METHOD).stdout
    assert "column=image similarity=letters" in sslbench("show", "ocr").stdout
