"""`sslbench run --guard` and the guard of `sslbench train`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from sslbench.experiment.records.store import Store
from sslbench.experiment.run.saved import load_tagger
from sslbench.plugins import registry
from support.chunk_text import chunks
from support.command import sslbench


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "train.txt").write_text(chunks(20, "IOB2", "\t"))
    (folder / "unlabeled.txt").write_text(chunks(20, "IOB2", "\t", seed=1))
    return folder


def train(data: Path, model: Path, *words: str) -> Result:
    columns = ("--data", data, "--columns", "word,label")
    return sslbench("train", "--method", "self_training", *columns, "--save", model, *words)


def test_train_says_what_is_kept(data: Path, tmp_path: Path) -> None:
    result = train(data, tmp_path / "my.model", "--set", "weight=1e-6", "--set", "rounds=1")
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.stderr.splitlines() if "guard:" in line]
    # so small a weight changes nothing: equal scores speak for neither
    assert "the supervised tagger is kept (--no-guard keeps self_training)" in line
    assert load_tagger(tmp_path / "my.model", registry()).corpus.task == "spans"
    shown = sslbench("show", tmp_path / "my.model").stdout
    assert "my.model: supervised, in place of self_training\n" in shown
    assert "  parameters" not in shown


def test_train_without_a_guard(data: Path, tmp_path: Path) -> None:
    result = train(data, tmp_path / "my.model", "--no-guard")
    assert result.exit_code == 0, result.output
    assert "guard:" not in result.stderr


def test_a_guarded_run_is_another_run_in_a_process_of_its_own(data: Path, tmp_path: Path) -> None:
    store = ("--store", tmp_path / "runs", "--format", "json")
    columns = ("--data", data, "--columns", "word,label", "--set", "rounds=1")
    for extra in ((), ("--guard",)):
        result = sslbench("run", "--method", "self_training", *columns, *store, *extra)
        assert result.exit_code == 0, result.output
    (shown,) = json.loads(result.stdout)
    assert shown["spec"]["guard"]["method"] == "supervised"
    assert shown["trace"]["guard"]["kept"] in ("method", "baseline")
    assert "self_training (guarded) on data" in result.stderr
    assert len(Store(tmp_path / "runs").records()) == 2
