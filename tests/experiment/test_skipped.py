"""Runs whose method does not fit the task or the model are skipped, with the reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from sslbench import MethodInfo, ModelInfo
from sslbench.experiment.execute.grid import GridOptions, run_grid
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.experiment.run.runner import execute
from sslbench.isolation.start import isolated
from sslbench.plugins import registry
from sslbench.plugins.registrations import TASKS
from sslbench.report.leaderboard import leaderboard
from support.command import sslbench
from support.run_fakes import install, task


@pytest.fixture
def _fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install(tmp_path, monkeypatch)
    yield
    registry.cache_clear()


fakes = pytest.mark.usefixtures("_fakes")
METHOD = {"name": "m", "summary": "", "reference": "", "target": "a:b"}


def run(store: Path, *methods: str, form: str = "json") -> Result:
    chosen = [word for method in methods for word in ("--method", method)]
    rest = ("--dataset", "toy", "--labeled", 20, "--model", "nothing", "--store", store)
    return sslbench("run", *chosen, *rest, "--format", form, "--seed", 0, "--seed", 1)


def test_what_a_method_fits() -> None:
    one, two = registry().models["crf1"], registry().models["crf2"]
    anything = MethodInfo(**METHOD)
    bare = ModelInfo(name="any", summary="", reference="", target="a:b")
    assert {anything.misfit(task, bare) for task in TASKS} == {None}
    words = MethodInfo(**METHOD, tasks=("segmentation", "joint"))
    assert words.misfit("joint", two) is None
    assert words.misfit("spans", two) == "for segmentation, joint, not spans"
    first = MethodInfo(**METHOD, models=("crf1",))
    assert first.misfit("spans", one) is None
    assert first.misfit("spans", two) == "for model crf1, not crf2"
    needy = MethodInfo(**METHOD, needs_model=("features", "first_order"))
    assert needy.misfit("spans", one) is None
    assert needy.misfit("spans", two) == "for models that provide first_order, not crf2"


@pytest.mark.parametrize(
    "changes",
    [
        {"tasks": ()},
        {"tasks": ("chunking",)},
        {"tasks": "spans"},
        {"models": "crf1"},
        {"needs_model": ("x",)},
    ],
)
def test_wrong_tasks_and_models_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError)):
        MethodInfo(**METHOD, **changes)


def test_the_built_in_methods_say_what_they_are_for() -> None:
    methods = registry().methods
    for name in ("pipeline_st", "cluster_features"):
        assert methods[name].tasks == ("segmentation", "joint")
    for name in ("graph_self_training", "type_self_training"):
        assert methods[name].needs_model == ("first_order",)
    assert methods["supervised"].tasks == TASKS


@fakes
def test_a_skipped_run_is_shown_but_neither_stored_nor_a_failure(tmp_path: Path) -> None:
    store = tmp_path / "runs"
    result = run(store, "majority", "segmenter", "crf1_only")
    assert result.exit_code == 0, result.output
    records = json.loads(result.stdout)
    assert [(r["method"], r["status"]) for r in records] == [
        ("majority", "ok"),
        ("segmenter", "skipped"),
        ("crf1_only", "skipped"),
    ] * 2
    assert records[1]["error"] == "for segmentation, joint, not tagging"
    assert records[2]["error"] == "for model crf1, not nothing"
    lines = [line for line in result.stderr.splitlines() if line.startswith("skipped: ")]
    assert lines == [
        "skipped: segmenter on toy: for segmentation, joint, not tagging",
        "skipped: crf1_only on toy: for model crf1, not nothing",
    ]
    assert "2 runs, 4 skipped" in result.stderr
    assert [record.method for record in Store(store).records()] == ["majority"] * 2


@fakes
def test_a_grid_of_skipped_runs_alone_is_no_failure(tmp_path: Path) -> None:
    result = run(tmp_path / "runs", "segmenter", form="csv")
    assert result.exit_code == 0, result.output
    assert result.stdout.count(",skipped,segmenter,toy,") == 2
    assert "0 runs, 2 skipped" in result.stderr
    assert not (tmp_path / "runs").exists()


@fakes
def test_a_method_that_does_not_fit_is_not_even_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(
        "sslbench.experiment.execute.grid.run_all", lambda tasks, **_: started.extend(tasks) or ()
    )
    request = RunRequest(["segmenter"], ["toy"], model="nothing", params=["weight=2"])
    run_tasks = plan(request, store=None, notice=lambda text: None)
    result = run_grid(run_tasks, Store(tmp_path / "runs"), isolated, GridOptions(retry=True))
    assert started == []
    assert [record.params["weight"] for record in result.skipped] == [2.0]
    assert result.failed == []


@fakes
def test_a_skipped_record_in_a_store_is_no_row_of_a_leaderboard() -> None:
    done, other = execute(task(labeled=20)), execute(task("hostile", labeled=20))
    other.status = "skipped"
    (table,) = leaderboard([done, other])
    assert [row.method for row in table.rows] == ["majority"]


@fakes
def test_training_such_a_method_is_bad_input(tmp_path: Path) -> None:
    model = tmp_path / "model"
    result = sslbench(
        *("train", "--method", "segmenter", "--dataset", "toy", "--model", "nothing"),
        *("--save", model),
    )
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "sslbench: segmenter cannot be trained on toy: it is for segmentation, joint, not tagging;"
        " see sslbench show segmenter"
    ]
    assert not model.exists()


def test_show_names_tasks_and_models() -> None:
    lines = sslbench("show", "pipeline_st").stdout.split("\n")
    assert "  tasks         segmentation, joint" in lines
    assert "  models        all" in lines
    shown = sslbench("show", "type_self_training").stdout
    assert re.search("model has +first_order", shown)
