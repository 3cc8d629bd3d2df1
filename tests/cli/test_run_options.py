"""Several seeds, values and methods in one word; the price of a grid."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import pytest
from click.testing import Result

from sslbench.cli.options import SEEDS, named
from sslbench.cli.run import _warnings
from sslbench.engine.errors import UserError
from sslbench.experiment.planning import published
from sslbench.experiment.planning.settings import combinations
from sslbench.plugins import registry
from support.command import sslbench

SMALL = ["--dataset", "synth", "--featurizer", "basic", "--labeled", "20", "--unlabeled", "20"]


def run(*words: str, store: Path) -> Result:
    return sslbench("run", *words, *SMALL, "--store", store)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", (3,)), ("0-2", (0, 1, 2)), ("0-1,7", (0, 1, 7)), ("5-5, 1", (5, 1))],
)
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert SEEDS.convert(text, None, None) == seeds


@pytest.mark.parametrize("text", ["", "a", "2-1", "1-", "-1", "0-99999", "1..2"])
def test_what_is_no_list_of_seeds(text: str) -> None:
    with pytest.raises(click.UsageError, match="no list of seeds"):
        SEEDS.convert(text, None, None)


def test_values_are_combined() -> None:
    assert combinations(["a=1,2", "b=[1,2]", "c=x"]) == [
        ("a=1", "b=[1,2]", "c=x"),
        ("a=2", "b=[1,2]", "c=x"),
    ]
    assert combinations([]) == [()]
    many = ",".join(map(str, range(200)))
    with pytest.raises(UserError, match="40,000 combinations of values; give at most 10,000"):
        combinations([f"a={many}", f"b={many}"])


def test_a_grid_of_values_and_seeds(tmp_path: Path) -> None:
    words = [
        *("--method", "supervised", "--method", "self_training", "--set", "rounds=1,2"),
        *("--seeds", "0-1"),
    ]
    result = run(*words, "--format", "json", store=tmp_path)
    records = json.loads(result.stdout)
    cells = [(r["method"], r["params"].get("rounds"), r["protocol"]["seed"]) for r in records]
    # supervised has no rounds: it is run once for both values
    assert sorted(cells, key=str) == [
        ("self_training", 1, 0),
        ("self_training", 1, 1),
        ("self_training", 2, 0),
        ("self_training", 2, 1),
        ("supervised", None, 0),
        ("supervised", None, 1),
    ]


def test_a_dry_run_runs_nothing_and_tells_the_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--method", "supervised", "--seeds", "0-2")
    monkeypatch.setattr(published, "published_folder", lambda: tmp_path)  # which has no results
    before = run(*words, "--dry-run", store=tmp_path)
    assert before.exit_code == 0, before.output
    assert before.stdout.endswith("3 runs: 0 s of CPU, without 3 runs of unknown price\n")
    assert not list(tmp_path.glob("*.json"))
    run("--method", "supervised", store=tmp_path)
    after = run(*words, "--dry-run", store=tmp_path)
    row = after.stdout.splitlines()[1].split()
    assert row[:3] == ["supervised", "synth", "20"]
    assert row[-3:-1] == ["3", "1"]
    assert "unknown price" not in after.stdout
    assert "~" not in after.stdout
    other_size = ["--labeled", "30", "--store", str(tmp_path), "--dry-run"]
    other = sslbench("run", "--method", "supervised", *SMALL, *other_size)
    assert "~: by runs of other sizes, data or methods" in other.stdout


def test_a_dry_run_without_records_has_the_prices_of_the_published_results(tmp_path: Path) -> None:
    shown = run("--method", "supervised", "--dry-run", store=tmp_path)
    assert re.search(r"supervised .* ~[0-9]+$", shown.stdout, re.M)
    assert "unknown price" not in shown.stdout


def test_all_methods(tmp_path: Path) -> None:
    shown = run("--method", "all", "--dry-run", store=tmp_path)
    rows = [line.split()[0] for line in shown.stdout.splitlines()[1:-1]]
    known = registry().methods.items()
    plain = [(name, info) for name, info in known if not info.needs and not info.weak]
    fitting = [name for name, info in plain if "tagging" in info.tasks]
    assert rows == [name for name in fitting if name != "adaptive_pretraining"]
    assert "skipped: adaptive_pretraining on synth: for models that provide" in shown.stderr
    assert "skipped: pipeline_st on synth" in shown.stderr
    assert "skipped: encoder on synth: without its parameter folder" in shown.stderr


def test_names_are_completed() -> None:
    assert named("methods")(None, None, "graph_p") == ["graph_propagation", "graph_pr"]


def test_a_warning_is_told_once_with_its_methods() -> None:
    small, none = "the test has 50 tokens", "finds nothing"
    records: list[Any] = [
        SimpleNamespace(method=method, dataset=dataset, warnings=warnings)
        for method, dataset, warnings in (
            ("supervised", "mine", [small]),
            ("jess_cm", "mine", [small, none]),
            ("jess_cm", "mine", [small]),  # another seed
            ("graph_pr", "yours", [small]),
        )
    ]
    assert _warnings(records) == [
        f"supervised, jess_cm on mine: {small}",
        f"jess_cm on mine: {none}",
        f"graph_pr on yours: {small}",
    ]
    more = [SimpleNamespace(method=m, dataset="mine", warnings=[small]) for m in "abcd"]
    assert _warnings(cast(Any, more)) == [f"4 methods on mine: {small}"]
