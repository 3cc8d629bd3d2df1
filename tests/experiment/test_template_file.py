"""Template files in place of a registered featurizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import sslbench
from sslbench.cli import cli
from sslbench.experiment.checks.replay import replay_task
from sslbench.experiment.identity import is_current
from sslbench.experiment.run.runner import execute
from sslbench.plugins import registry

SMALL = {"labeled": 20, "unlabeled": 20}


@pytest.fixture
def templates(tmp_path: Path) -> str:
    path = tmp_path / "my templates.txt"
    path.write_text('U00:%x[0,0]\nU01:%x[-1,0]\nU02:%m[0,0,"^.?.?"]\nB\n')
    return str(path)


def test_a_run_with_the_users_templates(templates: str, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    (run,) = sslbench.run("supervised", "synth", featurizer=templates, store=store, **SMALL)
    assert (run.status, run.featurizer) == ("ok", "file-my_templates.txt")
    assert run.data["templates"] == ["word[0]", "word[-1]", "word.head2[0]"]
    assert is_current(run.spec, run.code, registry())
    (again,) = sslbench.run("supervised", "synth", featurizer=templates, store=store, **SMALL)
    assert again.created == run.created
    replayed = execute(replay_task(run, registry(), threads=1))
    assert replayed.predictions_sha256 == run.predictions_sha256


def test_other_templates_are_another_run(templates: str, tmp_path: Path) -> None:
    given = {"featurizer": templates, "store": tmp_path / "runs", **SMALL}
    (first,) = sslbench.run("supervised", "synth", **given)
    Path(templates).write_text("U00:%x[0,0]\n")
    (second,) = sslbench.run("supervised", "synth", **given)
    assert first.run_id != second.run_id
    assert first.score != second.score


def test_columns_are_numbered_as_in_the_users_files(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a X 1\nb Y 2\n\na X 1\nb X 2\n")
    path = tmp_path / "template"
    path.write_text("U00:%x[0,1]\n")
    given = {"data": tmp_path / "train.txt", "columns": ("word", "pos", "label")}
    tagger = sslbench.train("supervised", featurizer=str(path), **given)
    assert [str(t) for t in tagger.tagger.index.node_templates] == ["pos[0]"]
    tagger.save(tmp_path / "model")
    assert sslbench.load_tagger(tmp_path / "model").predict([[("z", "X")]]) == [["1"]]


def test_a_line_that_cannot_be_read_is_told_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "template"
    path.write_text("U00:%x[0,0]\nU01:%x[0,7]\n")
    words = ["run", "--method", "supervised", "--dataset", "synth", "--featurizer", str(path)]
    result = CliRunner().invoke(cli, [*words, "--store", str(tmp_path / "runs")])
    assert result.exit_code == 2
    assert f"{path}:2: %x[0,7]: there is no column 7" in result.output + str(result.exception)
