"""Which sentences to label next."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from sslbench.cli import cli
from sslbench.engine.errors import UserError
from sslbench.experiment.request.request import TrainRequest
from sslbench.experiment.run.saved import TrainedTagger, train_tagger
from sslbench.tagging.next_to_label import next_to_label


def trained(folder: Path, unlabeled: str | None) -> TrainedTagger:
    (folder / "train.txt").write_text("\n\n".join(["a\tN\nb\tV", "a\tN\nc\tN"] * 4) + "\n")
    if unlabeled is not None:
        (folder / "unlabeled.txt").write_text(unlabeled)
    request = TrainRequest(
        "supervised", data=folder, columns=("word", "label"), featurizer="basic", guard=False
    )
    return train_tagger(request, notice=lambda text: None, quiet=True)


def test_lines_are_read_again_as_labeled_sentences(tmp_path: Path) -> None:
    tagger = trained(tmp_path, "a\nb\n\nx\ny\nz\n\na\nc\n\np\nq\nr\ns\n")
    numbers, text = next_to_label(tagger, 2)
    assert numbers == [2, 4]  # the sentences of unseen words
    assert [line for line in text.split("\n") if line.startswith("#")] == [
        "# sentence = 2",
        "# sentence = 4",
    ]
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "train.txt").write_text(text)
    again = train_tagger(
        TrainRequest("supervised", data=tmp_path / "again", columns=("word", "label"), guard=False),
        notice=lambda text: None,
        quiet=True,
    )
    train = again.trained.sample.dataset.splits["train"]
    assert train.sentences("word") == [["x", "y", "z"], ["p", "q", "r", "s"]]


def test_choose_says_so_before_it_tries_methods(tmp_path: Path) -> None:
    trained(tmp_path, None)
    words = ["choose", "--data", str(tmp_path), "--columns", "word,label", "--label-next", "2", "x"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 2
    assert "no unlabeled sentences to choose from" in result.stderr


def test_there_must_be_unlabeled_text(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no unlabeled sentences to choose from"):
        next_to_label(trained(tmp_path, None), 2)
