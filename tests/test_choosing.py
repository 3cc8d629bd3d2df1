"""Features and a method for a user's own data."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner

import sslbench
from sslbench.choosing import Candidate, Choice, _fitting, _Search
from sslbench.choosing import choose as choose_method
from sslbench.cli import cli
from sslbench.cli.options import DURATION
from sslbench.experiment.data import Dataset
from sslbench.experiment.planning.published import Line, mean_gains
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.plugins import registry
from sslbench.report.two_runs import RunComparison
from support.synth_text import synth_text

ROOT = Path(__file__).parents[1]


def write(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for seed, name in enumerate(names):
        text = synth_text(40, seed)
        rows = zip(text.sentences("word"), text.sentences("label"), strict=True)
        lines = ["".join(f"{w} {t}\n" for w, t in zip(*row, strict=True)) for row in rows]
        (folder / f"{name}.txt").write_text("\n".join(lines))
    return folder


def toy_dataset() -> Dataset:
    return Dataset("toy", "tagging", "accuracy", None, {})


def choose(folder: Path, *words: str) -> str:
    given = ("--columns", "word,label", "--folds", "2", "--store", str(folder.parent / "runs"))
    result = CliRunner().invoke(cli, ["choose", "--data", str(folder), *given, *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_an_answer_and_a_tagger(tmp_path: Path) -> None:
    folder, model = write(tmp_path / "mine", "train", "unlabeled"), tmp_path / "model"
    only = ("--featurizer", "basic", "--method", "self_training", "--save", str(model))
    only += ("--label-next", "5", str(tmp_path / "next.txt"))
    shown = choose(folder, *only)
    rows = [line.split()[:2] for line in shown.splitlines()[1:3]]
    assert sorted(rows) == [["self_training", "basic"], ["supervised", "basic"]]
    assert "use su" in shown or "use self" in shown
    assert "half of the labels give" in shown
    assert "on new text of this kind (95 % interval; 2 folds of " in shown
    assert (tmp_path / "next.txt").read_text().count("# sentence = ") == 5
    tagger = sslbench.load_tagger(model)
    assert tagger.columns == ("word",)
    again = choose(folder, *only)
    assert again.splitlines()[-3:] == shown.splitlines()[-3:]  # the runs are in the store


def test_all_is_no_method(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", "train", "unlabeled")
    rows = choose(folder, "--featurizer", "basic", "--method", "all", "--budget", "1s")
    assert "jess_cm" in rows
    assert not any(line.startswith("all ") for line in rows.splitlines())
    with pytest.raises(sslbench.UserError, match="no method 'self_trainin'"):
        choose_method(
            RunRequest(("self_trainin",), data=str(folder)), budget=1, store=Store(tmp_path)
        )


def test_without_unlabeled_text_features_are_compared(tmp_path: Path) -> None:
    shown = choose(write(tmp_path / "mine", "train"))
    methods = {line.split()[0] for line in shown.split("\n\n")[0].splitlines()[1:]}
    assert methods == {"supervised"}
    assert len(shown.split("\n\n")[0].splitlines()) > 2


def test_what_there_is_no_time_for_is_told(tmp_path: Path) -> None:
    folder = str(write(tmp_path / "mine", "train"))
    words = ("--columns", "word,label", "--budget", "1s", "--store", str(tmp_path / "runs"))
    result = CliRunner().invoke(cli, ["choose", "--data", folder, *words])
    if result.exit_code == 0:  # a very fast machine
        assert "no time was left" in result.stdout or "stopped after" in result.stdout
    else:
        assert result.exit_code == 2
        assert "nothing could be trained: stopped after 1 s" in result.output


def test_time_is_held_back_for_a_tagger_that_is_kept() -> None:
    record = SimpleNamespace(wall_s=50.0)
    held = []
    for keeps in (False, True):
        search = _Search(
            RunRequest((), folds=5), cast(Any, None), registry(), toy_dataset(), 0.0, print, keeps
        )
        search.choice.tried[Candidate("supervised", "basic")] = cast(Any, record)
        held.append(search.left)
    assert held[0] - held[1] == pytest.approx(20.0, abs=1.0)


def test_methods_of_the_largest_published_gain_per_second_come_first() -> None:
    methods = registry().methods
    names = _fitting(registry(), toy_dataset(), "crf1")
    gains = mean_gains("supervised", "accuracy")
    rates = [gains[name] / methods[name].cost for name in names if gains.get(name, 0.0) > 0]
    assert len(rates) > 3
    assert rates == sorted(rates, reverse=True)
    assert all(gains[name] <= 0 for name in names[-2:])


def test_gains_are_means_over_datasets(tmp_path: Path) -> None:
    head = ",".join(Line.__struct_fields__)
    cell = "{},,100,,rest,0,{},{},,basic,,crf1,x,{},0={},no,1"
    rows = [
        cell.format("a", "no tuning", "base", "f1", 0.5),
        cell.format("a", "no tuning", "mine", "f1", 0.6),
        cell.format("b", "no tuning", "base", "f1", 0.5),
        cell.format("b", "no tuning", "mine", "f1", 0.8),
        cell.format("b", "8 tuning trials", "mine", "f1", 0.1),
        cell.format("c", "no tuning", "mine", "f1", 0.1),  # without the baseline
        cell.format("b", "no tuning", "other", "accuracy", 0.1),
    ]
    (tmp_path / "results.csv").write_text("\n".join([head, *rows]))
    gains = mean_gains("base", "f1", tmp_path / "results.csv")
    assert gains == {"mine": pytest.approx(0.2)}


def test_costs_are_those_of_the_board() -> None:
    methods = registry().methods
    seconds: dict[str, dict[str, float]] = defaultdict(dict)
    with (ROOT / "leaderboards/standard.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["protocol"].startswith("labeled 100,") and float(row["cpu_s"]) > 0:
                seconds[row["method"]][row["dataset"]] = float(row["cpu_s"])
    baseline = seconds.pop("supervised")
    for name, own in seconds.items():
        ratios = [math.log(own[dataset] / baseline[dataset]) for dataset in own]
        measured = math.exp(sum(ratios) / len(ratios))
        assert 0.5 < methods[name].cost / measured < 2.0, (name, measured)


def compared(difference: float, p: float) -> RunComparison:
    return RunComparison(difference, -1.0, 1.0, p, ("a", "b"), "f1", (0.5, 0.5), 100, ())


@pytest.mark.parametrize(
    ("a", "b", "chosen"),
    [
        ((0.1, 0.001), (0.2, 0.9), "a"),  # b is better, but by chance
        ((0.1, 0.04), (0.2, 0.9), "a"),
        ((0.1, 0.06), (0.2, 0.9), "supervised"),
        ((-0.1, 0.001), (-0.2, 0.001), "supervised"),
        ((0.1, 0.001), (0.2, 0.001), "b"),
    ],
)
def test_a_method_must_be_clearly_better(
    a: tuple[float, float], b: tuple[float, float], chosen: str
) -> None:
    record = cast(Any, None)
    candidates = {name: Candidate(name, "basic") for name in ("supervised", "a", "b")}
    gains = {"supervised": 0.0, "a": a[0], "b": b[0]}
    ranked = sorted(candidates, key=lambda name: -gains[name])
    choice = Choice(
        tried={candidates[name]: record for name in ranked},
        against_baseline={candidates["a"]: compared(*a), candidates["b"]: compared(*b)},
    )
    assert choice.chosen == candidates[chosen]
    if chosen != "supervised":
        p = choice.against_baseline[choice.chosen].p_value
        assert choice.corrected_p == 2 * p  # of two methods
    assert choice.baseline == candidates["supervised"]


def test_times() -> None:
    assert [DURATION.convert(text, None, None) for text in ("90s", "10m", "1.5h")] == [
        90.0,
        600.0,
        5400.0,
    ]
    for text in ("10", "0s", "-1m", "1d"):
        with pytest.raises(click.UsageError, match="no time such as"):
            DURATION.convert(text, None, None)
