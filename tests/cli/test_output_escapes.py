"""Text from files, records and plugins on standard output and error: escaped, in one line."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest
from click.testing import Result

from sslbench.cli.text import echo, labeled, table
from sslbench.experiment.records.store import Store
from support.board_records import record
from support.command import sslbench
from support.hostile_text import ESCAPES, NAME, SURROGATE, acts_on_a_terminal
from support.plugin_site import Site
from support.run_fakes import task  # noqa: F401  (its plugin is installed by the fixture)

FILE_NAME = NAME.replace("/", "").replace(".", "") + ".conll"


def checked(result: Result, status: int = 0) -> Result:
    assert result.exit_code == status, result.output
    assert not acts_on_a_terminal(result.stdout), result.stdout
    assert not acts_on_a_terminal(result.stderr), result.stderr
    return result


def test_tables_labels_and_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(table([(NAME, "a"), ("b", NAME)]).split("\n")) == 2
    assert not acts_on_a_terminal(table([(NAME, "a"), ("b", NAME)]))
    assert not acts_on_a_terminal(labeled("reference", NAME))
    echo(f"{NAME}{SURROGATE}")
    assert not acts_on_a_terminal(capsys.readouterr().out)


@pytest.mark.parametrize(
    "words",
    [
        [NAME],
        [f"--{ESCAPES}"],
        ["show", NAME],
        ["list", NAME],
        ["run", "--method", NAME, "--dataset", "synth"],
        ["run", "--method", "supervised", "--dataset", NAME],
        ["run", "--method", "supervised", "--dataset", "synth", "--set", NAME],
        ["run", "--method", "supervised", "--dataset", "synth", f"--{ESCAPES}", "1"],
        ["run", "--method", "supervised", "--dataset", "synth", "--labeled", NAME],
        ["run", "--method", "supervised", "--data", f"/no/{NAME}"],
        ["run", "--method", "supervised", "--dataset", "synth", "--featurizer", NAME],
        ["compare", NAME, NAME],
        ["errors", NAME],
        ["data", "path", NAME],
        ["tag", NAME, NAME],
        ["leaderboard", "--store", NAME],
        ["new", "method", NAME],
        ["check", NAME],
    ],
)
def test_what_is_typed_is_quoted_safely(words: list[str]) -> None:
    result = checked(sslbench(*words), 2)
    assert result.stdout == ""
    assert len(result.stderr) < 4000


@pytest.mark.parametrize("name", [FILE_NAME, "-rf", "=1+1"])
def test_a_file_with_a_hostile_name_words_and_labels(name: str, tmp_path: Path) -> None:
    try:
        os.close(os.open(tmp_path / name, os.O_CREAT))
    except OSError:
        pytest.skip("the file system does not take this name")
    label = "X\x1b[31m<script>"
    rows = "".join(f"w{i % 3}\x1b[2J A\nb\u202ec {label}\n\n" for i in range(20))
    (tmp_path / name).write_text(rows)
    store = tmp_path / "runs"
    words = ["run", "--method", "supervised", "--data", tmp_path / name, "--store", store]
    words += ["--columns", "word,label", "--labeled", 10, "--set", "max_iterations=1"]
    first = checked(sslbench(*words, "--format", "json"))
    (run,) = json.loads(first.stdout)
    assert run["status"] == "ok"
    for form in ("table", "csv"):
        shown = checked(sslbench(*words, "--format", form))
        if form == "csv":
            (row,) = csv.DictReader(io.StringIO(shown.stdout))
            assert row["dataset"][0] not in "=-"
    checked(sslbench("leaderboard", "--store", store, "--out", tmp_path / "boards"))
    checked(sslbench("errors", run["run_id"], "--store", store))
    checked(sslbench("errors", run["run_id"], "--store", store, "--format", "json"))


@pytest.mark.parametrize("inside", [False, True])
def test_a_file_name_that_is_not_utf8(inside: bool, tmp_path: Path) -> None:
    folder = tmp_path / ("data" if inside else SURROGATE)
    try:
        folder.mkdir()
        (folder / f"train-{SURROGATE}.txt").write_text("a A\n\nb B\n\n")
    except OSError:
        pytest.skip("the file system does not take this name")
    words = ["run", "--method", "supervised", "--data", folder, "--columns", "word,label"]
    result = checked(sslbench(*words, "--store", tmp_path / "runs"), 2)
    assert "the name is not UTF-8; rename the file or folder" in result.stderr


def test_records_with_hostile_names(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    runs = [record(method, dataset=NAME, featurizer=NAME) for method in (NAME, f"{NAME}2")]
    for run in runs:
        run.primary_metric = "accuracy"
        store.save(run)
    ids = [run.run_id for run in runs]
    checked(sslbench("compare", *ids, "--store", store.folder))
    checked(sslbench("leaderboard", "--store", store.folder, "--out", tmp_path / "boards"))
    checked(sslbench("verify", *ids, "--store", store.folder), 1)


def test_a_plugin_with_hostile_texts(tmp_path: Path) -> None:
    site = Site(tmp_path)
    code = (
        "from sslbench import MethodInfo, hookimpl\n@hookimpl\ndef sslbench_methods():\n"
        f"    t = {NAME!r}\n    return [MethodInfo(name='m', summary=t, reference=t, target='a:b')]"
    )
    site.install("bad-plugin", "bad", code)
    site.install("worse-plugin", "worse", f"raise ValueError({NAME!r})")
    for words in (["list"], ["show", "m"], ["check", "m"]):
        done = site.python("-m", "sslbench", *words)
        assert not acts_on_a_terminal(done.stdout + done.stderr)
        assert "\\x1b[2J" in done.stderr
